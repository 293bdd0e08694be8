//! The data behind all results: how long each run took on each node, and what was counted there.
//!
//! The columns, the names and classes of rows, and which rows count (`--since`, `--node`, ...) belong here. Files are
//! read in [`crate::input`]; conclusions from the rows are in [`crate::verdicts`].

pub mod facts;
mod frame;
pub(crate) mod instant;
mod judging_order;
mod maintenance;
mod names;
pub mod node_class;
mod numbers;
mod origins;
pub mod place_table;
pub mod place_values;
pub mod run_name;
pub mod run_settings;
pub mod selection;
mod shared;
pub mod slurm_host_list;
mod without_time;

pub use frame::Filled;
pub use judging_order::Order;
pub use maintenance::{MAINTENANCE_LABEL, Maintenance};
pub use names::NamePool;
pub use numbers::Numbers;
pub use origins::Origins;
pub use shared::{Shared, SharedNames, SharedText};
pub use without_time::{NoTime, WithoutTime};

use hashbrown::HashSet;
use node_class::{Key, Parts};
use std::collections::{BTreeMap, BTreeSet};

/// Value of an unknown instant (ns since 1970).
pub const UNDATED: i64 = i64::MAX;
/// Counters with the bounds of a run's elapsed time (s).
pub const BOUNDS: [&str; 2] = ["elapsed_lower_s", "elapsed_upper_s"];
/// The column of an archive with the facts of nodes.
pub const FACTS_COLUMN: &str = "facts";
/// The columns of an archive that say why a row has no time: a [`NoTime`], and the reason in words.
pub const NO_TIME_COLUMNS: [&str; 2] = ["no_time", "no_time_reason"];
/// The class of rows without a class.
pub(crate) const UNDECLARED: &str = "undeclared";

/// The wrong results of a node in a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrongResults {
    /// How many.
    pub results: u64,
    /// Where the first one is, and what is wrong with it.
    pub first: String,
    /// Start of the first one, since 1970-01-01T00:00:00Z (ns); or [`UNDATED`].
    pub started_unix_ns: i64,
}

/// What a class consists of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassParts {
    /// What the nodes are: the facts among the keys of the class.
    pub facts: BTreeMap<Key, String>,
    /// What the nodes did: the class without these facts.
    pub work: String,
}

/// The runs behind a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianOf {
    /// Number of runs; 0 for a row that is itself a run.
    pub runs: u32,
    /// The median absolute deviation of the runs' times from their median (ln T); NaN if unknown.
    pub deviation: f32,
}

impl MedianOf {
    /// A row that is a run.
    pub const RUN: Self = Self { runs: 0, deviation: f32::NAN };
}

/// One row per run and node, column by column, in the order of reading. All columns have equal length. A row takes
/// 30 to 65 bytes including its place in the order, plus 8 bytes per counter that any row has.
///
/// Node, session, run and declared class identify a row of other tools' results. Node and run identify a row of
/// pmmpi. No two rows are equal in these.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTable {
    /// Names for the numbers in `node`.
    pub nodes: NamePool,
    /// The host, or the list of hosts, that did the work.
    pub node: Numbers,
    /// Names for the numbers in `run`.
    pub runs: NamePool,
    /// The number of the run on its node, or the id of a run of pmmpi.
    pub run: Numbers,
    /// True for runs of pmmpi. Such a run may use several nodes and has a row for each. Empty if there is none.
    pub own: Vec<bool>,
    /// Names for the numbers in `class`.
    pub classes: NamePool,
    /// The class: rows of one class ought to take equally long. The empty name if there is no class; the same holds
    /// for sessions.
    pub class: Numbers,
    /// What each class consists of; a class of several combinations has the first one.
    pub class_parts: BTreeMap<u32, ClassParts>,
    /// What classes consist of; `parts` has indices into it.
    pub all_parts: Vec<Parts>,
    /// What each row's class consists of; empty if the caller did not ask for it.
    pub parts: Vec<u32>,
    /// Names for the numbers in `session`.
    pub sessions: NamePool,
    /// The session of the run.
    pub session: Numbers,
    /// Sessions that come after all others, whatever their starts and names are: those of the screen that the table is
    /// about.
    pub last_sessions: BTreeSet<u32>,
    /// Finite and above zero (s).
    pub elapsed_s: Vec<f64>,
    /// Start of the run, since 1970-01-01T00:00:00Z (ns); or [`UNDATED`].
    pub started_unix_ns: Vec<i64>,
    /// The runs behind each row; empty if every row is a run. A row may also be the median of a node in a session, if no
    /// run of the node in this session was read.
    pub medians: Vec<MedianOf>,
    /// Where each row was read.
    pub origins: Origins,
    /// Texts for the numbers in `lack`; number 0 is the empty text.
    pub lacks: NamePool,
    /// The missing counter that an explanation needs most, with the reason: `NAME: REASON`. Empty if no row has a
    /// reason.
    pub lack: Vec<u32>,
    /// Numbers of runs in which each node worked for itself: rounds of `pmmpi screen`. Only of run files.
    pub screens: HashSet<u32>,
    /// Run and node of the rows of nodes that ran a further round of a screen because they looked slow.
    pub suspects: HashSet<[u32; 2]>,
    /// Wrong results, by node and session: results whose own check failed.
    pub wrong: BTreeMap<(u32, u32), WrongResults>,
    /// Node and session of rejected rows. The node may have no other row.
    pub rejected_nodes: BTreeSet<[u32; 2]>,
    /// Runs without a usable time: those of pmmpi; for an archive also those of other tools.
    pub without_time: Vec<WithoutTime>,
    /// When nodes were repaired or changed on purpose.
    pub maintenance: Maintenance,
    /// Texts for the numbers in `facts`; number 0 is the empty text.
    pub fact_texts: NamePool,
    /// The facts of each row's node: a [`facts::FactsText`]. Empty if no row has facts.
    pub facts: Vec<u32>,
    /// All other measured values, by name; NaN if a row has no value.
    pub counters: BTreeMap<String, Vec<f64>>,
}

impl RunTable {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.elapsed_s.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.elapsed_s.is_empty()
    }

    /// The id of a run of pmmpi; `<node>/<run>` for other tools. Together with the node it is unique within a session
    /// and a declared class. A slash in the names of other tools becomes `%2F`, and `%` becomes `%25`, so that the
    /// slash of the id separates node and run.
    pub fn run_id(&self, row: usize) -> String {
        let run = self.runs.get(self.run.at(row)).unwrap_or_default();
        if self.is_own(row) {
            return run.to_owned();
        }
        let node = self.node_name(row);
        let mut id = String::with_capacity(node.len() + 1 + run.len());
        push_escaped(&mut id, node);
        id.push('/');
        push_escaped(&mut id, run);
        id
    }

    /// True if pmmpi measured this run.
    pub fn is_own(&self, row: usize) -> bool {
        self.own.get(row).copied().unwrap_or(false)
    }

    /// The runs behind a row that is a median; `None` for a run.
    pub fn median_of(&self, row: usize) -> Option<MedianOf> {
        self.medians.get(row).copied().filter(|of| of.runs > 0)
    }

    /// The number of a row's facts in `fact_texts`; 0 if there are none.
    pub fn facts_of(&self, row: usize) -> u32 {
        self.facts.get(row).copied().unwrap_or(0)
    }

    /// The missing counter that an explanation of this row needs most, with the reason.
    pub fn lack_of(&self, row: usize) -> Option<(&str, &str)> {
        self.lacks.get(*self.lack.get(row)?)?.split_once(": ")
    }

    /// Number of rows that are runs.
    pub fn run_count(&self) -> usize {
        self.len() - self.medians.iter().filter(|of| of.runs > 0).count()
    }

    /// Host name of a row.
    pub fn node_name(&self, row: usize) -> &str {
        self.nodes.get(self.node.at(row)).unwrap_or_default()
    }

    /// Class of a row.
    pub fn class_name(&self, row: usize) -> &str {
        self.classes.get(self.class.at(row)).filter(|name| !name.is_empty()).unwrap_or(UNDECLARED)
    }

    /// The number of the class with the name that [`Self::class_name`] gives.
    pub fn class_number(&self, name: &str) -> Option<u32> {
        self.classes.find(name).or_else(|| self.classes.find("").filter(|_| name == UNDECLARED))
    }

    /// `None` if the run has no session.
    pub fn session_name(&self, row: usize) -> Option<&str> {
        self.sessions.get(self.session.at(row)).filter(|name| !name.is_empty())
    }

    /// ln(upper / lower bound) of the run's elapsed time; NaN if unknown.
    pub fn width(&self, row: usize) -> f64 {
        let [lower, upper] = BOUNDS.map(|name| self.counter(name, row));
        if lower > 0.0 { (upper / lower).ln() } else { f64::NAN }
    }

    /// NaN if the row has no value of this counter.
    pub fn counter(&self, name: &str, row: usize) -> f64 {
        self.counters.get(name).map_or(f64::NAN, |values| values[row])
    }

    /// Host names of the rows, also of rejected ones, of failed runs and of wrong results, each once.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let mut has_rows = vec![false; self.nodes.len()];
        let rejected = self
            .rejected_nodes
            .iter()
            .map(|[node, _]| node)
            .chain(self.wrong.keys().map(|(node, _)| node))
            .copied();
        let without_time = self.without_time.iter().map(|entry| entry.node);
        let all = self.node.iter().chain(rejected).chain(without_time);
        all.for_each(|node| has_rows[node as usize] = true);
        let hosts = self.nodes.iter().zip(has_rows).filter(|(name, has_rows)| *has_rows && !name.is_empty());
        hosts.map(|(name, _)| name)
    }

    /// Completes the first row of a run from a second row; false if they contradict each other. `is_source` if the
    /// first row was exported from the second: the archive may lack a part of the class.
    pub(crate) fn join(&mut self, row: usize, first: usize, is_source: bool) -> bool {
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
        let agrees = |values: &Vec<f64>| {
            values[row].is_nan() || values[first].is_nan() || same(values[row], values[first])
        };
        let starts = [row, first].map(|row| self.started_unix_ns[row]);
        let agree = same(self.elapsed_s[row], self.elapsed_s[first])
            && (starts[0] == starts[1] || starts.contains(&UNDATED))
            && self.counters.values().all(agrees);
        if agree && (is_source || self.classes.get(self.class.at(first)).is_none_or(str::is_empty)) {
            self.class.set(first, self.class.at(row));
            if let Some(parts) = self.parts.get(row).copied() {
                self.parts[first] = parts;
            }
        }
        if agree && self.facts_of(first) == 0 && self.facts_of(row) != 0 {
            self.facts[first] = self.facts[row];
        }
        if agree {
            self.started_unix_ns[first] = starts[0].min(starts[1]);
            for values in self.counters.values_mut().filter(|values| values[first].is_nan()) {
                values[first] = values[row];
            }
        }
        agree
    }

    /// The columns that hold numbers of names.
    fn numbers(&mut self) -> [&mut Numbers; 4] {
        [&mut self.node, &mut self.run, &mut self.class, &mut self.session]
    }

    /// Reserves memory for more rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.numbers().into_iter().for_each(|numbers| numbers.reserve(rows));
        self.elapsed_s.reserve(rows);
        self.started_unix_ns.reserve(rows);
    }

    /// Keeps the rows for which `kept` is true.
    pub(crate) fn retain(&mut self, kept: &[bool]) {
        if !kept.contains(&false) {
            return;
        }
        fn column<T>(values: &mut Vec<T>, kept: &[bool]) {
            let mut row = 0;
            values.retain(|_| {
                row += 1;
                kept[row - 1]
            });
        }
        self.numbers().into_iter().for_each(|numbers| numbers.retain(kept));
        self.origins.retain(kept);
        column(&mut self.lack, kept);
        column(&mut self.parts, kept);
        column(&mut self.medians, kept);
        column(&mut self.facts, kept);
        column(&mut self.own, kept);
        column(&mut self.elapsed_s, kept);
        column(&mut self.started_unix_ns, kept);
        self.counters.values_mut().for_each(|values| column(values, kept));
    }
}

fn push_escaped(id: &mut String, name: &str) {
    match name.contains(['%', '/']) {
        true => id.push_str(&name.replace('%', "%25").replace('/', "%2F")),
        false => id.push_str(name),
    }
}
