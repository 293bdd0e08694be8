//! The runs of a class in blocks: within a block the order of the values is random if nothing goes with slowness.

use crate::stats::goes_with_slowness::{Slowness, relative};
use crate::stats::slow_runs::SlowRunTest;
use crate::stats::within_nodes;
use crate::table::RunTable;
use crate::verdicts::judged_session::JudgedSession;
use crate::verdicts::rounds_of_runs::RoundEffects;
use hashbrown::HashMap;

/// Times in blocks, and the rows that they come from.
pub(super) struct TimesInBlocks {
    pub rows: Vec<u32>,
    pub slowness: Slowness,
    /// True for runs that are slow by the test of slow runs.
    pub slow: Vec<bool>,
    /// The end of the rows of each node, or of each node in a session.
    node_ends: Vec<usize>,
    /// The round of each row, from the first row on; [`NO_ROUND`] if the rounds of its session do not differ.
    rounds: Vec<u32>,
    /// The index of the value to which a row belongs.
    value_of: Vec<u32>,
    /// Each node has one value.
    is_between: bool,
}

const NO_ROUND: u32 = u32::MAX;

impl TimesInBlocks {
    /// One value per time, from a value per row: relative to the node's median, or this median itself.
    pub fn values(&self, mut of_rows: Vec<f64>) -> Vec<f64> {
        if self.is_between {
            let medians = medians(&of_rows, &self.node_ends);
            return means(&medians, &self.value_of, self.slowness.times().len());
        }
        relative(&mut of_rows, &self.node_ends);
        self.subtract_rounds(&mut of_rows);
        means(&of_rows, &self.value_of, self.slowness.times().len())
    }

    /// If rounds differ, their effects were subtracted from the times: what all nodes of a round have in common would
    /// otherwise look like an association of each node.
    fn subtract_rounds(&self, values: &mut [f64]) {
        let mut of_round: HashMap<u32, Vec<f64>> = HashMap::new();
        for (value, round) in values.iter().zip(&self.rounds).filter(|(value, _)| !value.is_nan()) {
            if *round != NO_ROUND {
                of_round.entry(*round).or_default().push(*value);
            }
        }
        let middle =
            |(round, mut values): (u32, Vec<f64>)| Some((round, within_nodes::median_of(&mut values)?));
        let effects: HashMap<u32, f64> = of_round.into_iter().filter_map(middle).collect();
        for (value, round) in values.iter_mut().zip(&self.rounds) {
            *value -= effects.get(round).copied().unwrap_or_default();
        }
    }
}

/// The runs of all sessions.
#[derive(Default)]
pub(in crate::verdicts) struct RunsInBlocks {
    pub(super) rows: Vec<u32>,
    times: Vec<f64>,
    slow: Vec<bool>,
    node_ends: Vec<usize>,
    rounds: Vec<u32>,
    round_count: u32,
    value_of: Vec<u32>,
    block_ends: Vec<usize>,
}

impl RunsInBlocks {
    /// Adds a session with the times of single runs.
    pub fn add(&mut self, table: &RunTable, session: &JudgedSession, slow: &[SlowRunTest]) {
        if session.has_medians() {
            return;
        }
        let before = self.rows.len();
        for rows in session.nodes {
            self.rows.extend_from_slice(rows);
            self.node_ends.push(self.rows.len());
        }
        let mut times = session.times().to_vec();
        relative(&mut times, session.ends());
        let RoundEffects { effects, of_run, .. } = &session.round_effects;
        match effects.is_empty() {
            true => self.rounds.resize(self.rows.len(), NO_ROUND),
            false => self.rounds.extend(of_run.iter().map(|round| self.round_count + round)),
        }
        self.round_count += effects.len() as u32;
        let mut is_slow = vec![false; times.len()];
        let start = |node: usize| node.checked_sub(1).map_or(0, |before| session.ends()[before]);
        slow.iter().for_each(|run| is_slow[start(run.node) + run.run] = true);
        let blocks = block_of_nodes(table, session);
        // The runs of each block, in the order of their rows.
        let mut runs: Vec<(u32, u32, usize)> = Vec::with_capacity(times.len());
        for (node, rows) in session.nodes.iter().enumerate() {
            for (run, row) in rows.iter().enumerate() {
                let at = start(node) + run;
                // Without jobs each row is a run of its own.
                let name = if blocks.are_shared { table.run.at(*row as usize) } else { at as u32 };
                runs.push((blocks.of_node[node], name, at));
            }
        }
        runs.sort_unstable();
        self.value_of.resize(before + times.len(), 0);
        for of_block in runs.chunk_by(|a, b| a.0 == b.0) {
            for of_run in of_block.chunk_by(|a, b| a.1 == b.1) {
                let number = self.times.len() as u32;
                let sum: f64 = of_run.iter().map(|(_, _, at)| times[*at]).sum();
                self.times.push(sum / of_run.len() as f64);
                self.slow.push(of_run.iter().any(|(_, _, at)| is_slow[*at]));
                of_run.iter().for_each(|(_, _, at)| self.value_of[before + at] = number);
            }
            self.block_ends.push(self.times.len());
        }
    }

    /// The runs within their nodes.
    pub(super) fn part(self) -> TimesInBlocks {
        TimesInBlocks {
            rows: self.rows,
            slowness: Slowness::new(self.times, self.block_ends),
            slow: self.slow,
            node_ends: self.node_ends,
            rounds: self.rounds,
            value_of: self.value_of,
            is_between: false,
        }
    }
}

/// The nodes of a session.
pub(super) fn between(table: &RunTable, session: &JudgedSession) -> TimesInBlocks {
    let blocks = block_of_nodes(table, session);
    let medians: Vec<f64> = session.medians.iter().map(|node| node.median).collect();
    let mut times = means(&medians, &blocks.of_node, blocks.count);
    let ends = vec![times.len()];
    relative(&mut times, &ends);
    TimesInBlocks {
        rows: session.nodes.concat(),
        slow: vec![false; times.len()],
        slowness: Slowness::new(times, ends),
        node_ends: session.ends().to_vec(),
        rounds: Vec::new(),
        value_of: blocks.of_node,
        is_between: true,
    }
}

/// Nodes that ran jobs together are one block: a slow node makes all nodes of a job slow, so their times are not
/// independent.
struct Blocks {
    of_node: Vec<u32>,
    count: usize,
    /// A block may have several nodes.
    are_shared: bool,
}

fn block_of_nodes(table: &RunTable, session: &JudgedSession) -> Blocks {
    let nodes = session.nodes.len();
    if !session.has_jobs(table) {
        return Blocks { of_node: (0..nodes as u32).collect(), count: nodes, are_shared: false };
    }
    // Union of nodes that share a run.
    let mut parent: Vec<u32> = (0..nodes as u32).collect();
    let mut node_of_run: HashMap<u32, u32> = HashMap::new();
    for (node, rows) in session.nodes.iter().enumerate() {
        for row in *rows {
            let other = *node_of_run.entry(table.run.at(*row as usize)).or_insert(node as u32);
            let [a, b] = [node as u32, other].map(|node| root(&mut parent, node));
            parent[a.max(b) as usize] = a.min(b);
        }
    }
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut of_node = Vec::with_capacity(nodes);
    for node in 0..nodes as u32 {
        let (root, next) = (root(&mut parent, node), numbers.len() as u32);
        of_node.push(*numbers.entry(root).or_insert(next));
    }
    Blocks { of_node, count: numbers.len(), are_shared: true }
}

fn root(parent: &mut [u32], mut node: u32) -> u32 {
    while parent[node as usize] != node {
        parent[node as usize] = parent[parent[node as usize] as usize];
        node = parent[node as usize];
    }
    node
}

/// The median of the known values of each node; NaN if there is none.
fn medians(values: &[f64], ends: &[usize]) -> Vec<f64> {
    let mut start = 0;
    let of = |end: &usize| {
        let mut known: Vec<f64> =
            values[start..*end].iter().copied().filter(|value| !value.is_nan()).collect();
        start = *end;
        within_nodes::median_of(&mut known).unwrap_or(f64::NAN)
    };
    ends.iter().map(of).collect()
}

/// The mean of the known values with the same number, for the numbers below `count`; NaN if there is none.
fn means(values: &[f64], numbers: &[u32], count: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0u32); count];
    for (value, number) in values.iter().zip(numbers).filter(|(value, _)| !value.is_nan()) {
        let (sum, known) = &mut sums[*number as usize];
        (*sum, *known) = (*sum + value, *known + 1);
    }
    sums.into_iter().map(|(sum, known)| if known > 0 { sum / f64::from(known) } else { f64::NAN }).collect()
}
