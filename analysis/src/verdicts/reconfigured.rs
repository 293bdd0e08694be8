//! Nodes whose facts changed between sessions, for example by a new Linux kernel or a lost memory module. If the fact makes
//! up classes, the nodes are in another class since then, so their own history starts anew, and no comparison within a
//! class shows what the change did.

use super::ClassRows;
use super::node_report::{ChangedFact, NodeReport, Reconfigured};
use super::odd_facts::KnownFacts;
use super::odd_nodes::differences;
use super::own_history::date;
use crate::stats::{median, within_nodes};
use crate::table::node_class::Key;
use crate::table::{Order, RunTable};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Older changes are no news: number of sessions of the same work.
const LATEST_SESSIONS: usize = 5;

/// One session of a node.
struct Measured {
    class: u32,
    /// Number of the text of other facts.
    facts: u32,
    /// One of the node's rows.
    row: usize,
    /// ln seconds.
    median: f64,
}

/// The last time that a node's class or another fact changed.
struct Change {
    /// The rank of the first session after it.
    first: u32,
    /// Before and after.
    classes: [u32; 2],
    /// The same.
    facts: [u32; 2],
    /// ln T after - ln T before.
    by: f64,
    /// A row of the last session before, and one of the first session after.
    rows: [usize; 2],
}

/// The changes of the latest sessions, with those of most nodes first. `classes` has the rows of each class by session and
/// node.
pub(super) fn of(
    reports: &[NodeReport],
    table: &RunTable,
    order: &Order,
    classes: &[ClassRows],
) -> Vec<Reconfigured> {
    let works: HashSet<&str> = table.class_parts.values().map(|parts| parts.work.as_str()).collect();
    let known = KnownFacts::of(table);
    if works.len() == table.class_parts.len() && known.is_empty() {
        return Vec::new(); // no two classes differ in facts alone
    }
    // By work and node, then by session.
    let mut nodes: BTreeMap<(&str, u32), BTreeMap<u32, Vec<Measured>>> = BTreeMap::new();
    let mut sessions: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for rows in classes.iter().flat_map(|class| class.iter()) {
        let row = rows[0] as usize;
        let Some(parts) = table.class_parts.get(&table.class[row]) else { continue };
        let rank = order.session_ranks[table.session[row] as usize];
        let times: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize].ln()).collect();
        let Some(median) = median::of_ascending(&times) else { continue };
        sessions.entry(&parts.work).or_default().insert(rank);
        let facts = rows.iter().map(|row| table.facts_of(*row as usize)).max().unwrap_or_default();
        let measured = Measured { class: table.class[row], facts, row, median };
        nodes.entry((&parts.work, table.node[row])).or_default().entry(rank).or_default().push(measured);
    }
    let is_current = |report: &&NodeReport| report.is_current();
    let current: HashSet<(&str, &str)> =
        reports.iter().filter(is_current).map(|report| (&*report.node, &*report.class)).collect();
    let mut changes: BTreeMap<_, Vec<(&str, Change)>> = BTreeMap::new();
    for ((work, node), of_node) in &nodes {
        let recent = sessions[work].iter().rev().take(LATEST_SESSIONS).min();
        let Some(change) = Change::last(of_node, &known) else { continue };
        let node = table.nodes.get(*node).unwrap_or_default();
        if Some(&change.first) >= recent && current.contains(&(node, table.class_name(change.rows[1]))) {
            let [before, after] = change.facts;
            let key = (change.classes, change.first, known.differences(before, after));
            changes.entry(key).or_default().push((node, change));
        }
    }
    let mut all: Vec<Reconfigured> =
        changes.into_iter().filter_map(|((.., facts), nodes)| report(table, &facts, &nodes)).collect();
    all.sort_by(|a, b| (b.nodes.len(), &a.nodes).cmp(&(a.nodes.len(), &b.nodes)));
    all
}

impl Change {
    /// `None` if no fact ever changed, or if the node was in two classes in one session.
    fn last(sessions: &BTreeMap<u32, Vec<Measured>>, known: &KnownFacts) -> Option<Self> {
        if sessions.values().any(|measured| measured.len() != 1) {
            return None;
        }
        let all: Vec<(u32, &Measured)> = sessions.iter().map(|(rank, of)| (*rank, &of[0])).collect();
        let is_same =
            |a: &Measured, b: &Measured| a.class == b.class && known.differences(a.facts, b.facts).is_empty();
        let stretches: Vec<_> = all.chunk_by(|(_, a), (_, b)| is_same(a, b)).collect();
        let [.., before, after] = stretches[..] else { return None };
        let level = |stretch: &[(u32, &Measured)]| {
            within_nodes::median_of(&mut stretch.iter().map(|(_, at)| at.median).collect::<Vec<_>>())
        };
        let ((_, last), (rank, first)) = (before.last()?, after.first()?);
        Some(Self {
            first: *rank,
            classes: [last.class, first.class],
            facts: [last.facts, first.facts],
            by: level(after)? - level(before)?,
            rows: [last.row, first.row],
        })
    }
}

/// `others` are the changed facts that do not make up classes.
fn report(table: &RunTable, others: &[(&str, &str, &str)], nodes: &[(&str, Change)]) -> Option<Reconfigured> {
    let Change { classes, rows: [until, since], .. } = nodes.first()?.1;
    let [before, after] = classes.map(|class| table.class_parts.get(&class).map(|parts| &parts.facts));
    let other = |(key, before, after): &(&str, &str, &str)| ChangedFact {
        key: (*key).to_owned(),
        before: Some((*before).to_owned()),
        after: Some((*after).to_owned()),
    };
    let fact = |(key, before, after): (&Key, Option<&str>, Option<&str>)| ChangedFact {
        key: key.name().to_owned(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
    };
    let mut by: Vec<f64> = nodes.iter().map(|(_, change)| change.by).collect();
    by.sort_unstable_by(f64::total_cmp);
    let ci = median::interval(by.len()).map(|(low, high, _)| [by[low].exp_m1(), by[high].exp_m1()]);
    let mut names: Vec<String> = nodes.iter().map(|(node, _)| (*node).to_owned()).collect();
    names.sort_unstable();
    Some(Reconfigured {
        facts: differences(before?, after?).into_iter().map(fact).chain(others.iter().map(other)).collect(),
        class: table.class_name(since).to_owned(),
        nodes: names,
        change: median::of_ascending(&by)?.exp_m1(),
        ci,
        since: table.session_name(since).map(str::to_owned),
        until: table.session_name(until).map(str::to_owned),
        until_date: date(table.started_unix_ns[until]),
        since_date: date(table.started_unix_ns[since]),
    })
}
