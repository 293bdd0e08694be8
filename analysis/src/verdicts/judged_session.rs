//! One class in one session.

use super::JudgeSettings;
use crate::stats::class_runs::ClassRuns;
use crate::stats::median::{self, NodeMedian};
use crate::stats::verdict_rule::{self, JudgedClass};
use crate::stats::{runs, within_nodes};
use crate::table::RunTable;

/// The times in the session, node by node.
pub(super) struct JudgedSession<'a> {
    /// The rows of each node, sorted by time.
    pub nodes: &'a [&'a [u32]],
    pub medians: Vec<NodeMedian>,
    /// Standard deviation of ln T over the runs of a node.
    sigma: Option<f64>,
    /// ln seconds of each row; `ends` has the end of each node's rows.
    times: Vec<f64>,
    ends: Vec<usize>,
}

impl<'a> JudgedSession<'a> {
    /// Builds it from the rows of each node; `None` if a node has no row.
    pub fn of(table: &RunTable, nodes: &'a [&'a [u32]]) -> Option<Self> {
        let mut times = Vec::new();
        let mut ends = Vec::with_capacity(nodes.len());
        for rows in nodes {
            times.extend(rows.iter().map(|row| table.elapsed_s[*row as usize].ln()));
            ends.push(times.len());
        }
        let class = ClassRuns::new(&times, &ends)?;
        let medians = median::of_nodes(&class);
        let sigma = within_nodes::sigma(&class, &medians);
        Some(Self { nodes, medians, sigma, times, ends })
    }

    /// The median of its nodes' medians (ln s). `None` if there is no second node.
    pub fn centre(&self) -> Option<f64> {
        let mut medians: Vec<f64> = self.medians.iter().map(|node| node.median).collect();
        if medians.len() < 2 { None } else { within_nodes::median_of(&mut medians) }
    }

    /// Compares each node with the others.
    pub fn judged(&self, settings: &JudgeSettings) -> JudgedClass {
        verdict_rule::judge(&self.medians, self.sigma, &settings.node)
    }

    /// True if a node with this many runs can be tested for slow runs.
    pub fn tests(&self, runs: usize, settings: &JudgeSettings) -> bool {
        self.sigma.is_some() && runs >= settings.run.min_runs
    }

    /// Runs that are slower than the other runs of their node.
    pub fn slow_runs(&self, settings: &JudgeSettings) -> Vec<runs::SlowRunTest> {
        let class = ClassRuns::new(&self.times, &self.ends).zip(self.sigma);
        let slow = |(class, sigma)| runs::slow(&class, &self.medians, sigma, &settings.run);
        class.map(slow).unwrap_or_default()
    }
}
