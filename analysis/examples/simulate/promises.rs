//! Fleets that are not textbook: each function simulates one case, and gives what the report says about it.

use crate::measured_runs::{Judged, MeasuredRun, MeasuredRuns};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_analysis::warning_codes::WarningCode;
use std::ops::Range;

/// A result: what was counted, and its mean over the fleets.
pub type Rate = (&'static str, f64);

/// Nodes and runs of one session. y = ln 10 + s N(0, 1) per node + sigma N(0, 1) per run.
#[derive(Clone, Copy)]
pub struct Session {
    pub nodes: usize,
    pub runs: usize,
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
    s: 0.005,
    sigma: 0.02,
    slow_nodes: 0.0,
    slow_by: (0.03, 0.12),
    slow_runs: 0.0,
};

/// Sums over fleets.
#[derive(Default)]
struct Sums {
    numbers: Vec<(&'static str, f64, f64)>,
}

impl Sums {
    /// Adds `part` of `whole`.
    fn add(&mut self, name: &'static str, part: f64, whole: f64) {
        match self.numbers.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, parts, wholes)) => (*parts, *wholes) = (*parts + part, *wholes + whole),
            None => self.numbers.push((name, part, whole)),
        }
    }

    fn rates(self) -> Vec<Rate> {
        let rate = |(name, part, whole): (&'static str, f64, f64)| {
            (name, if whole > 0.0 { part / whole } else { 0.0 })
        };
        self.numbers.into_iter().map(rate).collect()
    }
}

fn slowdown(random: &mut Random, share: f64, (least, most): (f64, f64)) -> f64 {
    if random.uniform() < share { least + (most - least) * random.uniform() } else { 0.0 }
}

fn slow_run(random: &mut Random, share: f64) -> f64 {
    if random.uniform() < share { 0.1 + 0.2 * random.uniform() } else { 0.0 }
}

fn run(node: usize, session: usize, run: usize, ln_time: f64) -> MeasuredRun {
    MeasuredRun { node, session, run, start_s: -1.0, ln_time }
}

/// True if the verdict says that the node is slow: SLOW, or SLOW-TAIL in a class of fewer than 20 nodes.
fn is_flagged(judged: &Judged, node: usize, nodes: usize) -> bool {
    judged.node(node).verdict >= Some(if nodes < 20 { Verdict::SlowTail } else { Verdict::Slow })
}

/// What a session's verdicts are worth. `unit` is the resolution of the times (s), 0 if they are exact.
pub fn session(of: Session, unit: f64, centre_s: f64, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        let (mut theta, mut by, mut are_slow) = (Vec::new(), Vec::new(), Vec::new());
        for node in 0..of.nodes {
            by.push(slowdown(&mut random, of.slow_nodes, of.slow_by));
            theta.push(of.s * random.normal() + by[node].ln_1p());
            for number in 0..of.runs {
                let slow = slow_run(&mut random, of.slow_runs);
                are_slow.push(slow > 0.0);
                let ln_time = centre_s.ln() + theta[node] + of.sigma * random.normal() + slow.ln_1p();
                let measured = run(node, 0, number, ln_time);
                if unit > 0.0 { runs.add_rounded(measured, unit) } else { runs.add(measured) }
            }
        }
        let judged = runs.judged();
        about_nodes(&mut sums, &judged, &theta, &by);
        about_runs(&mut sums, &judged, &are_slow, of.runs);
        sums.add(
            "classes with a false slow run",
            f64::from(u8::from(false_runs(&judged, &are_slow, of.runs) > 0)),
            1.0,
        );
        sums.add("rounding warned", f64::from(u8::from(judged.warns(WarningCode::RoundedTimes))), 1.0);
        sums.add("noise warned", f64::from(u8::from(judged.warns(WarningCode::NoiseFloor))), 1.0);
    }
    sums.rates()
}

/// `theta` is how much slower each node really is (ln T), `by` the slowdown of slow nodes.
fn about_nodes(sums: &mut Sums, judged: &Judged, theta: &[f64], by: &[f64]) {
    let nodes = theta.len();
    if nodes < 2 {
        return;
    }
    let mut flagged = Vec::new();
    let (mut false_slow, mut false_drains, mut unusual) = (0.0, 0.0, 0.0);
    for node in 0..nodes {
        let report = judged.node(node);
        let others =
            median(theta.iter().enumerate().filter(|(at, _)| *at != node).map(|(_, theta)| *theta).collect());
        let truth = theta[node] - others;
        let is_slow = by[node] > 0.0;
        let says = is_flagged(judged, node, nodes);
        if is_slow {
            sums.add("recall", f64::from(u8::from(says)), 1.0);
        } else if says {
            false_slow += 1.0;
        }
        if report.verdict == Some(Verdict::Unusual) && !is_slow {
            unusual = 1.0;
        }
        if report.verdict >= Some(Verdict::SlowTail) {
            let least = report.slower_by_at_least.map_or(f64::INFINITY, f64::ln_1p);
            sums.add("`slower_by_at_least` true", f64::from(u8::from(truth >= least)), 1.0);
            sums.add("slower by 3 %", f64::from(u8::from(truth > 0.03f64.ln_1p())), 1.0);
            flagged.push((report.shrunken.unwrap_or(0.0), truth));
        }
        if report.suggests_drain && truth <= 0.05f64.ln_1p() {
            false_drains += 1.0;
        }
    }
    for (at, (rank, truth)) in flagged.iter().enumerate() {
        for (other, truth_of_other) in &flagged[..at] {
            if (truth - truth_of_other).abs() > 0.01 {
                let is_wrong = (truth > truth_of_other) != (rank > other);
                sums.add("pairs in the wrong order", f64::from(u8::from(is_wrong)), 1.0);
            }
        }
    }
    sums.add("false SLOW per fleet", false_slow, 1.0);
    sums.add("false drains per fleet", false_drains, 1.0);
    sums.add("fleets with a false UNUSUAL", unusual, 1.0);
}

fn found_runs(judged: &Judged, runs: usize) -> Vec<usize> {
    let place = |id: &str| {
        let (node, run) = id.split_once('/')?;
        Some(node.get(1..)?.parse::<usize>().ok()? * runs + run.parse::<usize>().ok()?)
    };
    judged.verdicts.slow_runs.iter().filter_map(|slow| place(&slow.run_id)).collect()
}

fn false_runs(judged: &Judged, are_slow: &[bool], runs: usize) -> usize {
    found_runs(judged, runs).iter().filter(|place| !are_slow[**place]).count()
}

fn about_runs(sums: &mut Sums, judged: &Judged, are_slow: &[bool], runs: usize) {
    let found = found_runs(judged, runs);
    let wrong = found.iter().filter(|place| !are_slow[**place]).count() as f64;
    let slow = are_slow.iter().filter(|slow| **slow).count() as f64;
    sums.add("slow runs found", found.len() as f64 - wrong, slow);
    sums.add("false slow runs per fleet", wrong, 1.0);
    sums.add(
        "false share of slow runs",
        if found.is_empty() { 0.0 } else { wrong / found.len() as f64 },
        1.0,
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// Rounds that are slower for all nodes by N(0, `effect`^2): 100 nodes of 7 runs, 5 % of them slow.
pub fn rounds(effect: f64, seeds: Range<u64>) -> Vec<Rate> {
    const NODES: usize = 100;
    const RUNS: usize = 7;
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let rounds: Vec<f64> = (0..RUNS).map(|_| effect * random.normal()).collect();
        let mut runs = MeasuredRuns::default();
        let (mut theta, mut by, mut are_slow) = (Vec::new(), Vec::new(), Vec::new());
        for node in 0..NODES {
            by.push(if random.uniform() < 0.05 { 0.06 + 0.06 * random.uniform() } else { 0.0 });
            theta.push(0.005 * random.normal() + by[node].ln_1p());
            for (number, round) in rounds.iter().enumerate() {
                let slow = slow_run(&mut random, 0.01);
                are_slow.push(slow > 0.0);
                let ln_time = 10f64.ln() + theta[node] + round + 0.003 * random.normal() + slow.ln_1p();
                runs.add(run(node, 0, number, ln_time));
            }
        }
        let judged = runs.judged();
        about_nodes(&mut sums, &judged, &theta, &by);
        about_runs(&mut sums, &judged, &are_slow, RUNS);
        sums.add("warned", f64::from(u8::from(judged.warns(WarningCode::RoundEffects))), 1.0);
    }
    sums.rates()
}

/// 100 healthy nodes measured one after another over a day on which all times vary by `amplitude` (peak to peak).
pub fn day(amplitude: f64, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        let (nodes, own) = (100, 70.0);
        for node in 0..nodes {
            let theta = 0.005 * random.normal();
            for number in 0..7 {
                let start_s = node as f64 * own + number as f64 * 10.0;
                let phase = start_s / (nodes as f64 * own) * std::f64::consts::TAU;
                let ln_time = 10f64.ln() + theta + amplitude / 2.0 * phase.sin() + 0.003 * random.normal();
                runs.add(MeasuredRun { start_s, ..run(node, 0, number, ln_time) });
            }
        }
        let judged = runs.judged();
        let count = |of: &dyn Fn(usize) -> bool| (0..nodes).filter(|node| of(*node)).count() as f64;
        sums.add("SLOW per fleet", count(&|node| is_flagged(&judged, node, nodes)), 1.0);
        sums.add("drains per fleet", count(&|node| judged.node(node).suggests_drain), 1.0);
        sums.add("warned", f64::from(u8::from(judged.warns(WarningCode::TimeOrder))), 1.0);
    }
    sums.rates()
}

/// 100 healthy nodes whose successive runs have a correlation (s = .5 %, sigma = 2 %).
pub fn dependent(correlation: f64, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        let mut theta = Vec::new();
        for node in 0..100 {
            theta.push(0.005 * random.normal());
            let mut noise = random.normal();
            for number in 0..7 {
                let start_s = number as f64 * 1000.0 + node as f64;
                runs.add(MeasuredRun {
                    start_s,
                    ..run(node, 0, number, 10f64.ln() + theta[node] + 0.02 * noise)
                });
                noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * random.normal();
            }
        }
        let judged = runs.judged();
        about_nodes(&mut sums, &judged, &theta, &vec![0.0; theta.len()]);
        for (node, theta) in theta.iter().enumerate() {
            let [low, high] = judged.node(node).ci_s.expect("seven runs").map(|s| (s / 10.0).ln());
            sums.add("intervals with the truth", f64::from(u8::from(low <= *theta && *theta <= high)), 1.0);
        }
        sums.add("warned", f64::from(u8::from(judged.warns(WarningCode::DependentRuns))), 1.0);
    }
    sums.rates()
}

/// A session of 200 nodes; then one of the nodes that are 8 % slow, with some of the others. The second session has
/// another level.
pub fn suspects_again(anchors: usize, mended: bool, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    const NODES: usize = 200;
    const SLOW: usize = 5;
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        let level = 0.05 * random.normal();
        for node in 0..NODES {
            let healthy = 0.005 * random.normal();
            for session in 0..2 {
                let slow = if node < SLOW && !(mended && session == 1) { 0.08f64.ln_1p() } else { 0.0 };
                if session == 1 && node >= SLOW + anchors {
                    continue;
                }
                for number in 0..7 {
                    let ln_time =
                        10f64.ln() + healthy + slow + 0.003 * random.normal() + session as f64 * level;
                    let start_s = session as f64 * 1e6 + number as f64 * 100.0 + node as f64 * 1e-3;
                    runs.add(MeasuredRun { start_s, ..run(node, session, number, ln_time) });
                }
            }
        }
        let judged = runs.judged();
        let count =
            |verdict| (0..SLOW).filter(|node| judged.node(*node).verdict == Some(verdict)).count() as f64;
        sums.add("suspects that are SLOW", count(Verdict::Slow), SLOW as f64);
        sums.add("suspects that are OK", count(Verdict::Ok), SLOW as f64);
        sums.add("warned", f64::from(u8::from(judged.warns(WarningCode::FewAnchors))), 1.0);
    }
    sums.rates()
}

/// 100 nodes of which 20 are 10 % slow and retire after session 30 of 52, or of which 60 become 3 % slower then.
pub fn composition(retire: bool, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        for node in 0..100 {
            let theta = 0.015 * random.normal() + if retire && node < 20 { 0.1 } else { 0.0 };
            for session in 0..52 {
                if retire && node < 20 && session >= 30 {
                    break;
                }
                let moved = if !retire && node < 60 && session >= 30 { 0.03f64.ln_1p() } else { 0.0 };
                for number in 0..3 {
                    let ln_time = 10f64.ln() + theta + moved + 0.003 * random.normal();
                    runs.add(run(node, session, number, ln_time));
                }
            }
        }
        let judged = runs.judged();
        sums.add("nodes with an alarm", judged.verdicts.drift.len() as f64, 100.0);
        sums.add(
            "composition warned",
            f64::from(u8::from(judged.warns(WarningCode::CompositionChanged))),
            1.0,
        );
        sums.add("class warned", f64::from(u8::from(judged.warns(WarningCode::ClassMoved))), 1.0);
    }
    sums.rates()
}

/// 90 healthy nodes with 101 runs and 10 with 5.
pub fn unequal(seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        let mut theta = Vec::new();
        for node in 0..100 {
            theta.push(0.005 * random.normal());
            for number in 0..if node < 90 { 101 } else { 5 } {
                runs.add(run(node, 0, number, 10f64.ln() + theta[node] + 0.02 * random.normal()));
            }
        }
        let judged = runs.judged();
        about_nodes(&mut sums, &judged, &theta, &[0.0; 100]);
        sums.add("warned", f64::from(u8::from(judged.warns(WarningCode::UnequalRuns))), 1.0);
    }
    sums.rates()
}

/// What makes runs slow in [`flaky`].
#[derive(Clone, Copy, PartialEq)]
pub enum SlowRuns {
    /// 1 % of the runs of healthy nodes, one by one.
    Single,
    /// The same, three in succession.
    Series,
    /// Half of the runs in three bad sessions, in which only 15 nodes are.
    BadSessions,
}

/// 200 nodes in 20 sessions of 7 runs; a twentieth of the nodes is flaky, with 30 % slow runs.
pub fn flaky(kind: SlowRuns, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        let series = if kind == SlowRuns::Series { 3 } else { 1 };
        let are_flaky: Vec<bool> = (0..200).map(|_| random.uniform() < 0.05).collect();
        for (node, is_flaky) in are_flaky.iter().enumerate() {
            for session in 0..20 {
                let is_bad = kind == SlowRuns::BadSessions && session < 3;
                if is_bad && node >= 15 {
                    continue;
                }
                let rate = if is_bad {
                    0.5
                } else if *is_flaky {
                    0.3
                } else {
                    0.01
                } / series as f64;
                let mut left = 0;
                for number in 0..7 {
                    if left == 0 && random.uniform() < rate {
                        left = series;
                    }
                    let slow = if left > 0 { 0.2f64.ln_1p() } else { 0.0 };
                    left = left.max(1) - 1;
                    runs.add(run(node, session, number, 10f64.ln() + 0.003 * random.normal() + slow));
                }
            }
        }
        let judged = runs.judged();
        let told: Vec<usize> = judged
            .verdicts
            .warnings
            .iter()
            .filter(|warning| warning.code == WarningCode::FlakyNode)
            .filter_map(|warning| warning.message[1..5].parse().ok())
            .collect();
        let wrong = told.iter().filter(|node| !are_flaky[**node]).count();
        let all = are_flaky.iter().filter(|flaky| **flaky).count();
        sums.add("flaky nodes found", (told.len() - wrong) as f64, all as f64);
        sums.add("fleets with a false flaky node", f64::from(u8::from(wrong > 0)), 1.0);
    }
    sums.rates()
}

/// 100 nodes of 10 s, rounded to 0.01 s, one or 40 of them 6 % slow.
pub fn bimodal(slow: usize, seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        for node in 0..100 {
            let theta = 0.001 * random.normal() + if node < slow { 0.06f64.ln_1p() } else { 0.0 };
            (0..7).for_each(|number| {
                runs.add_rounded(run(node, 0, number, 10f64.ln() + theta + 0.0005 * random.normal()), 0.01);
            });
        }
        sums.add("warned", f64::from(u8::from(runs.judged().warns(WarningCode::BimodalClass))), 1.0);
    }
    sums.rates()
}

/// A class of two nodes, one of which is 6 % slow (s = .5 %, sigma = .3 %).
pub fn two_nodes(seeds: Range<u64>) -> Vec<Rate> {
    let mut sums = Sums::default();
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut runs = MeasuredRuns::default();
        for node in 0..2 {
            let theta = 0.005 * random.normal() + if node == 0 { 0.06f64.ln_1p() } else { 0.0 };
            (0..7).for_each(|number| {
                runs.add(run(node, 0, number, 10f64.ln() + theta + 0.003 * random.normal()))
            });
        }
        let judged = runs.judged();
        sums.add("slow node found", f64::from(u8::from(is_flagged(&judged, 0, 2))), 1.0);
        sums.add("the other one SLOW-TAIL", f64::from(u8::from(is_flagged(&judged, 1, 2))), 1.0);
    }
    sums.rates()
}
