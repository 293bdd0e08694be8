//! One class in one session.

use super::JudgeSettings;
use crate::stats::class_runs::ClassRuns;
use crate::stats::median::{self, NodeMedian};
use crate::stats::verdict::{self, JudgedClass};
use crate::stats::{runs, within_nodes};
use crate::table::RunTable;

/// What was measured in it, node by node.
pub(super) struct JudgedSession<'a> {
    /// Rows of each, by time.
    pub nodes: &'a [&'a [u32]],
    pub medians: Vec<NodeMedian>,
    /// Of ln T, over the runs of a node.
    sigma: Option<f64>,
    /// ln seconds of each row, and where those of each node end.
    times: Vec<f64>,
    ends: Vec<usize>,
}

impl<'a> JudgedSession<'a> {
    /// Of the rows of each node; `None` where one has none.
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

    /// The median of its nodes' medians (ln s). `None` where there is no other node to compare one with.
    pub fn centre(&self) -> Option<f64> {
        let mut medians: Vec<f64> = self.medians.iter().map(|node| node.median).collect();
        if medians.len() < 2 { None } else { within_nodes::median_of(&mut medians) }
    }

    /// Each node next to the others.
    pub fn judged(&self, settings: &JudgeSettings) -> JudgedClass {
        verdict::judge(&self.medians, self.sigma, &settings.node)
    }

    /// Whether slow runs can be found of a node with so many.
    pub fn tests(&self, runs: usize, settings: &JudgeSettings) -> bool {
        self.sigma.is_some() && runs >= settings.run.min_runs
    }

    /// Runs that are slower than the others of their node.
    pub fn slow_runs(&self, settings: &JudgeSettings) -> Vec<runs::SlowRunTest> {
        let class = ClassRuns::new(&self.times, &self.ends).zip(self.sigma);
        let slow = |(class, sigma)| runs::slow(&class, &self.medians, sigma, &settings.run);
        class.map(slow).unwrap_or_default()
    }
}
