//! Runs of pmmpi that failed, by node: archives keep them without the other details of a run.

use crate::table::{NoTime, RunTable, UNDATED, WithoutTime};
use hashbrown::HashSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// A node with runs that failed or are not complete.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FailedNode {
    /// Host name.
    pub node: String,
    /// Number of these runs.
    pub runs: usize,
    /// The latest one.
    pub run_id: String,
    /// Its session; `None` if there is none.
    pub session: Option<String>,
    /// Its start, ns since 1970; `None` if it is not known.
    pub started_unix_ns: Option<i64>,
    /// How it failed.
    pub reason: String,
}

/// The nodes with failed runs, by name.
pub fn of(table: &RunTable) -> Vec<FailedNode> {
    let mut nodes: BTreeMap<&str, (usize, &WithoutTime)> = BTreeMap::new();
    let name = |entry: &WithoutTime| table.nodes.get(entry.node).filter(|name| !name.is_empty());
    let run = |entry: &WithoutTime| table.runs.get(entry.run).unwrap_or_default();
    for (node, entry) in failed(table).filter_map(|entry| Some((name(entry)?, entry))) {
        let (runs, latest) = nodes.entry(node).or_insert((0, entry));
        *runs += 1;
        if (latest.started_unix_ns, run(latest)) < (entry.started_unix_ns, run(entry)) {
            *latest = entry;
        }
    }
    let of_node = |(node, (runs, latest)): (&str, (usize, &WithoutTime))| FailedNode {
        node: node.to_owned(),
        runs,
        run_id: run(latest).to_owned(),
        session: table.sessions.get(latest.session).filter(|name| !name.is_empty()).map(str::to_owned),
        started_unix_ns: Some(latest.started_unix_ns).filter(|ns| *ns != UNDATED),
        reason: latest.reason.clone(),
    };
    nodes.into_iter().map(of_node).collect()
}

/// Number of failed runs on nodes for which `is_of` is true; a run on several nodes counts once.
pub fn count(table: &RunTable, is_of: impl Fn(&str) -> bool) -> usize {
    let of_node = |entry: &&WithoutTime| is_of(table.nodes.get(entry.node).unwrap_or_default());
    failed(table).filter(of_node).map(|entry| entry.run).collect::<HashSet<u32>>().len()
}

fn failed(table: &RunTable) -> impl Iterator<Item = &WithoutTime> {
    table.without_time.iter().filter(|entry| entry.why == NoTime::Failed)
}
