//! Fleets that do not fulfil all assumptions: each function simulates one case, and gives what the report says about
//! it.

use crate::measured_runs::{Judged, MeasuredRun, MeasuredRuns};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_analysis::warnings::WarningCode;
use std::ops::Range;

/// A result: what was counted, and its mean over the fleets.
pub type Rate = (&'static str, f64);

/// Nodes and runs of one session. y = ln T + s N(0, 1) per node + sigma N(0, 1) per run.
#[derive(Clone, Copy)]
pub struct Session {
    pub nodes: usize,
    pub runs: usize,
    /// Time of a usual run (s).
    pub time_s: f64,
    /// Times are rounded to multiples of this (s); 0 for exact times.
    pub unit: f64,
    /// Standard deviation of ln T between nodes.
    pub s: f64,
    /// Standard deviation of ln T between the runs of a node.
    pub sigma: f64,
    /// Share of slow nodes.
    pub slow_nodes: f64,
    /// Least and largest slowdown of slow nodes.
    pub slow_by: (f64, f64),
    /// Share of slow runs, slower by 10 to 30 %.
    pub slow_runs: f64,
}

/// A class without slow nodes and slow runs.
pub const HEALTHY: Session = Session {
    nodes: 100,
    runs: 7,
    time_s: 10.0,
    unit: 0.0,
    s: 0.005,
    sigma: 0.02,
    slow_nodes: 0.0,
    slow_by: (0.03, 0.12),
    slow_runs: 0.0,
};

/// Sums over fleets.
#[derive(Default)]
pub struct Sums {
    numbers: Vec<(&'static str, f64, f64)>,
}

impl Sums {
    /// Adds `part` of `whole`.
    pub fn add(&mut self, name: &'static str, part: f64, whole: f64) {
        match self.numbers.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, parts, wholes)) => (*parts, *wholes) = (*parts + part, *wholes + whole),
            None => self.numbers.push((name, part, whole)),
        }
    }

    /// Counts in how many cases something is true.
    pub fn count(&mut self, name: &'static str, is_true: bool) {
        self.add(name, f64::from(u8::from(is_true)), 1.0);
    }

    pub fn rates(self) -> Vec<Rate> {
        let rate = |(name, part, whole): (&'static str, f64, f64)| {
            (name, if whole > 0.0 { part / whole } else { 0.0 })
        };
        self.numbers.into_iter().map(rate).collect()
    }
}

/// What is true of a simulated fleet.
#[derive(Default)]
pub struct Truth {
    /// How much slower each node is (ln T).
    pub theta: Vec<f64>,
    /// The part of it that makes a node slow (a fraction), 0 for a healthy one.
    pub by: Vec<f64>,
    /// Whether each run is slow, node by node.
    pub are_slow: Vec<bool>,
}

/// For each seed `fleet` simulates the runs, and `about` counts what the report says about them.
pub fn over<T>(
    seeds: Range<u64>,
    fleet: impl Fn(&mut Random, &mut MeasuredRuns) -> T,
    about: impl Fn(&mut Sums, &Judged, &T),
) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut runs = MeasuredRuns::default();
        let truth = fleet(&mut Random::new(seed), &mut runs);
        about(&mut sums, &runs.judged(), &truth);
    }
    sums.rates()
}

impl Session {
    /// Adds the runs of a session to `runs`; `more` is what is added to a run of this node and number (ln T), and its
    /// start (s).
    pub fn simulate(
        &self,
        random: &mut Random,
        runs: &mut MeasuredRuns,
        more: impl Fn(usize, usize) -> (f64, Option<f64>),
    ) -> Truth {
        runs.unit = self.unit;
        let mut truth = Truth::default();
        for node in 0..self.nodes {
            let by = slowdown(random, self.slow_nodes, self.slow_by);
            let theta = self.s * random.normal() + by.ln_1p();
            truth.by.push(by);
            truth.theta.push(theta);
            for run in 0..self.runs {
                let slow = slowdown(random, self.slow_runs, (0.1, 0.3));
                truth.are_slow.push(slow > 0.0);
                let (more, start_s) = more(node, run);
                let ln_time = self.time_s.ln() + theta + self.sigma * random.normal() + slow.ln_1p() + more;
                runs.add(MeasuredRun { node, run, start_s, ln_time, ..MeasuredRun::default() });
            }
        }
        truth
    }
}

fn slowdown(random: &mut Random, share: f64, (least, most): (f64, f64)) -> f64 {
    if random.uniform() < share { least + (most - least) * random.uniform() } else { 0.0 }
}

/// What a session's verdicts are worth.
pub fn session(of: Session, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| of.simulate(random, runs, |_, _| (0.0, None));
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        about_runs(sums, judged, truth, of.runs);
        sums.count("rounding warned", judged.warns(WarningCode::RoundedTimes));
        sums.count("noise warned", judged.warns(WarningCode::NoiseFloor));
    })
}

/// The same, with times of another tool for the first nodes: rounded to `unit` seconds.
pub fn two_tools(of: Session, nodes: usize, unit: f64, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        runs.coarser = (nodes, unit);
        of.simulate(random, runs, |_, _| (0.0, None))
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        about_runs(sums, judged, truth, of.runs);
        sums.count("rounding warned", judged.warns(WarningCode::RoundedTimes));
    })
}

/// True if the verdict says that the node is slow: SLOW, or SLOW-TAIL in a class of fewer than 20 nodes.
pub fn is_flagged(judged: &Judged, node: usize, nodes: usize) -> bool {
    judged.node(node).verdict >= Some(if nodes < 20 { Verdict::SlowTail } else { Verdict::Slow })
}

/// Counts what the report says about nodes.
pub fn about_nodes(sums: &mut Sums, judged: &Judged, truth: &Truth) {
    let Truth { theta, by, .. } = truth;
    let nodes = theta.len();
    if nodes < 2 {
        return;
    }
    let mut flagged = Vec::new();
    let (mut false_slow, mut false_drains, mut unusual) = (0.0, 0.0, false);
    for node in 0..nodes {
        let report = judged.node(node);
        let others = theta.iter().enumerate().filter(|(at, _)| *at != node).map(|(_, theta)| *theta);
        let truth = theta[node] - median(others.collect());
        let is_slow = by[node] > 0.0;
        let says = is_flagged(judged, node, nodes);
        if is_slow {
            sums.count("recall", says);
        } else if says {
            false_slow += 1.0;
        }
        unusual |= report.verdict == Some(Verdict::Unusual) && !is_slow;
        if report.verdict >= Some(Verdict::SlowTail) {
            let least = report.slower_by_at_least.map_or(f64::INFINITY, f64::ln_1p);
            sums.count("`slower_by_at_least` true", truth >= least);
            sums.count("slower by 3 %", truth > 0.03f64.ln_1p());
            flagged.push((report.shrunken.unwrap_or(0.0), truth));
        }
        if report.suggests_drain && truth <= 0.05f64.ln_1p() {
            false_drains += 1.0;
        }
    }
    for (at, (rank, truth)) in flagged.iter().enumerate() {
        for (other, truth_of_other) in &flagged[..at] {
            if (truth - truth_of_other).abs() > 0.01 {
                sums.count(
                    "pairs of nodes with SLOW-TAIL or more, in the wrong order",
                    (truth > truth_of_other) != (rank > other),
                );
            }
        }
    }
    sums.add("false SLOW per fleet", false_slow, 1.0);
    sums.add("false drains per fleet", false_drains, 1.0);
    sums.count("fleets with a false UNUSUAL", unusual);
}

/// Counts what the report says about runs; each node has `runs` of them.
pub fn about_runs(sums: &mut Sums, judged: &Judged, truth: &Truth, runs: usize) {
    let place = |id: &str| {
        let (node, run) = id.split_once('/')?;
        Some(node.get(1..)?.parse::<usize>().ok()? * runs + run.parse::<usize>().ok()?)
    };
    let found: Vec<usize> = judged.verdicts.slow_runs.iter().filter_map(|slow| place(&slow.run_id)).collect();
    let wrong = found.iter().filter(|place| !truth.are_slow[**place]).count() as f64;
    let slow = truth.are_slow.iter().filter(|slow| **slow).count() as f64;
    sums.add("slow runs found", found.len() as f64 - wrong, slow);
    sums.add("false slow runs per fleet", wrong, 1.0);
    sums.add("share of found slow runs that are false", wrong / (found.len() as f64).max(1.0), 1.0);
    sums.count("classes with a false slow run", wrong > 0.0);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// 90 healthy nodes with 101 runs and 10 with 5.
pub fn unequal(seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let mut truth = Truth { by: vec![0.0; 100], ..Truth::default() };
        for node in 0..100 {
            let theta = 0.005 * random.normal();
            truth.theta.push(theta);
            for run in 0..if node < 90 { 101 } else { 5 } {
                let ln_time = 10f64.ln() + theta + 0.02 * random.normal();
                runs.add(MeasuredRun { node, run, ln_time, ..MeasuredRun::default() });
            }
        }
        truth
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        sums.count("warned", judged.warns(WarningCode::UnequalRuns));
    })
}

/// 100 nodes of 10 s, rounded to 0.01 s, the first `slow` of them 6 % slow.
pub fn bimodal(slow: usize, seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { unit: 0.01, s: 0.001, sigma: 0.0005, ..HEALTHY };
    let more = |node: usize, _| (if node < slow { 0.06f64.ln_1p() } else { 0.0 }, None);
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| of.simulate(random, runs, more);
    over(seeds, fleet, |sums, judged, _| sums.count("warned", judged.warns(WarningCode::BimodalClass)))
}

/// A class of two nodes, one of which is 6 % slow (s = .5 %, sigma = .3 %).
pub fn two_nodes(seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { nodes: 2, sigma: 0.003, ..HEALTHY };
    let more = |node: usize, _| (if node == 0 { 0.06f64.ln_1p() } else { 0.0 }, None);
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| of.simulate(random, runs, more);
    over(seeds, fleet, |sums, judged, _| {
        sums.count("slow node found", is_flagged(judged, 0, 2));
        sums.count("the other node SLOW-TAIL", is_flagged(judged, 1, 2));
    })
}
