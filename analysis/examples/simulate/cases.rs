//! The simulated cases. Every fleet has a seed of its own and is the same on every machine.

use crate::fleet::{Fleet, Recipe, Shape};
use crate::methods;
use crate::score::Score;
use pmmpi_analysis::stats::class_runs::ClassRuns;
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::resolution::Units;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_analysis::stats::{bimodal, drift, flaky, node_median, slow_runs, within_nodes};
use std::ops::Range;

/// The fleets with these seeds.
pub fn fleets(recipe: &Recipe, seeds: Range<u64>) -> impl Iterator<Item = Fleet> {
    seeds.map(|seed| Fleet::new(recipe, seed))
}

/// How often each method is right about nodes.
pub fn of_methods(recipe: &Recipe, seeds: Range<u64>) -> Vec<(&'static str, Score)> {
    let mut rows = methods::METHODS.map(|(name, _)| (name, Score::default()));
    for fleet in fleets(recipe, seeds) {
        for ((_, score), (_, method)) in rows.iter_mut().zip(methods::METHODS) {
            score.add(&method(&class(&fleet)), &fleet.slow_by);
        }
    }
    rows.to_vec()
}

/// How often pmmpi is right if a verdict of `least` or worse counts as slow.
pub fn of_verdict(recipe: &Recipe, seeds: Range<u64>, least: Verdict) -> Score {
    let mut score = Score::default();
    for fleet in fleets(recipe, seeds) {
        score.add(&methods::at_least(&class(&fleet), least), &fleet.slow_by);
    }
    score
}

/// How often the test for slow runs is right.
pub fn of_slow_runs(recipe: &Recipe, seeds: Range<u64>) -> Score {
    let mut score = Score::default();
    for fleet in fleets(recipe, seeds) {
        let truth: Vec<f64> = fleet.slow_runs.iter().map(|is_slow| f64::from(u8::from(*is_slow))).collect();
        score.add(&methods::slow_runs(&class(&fleet)), &truth);
    }
    score
}

/// Verdicts, applied separately to each of the two kinds of nodes in a fleet.
pub fn of_declared_kinds(recipe: &Recipe, seeds: Range<u64>) -> Score {
    let mut score = Score::default();
    for fleet in fleets(recipe, seeds.clone()) {
        for kind in [false, true] {
            let part = fleet.only(|node| fleet.other_kind[node] == kind);
            score.add(&methods::slow(&class(&part)), &part.slow_by);
        }
        score.fleets -= 1; // two classes, one fleet
    }
    score
}

/// Three runs of all nodes, then four more runs of the suspects. Also returns the mean number of runs per node.
pub fn of_adaptive_screening(recipe: &Recipe, seeds: Range<u64>) -> (Score, f64) {
    let (mut score, mut all_runs, mut nodes) = (Score::default(), 0, 0);
    for fleet in fleets(recipe, seeds) {
        let first = fleet.first_runs(|_| 3);
        let suspects = methods::at_least(&class(&first), Verdict::Suspect);
        let second = fleet.first_runs(|node| if suspects[node] { recipe.runs } else { 3 });
        score.add(&methods::slow(&class(&second)), &fleet.slow_by);
        all_runs += second.times.len();
        nodes += recipe.nodes;
    }
    (score, all_runs as f64 / nodes as f64)
}

/// Share of classes that look bimodal.
pub fn bimodal_share(recipe: &Recipe, seeds: Range<u64>) -> f64 {
    let count = seeds.end - seeds.start;
    let looks_bimodal = |fleet: &Fleet| {
        let mut medians: Vec<f64> =
            node_median::of_nodes(&class(fleet)).iter().map(|node| node.median).collect();
        medians.sort_unstable_by(f64::total_cmp);
        bimodal::modes(&medians, None, &bimodal::BimodalSettings::default()).is_some()
    };
    fleets(recipe, seeds).filter(looks_bimodal).count() as f64 / count as f64
}

/// Share of small classes with a SLOW-TAIL node, and share with a slow run.
pub fn small_class(recipe: &Recipe, seeds: Range<u64>) -> (f64, f64) {
    let count = (seeds.end - seeds.start) as f64;
    let (mut nodes, mut runs) = (0, 0);
    for fleet in fleets(recipe, seeds) {
        nodes += usize::from(methods::at_least(&class(&fleet), Verdict::SlowTail).contains(&true));
        runs += usize::from(methods::slow_runs(&class(&fleet)).contains(&true));
    }
    (nodes as f64 / count, runs as f64 / count)
}

/// Flaky nodes per fleet, with correct and false findings: a twentieth of the nodes has 30 % slow runs, with 20 runs
/// per node.
pub fn flaky(seeds: Range<u64>) -> Score {
    let (healthy, often) = (Recipe { runs: 20, nodes: 1900, ..Recipe::default() }, 0.3);
    let bad = Recipe { nodes: 100, slow_run_share: often, ..healthy.clone() };
    let mut score = Score::default();
    for (good, bad) in fleets(&healthy, seeds.clone()).zip(fleets(&bad, seeds.start + 500..seeds.end + 500)) {
        let times = [good.times, bad.times].concat();
        let ends: Vec<usize> = (1..=2000).map(|node| node * 20).collect();
        let Some(class) = ClassRuns::new(&times, &ends) else { continue };
        let medians = node_median::of_nodes(&class);
        let Some(sigma) = within_nodes::sigma(&class, &medians) else { continue };
        let slow = slow_runs::slow(
            &class,
            &medians,
            sigma,
            &Units::default(),
            &slow_runs::SlowRunSettings::default(),
        );
        let mut is_slow = vec![false; times.len()];
        slow.iter().for_each(|run| is_slow[run.node * 20 + run.run] = true);
        let session =
            |is_slow: &[bool]| flaky::NodeSession { session: 0, counts: flaky::RunCounts::of(is_slow) };
        let nodes: Vec<flaky::NodeSession> = is_slow.chunks(20).map(session).collect();
        let nodes: Vec<&[flaky::NodeSession]> = nodes.chunks(1).collect();
        let mut said = vec![false; 2000];
        flaky::flaky(&nodes, 0.01).iter().for_each(|node| said[node.node] = true);
        let truth: Vec<f64> = (0..2000).map(|node| if node < 1900 { 0.0 } else { 1.0 }).collect();
        score.add(&said, &truth);
    }
    score
}

/// Simulates `nodes` nodes over 52 sessions that are slower by `step` from the 31st session on. Returns the share
/// with an alarm before that session, the share with an alarm afterwards, and the median number of sessions until the
/// alarm.
pub fn drift(step: f64, nodes: usize, seed: u64) -> (f64, f64, f64) {
    const SESSIONS: usize = 52;
    const CHANGE: usize = 30;
    const DEVIATION: f64 = 0.004; // of a node's session medians
    let (mut random, settings) = (Random::new(seed), drift::DriftSettings::default());
    let (mut early, mut late) = (0, Vec::new());
    for _ in 0..nodes {
        let session = |at: usize| DEVIATION * random.normal() + if at < CHANGE { 0.0 } else { step.ln_1p() };
        let relative: Vec<f64> = (0..SESSIONS).map(session).collect();
        match drift::alarms(&relative, DEVIATION, &settings).first() {
            Some(alarm) if alarm.raised < CHANGE => early += 1,
            Some(alarm) => late.push((alarm.raised + 1 - CHANGE) as f64),
            None => {}
        }
    }
    let share = |count: usize| count as f64 / nodes as f64;
    (share(early), share(late.len()), within_nodes::median_of(&mut late).unwrap_or(f64::NAN))
}

/// The fleet as a class for the tool. A fleet without nodes is an empty class.
pub fn class(fleet: &Fleet) -> ClassRuns<'_> {
    ClassRuns::new(&fleet.times, &fleet.ends).unwrap_or_default()
}

/// The shapes for the robustness cases, by name.
pub fn shapes() -> [(&'static str, Shape); 3] {
    [("normal", Shape::Normal), ("t5", Shape::T5), ("skewed", Shape::Skewed)]
}
