//! Settings in which runs of a class differ: their elapsed times may differ for this reason alone.

use crate::table::facts::{self, FactValues};
use crate::table::{RunTable, run_settings};
use crate::warnings::of_classes::RunsWithValue;
use crate::warnings::{ClassWarning, FirstFew};
use std::collections::{BTreeMap, BTreeSet};

/// A warning names at most this many values of a setting, and this many runs.
const NAMED: usize = 3;

/// The runs with each value of a setting.
type RunsByValue<'a> = BTreeMap<&'a str, BTreeSet<u32>>;

/// One warning per setting in which runs of the class differ, and one per fact in which runs of a node differ in one
/// session. `nodes` has the rows of each node by session.
pub(super) fn of_class(table: &RunTable, nodes: &[&[u32]], class: &str) -> Vec<ClassWarning> {
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
    let warning = |setting: &str, is_on_one_node, runs: &RunsByValue<'_>| ClassWarning::SettingsDiffer {
        setting: setting.to_owned(),
        is_on_one_node,
        values: most_frequent(table, runs),
        class: class.to_owned(),
    };
    let mut warnings = Vec::new();
    for name in names.iter().copied().filter(of_node) {
        if let Some(runs) = changed_on_a_node(table, &changing, &facts_of, name) {
            warnings.push(warning(name, true, &runs));
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
            warnings.push(warning(name, false, &runs));
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

/// The most frequent values first. Names the runs of the others.
fn most_frequent(table: &RunTable, runs: &RunsByValue<'_>) -> FirstFew<RunsWithValue> {
    let mut values: Vec<(&str, &BTreeSet<u32>)> = runs.iter().map(|(value, runs)| (*value, runs)).collect();
    values.sort_by_key(|(value, runs)| (std::cmp::Reverse(runs.len()), *value));
    let of = |(number, (value, runs)): (usize, &(&str, &BTreeSet<u32>))| {
        let names: BTreeSet<&str> = runs.iter().filter_map(|run| table.runs.get(*run)).collect();
        let named = names.into_iter().take(if number == 0 { 0 } else { NAMED });
        let runs = FirstFew { first: named.map(str::to_owned).collect(), all: runs.len() };
        RunsWithValue { value: (*value).to_owned(), runs }
    };
    FirstFew { first: values.iter().enumerate().take(NAMED).map(of).collect(), all: values.len() }
}
