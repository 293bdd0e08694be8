//! Nodes whose facts changed between sessions, for example by a new Linux kernel or a lost memory module. If the fact makes
//! up classes, the nodes are in another class since then, so their own history starts anew, and no comparison within a
//! class shows what the change did.

use super::ClassRows;
use super::class_report::{ChangedFact, Reconfigured};
use super::node_report::NodeReport;
use super::odd_facts::{self, KnownFacts};
use super::odd_nodes::{differences, is_each_work_one_class};
use crate::stats::{node_median, within_nodes};
use crate::table::node_class::Key;
use crate::table::run_settings::may_differ_between_nodes;
use crate::table::{Order, RunTable, instant};
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

/// Name, value before, value after.
type FactChanged<'a> = (&'a str, &'a str, &'a str);

/// The last time that a node's class or another fact changed.
struct Change<'a> {
    /// The rank of the first session after it.
    first: u32,
    /// Before and after.
    classes: [u32; 2],
    /// Changed facts that do not make up classes.
    facts: Vec<FactChanged<'a>>,
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
    if order.sessions < 2 {
        return Vec::new();
    }
    let known = KnownFacts::of(table);
    if known.is_empty() && is_each_work_one_class(table) {
        return Vec::new();
    }
    // By work and node, then by session.
    let mut nodes: BTreeMap<(&str, u32), BTreeMap<u32, Vec<Measured>>> = BTreeMap::new();
    let mut sessions: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for rows in classes.iter().flat_map(|class| class.iter()) {
        let row = rows[0] as usize;
        let Some(parts) = table.class_parts.get(&table.class.at(row)) else { continue };
        let rank = order.session_ranks[table.session.at(row) as usize];
        let times: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize].ln()).collect();
        let Some(median) = node_median::of_ascending(&times) else { continue };
        sessions.entry(&parts.work).or_default().insert(rank);
        let facts = odd_facts::of_session(table, rows);
        let measured = Measured { class: table.class.at(row), facts, row, median };
        nodes.entry((&parts.work, table.node.at(row))).or_default().entry(rank).or_default().push(measured);
    }
    let is_current = |report: &&NodeReport| report.is_current();
    let current: HashSet<(&str, &str)> =
        reports.iter().filter(is_current).map(|report| (&*report.node, &*report.class)).collect();
    let mut changes: BTreeMap<_, Vec<(&str, Change)>> = BTreeMap::new();
    for ((work, node), of_node) in &nodes {
        let recent = sessions[work].iter().rev().take(LATEST_SESSIONS).min();
        let Some(change) = Change::last(table, of_node, &known) else { continue };
        let node = table.nodes.get(*node).unwrap_or_default();
        if Some(&change.first) >= recent && current.contains(&(node, table.class_name(change.rows[1]))) {
            let key = (change.classes, change.first, change.facts.clone());
            changes.entry(key).or_default().push((node, change));
        }
    }
    let mut all: Vec<Reconfigured> =
        changes.into_values().filter_map(|nodes| report((table, order), &nodes)).collect();
    all.sort_by(|a, b| (b.nodes.len(), &a.nodes).cmp(&(a.nodes.len(), &b.nodes)));
    all
}

impl<'a> Change<'a> {
    /// `None` if no fact ever changed, or if the node was in two classes in one session. A fact that is unknown in a session
    /// is what it was before.
    fn last(
        table: &RunTable,
        sessions: &BTreeMap<u32, Vec<Measured>>,
        known: &'a KnownFacts,
    ) -> Option<Self> {
        if sessions.values().any(|measured| measured.len() != 1) {
            return None;
        }
        let all: Vec<(u32, &Measured)> = sessions.iter().map(|(rank, of)| (*rank, &of[0])).collect();
        // Classes may also differ in what is unknown.
        let class_differs = |a: u32, b: u32| a != b && !class_differences(table, [a, b]).is_empty();
        let mut values: BTreeMap<&str, &str> = BTreeMap::new();
        let (mut begin, mut last) = (0, None);
        for (at, (_, measured)) in all.iter().enumerate() {
            let mut facts = Vec::new();
            let facts_now = known.get(measured.facts).into_iter().flatten();
            for (name, value) in facts_now.filter(|(name, _)| !may_differ_between_nodes(name)) {
                let before = values.insert(name, value).filter(|before| before != value);
                facts.extend(before.map(|before| (name.as_str(), before, value.as_str())));
            }
            if at > 0 && (class_differs(all[at - 1].1.class, measured.class) || !facts.is_empty()) {
                begin = last.as_ref().map_or(0, |(at, _)| *at);
                last = Some((at, facts));
            }
        }
        let (at, facts) = last?;
        let level = |stretch: &[(u32, &Measured)]| {
            within_nodes::median_of(&mut stretch.iter().map(|(_, at)| at.median).collect::<Vec<_>>())
        };
        let ((_, before), (rank, after)) = (all[at - 1], all[at]);
        Some(Self {
            first: rank,
            classes: [before.class, after.class],
            facts,
            by: level(&all[at..])? - level(&all[begin..at])?,
            rows: [before.row, after.row],
        })
    }
}

/// The known facts in which two classes differ, with the values of both.
fn class_differences(table: &RunTable, classes: [u32; 2]) -> Vec<(&Key, Option<&str>, Option<&str>)> {
    let [a, b] = classes.map(|class| table.class_parts.get(&class).map(|parts| &parts.facts));
    a.zip(b).map(|(a, b)| differences(a, b)).unwrap_or_default()
}

fn report((table, order): (&RunTable, &Order), nodes: &[(&str, Change)]) -> Option<Reconfigured> {
    let Change { classes, rows: [until, since], facts: others, .. } = &nodes.first()?.1;
    let [until, since] = [*until, *since];
    let date = |row: usize| instant::date(table.started_unix_ns[row]).filter(|_| order.sessions_are_dated);
    let other = |(key, before, after): &FactChanged| ChangedFact {
        key: (*key).to_owned(),
        before: Some((*before).to_owned()),
        after: Some((*after).to_owned()),
    };
    let fact = |(key, before, after): (&Key, Option<&str>, Option<&str>)| ChangedFact {
        key: key.name().to_owned(),
        before: before.map(str::to_owned),
        after: after.map(str::to_owned),
    };
    let mut facts: Vec<ChangedFact> = class_differences(table, *classes).into_iter().map(fact).collect();
    for changed in others {
        if !facts.iter().any(|known| known.key == changed.0) {
            facts.push(other(changed));
        }
    }
    let mut by: Vec<f64> = nodes.iter().map(|(_, change)| change.by).collect();
    by.sort_unstable_by(f64::total_cmp);
    let ci = node_median::interval(by.len()).map(|(low, high, _)| [by[low].exp_m1(), by[high].exp_m1()]);
    let mut names: Vec<String> = nodes.iter().map(|(node, _)| (*node).to_owned()).collect();
    names.sort_unstable();
    Some(Reconfigured {
        facts,
        class: table.class_name(since).to_owned(),
        nodes: names,
        change: node_median::of_ascending(&by)?.exp_m1(),
        ci,
        since: table.session_name(since).map(str::to_owned),
        until: table.session_name(until).map(str::to_owned),
        until_date: date(until),
        since_date: date(since),
    })
}
