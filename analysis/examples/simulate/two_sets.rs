//! How often `pmmpi compare` finds a difference that is there, and one that is not.

use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::two_sets::{ClassChange, CompareSettings, SessionRuns, Unit, compare};

const EXPERIMENTS: u64 = 2000;
const FIRST_SEED: u64 = 8_000_000;
/// Of the runs of a node (ln T).
const SIGMA: f64 = 0.003;
/// Of the sessions of a node.
const SESSIONS: f64 = 0.002;

/// How A and B were measured.
#[derive(Clone, Copy, PartialEq)]
enum How {
    /// In one session.
    Together,
    /// In one session; the first node varies 20 times as much as the others.
    OneNoisy,
    /// In one session; one run in 20 is 10 % slower.
    SlowRuns,
    /// In turns, while the machine becomes 5 % slower.
    InTurns,
    /// In one session each.
    Apart,
    /// The same, in two sessions each.
    TwoApart,
    /// The same, in three sessions each.
    ThreeApart,
}

fn unit(random: &mut Random, how: How, node: usize, runs: usize, by: f64) -> Unit {
    let sigma = if how == How::OneNoisy && node == 0 { 20.0 * SIGMA } else { SIGMA };
    let mut set = |by: f64| -> Vec<f64> {
        let mut time = || {
            let slow = if how == How::SlowRuns && random.uniform() < 0.05 { 0.1f64.ln_1p() } else { 0.0 };
            4.6 + by + slow + sigma * random.normal()
        };
        (0..runs).map(|_| time()).collect()
    };
    match how {
        How::Together | How::OneNoisy | How::SlowRuns => {
            vec![SessionRuns { a: set(0.0), b: set(by), in_turns: false }]
        }
        How::InTurns => {
            let drift = |first: usize| {
                move |(run, time): (usize, f64)| time + 0.025 * (2 * run + first) as f64 / runs as f64
            };
            let [a, b] = [(set(0.0), 0), (set(by), 1)]
                .map(|(set, first)| set.into_iter().enumerate().map(drift(first)).collect());
            vec![SessionRuns { a, b, in_turns: true }]
        }
        How::Apart | How::TwoApart | How::ThreeApart => {
            let sessions = match how {
                How::Apart => 1,
                How::TwoApart => 2,
                _ => 3,
            };
            let mut all = Vec::new();
            for _ in 0..sessions {
                let [a, b] = [0, 1].map(|_| SESSIONS * random.normal());
                let mut set = |by: f64| (0..runs).map(|_| 4.6 + by + SIGMA * random.normal()).collect();
                all.push(SessionRuns { a: set(a), ..SessionRuns::default() });
                all.push(SessionRuns { b: set(b + by), ..SessionRuns::default() });
            }
            all
        }
    }
}

fn compared(random: &mut Random, how: How, nodes: usize, runs: usize, by: f64) -> ClassChange {
    let units: Vec<Unit> = (0..nodes).map(|node| unit(random, how, node, runs, by)).collect();
    compare(&units, 0.0, 1, &CompareSettings::default()).expect("all nodes have runs")
}

/// Prints the table.
pub fn print() {
    println!("\n## Two sets of runs\n");
    println!(
        "`pmmpi compare`: runs vary by {:.1} %, and sessions of a node by {:.1} %. Each row has {EXPERIMENTS} comparisons;\n\
         the shares in the table are shares of these comparisons. In rows with \"each\", each set has sessions\n\
         of its own. In the columns \"equal sets\", both sets have the same true time, so each difference that\n\
         pmmpi finds is false. \"Smallest visible difference\" is the mean of the column VISIBLE over the\n\
         comparisons of equal sets. For the last column, the simulation repeats each of these comparisons\n\
         with new runs. In the repeated comparison, the true times of the two sets differ by the value of\n\
         VISIBLE in the first comparison (not by the mean).\n",
        SIGMA * 100.0,
        SESSIONS * 100.0
    );
    println!(
        "| measured | nodes | runs of each set, per node and session | equal sets: the class differs | \
         equal sets: a node differs | equal sets: the class or a node differs | \
         intervals that contain the true value | a difference of 2 % is found | \
         smallest visible difference | a difference of this size is found |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, how) in [
        ("in one session", How::Together),
        ("in one session; one node varies 20 times as much", How::OneNoisy),
        ("in one session; 5 % of the runs are 10 % slower", How::SlowRuns),
        ("in turns, while all nodes become 5 % slower", How::InTurns),
        ("in one session each", How::Apart),
        ("in two sessions each", How::TwoApart),
        ("in three sessions each", How::ThreeApart),
    ] {
        for (nodes, runs) in [(1, 3), (1, 7), (5, 7), (20, 5)] {
            if how == How::InTurns && nodes * (runs - 1) < 4 {
                continue; // too few pairs: compared as if in one session
            }
            row(name, how, nodes, runs);
        }
    }
}

fn row(name: &str, how: How, nodes: usize, runs: usize) {
    // In turns B is always the later one of its round, so a part of the drift is in the difference.
    let truth = if how == How::InTurns { 0.025 / runs as f64 } else { 0.0 };
    let is_found = |change: &ClassChange| change.p.is_some_and(|p| p <= CompareSettings::default().q);
    let [mut wrong, mut any, mut either, mut covered, mut found, mut visible, mut seen] = [0.0; 7];
    for seed in FIRST_SEED..FIRST_SEED + EXPERIMENTS {
        let mut random = Random::new(seed);
        let plain = compared(&mut random, how, nodes, runs, -truth);
        let of_class = is_found(&plain);
        let of_node = plain.units.iter().flatten().any(|unit| unit.is_different);
        let count = |is_there: bool| f64::from(u8::from(is_there));
        (wrong, any, either) =
            (wrong + count(of_class), any + count(of_node), either + count(of_class || of_node));
        covered += f64::from(u8::from(plain.interval.is_some_and(|[low, high]| low <= 0.0 && high >= 0.0)));
        found +=
            f64::from(u8::from(is_found(&compared(&mut random, how, nodes, runs, 0.02f64.ln_1p() - truth))));
        let smallest = plain.smallest_visible.unwrap_or_default();
        visible += smallest;
        seen += f64::from(u8::from(is_found(&compared(&mut random, how, nodes, runs, smallest - truth))));
    }
    let rate = |count: f64| count / EXPERIMENTS as f64;
    println!(
        "| {name} | {nodes} | {runs} | {:.4} | {:.4} | {:.4} | {:.3} | {:.3} | {:.2} % | {:.3} |",
        rate(wrong),
        rate(any),
        rate(either),
        rate(covered),
        rate(found),
        rate(visible).exp_m1() * 100.0,
        rate(seen)
    );
}
