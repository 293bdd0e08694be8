//! Fleets whose times depend on when they were measured, in one session and over many.

use crate::measured_runs::{MeasuredRun, MeasuredRuns, Tool};
use crate::promises::{HEALTHY, Rate, Session, about_nodes, about_runs, is_flagged, over};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::warnings::{ClassWarning, WarningCode};
use std::f64::consts::TAU;
use std::ops::Range;

/// Rounds that are slower for all nodes by N(0, `effect`^2). The starts of runs that pmmpi measured are known.
pub fn rounds(of: Session, effect: f64, by: Tool, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let rounds: Vec<f64> = (0..of.runs).map(|_| effect * random.normal()).collect();
        runs.by = by;
        let start = |node: usize, run: usize| (run * of.nodes + node) as f64 * 20.0;
        of.simulate(random, runs, |node, run| {
            (rounds[run], Some(start(node, run)).filter(|_| by == Tool::Pmmpi))
        })
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        if by == Tool::Other {
            about_runs(sums, judged, truth, of.runs);
        }
        sums.count("warned", judged.warns(WarningCode::RoundEffects));
    })
}

/// Rounds that differ by 5 %, of runs whose starts are known; the last node had no time for the third round.
pub fn missed_round(of: Session, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let rounds: Vec<f64> = (0..of.runs).map(|_| 0.05 * random.normal()).collect();
        let start = |node: usize, run: usize| (run * of.nodes + node) as f64 * 20.0;
        runs.missed = Some([of.nodes - 1, 2]);
        of.simulate(random, runs, |node, run| (rounds[run], Some(start(node, run))))
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        about_runs(sums, judged, truth, of.runs);
    })
}

/// Some nodes and hours later the others, each group in rounds that differ by 5 %; both count their runs from 0.
pub fn two_groups(of: Session, first: usize, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let rounds: Vec<f64> = (0..2 * of.runs).map(|_| 0.05 * random.normal()).collect();
        let more = |node: usize, run: usize| {
            let group = usize::from(node >= first);
            let start_s = group as f64 * 1e5 + run as f64 * 2000.0 + node as f64 * 1e-3;
            (rounds[group * of.runs + run], Some(start_s))
        };
        of.simulate(random, runs, more)
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        about_runs(sums, judged, truth, of.runs);
        sums.count("warned", judged.warns(WarningCode::TimeOrder));
    })
}

/// Seven jobs on all of 50 nodes, one of them 10 % slower: all nodes wait for the slowest one.
pub fn jobs(seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { nodes: 50, sigma: 0.003, ..HEALTHY };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        runs.by = Tool::Jobs;
        let slow = (random.uniform() * 7.0) as usize;
        of.simulate(random, runs, |_, run| (if run == slow { 0.1f64.ln_1p() } else { 0.0 }, None))
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        let found = judged.verdicts.slow_runs.iter().filter(|run| run.slowdown > 0.05).count();
        sums.add("slow runs found", found as f64, of.nodes as f64);
        sums.count("round effects warned", judged.warns(WarningCode::RoundEffects));
    })
}

/// 100 healthy nodes on a day on which all times vary by `amplitude` (peak to peak), measured in groups of `at_once`.
pub fn day(amplitude: f64, at_once: usize, seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { sigma: 0.003, ..HEALTHY };
    let more = |node: usize, run: usize| {
        let (groups, own) = (of.nodes / at_once, 70.0);
        let start_s = (node / at_once) as f64 * own + run as f64 * 10.0;
        (amplitude / 2.0 * (start_s / (groups as f64 * own) * TAU).sin(), Some(start_s))
    };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| of.simulate(random, runs, more);
    over(seeds, fleet, |sums, judged, _| {
        let count =
            |of_node: &dyn Fn(usize) -> bool| (0..of.nodes).filter(|node| of_node(*node)).count() as f64;
        sums.add("SLOW per fleet", count(&|node| is_flagged(judged, node, of.nodes)), 1.0);
        sums.add("drains per fleet", count(&|node| judged.node(node).suggests_drain), 1.0);
        sums.count("warned", judged.warns(WarningCode::TimeOrder));
    })
}

/// 200 nodes, `late` of them a week later in an hour that makes all nodes 8 % slower; some nodes are slow.
pub fn late_in_a_slow_hour(late: usize, seeds: Range<u64>) -> Vec<Rate> {
    let more = |node: usize, run: usize| {
        let is_late = node >= 200 - late;
        let start_s = run as f64 * 20.0 + if is_late { 604_800.0 } else { 0.0 };
        (if is_late { 0.08f64.ln_1p() } else { 0.0 }, Some(start_s))
    };
    slow_nodes(move |_| more, seeds)
}

/// 200 nodes in groups of `size`, one group after another; one group in twenty has an hour that makes it 8 % slower.
pub fn groups_in_turn(size: usize, seeds: Range<u64>) -> Vec<Rate> {
    let more = move |random: &mut Random| {
        let slow: Vec<bool> = (0..200 / size).map(|_| random.uniform() < 0.05).collect();
        move |node: usize, run: usize| {
            let group = node / size;
            let start_s = group as f64 * 1000.0 + run as f64 * 20.0;
            (if slow[group] { 0.08f64.ln_1p() } else { 0.0 }, Some(start_s))
        }
    };
    slow_nodes(more, seeds)
}

/// 200 nodes in rounds, in which nodes start half a second apart; racks of 20 nodes differ by 1 %.
pub fn started_in_turn(seeds: Range<u64>) -> Vec<Rate> {
    let more = |random: &mut Random| {
        let racks: Vec<f64> = (0..10).map(|_| 0.01 * random.normal()).collect();
        move |node: usize, run: usize| (racks[node / 20], Some(run as f64 * 200.0 + node as f64 * 0.5))
    };
    slow_nodes(more, seeds)
}

/// 5 % of 200 nodes are slow; `more` is what is added to a run, and its start.
fn slow_nodes<M: Fn(usize, usize) -> (f64, Option<f64>)>(
    more: impl Fn(&mut Random) -> M,
    seeds: Range<u64>,
) -> Vec<Rate> {
    let of = Session { nodes: 200, sigma: 0.003, slow_nodes: 0.05, slow_by: (0.06, 0.12), ..HEALTHY };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let more = more(random);
        of.simulate(random, runs, more)
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        sums.count("warned", judged.warns(WarningCode::TimeOrder));
    })
}

/// 100 healthy nodes, one after another and at the same hours of seven days; times vary by `amplitude` over each day. This
/// share of the runs is missing.
pub fn same_hours(amplitude: f64, missing: f64, seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { sigma: 0.003, ..HEALTHY };
    let more = |node: usize, run: usize| {
        let of_day = node as f64 / of.nodes as f64;
        (amplitude / 2.0 * (of_day * TAU).sin(), Some(86_400.0 * (run as f64 + of_day)))
    };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        runs.missing = missing;
        of.simulate(random, runs, more)
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        sums.count("warned", judged.warns(WarningCode::TimeOrder));
    })
}

/// 100 nodes measured at once, and one of them a week later; 5 % of them slow. Neighbours resemble each other, as the
/// nodes of a rack do.
pub fn straggler(seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { sigma: 0.003, slow_nodes: 0.05, slow_by: (0.06, 0.12), ..HEALTHY };
    let more = |node: usize, run: usize| {
        let start_s = run as f64 * 20.0 + if node == 99 { 604_800.0 } else { node as f64 * 1e-3 };
        (0.003 * (node as f64 / 16.0 * TAU).sin(), Some(start_s))
    };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| of.simulate(random, runs, more);
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        sums.count("warned", judged.warns(WarningCode::TimeOrder));
    })
}

/// 100 healthy nodes whose successive runs have a correlation (s = .5 %, sigma = 2 %).
pub fn dependent(correlation: f64, seeds: Range<u64>) -> Vec<Rate> {
    let of = Session { sigma: 0.0, ..HEALTHY };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let mut noise = vec![0.0; of.nodes * of.runs];
        for node in noise.chunks_mut(of.runs) {
            node[0] = random.normal();
            for run in 1..of.runs {
                node[run] =
                    correlation * node[run - 1] + (1.0 - correlation * correlation).sqrt() * random.normal();
            }
        }
        of.simulate(random, runs, |node, run| {
            (0.02 * noise[node * of.runs + run], Some(run as f64 * 1000.0 + node as f64))
        })
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        for (node, theta) in truth.theta.iter().enumerate() {
            let [low, high] = judged.node(node).ci_s.expect("seven runs").map(|s| (s / 10.0).ln());
            sums.count("intervals that contain the true value", low <= *theta && *theta <= high);
            sums.add("`ci_coverage`", judged.node(node).ci_coverage.expect("seven runs"), 1.0);
        }
        sums.count("warned", judged.warns(WarningCode::DependentRuns));
    })
}

/// How a class changes after session 30 of 52.
#[derive(Clone, Copy, PartialEq)]
pub enum Change {
    /// The 20 nodes that are 10 % slow retire.
    Retire,
    /// 60 of the nodes become 3 % slower.
    Slower,
    /// All nodes become 3 % slower.
    AllSlower,
    /// 80 of the nodes are replaced by nodes that are 4 % slower.
    Replaced,
}

/// 100 nodes in 52 sessions of 3 runs.
pub fn composition(change: Change, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        for node in 0..if change == Change::Replaced { 180 } else { 100 } {
            let theta = 0.015 * random.normal()
                + match change {
                    Change::Retire if node < 20 => 0.1,
                    Change::Replaced if node >= 100 => 0.04f64.ln_1p(),
                    _ => 0.0,
                };
            for session in 0..52 {
                let is_there = match change {
                    Change::Retire => node >= 20 || session < 30,
                    Change::Slower | Change::AllSlower => true,
                    Change::Replaced => node < 20 || (node < 100) == (session < 30),
                };
                if !is_there {
                    continue;
                }
                let is_changing = change == Change::AllSlower || (change == Change::Slower && node < 60);
                let is_slower = is_changing && session >= 30;
                let moved = if is_slower { 0.03f64.ln_1p() } else { 0.0 };
                for run in 0..3 {
                    let ln_time = 10f64.ln() + theta + moved + 0.003 * random.normal();
                    runs.add(MeasuredRun { node, session, run, ln_time, start_s: None });
                }
            }
        }
    };
    over(seeds, fleet, |sums, judged, ()| {
        sums.add("nodes with an alarm", judged.verdicts.drift.len() as f64, 100.0);
        let moved = judged.verdicts.classes.iter().any(|class| class.moved.is_some());
        sums.count("class moved", moved);
        sums.count("composition warned", judged.warns(WarningCode::CompositionChanged));
        sums.count("class warned", judged.warns(WarningCode::ClassMoved));
    })
}

/// 100 nodes in 60 sessions of 3 runs; after each, the 3 oldest are replaced by nodes that are 15 % faster.
pub fn generations(seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        for node in 0..100 + 3 * 59 {
            let is_new = node >= 100;
            let theta = 0.015 * random.normal() - if is_new { 0.15 } else { 0.0 };
            let first = if is_new { (node - 100) / 3 + 1 } else { 0 };
            let last = (node / 3).min(59);
            for session in first..=last {
                for run in 0..3 {
                    let ln_time = 10f64.ln() + theta + 0.003 * random.normal();
                    runs.add(MeasuredRun { node, session, run, ln_time, start_s: None });
                }
            }
        }
    };
    over(seeds, fleet, |sums, judged, ()| {
        sums.add("nodes with an alarm", judged.verdicts.drift.len() as f64, 100.0);
        let moved = judged.verdicts.classes.iter().any(|class| class.moved.is_some());
        sums.count("class moved", moved);
        sums.count("composition warned", judged.warns(WarningCode::CompositionChanged));
        sums.count("class warned", judged.warns(WarningCode::ClassMoved));
    })
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

/// 200 nodes in sessions of 7 runs, or in one of 40; a twentieth of the nodes is flaky, with 30 % slow runs.
pub fn flaky(kind: SlowRuns, sessions: usize, seeds: Range<u64>) -> Vec<Rate> {
    let series = if kind == SlowRuns::Series { 3 } else { 1 };
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let are_flaky: Vec<bool> = (0..200).map(|_| random.uniform() < 0.05).collect();
        for (node, is_flaky) in are_flaky.iter().enumerate() {
            for session in 0..sessions {
                let is_bad = kind == SlowRuns::BadSessions && session < 3;
                if is_bad && node >= 15 {
                    continue;
                }
                let usual = if *is_flaky { 0.3 } else { 0.01 };
                let rate = if is_bad { 0.5 } else { usual } / series as f64;
                let mut left = 0;
                for run in 0..if sessions == 1 { 40 } else { 7 } {
                    if left == 0 && random.uniform() < rate {
                        left = series;
                    }
                    let slow = if left > 0 { 0.2f64.ln_1p() } else { 0.0 };
                    left = left.max(1) - 1;
                    let ln_time = 10f64.ln() + 0.003 * random.normal() + slow;
                    runs.add(MeasuredRun { node, session, run, ln_time, start_s: None });
                }
            }
        }
        are_flaky
    };
    over(seeds, fleet, |sums, judged, are_flaky| {
        let number = |warning: &ClassWarning| match warning {
            ClassWarning::FlakyNode { node, .. } => node[1..].parse::<usize>().ok(),
            _ => None,
        };
        let told: Vec<usize> = judged.verdicts.warnings.iter().filter_map(number).collect();
        let wrong = told.iter().filter(|node| !are_flaky[**node]).count();
        let all = are_flaky.iter().filter(|flaky| **flaky).count();
        sums.add("flaky nodes found", (told.len() - wrong) as f64, all as f64);
        sums.count("fleets with a false flaky node", wrong > 0);
    })
}
