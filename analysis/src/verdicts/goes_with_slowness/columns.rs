//! The columns that are correlated with the time: counters, metrics computed from counters, and facts.

use crate::table::facts::{self, FactValues};
use crate::table::{BOUNDS, RunTable};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// A count, or another measured value.
    Counter,
    /// A ratio of counts.
    Metric,
    /// What a node is: its runs have one value.
    Fact,
}

/// One value per row of the table; NaN if a row has none.
pub(super) struct SlownessColumn<'a> {
    pub name: String,
    pub kind: ColumnKind,
    /// True if it measures the time itself: then it is not correlated with the time.
    pub is_time_itself: bool,
    values: Values<'a>,
}

enum Values<'a> {
    /// Values of rows, divided by other values of the rows.
    OfRows(&'a [f64], Vec<&'a [f64]>),
    /// The value of each text of the table's `fact_texts`.
    OfFacts(&'a RunTable, Vec<f64>),
}

/// Counters of the time, also with `_user` and `_most` after the name.
const TIMES: [&str; 4] = ["tsc", "task_clock_ns", "cycles", "ref_cycles"];
/// Values that a node has in all runs of a class.
const FACTS: [&str; 2] = ["cpus", "ranks"];
/// Metrics with the names and formulas of docs/metrics.md; constant factors are left out, they change no rank and no ratio.
/// `elapsed_s` is the time of the row.
const METRICS: [(&str, &str, &[&str]); 9] = [
    ("cpi", "cycles", &["instructions"]),
    ("cpi_user", "cycles_user", &["instructions_user"]),
    ("frequency_active", "cycles", &["ref_cycles"]),
    ("frequency_active_user", "cycles_user", &["ref_cycles_user"]),
    ("utilisation", "ref_cycles", &["task_clock_ns"]),
    ("frequency_net", "cycles", &["task_clock_ns"]),
    ("busy_threads", "task_clock_ns", &[ELAPSED]),
    ("kernel_instruction_share", "instructions_kernel", &["instructions"]),
    ("kernel_cycle_share", "cycles_kernel", &["cycles"]),
];
const ELAPSED: &str = "elapsed_s";

impl SlownessColumn<'_> {
    /// NaN if a value is missing or a divisor is 0.
    pub fn value(&self, row: usize) -> f64 {
        let value = match &self.values {
            Values::OfRows(values, divisors) => {
                divisors.iter().fold(values[row], |value, by| value / by[row])
            }
            Values::OfFacts(table, values) => {
                values.get(table.facts_of(row) as usize).copied().unwrap_or(f64::NAN)
            }
        };
        if value.is_finite() { value } else { f64::NAN }
    }
}

/// True if a counter of this name measures the time itself.
fn is_time_itself(name: &str) -> bool {
    let counted = name.strip_suffix("_most").unwrap_or(name);
    let counted = counted.strip_suffix("_user").unwrap_or(counted);
    TIMES.contains(&counted) || BOUNDS.contains(&name)
}

/// All columns that have a value in one of these rows.
pub(super) fn of<'a>(table: &'a RunTable, rows: &[u32]) -> Vec<SlownessColumn<'a>> {
    let stored = |name: &str| match name {
        ELAPSED => Some(table.elapsed_s.as_slice()),
        name => table.counters.get(name).map(Vec::as_slice),
    };
    let mut all: Vec<SlownessColumn> = Vec::new();
    for (name, values) in &table.counters {
        let kind = if FACTS.contains(&name.as_str()) { ColumnKind::Fact } else { ColumnKind::Counter };
        let values = Values::OfRows(values, Vec::new());
        all.push(SlownessColumn { name: name.clone(), kind, is_time_itself: is_time_itself(name), values });
    }
    for (name, numerator, divisors) in METRICS {
        let divisors: Option<Vec<&[f64]>> = divisors.iter().map(|name| stored(name)).collect();
        if let Some((values, divisors)) = stored(numerator).zip(divisors).filter(|_| stored(name).is_none()) {
            let (kind, values) = (ColumnKind::Metric, Values::OfRows(values, divisors));
            all.push(SlownessColumn { name: name.to_owned(), kind, is_time_itself: false, values });
        }
    }
    all.extend(of_facts(table, rows));
    all.retain(|column| rows.iter().any(|row| !column.value(*row as usize).is_nan()));
    all
}

/// The facts in which nodes differ. A fact that is no number is 1 if it is not the value of most rows, otherwise 0.
fn of_facts<'a>(table: &'a RunTable, rows: &[u32]) -> Vec<SlownessColumn<'a>> {
    let mut rows_of: BTreeMap<u32, usize> = BTreeMap::new();
    rows.iter().for_each(|row| *rows_of.entry(table.facts_of(*row as usize)).or_default() += 1);
    let texts: Vec<(u32, usize, FactValues)> = rows_of
        .into_iter()
        .map(|(number, rows)| (number, rows, facts::values(table.fact_texts.get(number).unwrap_or_default())))
        .collect();
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for (name, value, rows) in texts.iter().flat_map(|(_, rows, of)| of.iter().map(|(n, v)| (n, v, *rows))) {
        *counts.entry(name).or_default().entry(value).or_default() += rows;
    }
    let count = texts.iter().map(|(number, ..)| *number as usize + 1).max().unwrap_or_default();
    let mut all = Vec::new();
    for (name, of_values) in counts.iter().filter(|(_, of_values)| of_values.len() > 1) {
        let are_numbers = of_values.keys().all(|value| value.parse::<f64>().is_ok_and(f64::is_finite));
        let usual = of_values.iter().max_by_key(|(_, rows)| **rows).map_or("", |(value, _)| *value);
        let mut values = vec![f64::NAN; count];
        for (number, _, of) in &texts {
            if let Some(value) = of.get(*name) {
                values[*number as usize] = match are_numbers {
                    true => value.parse().unwrap_or(f64::NAN),
                    false => f64::from(u8::from(value != usual)),
                };
            }
        }
        let name = if are_numbers { (*name).to_owned() } else { format!("{name} other than {usual}") };
        let (kind, values) = (ColumnKind::Fact, Values::OfFacts(table, values));
        all.push(SlownessColumn { name, kind, is_time_itself: false, values });
    }
    all
}
