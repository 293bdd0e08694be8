//! Simulated fleets whose slow nodes and slow runs are known.

use pmmpi_analysis::stats::random::Random;

/// How a fleet is generated. A time is 1 s times factors, see [`Fleet::new`].
#[derive(Clone, Debug)]
pub struct Recipe {
    pub nodes: usize,
    pub runs: usize,
    /// Standard deviation of ln T between healthy nodes.
    pub node_sd: f64,
    pub shape: Shape,
    /// Standard deviation of ln T between the runs of a node.
    pub run_sd: f64,
    /// Mean share of runs that are slower by [`SLOW_RUN`].
    pub slow_run_share: f64,
    /// Mean share of nodes that are slower by [`SLOW_NODE`].
    pub slow_node_share: f64,
    /// Share of nodes of another kind, and their slowdown.
    pub other_kind: Option<(f64, f64)>,
}

/// Range of the slowdown as a fraction, uniformly distributed.
pub const SLOW_NODE: (f64, f64) = (0.03, 0.12);
pub const SLOW_RUN: (f64, f64) = (0.10, 0.30);

/// The distribution of healthy nodes, with the recipe's standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Normal,
    /// Student's t with 5 degrees of freedom: heavy tails.
    T5,
    /// An exponential tail of slow nodes.
    Skewed,
}

impl Default for Recipe {
    /// The reference case of the design.
    fn default() -> Self {
        Self {
            nodes: 2000,
            runs: 7,
            node_sd: 0.015,
            shape: Shape::Normal,
            run_sd: 0.003,
            slow_run_share: 0.01,
            slow_node_share: 0.01,
            other_kind: None,
        }
    }
}

/// Simulated times, and which of them are slow.
pub struct Fleet {
    /// ln seconds, node after node.
    pub times: Vec<f64>,
    /// The end of each node's runs.
    pub ends: Vec<usize>,
    /// The slowdown of each node as a fraction; 0 for healthy nodes.
    pub slow_by: Vec<f64>,
    /// True for each slow run.
    pub slow_runs: Vec<bool>,
    /// True for each node of the other kind.
    pub other_kind: Vec<bool>,
}

impl Fleet {
    pub fn new(recipe: &Recipe, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let between = |random: &mut Random, (low, high): (f64, f64)| low + (high - low) * random.uniform();
        let mut fleet = Fleet {
            times: Vec::with_capacity(recipe.nodes * recipe.runs),
            ends: (1..=recipe.nodes).map(|node| node * recipe.runs).collect(),
            slow_by: Vec::with_capacity(recipe.nodes),
            slow_runs: Vec::with_capacity(recipe.nodes * recipe.runs),
            other_kind: Vec::with_capacity(recipe.nodes),
        };
        for _ in 0..recipe.nodes {
            let is_slow = random.uniform() < recipe.slow_node_share;
            let slow_by = if is_slow { between(&mut random, SLOW_NODE) } else { 0.0 };
            let (share, kind) = recipe.other_kind.unwrap_or_default();
            let is_other = random.uniform() < share;
            let node = recipe.node_sd * recipe.shape.draw(&mut random)
                + slow_by.ln_1p()
                + if is_other { kind.ln_1p() } else { 0.0 };
            for _ in 0..recipe.runs {
                let is_slow = random.uniform() < recipe.slow_run_share;
                let run = if is_slow { between(&mut random, SLOW_RUN).ln_1p() } else { 0.0 };
                fleet.times.push(node + recipe.run_sd * random.normal() + run);
                fleet.slow_runs.push(is_slow);
            }
            fleet.slow_by.push(slow_by);
            fleet.other_kind.push(is_other);
        }
        fleet
    }

    /// The fleet with these nodes only.
    pub fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let all = self.ends[0]; // every node has equally many
        self.first_runs(|node| if keep(node) { all } else { 0 })
    }

    /// The first runs of each node; omits nodes whose count is 0.
    pub fn first_runs(&self, count: impl Fn(usize) -> usize) -> Self {
        let mut part =
            Fleet { times: vec![], ends: vec![], slow_by: vec![], slow_runs: vec![], other_kind: vec![] };
        let mut from = 0;
        for (node, end) in self.ends.iter().enumerate() {
            let runs = from..from + count(node).min(end - from);
            from = *end;
            if !runs.is_empty() {
                part.times.extend_from_slice(&self.times[runs.clone()]);
                part.slow_runs.extend_from_slice(&self.slow_runs[runs]);
                part.ends.push(part.times.len());
                part.slow_by.push(self.slow_by[node]);
                part.other_kind.push(self.other_kind[node]);
            }
        }
        part
    }
}

impl Shape {
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Shape::Normal => random.normal(),
            Shape::T5 => {
                let squares: f64 = (0..5).map(|_| random.normal().powi(2)).sum();
                random.normal() / (squares / 5.0).sqrt() / (5.0f64 / 3.0).sqrt()
            }
            Shape::Skewed => random.exponential() - 1.0,
        }
    }
}
