//! Why nodes are slow, as far as what was counted says it.

use super::Settings;
use super::session::Session;
use crate::stats::cause::{self, Explanation};
use crate::stats::counted::{Counted, NAMES};
use crate::table::RunTable;
use hashbrown::HashMap;

/// Of each node in the session that it is judged by, from its median run and those of its class. Empty where no run
/// has counts. `sessions` has rows of the table, those of the class, `latest` the session of each node.
pub(super) fn explain(
    table: &RunTable,
    settings: &Settings,
    sessions: &[&[u32]],
    latest: &HashMap<u32, u32>,
) -> HashMap<u32, Explanation> {
    let mut all = HashMap::new();
    if !NAMES.iter().any(|name| table.counters.contains_key(*name)) && table.lacks.len() < 2 {
        return all;
    }
    for rows in sessions {
        let is_asked = |row: &u32| {
            let row = *row as usize;
            latest.get(&table.node[row]) == Some(&table.session[row])
        };
        if !rows.iter().any(is_asked) {
            continue;
        }
        let Some(session) = Session::judge(table, rows, settings) else { continue };
        let median_runs =
            session.nodes.iter().zip(&session.medians).map(|(rows, node)| rows[node.median_run]);
        let median_runs: Vec<u32> = median_runs.collect();
        // The time of that very run: with the mean of two the terms would not add up.
        let ln_times: Vec<f64> = median_runs.iter().map(|row| table.elapsed_s[*row as usize].ln()).collect();
        let class: Vec<Option<Counted>> =
            median_runs.iter().map(|row| counted(table, *row as usize)).collect();
        let explained = cause::explain(&class, &ln_times, &cause::Settings::default());
        let asked = median_runs.iter().zip(explained).filter(|(row, _)| is_asked(row));
        all.extend(asked.map(|(row, explanation)| (table.node[*row as usize], explanation)));
    }
    all
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
