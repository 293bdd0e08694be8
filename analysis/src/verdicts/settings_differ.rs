//! Settings in which runs of a class differ: their elapsed times may differ for this reason alone.

use crate::table::facts::{self, FactValues};
use crate::table::{RunTable, run_settings};
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::count;
use std::collections::{BTreeMap, BTreeSet};

/// A message names at most this many values of a setting, and this many runs.
const NAMED: usize = 3;

/// The runs with each value of a setting.
type RunsByValue<'a> = BTreeMap<&'a str, BTreeSet<u32>>;

/// One warning per setting in which runs of the class differ, and one per fact in which runs of a node differ in one
/// session. `nodes` has the rows of each node by session.
pub(super) fn of_class(table: &RunTable, nodes: &[&[u32]], class: &str) -> Vec<Warning> {
    let mut runs_of_text: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for row in nodes.iter().flat_map(|rows| rows.iter()).map(|row| *row as usize) {
        if table.facts_of(row) > 0 && table.is_own(row) {
            runs_of_text.entry(table.facts_of(row)).or_default().insert(table.run.at(row));
        }
    }
    if runs_of_text.len() < 2 {
        return Vec::new(); // nearly all classes
    }
    let values = |number: u32| facts::values(table.fact_texts.get(number).unwrap_or_default());
    let facts_of: BTreeMap<u32, FactValues> =
        runs_of_text.keys().map(|text| (*text, values(*text))).collect();
    let texts: Vec<(FactValues, BTreeSet<u32>)> =
        runs_of_text.into_iter().map(|(number, runs)| (facts_of[&number].clone(), runs)).collect();
    let known: Vec<_> = texts.iter().filter(|(facts, _)| run_settings::are_known(facts)).collect();
    let names: BTreeSet<&str> =
        known.iter().flat_map(|(facts, _)| facts.keys().map(String::as_str)).collect();
    let of_node = |name: &&str| run_settings::may_change_between_runs(name);
    let changing: Vec<&[u32]> =
        nodes.iter().copied().filter(|rows| have_several_texts(table, rows)).collect();
    let mut warnings = Vec::new();
    for name in names.iter().copied().filter(of_node) {
        if let Some(runs) = changed_on_a_node(table, &changing, &facts_of, name) {
            let message =
                format!("runs of the same node differ in {name}: {} ({class})", described(table, &runs));
            warnings.push(Warning::new(WarningCode::SettingsDiffer, message));
        }
    }
    for name in names.into_iter().filter(|name| run_settings::may_change_speed(name)) {
        let mut runs: RunsByValue = BTreeMap::new();
        for (facts, of_text) in &known {
            if let Some(value) = run_settings::value(facts, name) {
                runs.entry(value).or_default().extend(of_text);
            }
        }
        if runs.len() > 1 {
            let message = format!("runs differ in {name}: {} ({class})", described(table, &runs));
            warnings.push(Warning::new(WarningCode::SettingsDiffer, message));
        }
    }
    warnings
}

/// True for rows of a node in a session that do not all have the same facts.
fn have_several_texts(table: &RunTable, rows: &[u32]) -> bool {
    rows.windows(2).any(|pair| table.facts_of(pair[0] as usize) != table.facts_of(pair[1] as usize))
}

/// The runs with each value of a fact, on nodes with several values in one session; `None` if there is no such node.
fn changed_on_a_node<'a>(
    table: &RunTable,
    nodes: &[&[u32]],
    facts_of: &'a BTreeMap<u32, FactValues>,
    name: &str,
) -> Option<RunsByValue<'a>> {
    let mut all = RunsByValue::new();
    for rows in nodes {
        let rows = || rows.iter().map(|row| *row as usize);
        let value = |row: usize| facts_of.get(&table.facts_of(row))?.get(name).map(String::as_str);
        if rows().filter_map(value).collect::<BTreeSet<_>>().len() < 2 {
            continue;
        }
        for row in rows() {
            if let Some(value) = value(row) {
                all.entry(value).or_default().insert(table.run.at(row));
            }
        }
    }
    (!all.is_empty()).then_some(all)
}

/// "8 in 33 runs, not set in 2 runs (a, b)": the most frequent value first. Names the runs of the others.
fn described(table: &RunTable, runs: &RunsByValue<'_>) -> String {
    let mut values: Vec<(&str, &BTreeSet<u32>)> = runs.iter().map(|(value, runs)| (*value, runs)).collect();
    values.sort_by_key(|(value, runs)| (std::cmp::Reverse(runs.len()), *value));
    let of = |(number, (value, runs)): (usize, &(&str, &BTreeSet<u32>))| {
        let names: BTreeSet<&str> = runs.iter().filter_map(|run| table.runs.get(*run)).collect();
        let named: Vec<&str> = names.into_iter().take(NAMED).collect();
        let more = if runs.len() > NAMED { ", ..." } else { "" };
        let named = if number == 0 { String::new() } else { format!(" ({}{more})", named.join(", ")) };
        format!("{value} in {}{named}", count(runs.len(), "run"))
    };
    let mut texts: Vec<String> = values.iter().enumerate().take(NAMED).map(of).collect();
    if let Some(more) = values.len().checked_sub(NAMED).filter(|more| *more > 0) {
        texts.push(count(more, "more value"));
    }
    texts.join(", ")
}
