//! Explains slow nodes, and slow runs of one node, from the counts.

use super::health::NodeHealth;
use super::judged_session::JudgedSession;
use super::named_cause::{Among, NamedCause};
use super::node_report::WhyReport;
use super::null_reasons::{NodeNullReason, NullReasons};
use crate::stats::cause::{self, Explanation, SnoopFilters};
use crate::stats::node_counts::{Counted, MISSED, NAMES};
use crate::stats::node_median::NodeMedian;
use crate::stats::within_nodes;
use crate::table::node_class::Key;
use crate::table::{RunTable, Shared, facts};

/// The explanation of each node from the median runs of the class. Empty if no run has counts.
///
/// For an even number of runs, the median is the mean of the middle two (in ln T), and so are the counts: the terms of
/// the slowdown add up for each run, so they add up for means of logarithms.
pub(super) fn explain(table: &RunTable, session: &JudgedSession) -> Vec<Explanation> {
    if !NAMES.iter().any(|name| table.counters.contains_key(*name)) && table.lack.is_empty() {
        return Vec::new();
    }
    let ln_times: Vec<f64> = session.medians.iter().map(|node| node.median).collect();
    let columns = columns(table);
    let class: Vec<Option<Counted>> = (0..session.nodes.len())
        .map(|place| {
            let (rows, middle) = (session.nodes[place], &session.medians[place]);
            let run = |run: usize| counted(table, &columns, rows[run] as usize);
            match middle.upper_run == middle.median_run {
                true => run(middle.median_run),
                false => Some(Counted::middle(&run(middle.median_run)?, &run(middle.upper_run)?)),
            }
        })
        .collect();
    let class = match session.round_effects.effects.is_empty() {
        true => class,
        false => without_rounds(&columns, session, class),
    };
    cause::explain(&class, &ln_times, &settings(table, session.nodes[0][0]))
}

/// The explanation of each run of a node, next to the others. Empty if no run has counts.
pub(super) fn explain_runs(table: &RunTable, rows: &[u32]) -> Vec<Explanation> {
    if !NAMES.iter().any(|name| table.counters.contains_key(*name)) && table.lack.is_empty() {
        return Vec::new();
    }
    let ln_times: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize].ln()).collect();
    let columns = columns(table);
    let runs: Vec<Option<Counted>> = rows.iter().map(|row| counted(table, &columns, *row as usize)).collect();
    cause::explain(&runs, &ln_times, &settings(table, rows[0]))
}

/// The report on why a node or a run is slow. Adds the reasons for what is not known.
pub(super) fn why_report(
    explanation: Explanation,
    health: NodeHealth,
    among: Among,
    null_reasons: &mut NullReasons,
) -> Shared<WhyReport> {
    let cause = NamedCause::of(explanation.cause, health.unusual, among);
    match &cause {
        Ok(cause) if cause.share().is_some() => {}
        Ok(_) => null_reasons.insert("cause_share", NodeNullReason::NoShare),
        Err(none) => {
            let reason = NodeNullReason::NoCause { why: Shared::new(none.clone()), among };
            for key in ["cause", "cause_text", "cause_share"] {
                null_reasons.insert(key, reason.clone());
            }
        }
    }
    WhyReport {
        facts_changed: health.changes,
        cause: cause.ok().map(Shared::new),
        terms: explanation.terms,
        term_parts: explanation.parts,
    }
    .shared()
}

fn settings(table: &RunTable, row: u32) -> cause::CauseSettings {
    let snoop_filter = snoop_filters(table, row as usize);
    cause::CauseSettings { snoop_filter, ..cause::CauseSettings::default() }
}

/// `None` if the class does not say which processor its nodes have.
fn snoop_filters(table: &RunTable, row: usize) -> SnoopFilters {
    /// Skylake-SP, Cascade Lake and Cooper Lake; Knights Landing. SC18 found conflicts on both.
    const WITH_CONFLICTS: [&str; 2] = ["(6/85/", "(6/87/"];
    /// Intel's later servers, on which pmmpi counts evictions: Ice Lake, Sapphire, Emerald and Granite Rapids.
    const COUNTED: [&str; 6] = ["(6/106/", "(6/108/", "(6/143/", "(6/207/", "(6/173/", "(6/174/"];
    /// SC18: "all processors with more than 16 cores show Snoop Filter conflicts".
    const MOST_WITHOUT_CONFLICTS: f64 = 16.0;
    let parts = table.class_parts.get(&table.class.at(row));
    let Some(cpu) = parts.and_then(|parts| parts.facts.get(&Key::Cpu)) else { return SnoopFilters::None };
    let facts = facts::values(table.fact_texts.get(table.facts_of(row)).unwrap_or_default());
    // Results of other tools have no facts, but may have a column `cpus`.
    let threads = facts.get("hardware_threads").and_then(|threads| threads.parse::<f64>().ok());
    let threads = threads.unwrap_or_else(|| table.counter("cpus", row));
    let per_core = if facts.get("smt").is_some_and(|smt| smt == "on") { 2.0 } else { 1.0 };
    // If the node has few cores, each socket has few. Without a number (NaN), it may have many.
    let are_few = threads / per_core <= MOST_WITHOUT_CONFLICTS;
    let is_of = |models: &[&str]| models.iter().any(|model| cpu.contains(model));
    match () {
        () if is_of(&WITH_CONFLICTS) && !are_few => SnoopFilters::WithConflicts,
        () if is_of(&WITH_CONFLICTS) || is_of(&COUNTED) => SnoopFilters::Counted,
        () => SnoopFilters::None,
    }
}

/// Divides each count by the effect of its round, like the times: an effect on all nodes of a round is no property of
/// one node. The effect is the median, over nodes, of the count relative to the node's own median (in logarithms).
fn without_rounds(
    columns: &[Column],
    session: &JudgedSession,
    mut class: Vec<Option<Counted>>,
) -> Vec<Option<Counted>> {
    let median_of = |values: &mut Vec<f64>| within_nodes::median_of(values).unwrap_or(0.0);
    for (name, values) in columns {
        let mut of_round: Vec<Vec<f64>> = vec![Vec::new(); session.round_effects.effects.len()];
        let ln = |row: u32| Some(values[row as usize].ln()).filter(|ln| ln.is_finite());
        for (place, rows) in session.nodes.iter().enumerate() {
            let own = median_of(&mut rows.iter().filter_map(|row| ln(*row)).collect());
            for (run, row) in rows.iter().enumerate() {
                of_round[session.round(place, run)].extend(ln(*row).map(|ln| ln - own));
            }
        }
        let effects: Vec<f64> = of_round.iter_mut().map(median_of).collect();
        for (place, counted) in class.iter_mut().enumerate() {
            let Some(counted) = counted else { continue };
            let NodeMedian { median_run, upper_run, .. } = session.medians[place];
            let effect = |run: usize| effects[session.round(place, run)];
            if let Some(value) = counted.get(name) {
                counted.set(*name, value * (-(effect(median_run) + effect(upper_run)) / 2.0).exp());
            }
        }
    }
    class
}

/// A counter and its values of all rows.
type Column<'a> = (&'static str, &'a [f64]);

/// The counters that explain, as far as the table has them, in the order of the names.
fn columns(table: &RunTable) -> Vec<Column<'_>> {
    let column = |name: &'static str| Some((name, table.counters.get(name)?.as_slice()));
    let mut columns: Vec<Column> = NAMES.into_iter().filter_map(column).collect();
    columns.sort_unstable_by_key(|(name, _)| *name);
    columns
}

fn counted(table: &RunTable, columns: &[Column], row: usize) -> Option<Counted> {
    let values = columns.iter().map(|(name, values)| (*name, values[row]));
    let known: Vec<(&'static str, f64)> = values.filter(|(_, value)| !value.is_nan()).collect();
    let lack = table.lack_of(row);
    if known.is_empty() && lack.is_none() {
        return None;
    }
    let mut counted = Counted::new(known);
    let missed =
        lack.and_then(|(name, reason)| Some((MISSED.into_iter().find(|missed| *missed == name)?, reason)));
    if let Some((name, reason)) = missed {
        counted.lack(name, reason);
    }
    Some(counted)
}
