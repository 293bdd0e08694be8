//! Rows on their way into the table.

use crate::table::class::Parts;

/// A run as a reader understood it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResultRow<'a> {
    pub line: u64,
    pub node: &'a str,
    pub run: &'a str,
    /// `run` is the id of a run of pmmpi's.
    pub is_own: bool,
    /// Empty: none, as for the session.
    pub class: &'a str,
    /// What the class is made of; `None` where it was declared as it is.
    pub parts: Option<&'a Parts>,
    pub session: &'a str,
    pub elapsed_s: f64,
    pub started_unix_ns: Option<i64>,
    /// `NAME: REASON`; empty where nobody said so.
    pub lack: &'a str,
}

/// The same, with the numbers of names that were checked and numbered.
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
    pub lack: u32,
}

/// Rows one after another, column by column.
#[derive(Debug)]
pub(super) struct RowPart {
    /// Of the first.
    pub line: u64,
    pub node: Vec<u32>,
    pub run: Vec<u32>,
    pub is_own: Vec<bool>,
    pub class: Vec<u32>,
    /// Empty where they are not kept, both.
    pub declared: Vec<u32>,
    pub parts: Vec<u32>,
    pub session: Vec<u32>,
    pub elapsed_s: Vec<f64>,
    pub started_unix_ns: Vec<i64>,
    /// Of all.
    pub lack: u32,
}

/// Stands for a text that is no name: the row is rejected.
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
            lack: self.lack,
        }
    }

    /// True where all rows make sense.
    pub fn is_whole(&self) -> bool {
        let names = [&self.node, &self.run, &self.class, &self.declared, &self.session];
        names.iter().all(|numbers| !numbers.contains(&WRONG))
            && self.elapsed_s.iter().all(|s| s.is_finite() && *s > 0.0)
    }
}

/// Which column a name is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Node,
    Run,
    Class,
    Session,
}
