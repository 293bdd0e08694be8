//! One class in one session.

use super::Settings;
use crate::stats::class::Class;
use crate::stats::median::{self, NodeMedian};
use crate::stats::verdict::{self, Judged};
use crate::stats::{runs, within};
use crate::table::RunTable;

/// What is found in it, node by node.
pub(super) struct Session<'a> {
    /// Rows of each, by time.
    pub nodes: Vec<&'a [u32]>,
    pub medians: Vec<NodeMedian>,
    pub judged: Judged,
    pub slow: Vec<runs::SlowRun>,
}

impl<'a> Session<'a> {
    /// `rows` of the table by node and time; `None` of no rows.
    pub fn judge(table: &RunTable, rows: &'a [u32], settings: &Settings) -> Option<Self> {
        let times: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize].ln()).collect();
        let node = |row: &u32| table.node[*row as usize];
        let nodes: Vec<&[u32]> = rows.chunk_by(|a, b| node(a) == node(b)).collect();
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
