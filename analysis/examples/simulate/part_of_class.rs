//! Sessions that have only a part of a class.

use crate::measured_runs::{MeasuredRun, MeasuredRuns};
use crate::promises::{Rate, Truth, about_nodes, is_flagged, over};
use pmmpi_analysis::stats::random::Random;
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_analysis::warnings::WarningCode;
use std::ops::Range;

/// A session of all nodes; then one of the slow nodes, with some of the others. The second session has
/// another level.
#[derive(Clone, Copy)]
pub struct Again {
    pub nodes: usize,
    pub slow: usize,
    /// Their slowdown.
    pub by: f64,
    /// Other nodes in the second session.
    pub others: usize,
    /// The slow nodes were repaired before the second session.
    pub is_mended: bool,
    /// Times are rounded to multiples of this (s), see [`MeasuredRuns::unit`].
    pub unit: f64,
}

pub const AGAIN: Again = Again { nodes: 200, slow: 5, by: 0.08, others: 0, is_mended: false, unit: 0.0 };

pub fn suspects_again(of: Again, seeds: Range<u64>) -> Vec<Rate> {
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        runs.unit = of.unit;
        let level = 0.05 * random.normal();
        for node in 0..of.nodes {
            let healthy = 0.005 * random.normal();
            for session in 0..2 {
                let is_slow = node < of.slow && !(of.is_mended && session == 1);
                let slow = if is_slow { of.by.ln_1p() } else { 0.0 };
                if session == 1 && node >= of.slow + of.others {
                    continue;
                }
                for run in 0..7 {
                    let ln_time =
                        10f64.ln() + healthy + slow + 0.003 * random.normal() + session as f64 * level;
                    let start_s = session as f64 * 1e6 + run as f64 * 100.0 + node as f64 * 1e-3;
                    runs.add(MeasuredRun { node, session, run, start_s: Some(start_s), ln_time });
                }
            }
        }
    };
    over(seeds, fleet, |sums, judged, ()| {
        let count = |is: &dyn Fn(usize) -> bool| (0..of.slow).filter(|node| is(*node)).count() as f64;
        let is_ok = |node: usize| judged.node(node).verdict == Some(Verdict::Ok);
        sums.add("suspects that are SLOW", count(&|node| is_flagged(judged, node, of.nodes)), of.slow as f64);
        sums.add("suspects that are OK", count(&is_ok), of.slow as f64);
        sums.count("warned", judged.warns(WarningCode::FewAnchors));
    })
}

/// 100 nodes, 5 % of them slow, in 12 sessions: one of all nodes, then of about 30 random ones each. The sessions have
/// different levels.
pub fn rotating(seeds: Range<u64>) -> Vec<Rate> {
    const NODES: usize = 100;
    let fleet = |random: &mut Random, runs: &mut MeasuredRuns| {
        let mut truth = Truth::default();
        for _ in 0..NODES {
            truth.by.push(if random.uniform() < 0.05 { 0.06 + 0.06 * random.uniform() } else { 0.0 });
            truth.theta.push(0.005 * random.normal() + truth.by[truth.by.len() - 1].ln_1p());
        }
        for session in 0..12 {
            let level = 0.02 * random.normal();
            for node in 0..NODES {
                if session > 0 && random.uniform() > 0.3 {
                    continue;
                }
                for run in 0..7 {
                    let ln_time = 10f64.ln() + truth.theta[node] + level + 0.003 * random.normal();
                    runs.add(MeasuredRun { node, session, run, ln_time, start_s: None });
                }
            }
        }
        truth
    };
    over(seeds, fleet, |sums, judged, truth| {
        about_nodes(sums, judged, truth);
        sums.count("warned", judged.warns(WarningCode::FewAnchors));
    })
}
