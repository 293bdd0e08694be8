//! The table as a data frame, for Polars and for files that other programs read.

use super::{FACTS_COLUMN, NO_TIME_COLUMNS, NamePool, RunTable, UNDATED, WithoutTime};
use crate::table::node_class::{Key, Parts};
use polars::prelude::*;
use std::collections::BTreeSet;

/// Optional columns that some of the rows use: parts of classes if they are kept, facts, and counters.
#[derive(Clone, Debug)]
pub struct Filled<'a> {
    parts: BTreeSet<&'a Key>,
    has_facts: bool,
    counters: Vec<(&'a str, &'a [f64])>,
}

impl RunTable {
    /// The optional columns that some of these rows use.
    pub fn filled(&self, rows: &[u32]) -> Filled<'_> {
        let numbers: BTreeSet<u32> = match self.parts.is_empty() {
            true => BTreeSet::new(),
            false => rows.iter().map(|row| self.parts[*row as usize]).collect(),
        };
        let parts = numbers.into_iter().map(|number| &self.all_parts[number as usize]);
        let is_counted = |values: &[f64]| rows.iter().any(|row| !values[*row as usize].is_nan());
        let counters = self.counters.iter().filter(|(_, values)| is_counted(values));
        Filled {
            parts: parts.flat_map(Parts::iter).map(|(key, _)| key).collect(),
            has_facts: rows.iter().any(|row| self.facts_of(*row as usize) > 0),
            counters: counters.map(|(name, values)| (name.as_str(), values.as_slice())).collect(),
        }
    }

    /// A data frame with these rows, in this order.
    ///
    /// | column | type | |
    /// |---|---|---|
    /// | node, run | str | |
    /// | measured_by_pmmpi | bool | true: `run` is the id of a run of pmmpi |
    /// | class, session | str | null if there is none |
    /// | started | datetime, ns, UTC | null if unknown |
    /// | elapsed_s | f64 | above zero |
    /// | one per part of classes, if parts are kept | str | null if unknown |
    /// | facts | str | facts of the node, a JSON object; only if some row has facts |
    /// | one per counter | f64 | null if there is no value |
    pub fn frame(&self, rows: &[u32], filled: &Filled<'_>) -> PolarsResult<DataFrame> {
        let at = |row: &u32| *row as usize;
        let texts = |name: &str, text: &dyn Fn(usize) -> Option<String>| {
            let texts: Vec<Option<String>> = rows.iter().map(|row| text(at(row))).collect();
            Column::new(name.into(), texts)
        };
        let owned = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let started = rows.iter().map(|row| Some(self.started_unix_ns[at(row)]).filter(|ns| *ns != UNDATED));
        let started: Vec<Option<i64>> = started.collect();
        // UTC; a time zone in the type would need a table of all time zones.
        let utc = DataType::Datetime(TimeUnit::Nanoseconds, None);
        let mut columns = vec![
            texts("node", &|row| owned(self.node_name(row))),
            texts("run", &|row| self.runs.get(self.run.at(row)).and_then(owned)),
            Column::new(
                "measured_by_pmmpi".into(),
                rows.iter().map(|row| self.is_own(at(row))).collect::<Vec<_>>(),
            ),
            texts("class", &|row| self.classes.get(self.class.at(row)).and_then(owned)),
            texts("session", &|row| self.session_name(row).and_then(owned)),
            Column::new("started".into(), started).cast(&utc)?,
            Column::new(
                "elapsed_s".into(),
                rows.iter().map(|row| self.elapsed_s[at(row)]).collect::<Vec<_>>(),
            ),
        ];
        for key in &filled.parts {
            let Some(column) = key.column() else { continue };
            let values = rows.iter().map(|row| self.all_parts[self.parts[at(row)] as usize].get(key));
            columns.push(Column::new(column.into(), values.collect::<Vec<Option<&str>>>()));
        }
        if filled.has_facts {
            columns.push(texts(FACTS_COLUMN, &|row| self.fact_texts.get(self.facts_of(row)).and_then(owned)));
        }
        for (name, values) in &filled.counters {
            let values = rows.iter().map(|row| Some(values[at(row)]).filter(|value| !value.is_nan()));
            columns.push(Column::new((*name).into(), values.collect::<Vec<Option<f64>>>()));
        }
        DataFrame::new(rows.len(), columns)
    }

    /// A data frame with these entries of `without_time`: the columns of [`Self::frame`] without counters, and why there is
    /// no time.
    ///
    /// | column | type | |
    /// |---|---|---|
    /// | elapsed_s | f64 | null |
    /// | no_time | str | a [`NoTime`](super::NoTime): failed, unknown, wrong or invalid |
    /// | no_time_reason | str | the reason in words |
    pub fn frame_without_time(&self, entries: &[&WithoutTime]) -> PolarsResult<DataFrame> {
        let texts = |name: &str, text: &dyn Fn(&WithoutTime) -> Option<String>| {
            Column::new(name.into(), entries.iter().map(|entry| text(entry)).collect::<Vec<Option<String>>>())
        };
        let named = |names: &NamePool, number: u32| {
            names.get(number).filter(|name| !name.is_empty()).map(str::to_owned)
        };
        let started = entries.iter().map(|entry| Some(entry.started_unix_ns).filter(|ns| *ns != UNDATED));
        let utc = DataType::Datetime(TimeUnit::Nanoseconds, None);
        let [no_time, reason] = NO_TIME_COLUMNS;
        let mut columns = vec![
            texts("node", &|entry| named(&self.nodes, entry.node)),
            texts("run", &|entry| named(&self.runs, entry.run)),
            Column::new(
                "measured_by_pmmpi".into(),
                entries.iter().map(|entry| entry.is_own).collect::<Vec<bool>>(),
            ),
            texts("class", &|entry| named(&self.classes, entry.class)),
            texts("session", &|entry| named(&self.sessions, entry.session)),
            Column::new("started".into(), started.collect::<Vec<Option<i64>>>()).cast(&utc)?,
            Column::full_null("elapsed_s".into(), entries.len(), &DataType::Float64),
            texts(no_time, &|entry| Some(entry.why.name().to_owned())),
            texts(reason, &|entry| Some(entry.reason.clone())),
        ];
        let parts_of = |entry: &WithoutTime| self.all_parts.get(entry.parts as usize);
        let all_parts = entries.iter().filter_map(|entry| parts_of(entry));
        let keys: BTreeSet<&Key> = all_parts.flat_map(Parts::iter).map(|(key, _)| key).collect();
        for key in keys {
            let Some(column) = key.column() else { continue };
            columns.push(texts(&column, &|entry| parts_of(entry)?.get(key).map(str::to_owned)));
        }
        if entries.iter().any(|entry| entry.facts > 0) {
            columns.push(texts(FACTS_COLUMN, &|entry| named(&self.fact_texts, entry.facts)));
        }
        DataFrame::new(entries.len(), columns)
    }

    /// All rows in the order of reading, for queries.
    pub fn lazy(&self) -> PolarsResult<LazyFrame> {
        let rows: Vec<u32> = (0..self.len() as u32).collect();
        Ok(self.frame(&rows, &self.filled(&rows))?.lazy())
    }
}
