//! Explains slow nodes from the counts.

use super::judged_session::JudgedSession;
use crate::stats::cause::{self, Explanation};
use crate::stats::node_counts::{Counted, NAMES};
use crate::table::RunTable;

/// The explanation of each node from the median runs of the class. Empty if no run has counts.
pub(super) fn explain(table: &RunTable, session: &JudgedSession) -> Vec<Explanation> {
    if !NAMES.iter().any(|name| table.counters.contains_key(*name)) && table.lacks.len() < 2 {
        return Vec::new();
    }
    let median_runs = session.nodes.iter().zip(&session.medians).map(|(rows, node)| rows[node.median_run]);
    let median_runs: Vec<usize> = median_runs.map(|row| row as usize).collect();
    // The time of the median run itself: with the mean of two runs, the terms would not add up.
    let ln_times: Vec<f64> = median_runs.iter().map(|row| table.elapsed_s[*row].ln()).collect();
    let class: Vec<Option<Counted>> = median_runs.iter().map(|row| counted(table, *row)).collect();
    cause::explain(&class, &ln_times, &cause::CauseSettings::default())
}

fn counted(table: &RunTable, row: usize) -> Option<Counted> {
    let values = NAMES.iter().map(|name| (*name, table.counter(name, row)));
    let known: Vec<(&str, f64)> = values.filter(|(_, value)| !value.is_nan()).collect();
    let lack = table.lacks.get(table.lack[row]).and_then(|lack| lack.split_once(": "));
    if known.is_empty() && lack.is_none() {
        return None;
    }
    let mut counted = Counted::new(known);
    if let Some((name, reason)) = lack {
        counted.lack(name, reason);
    }
    Some(counted)
}
