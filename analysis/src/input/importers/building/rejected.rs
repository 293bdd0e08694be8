//! Rows, values and results that count for nothing: they are counted, and the first ones have a reason.

use super::Building;
use crate::input::importers::row::Column;
use crate::input::importers::{REJECTED_KEPT, Rejected};
use crate::table::{UNDATED, WrongResults};

impl Building {
    /// Counts a row as rejected.
    pub fn reject(&mut self, line: u64, reason: impl Into<String>) {
        self.results.rejected_rows += 1;
        if let Some(source) = self.results.sources.last_mut() {
            source.rejected_rows += 1;
        }
        self.keep(line, reason);
    }

    /// Like [`Self::reject`], for a row of which the node is known: the node must not vanish.
    pub fn reject_of(&mut self, node: &str, line: u64, reason: impl Into<String>) {
        if let Ok(node) = self.number(Column::Node, node) {
            self.results.table.rejected_nodes.insert(node);
        }
        self.reject(line, reason);
    }

    /// Notes a wrong result of a node: its time means nothing, but the node must not vanish.
    pub fn wrong(
        &mut self,
        node: &str,
        session: &str,
        started_unix_ns: Option<i64>,
        line: u64,
        reason: &str,
    ) {
        let names = [(Column::Node, node), (Column::Session, session)];
        let [Ok(node), Ok(session)] = names.map(|(column, name)| self.number(column, name)) else { return };
        let first = || format!("{}:{line}: {reason}", self.path.display());
        let wrong = self.results.table.wrong.entry((node, session)).or_insert_with(|| WrongResults {
            results: 0,
            first: first(),
            started_unix_ns: UNDATED,
        });
        wrong.results += 1;
        wrong.started_unix_ns = wrong.started_unix_ns.min(started_unix_ns.unwrap_or(UNDATED));
    }

    /// Counts runs that were not decoded, because the selection has none of them.
    pub fn leave_out(&mut self, runs: usize) {
        self.results.not_decoded += runs;
    }

    /// Counts rows as rejected without a reason for each.
    pub fn reject_unnamed(&mut self, rows: u64) {
        self.results.rejected_rows += rows;
        if let Some(source) = self.results.sources.last_mut() {
            source.rejected_rows += rows;
        }
    }

    /// Counts values as rejected in rows that are accepted; `first` has the reasons of the first of them.
    pub fn reject_values(&mut self, count: u64, first: Vec<(u64, String)>) {
        self.results.rejected_values += count;
        for (line, reason) in first {
            self.keep(line, reason);
        }
    }

    fn keep(&mut self, line: u64, reason: impl Into<String>) {
        if self.results.rejected.len() < REJECTED_KEPT {
            let source = self.results.sources.len().saturating_sub(1) as u32;
            self.results.rejected.push(Rejected { source, line, reason: reason.into() });
        }
    }
}
