//! One class in one session.

use super::Settings;
use crate::stats::class::Class;
use crate::stats::median::{self, NodeMedian};
use crate::stats::verdict::{self, Judged};
use crate::stats::{runs, within};
use crate::table::RunTable;

/// What verdicts need of a row of the table.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub row: usize,
    pub session: u32,
    pub node: u32,
    pub seconds: f64,
}

impl Row {
    pub fn of(table: &RunTable, row: usize) -> Self {
        Self { row, session: table.session[row], node: table.node[row], seconds: table.elapsed_s[row] }
    }
}

/// What is found in it, node by node.
pub(super) struct Session<'a> {
    /// Rows of each, by time.
    pub nodes: Vec<&'a [Row]>,
    pub medians: Vec<NodeMedian>,
    pub judged: Judged,
    pub slow: Vec<runs::SlowRun>,
}

impl<'a> Session<'a> {
    /// `rows` by node and time; `None` of no rows.
    pub fn judge(rows: &'a [Row], settings: &Settings) -> Option<Self> {
        let times: Vec<f64> = rows.iter().map(|row| row.seconds.ln()).collect();
        let nodes: Vec<&[Row]> = rows.chunk_by(|a, b| a.node == b.node).collect();
        let mut ends = Vec::with_capacity(nodes.len());
        let mut end = 0;
        for node in &nodes {
            end += node.len();
            ends.push(end);
        }
        let class = Class::new(&times, &ends)?;
        let medians = median::of_nodes(&class);
        let sigma = within::sigma(&class, &medians);
        let judged = verdict::judge(&medians, sigma, &settings.node);
        let slow = sigma.map(|sigma| runs::slow(&class, &medians, sigma, &settings.run)).unwrap_or_default();
        Some(Self { nodes, medians, judged, slow })
    }
}
