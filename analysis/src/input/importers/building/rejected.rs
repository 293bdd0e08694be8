//! Rows, values and results that count for nothing: they are counted, and the first ones have a reason.

use super::Building;
use crate::input::importers::row::{NameColumn, Numbered, ResultRow, WRONG};
use crate::input::importers::{REJECTED_KEPT, Rejected};
use crate::table::{NoTime, UNDATED, WithoutTime, WrongResults};

impl Building {
    /// Counts a row as rejected.
    pub fn reject(&mut self, line: u64, reason: impl Into<String>) {
        self.results.rejected_rows += 1;
        if let Some(source) = self.results.sources.last_mut() {
            source.rejected_rows += 1;
        }
        self.keep(line, reason);
    }

    /// Like [`Self::reject`], for a row whose node is known: the report must still show the node.
    pub fn reject_row(&mut self, row: &ResultRow<'_>, reason: impl Into<String>) {
        let reason = reason.into();
        if let Ok(node) = self.number(NameColumn::Node, row.node) {
            let session = self
                .number(NameColumn::Session, row.session)
                .or_else(|_| self.number(NameColumn::Session, ""));
            self.results.table.rejected_nodes.extend(session.map(|session| [node, session]));
            if self.for_archive {
                let line = format!("line {}", row.line);
                let nameless =
                    ResultRow { line: row.line, node: row.node, run: &line, ..ResultRow::default() };
                let numbered = self.checked(row).or_else(|_| self.checked(&nameless));
                numbered.into_iter().for_each(|row| self.without_time(&row, NoTime::Invalid, reason.clone()));
            }
        }
        self.reject(row.line, reason);
    }

    /// Like [`Self::reject_row`], for a row with a name that is not valid: its number is [`WRONG`].
    pub(in crate::input::importers) fn reject_numbered(&mut self, row: &Numbered, reason: impl Into<String>) {
        let reason = reason.into();
        let session = match row.session {
            WRONG => self.number(NameColumn::Session, "").ok(),
            valid => Some(valid),
        };
        if let Some(session) = session.filter(|_| row.node != WRONG) {
            self.results.table.rejected_nodes.insert([row.node, session]);
            if self.for_archive {
                let table = &self.results.table;
                let run = match row.run {
                    WRONG => format!("line {}", row.line),
                    valid => table.runs.get(valid).unwrap_or_default().to_owned(),
                };
                let session = table.sessions.get(session).unwrap_or_default().to_owned();
                let valid =
                    ResultRow { line: row.line, run: &run, session: &session, ..ResultRow::default() };
                let numbered = self.checked_on(row.node, &valid);
                numbered.into_iter().for_each(|row| self.without_time(&row, NoTime::Invalid, reason.clone()));
            }
        }
        self.reject(row.line, reason);
    }

    /// Notes a run of pmmpi that has no time on a node. The node has no name if the run failed before any node was known.
    pub fn without_time_of_own(&mut self, row: &ResultRow<'_>, why: NoTime, reason: &str) {
        let numbered = match row.node.is_empty() {
            true => {
                let node = self.nowhere();
                self.checked_on(node, row)
            }
            false => self.checked(row),
        };
        if let Ok(numbered) = numbered {
            if why == NoTime::Wrong {
                self.add_wrong([numbered.node, numbered.session], numbered.started_unix_ns, || {
                    reason.to_owned()
                });
            }
            self.without_time(&numbered, why, reason.to_owned());
        }
    }

    /// The number of the node that has no name: no row has it.
    pub(in crate::input::importers) fn nowhere(&mut self) -> u32 {
        self.results.table.nodes.number("")
    }

    /// Notes a run without a usable time.
    pub(super) fn without_time(&mut self, row: &Numbered, why: NoTime, reason: String) {
        self.results.table.without_time.push(WithoutTime {
            node: row.node,
            run: row.run,
            is_own: row.is_own,
            class: row.class,
            declared: if self.keeps_declared { row.declared } else { row.class },
            parts: row.parts,
            session: row.session,
            started_unix_ns: row.started_unix_ns,
            facts: row.facts,
            source: self.results.sources.len().saturating_sub(1) as u32,
            why,
            reason,
        });
    }

    /// Reads a row of an archive that has no time. An export keeps such a row as it is; a report rejects what it rejected
    /// in the original file.
    pub(in crate::input::importers) fn archived_without_time(
        &mut self,
        row: &Numbered,
        why: NoTime,
        reason: &str,
    ) {
        let is_kept = self.for_archive || matches!(why, NoTime::Failed | NoTime::Unknown);
        if is_kept {
            self.without_time(row, why, reason.to_owned());
        }
        if why == NoTime::Wrong {
            self.add_wrong([row.node, row.session], row.started_unix_ns, || reason.to_owned());
        }
        if !is_kept {
            self.results.table.rejected_nodes.insert([row.node, row.session]);
            self.reject(row.line, reason);
        }
    }

    /// Notes a wrong result of a node: its time means nothing, but the node must not vanish. The reader also rejects the
    /// result. `run` is the name of its run; a number if there is none.
    pub fn wrong(&mut self, row: &ResultRow<'_>, reason: &str) {
        let names = [(NameColumn::Node, row.node), (NameColumn::Session, row.session)];
        let [Ok(node), Ok(session)] = names.map(|(column, name)| self.number(column, name)) else { return };
        let started_unix_ns = row.started_unix_ns.unwrap_or(UNDATED);
        let first = format!("{}:{}: {reason}", self.path.display(), row.line);
        self.add_wrong([node, session], started_unix_ns, || first.clone());
        if self.for_archive {
            let last = self.last_wrong.entry([node, session]).or_default();
            *last += 1;
            let number = format!("wrong-{last}");
            let run = if row.run.is_empty() { number.as_str() } else { row.run };
            if let Ok(numbered) = self.checked(&ResultRow { run, ..*row }) {
                self.without_time(&numbered, NoTime::Wrong, first);
            }
        }
    }

    fn add_wrong(&mut self, [node, session]: [u32; 2], started_unix_ns: i64, first: impl FnOnce() -> String) {
        let wrong = self.results.table.wrong.entry((node, session)).or_insert_with(|| WrongResults {
            results: 0,
            first: first(),
            started_unix_ns: UNDATED,
        });
        wrong.results += 1;
        wrong.started_unix_ns = wrong.started_unix_ns.min(started_unix_ns);
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
