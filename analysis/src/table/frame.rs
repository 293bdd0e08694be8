//! The table as a data frame, for Polars and for files that other programs read.

use super::{FACTS_COLUMN, RunTable, UNDATED};
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

    /// All rows in the order of reading, for queries.
    pub fn lazy(&self) -> PolarsResult<LazyFrame> {
        let rows: Vec<u32> = (0..self.len() as u32).collect();
        Ok(self.frame(&rows, &self.filled(&rows))?.lazy())
    }
}
