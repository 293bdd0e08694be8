//! How often the report finds what goes with slowness, and how often it finds something that does not.

use crate::measured_runs::{MeasuredRun, MeasuredRuns, Tool};
use crate::promises::{Rate, Sums};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::verdicts::JudgeSettings;
use pmmpi_analysis::verdicts::goes_with_slowness::{ClassSlowness, SlownessReport};
use std::ops::Range;

/// Counters that have nothing to do with the time.
pub const OTHERS: usize = 18;
/// Q of the report.
const Q: f64 = 0.01;

/// What goes with slowness in a fleet.
#[derive(Clone, Copy, PartialEq)]
pub enum Truth {
    /// Nothing.
    Nothing,
    /// Slow runs have 1.5 to 2.2 times the L2 fills and the evictions of the snoop filter, as in SC18.
    Rises,
    /// Slow runs have 1 / 2.2 to 1 / 1.5 of two counts.
    Falls,
    /// Two counts have a correlation of 0.3 with the time of all runs.
    AllRuns,
    /// A tenth of the nodes lacks a DIMM and is 5 % slower.
    Fact,
    /// Two counts are proportional to the time, as background work is, and vary by 3 %.
    PerSecond,
}

impl Truth {
    /// True if the two counts go with slowness.
    pub fn is_of_counts(self) -> bool {
        !matches!(self, Self::Nothing | Self::Fact)
    }
}

/// A class in one session; ln T varies by 1.5 % between nodes and 0.3 % between runs.
#[derive(Clone, Copy)]
pub struct Fleet {
    pub nodes: usize,
    pub runs: usize,
    /// Share of runs that are 10 to 30 % slower.
    pub slow_runs: f64,
    pub truth: Truth,
    /// Correlation of successive runs of a node, of the times and of the counters.
    pub correlation: f64,
    /// Rounds differ in time and in all counters by this (standard deviation of the logarithm).
    pub rounds: f64,
    pub by: Tool,
}

/// The fleet of the SC18 paper: 190 nodes, 7 runs each.
pub const SC18: Fleet = Fleet {
    nodes: 190,
    runs: 7,
    slow_runs: 0.01,
    truth: Truth::Rises,
    correlation: 0.0,
    rounds: 0.0,
    by: Tool::Other,
};

/// An autoregressive process with standard deviation 1.
struct Noise(f64);

impl Noise {
    fn next(&mut self, random: &mut Random, correlation: f64) -> f64 {
        self.0 = correlation * self.0 + (1.0 - correlation * correlation).sqrt() * random.normal();
        self.0
    }
}

const TRUE_NAMES: [&str; 2] = ["l2_lines_in", "snoop_filter_evictions"];

fn judged(fleet: Fleet, seed: u64) -> ClassSlowness {
    let mut random = Random::new(seed);
    let mut measured = MeasuredRuns::default();
    measured.by = fleet.by;
    let rounds: Vec<Vec<f64>> =
        (0..fleet.runs).map(|_| (0..OTHERS + 3).map(|_| fleet.rounds * random.normal()).collect()).collect();
    // A job is slow on all of its nodes.
    let of_jobs: Vec<(bool, f64)> = (0..fleet.runs).map(|_| slow_run(&mut random, fleet.slow_runs)).collect();
    for node in 0..fleet.nodes {
        let lacks_dimm = fleet.truth == Truth::Fact && random.uniform() < 0.1;
        let level = 0.015 * random.normal() + if lacks_dimm { 0.05f64.ln_1p() } else { 0.0 };
        let levels: Vec<f64> = (0..OTHERS + 2).map(|_| 0.1 * random.normal()).collect();
        let mut noise: Vec<Noise> = (0..OTHERS + 3).map(|_| Noise(random.normal())).collect();
        for (run, round) in rounds.iter().enumerate() {
            let (is_slow, slow_by) = match fleet.by {
                Tool::Jobs => of_jobs[run],
                _ => slow_run(&mut random, fleet.slow_runs),
            };
            let z: Vec<f64> = noise.iter_mut().map(|of| of.next(&mut random, fleet.correlation)).collect();
            let ln_time = 2.3 + level + 0.003 * z[0] + slow_by + round[0];
            measured.add(MeasuredRun { node, run, ln_time, ..MeasuredRun::default() });
            let factor = (1.5 + 0.7 * random.uniform()).ln();
            for (at, name) in TRUE_NAMES.into_iter().enumerate() {
                let ln = 20.0
                    + match (fleet.truth, is_slow) {
                        (Truth::Rises, true) => levels[at] + 0.1 * z[at + 1] + factor,
                        (Truth::Falls, true) => levels[at] + 0.1 * z[at + 1] - factor,
                        (Truth::AllRuns, _) => levels[at] + 0.1 * (0.3 * z[0] + 0.91f64.sqrt() * z[at + 1]),
                        (Truth::PerSecond, _) => ln_time + 0.03 * z[at + 1],
                        _ => levels[at] + 0.1 * z[at + 1],
                    };
                measured.count(name.to_owned(), (ln + round[at + 1]).exp());
            }
            for other in 2..OTHERS + 2 {
                let ln = 20.0 + levels[other] + 0.1 * z[other + 1] + round[other + 1];
                // A third of the counters counts rare events, with many equal values.
                let value = if other % 3 == 0 { (2.0 * (ln - 20.0).exp()).round() } else { ln.exp() };
                measured.count(format!("other_{other:02}"), value);
            }
            measured.count("dimms".to_owned(), if lacks_dimm { 11.0 } else { 12.0 });
        }
    }
    let settings = JudgeSettings { goes_with_slowness: Some(Q), ..JudgeSettings::default() };
    let mut found = measured.judged_by(&settings).verdicts.goes_with_slowness;
    found.pop().expect("the class has counters")
}

fn slow_run(random: &mut Random, share: f64) -> (bool, f64) {
    let is_slow = random.uniform() < share;
    let by = (0.1 + 0.2 * random.uniform()).ln_1p();
    (is_slow, if is_slow { by } else { 0.0 })
}

/// What the report says about these fleets.
pub fn of(fleet: Fleet, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    let mut intervals: Vec<[f64; 3]> = Vec::new();
    for found in seeds.map(|seed| judged(fleet, seed)) {
        let (mut any_false, mut all_found, mut share) = (false, 0.0, 0.0);
        let (mut only_longer, mut between) = (0.0, false);
        let have_true_counts = fleet.truth.is_of_counts();
        for column in &found.columns {
            let is_found = |report: &Option<SlownessReport>| report.as_ref().is_some_and(|of| of.significant);
            let [within, over_nodes] = [&column.within, &column.between].map(is_found);
            let is_true = TRUE_NAMES.contains(&column.name.as_str());
            match (is_true && have_true_counts, column.name.as_str()) {
                (true, _) => {
                    let report = column.within.as_ref();
                    all_found += f64::from(u8::from(within)) / 2.0;
                    only_longer += f64::from(u8::from(report.is_some_and(|of| of.only_counts_longer))) / 2.0;
                    intervals.extend(report.map(|of| [of.ci[0], of.rho, of.ci[1]]));
                }
                (false, "dimms") if fleet.truth == Truth::Fact => {
                    between = over_nodes;
                    sums.count("fact found within nodes", within);
                }
                _ => {
                    any_false |= within || over_nodes;
                    share += f64::from(u8::from(within)) + f64::from(u8::from(over_nodes));
                }
            }
        }
        sums.add("found within nodes", all_found, 1.0);
        sums.add("only counts longer", only_longer, all_found);
        sums.count("fact found between nodes", between);
        sums.count("classes with a false finding", any_false);
        let all = share + 2.0 * all_found + f64::from(u8::from(between));
        sums.add("share of findings that are false", if all > 0.0 { share / all } else { 0.0 }, 1.0);
    }
    let rho = intervals.iter().map(|[_, rho, _]| rho).sum::<f64>() / intervals.len().max(1) as f64;
    for [low, _, high] in &intervals {
        sums.count("intervals that contain the true value", *low <= rho && rho <= *high);
    }
    if !intervals.is_empty() {
        sums.add("mean rho", rho, 1.0);
    }
    sums.rates()
}
