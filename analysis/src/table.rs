//! What everything is derived from: how long each run took on each node, and what was counted there.

pub mod class;
mod frame;
mod names;
mod order;

pub use frame::Filled;
pub use names::NamePool;
pub use order::Order;

use class::Parts;
use std::collections::BTreeMap;

/// Stands for "not known" beside instants (ns since 1970).
pub const UNDATED: i64 = i64::MAX;
/// Counters of which the width of a run's bounds is made (s).
pub const BOUNDS: [&str; 2] = ["elapsed_lower_s", "elapsed_upper_s"];
/// The class of rows that name none.
const UNDECLARED: &str = "undeclared";

/// One row a (run, node), column by column, in the order in which they were read. All columns are of one length; a
/// row takes some 50 bytes with its place in the order, and 8 for each counter that any row has.
///
/// A row of others' results is known by its node, session and run, and the class that it was declared to be of; one of
/// pmmpi's own by node and run. No two have the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTable {
    /// Names that `node` counts.
    pub nodes: NamePool,
    /// Host, or list of hosts, that did the work.
    pub node: Vec<u32>,
    /// Names that `run` counts.
    pub runs: NamePool,
    /// Which of the node's runs it was, or the id of a run of pmmpi's own.
    pub run: Vec<u32>,
    /// True of runs of pmmpi's own: one of them may be of several nodes, and has a row for each.
    pub is_own: Vec<bool>,
    /// Names that `class` counts.
    pub classes: NamePool,
    /// What ought to take equally long; a name without letters where nobody said so, as for sessions.
    pub class: Vec<u32>,
    /// What classes are made of; `parts` counts them.
    pub all_parts: Vec<Parts>,
    /// What each row's class is made of; empty where nobody asked for it.
    pub parts: Vec<u32>,
    /// Names that `session` counts.
    pub sessions: NamePool,
    /// Runs of one session were made at one sitting.
    pub session: Vec<u32>,
    /// Above zero and finite (s).
    pub elapsed_s: Vec<f64>,
    /// Start of the run, since 1970-01-01T00:00:00Z (ns); or [`UNDATED`].
    pub started_unix_ns: Vec<i64>,
    /// Where each row comes from: the number of a file.
    pub source: Vec<u32>,
    /// Line in that file, counted from 1; in a JSON document the number of the entry.
    pub line: Vec<u32>,
    /// Reasons that `lack` counts.
    pub lacks: NamePool,
    /// The counter that is missed most, and why it is not there: `NAME: REASON`; without letters where nobody said so.
    pub lack: Vec<u32>,
    /// Whatever else was measured, by name; not a number where it was not.
    pub counters: BTreeMap<String, Vec<f64>>,
}

impl RunTable {
    /// Rows.
    pub fn len(&self) -> usize {
        self.elapsed_s.len()
    }

    /// True before the first.
    pub fn is_empty(&self) -> bool {
        self.elapsed_s.is_empty()
    }

    /// Of a run of pmmpi's own its id, of others' `<node>/<run>`; unique within a session and a declared class, with the node.
    pub fn run_id(&self, row: usize) -> String {
        let run = self.runs.get(self.run[row]).unwrap_or_default();
        if self.is_own[row] { run.to_owned() } else { format!("{}/{run}", self.node_name(row)) }
    }

    /// Host name of a row.
    pub fn node_name(&self, row: usize) -> &str {
        self.nodes.get(self.node[row]).unwrap_or_default()
    }

    /// Class of a row.
    pub fn class_name(&self, row: usize) -> &str {
        self.classes.get(self.class[row]).filter(|name| !name.is_empty()).unwrap_or(UNDECLARED)
    }

    /// `None` of a run of which nobody said so.
    pub fn session_name(&self, row: usize) -> Option<&str> {
        self.sessions.get(self.session[row]).filter(|name| !name.is_empty())
    }

    /// ln(upper / lower bound) of the run's elapsed time; not a number where that is not known.
    pub fn width(&self, row: usize) -> f64 {
        let [lower, upper] = BOUNDS.map(|name| self.counter(name, row));
        if lower > 0.0 { (upper / lower).ln() } else { f64::NAN }
    }

    /// Not a number where it was not measured.
    pub fn counter(&self, name: &str, row: usize) -> f64 {
        self.counters.get(name).map_or(f64::NAN, |values| values[row])
    }

    /// Host names of the rows, each once.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let mut has_rows = vec![false; self.nodes.len()];
        self.node.iter().for_each(|node| has_rows[*node as usize] = true);
        self.nodes.iter().zip(has_rows).filter(|(_, has_rows)| *has_rows).map(|(name, _)| name)
    }

    /// Adds what a second row of the same run has to the first; false where they contradict one another. `is_source`
    /// where the second is what the first was exported from: an archive may have been made without a key of the class.
    pub(crate) fn join(&mut self, row: usize, first: usize, is_source: bool) -> bool {
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
        let agrees = |values: &Vec<f64>| {
            values[row].is_nan() || values[first].is_nan() || same(values[row], values[first])
        };
        let starts = [row, first].map(|row| self.started_unix_ns[row]);
        let agree = same(self.elapsed_s[row], self.elapsed_s[first])
            && (starts[0] == starts[1] || starts.contains(&UNDATED))
            && self.counters.values().all(agrees);
        if agree && (is_source || self.classes.get(self.class[first]).is_none_or(str::is_empty)) {
            self.class[first] = self.class[row];
            if let Some(parts) = self.parts.get(row).copied() {
                self.parts[first] = parts;
            }
        }
        if agree {
            self.started_unix_ns[first] = starts[0].min(starts[1]);
            for values in self.counters.values_mut().filter(|values| values[first].is_nan()) {
                values[first] = values[row];
            }
        }
        agree
    }

    /// The columns of numbers of names, files and lines.
    fn numbers(&mut self) -> [&mut Vec<u32>; 7] {
        [
            &mut self.node,
            &mut self.run,
            &mut self.class,
            &mut self.session,
            &mut self.source,
            &mut self.line,
            &mut self.lack,
        ]
    }

    /// Makes room for more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.numbers().into_iter().for_each(|numbers| numbers.reserve(rows));
        self.is_own.reserve(rows);
        self.elapsed_s.reserve(rows);
        self.started_unix_ns.reserve(rows);
    }

    /// Keeps the rows of which `kept` says so.
    pub(crate) fn retain(&mut self, kept: &[bool]) {
        fn column<T>(values: &mut Vec<T>, kept: &[bool]) {
            let mut row = 0;
            values.retain(|_| {
                row += 1;
                kept[row - 1]
            });
        }
        self.numbers().into_iter().for_each(|numbers| column(numbers, kept));
        column(&mut self.parts, kept);
        column(&mut self.is_own, kept);
        column(&mut self.elapsed_s, kept);
        column(&mut self.started_unix_ns, kept);
        self.counters.values_mut().for_each(|values| column(values, kept));
    }
}
