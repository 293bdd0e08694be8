//! What verdicts are about: how long each run took on each node.

use crate::class;
use crate::results::{Names, Results};
use crate::run_table::RunTable;
use pmmpi::record::Run;
use polars::prelude::PolarsResult;
use std::rc::Rc;

/// One row a (run, node), in any order. Names are numbered.
#[derive(Clone, Debug, Default)]
pub struct NodeRuns {
    /// Host names.
    pub nodes: Names,
    /// What ought to be equal.
    pub classes: Names,
    /// Runs that were made at one sitting; one without a name where nobody said so.
    pub sessions: Names,
    /// When each session began, ns since 1970; the largest number where that is not known.
    pub sessions_began_ns: Vec<i64>,
    /// Ids of runs.
    pub run_ids: Names,
    /// What took how long.
    pub rows: Vec<NodeRun>,
    /// Times that are not above zero: they are not among the rows.
    pub without_time: usize,
}

/// One run on one node; numbers of the names above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeRun {
    /// Of its class.
    pub class: u32,
    /// Of its session.
    pub session: u32,
    /// Of its host name.
    pub node: u32,
    /// Of its run id.
    pub run: u32,
    /// Above zero, and finite.
    pub seconds: f64,
    /// ln(upper / lower bound) of the run's elapsed time; not a number where that is not known.
    pub width: f64,
}

/// A label of this name says at which sitting a run was made.
const SESSION_LABEL: &str = "session";
/// The class of rows that name none.
const UNDECLARED: &str = "undeclared";

impl NodeRuns {
    /// The usable times of runs: each node's last t2 - its first t1.
    pub fn of(runs: &[Run]) -> PolarsResult<Self> {
        let mut all = Self::default();
        let classes: Vec<Vec<Rc<str>>> = runs.iter().map(class::of_nodes).collect();
        let widths: Vec<f64> = runs.iter().map(width).collect();
        for time in RunTable::new(runs)?.node_times()? {
            let header = &runs[time.run].header;
            let label = header.labels.iter().find(|(key, _)| key == SESSION_LABEL);
            let session = all.session(label.map_or("", |(_, value)| value), header.started_unix_ns);
            if time.work_ns <= 0 {
                all.without_time += 1;
                continue;
            }
            let row = NodeRun {
                class: all.classes.number(&classes[time.run][time.clock as usize]),
                session,
                node: all.nodes.number(&time.node),
                run: all.run_ids.number(&header.run_id),
                seconds: time.work_ns as f64 / 1e9,
                width: widths[time.run],
            };
            all.rows.push(row);
        }
        Ok(all)
    }

    /// Adds what other tools measured. What no file says of a row is the same for all such rows.
    pub fn add(&mut self, results: &Results) {
        let numbers = |own: &mut Names, theirs: &Names| -> Vec<u32> {
            theirs.iter().map(|name| own.number(name)).collect()
        };
        let nodes = numbers(&mut self.nodes, &results.nodes);
        let classes = numbers(&mut self.classes, &results.classes);
        for row in 0..results.len() {
            let class = match results.class[row] {
                Some(class) => classes[class as usize],
                None => self.classes.number(UNDECLARED),
            };
            let session = results.session[row].and_then(|session| results.sessions.get(session));
            let began_ns = results.started_unix_ns[row].unwrap_or(i64::MAX);
            let row = NodeRun {
                class,
                session: self.session(session.unwrap_or_default(), began_ns),
                node: nodes[results.node[row] as usize],
                run: self.run_ids.number(&results.run_id(row).unwrap_or_default()),
                seconds: results.elapsed_s[row],
                width: f64::NAN,
            };
            self.rows.push(row);
        }
    }

    /// True where it is known of each session when it began: they are in that order then, else in that of their names.
    pub fn sessions_are_dated(&self) -> bool {
        self.sessions_began_ns.iter().all(|began_ns| *began_ns != i64::MAX)
    }

    fn session(&mut self, name: &str, began_ns: i64) -> u32 {
        let number = self.sessions.number(name);
        let known = self.sessions_began_ns.len() > number as usize;
        if !known {
            self.sessions_began_ns.push(i64::MAX);
        }
        let earliest = &mut self.sessions_began_ns[number as usize];
        *earliest = began_ns.min(*earliest);
        number
    }

    /// By class, session in the order of time, node, time and run id: the same order whatever order they came in.
    pub fn sort(&mut self) {
        let (began, dated) = (&self.sessions_began_ns, self.sessions_are_dated());
        let session_order = ranks(&self.sessions, |number, name| {
            let began = began.get(number as usize).filter(|_| dated);
            (began.copied(), natural(name))
        });
        let [class, node, run] =
            [&self.classes, &self.nodes, &self.run_ids].map(|names| ranks(names, |_, _| ()));
        let key = |row: &NodeRun| {
            let places =
                (class[row.class as usize], session_order[row.session as usize], node[row.node as usize]);
            // Times are positive: their bits are in the order of their values.
            (places, row.seconds.to_bits(), run[row.run as usize])
        };
        self.rows.sort_unstable_by_key(key);
    }
}

/// The place of each name, by `first` and then as text.
fn ranks<K: Ord>(names: &Names, first: impl Fn(u32, &str) -> K) -> Vec<u32> {
    let mut order: Vec<(K, &str, u32)> =
        names.iter().zip(0..).map(|(name, number)| (first(number, name), name, number)).collect();
    order.sort_unstable();
    let mut ranks = vec![0; order.len()];
    order.iter().zip(0..).for_each(|((.., number), rank)| ranks[*number as usize] = rank);
    ranks
}

/// With each number as long as any: s9 comes before s10.
fn natural(name: &str) -> String {
    const DIGITS: usize = 20;
    let is_digit = |c: char| c.is_ascii_digit();
    let parts = name.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let part = |part: &[u8]| {
        let part = String::from_utf8_lossy(part);
        if part.starts_with(is_digit) { format!("{part:0>DIGITS$}") } else { part.into_owned() }
    };
    parts.map(part).collect()
}

fn width(run: &Run) -> f64 {
    let elapsed = run.elapsed().filter(|elapsed| elapsed.consistent && elapsed.lower_ns > 0);
    elapsed.map_or(f64::NAN, |elapsed| (elapsed.upper_ns as f64 / elapsed.lower_ns as f64).ln())
}
