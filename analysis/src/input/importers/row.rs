//! Rows that readers add to the table.

use crate::table::MedianOf;
use crate::table::node_class::Parts;

/// One run, as a reader understood it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResultRow<'a> {
    pub line: u64,
    pub node: &'a str,
    pub run: &'a str,
    /// True if `run` is the id of a run of pmmpi.
    pub is_own: bool,
    /// Empty if there is none; the same holds for `session`.
    pub class: &'a str,
    /// What the class consists of; `None` if the file declared the class as a whole.
    pub parts: Option<&'a Parts>,
    pub session: &'a str,
    /// The maintenance after which the run was made; empty if nothing says so.
    pub maintenance: &'a str,
    pub elapsed_s: f64,
    pub started_unix_ns: Option<i64>,
    /// A [`crate::table::facts::FactsText`].
    pub facts: &'a str,
    /// `NAME: REASON` of a missing counter; empty if there is no reason.
    pub lack: &'a str,
}

/// The same row, with numbers in place of names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub line: u64,
    pub node: u32,
    pub run: u32,
    pub is_own: bool,
    pub class: u32,
    pub declared: u32,
    pub parts: u32,
    pub session: u32,
    pub elapsed_s: f64,
    pub started_unix_ns: i64,
    pub median_of: MedianOf,
    pub facts: u32,
    pub lack: u32,
}

/// Consecutive rows, column by column.
#[derive(Debug)]
pub(super) struct RowPart {
    /// Line of the first row.
    pub line: u64,
    pub node: Vec<u32>,
    pub run: Vec<u32>,
    pub is_own: Vec<bool>,
    pub class: Vec<u32>,
    /// `declared` and `parts` are empty if they are not kept.
    pub declared: Vec<u32>,
    pub parts: Vec<u32>,
    pub session: Vec<u32>,
    pub elapsed_s: Vec<f64>,
    pub started_unix_ns: Vec<i64>,
    /// Empty if all rows are runs.
    pub medians: Vec<MedianOf>,
    /// Empty if no row has facts.
    pub facts: Vec<u32>,
}

/// Number of a text that is not a valid name: the row is rejected.
pub(super) const WRONG: u32 = u32::MAX;

impl RowPart {
    pub fn row(&self, row: usize) -> Numbered {
        Numbered {
            line: self.line + row as u64,
            node: self.node[row],
            run: self.run[row],
            is_own: self.is_own[row],
            class: self.class[row],
            declared: self.declared.get(row).copied().unwrap_or(0),
            parts: self.parts.get(row).copied().unwrap_or(0),
            session: self.session[row],
            elapsed_s: self.elapsed_s[row],
            started_unix_ns: self.started_unix_ns[row],
            median_of: self.medians.get(row).copied().unwrap_or(MedianOf::RUN),
            facts: self.facts.get(row).copied().unwrap_or(0),
            lack: 0,
        }
    }

    /// True if all rows are valid.
    pub fn is_whole(&self) -> bool {
        let names = [&self.node, &self.run, &self.class, &self.declared, &self.session];
        names.iter().all(|numbers| !numbers.contains(&WRONG))
            && self.elapsed_s.iter().all(|s| s.is_finite() && *s > 0.0)
    }
}

/// The column of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameColumn {
    Node,
    Run,
    Class,
    Session,
}
