//! Nodes whose facts differ from the facts of a large class, or from the facts of most nodes of their own class.
//!
//! A missing DIMM is the commonest reason of a slow node. Such a node is in a separate class, where no node can be
//! slower than its class. So it is named, and compared with the class that it would belong to.

use super::judged_session::JudgedSession;
use super::node_report::{MemberReport, NodeReport, OddFact};
use super::odd_facts::{self, ClassFacts, KnownFacts, MANY};
use super::{ClassRows, JudgeSettings};
use crate::table::RunTable;
use crate::table::node_class::Key;
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that differ in more facts are another kind of node.
const MOST_DIFFERENCES: usize = 2;

pub(super) type Facts = BTreeMap<Key, String>;

/// What an odd node's report says.
type Odd = (Vec<OddFact>, Option<MemberReport>);

/// A class, for the search.
struct Candidate<'a> {
    rows: ClassRows<'a>,
    facts: &'a Facts,
    nodes: usize,
}

/// Names the odd nodes in `reports`, and compares them with the class that they would belong to.
pub(super) fn add_to(
    reports: &mut [NodeReport],
    table: &RunTable,
    classes: &[ClassRows],
    settings: &JudgeSettings,
) {
    let known = KnownFacts::of(table);
    if known.is_empty() && is_each_work_one_class(table) {
        return;
    }
    let current = |report: &&NodeReport| report.is_current();
    let number = |report: &NodeReport| {
        let class = table.class_number(&report.class)?;
        Some((table.nodes.find(&report.node)?, class))
    };
    let current: HashSet<(u32, u32)> = reports.iter().filter(current).filter_map(number).collect();
    let pairs = pairs(table, classes, &current);
    let mut of_node: HashMap<(&str, &str), Odd> = HashMap::new();
    if !known.is_empty() {
        within_classes(table, classes, &known, &current, &mut of_node);
    }
    for (odd, large) in &pairs {
        let facts = differences(odd.facts, large.facts);
        let mut of_peers = odd_facts::latest(table, large.rows);
        of_peers.retain(|node, _| current.contains(&(*node, table.class.at(large.rows[0][0] as usize))));
        let usual = ClassFacts::of(&known, of_peers.into_values());
        let own = odd_facts::latest(table, odd.rows);
        for (row, member) in judged(table, odd.rows, large.rows, settings) {
            let facts = facts.iter().map(|(key, value, class_value)| OddFact {
                key: key.name().to_owned(),
                value: value.map(str::to_owned),
                class_value: class_value.map(str::to_owned),
            });
            let others = own.get(&table.node.at(row)).map(|facts| usual.odd(*facts)).unwrap_or_default();
            // Those in which the node differs from its own class are known already.
            let name = (table.node_name(row), table.class_name(row));
            let in_class = of_node.remove(&name).map(|(facts, _)| facts).unwrap_or_default();
            let mut all: Vec<OddFact> = Vec::new();
            for fact in facts.chain(others).chain(in_class) {
                if !all.iter().any(|known| known.key == fact.key) {
                    all.push(fact);
                }
            }
            of_node.insert(name, (all, member));
        }
    }
    for report in reports.iter_mut().filter(|report| report.is_current()) {
        if let Some((odd, member)) = of_node.remove(&(report.node.as_str(), report.class.as_str())) {
            (report.odd, report.as_member_of) = (odd, member.map(Box::new));
        }
    }
}

/// True if no two classes differ in facts alone.
pub(super) fn is_each_work_one_class(table: &RunTable) -> bool {
    let works: HashSet<&str> = table.class_parts.values().map(|parts| parts.work.as_str()).collect();
    works.len() == table.class_parts.len()
}

/// Nodes that differ from most nodes of their own class, in facts that do not make up the class.
fn within_classes<'a>(
    table: &'a RunTable,
    classes: &[ClassRows],
    known: &KnownFacts,
    current: &HashSet<(u32, u32)>,
    of_node: &mut HashMap<(&'a str, &'a str), Odd>,
) {
    for rows in classes {
        let row = rows[0][0] as usize;
        let mut nodes = odd_facts::latest(table, rows);
        nodes.retain(|node, _| current.contains(&(*node, table.class.at(row))));
        let of_class = ClassFacts::of(known, nodes.values().copied());
        // Most nodes have the same facts.
        let mut odd_facts: HashMap<u32, Vec<OddFact>> = HashMap::new();
        for (node, facts) in nodes {
            let odd = odd_facts.entry(facts).or_insert_with(|| of_class.odd(facts));
            if !odd.is_empty() {
                let name = table.nodes.get(node).unwrap_or_default();
                of_node.insert((name, table.class_name(row)), (odd.clone(), None));
            }
        }
    }
}

/// Each class of odd nodes, with the class that they would belong to.
fn pairs<'a>(
    table: &'a RunTable,
    classes: &[ClassRows<'a>],
    current: &HashSet<(u32, u32)>,
) -> Vec<(Candidate<'a>, Candidate<'a>)> {
    let facts = |rows: &ClassRows<'a>| {
        let row = rows[0][0] as usize;
        let parts = table.class_parts.get(&table.class.at(row))?;
        let node = |rows: &&[u32]| (table.node.at(rows[0] as usize), table.class.at(rows[0] as usize));
        let nodes: BTreeSet<u32> =
            rows.iter().map(node).filter(|key| current.contains(key)).map(|(node, _)| node).collect();
        Some((parts.work.as_str(), Candidate { rows, facts: &parts.facts, nodes: nodes.len() }))
    };
    let mut by_work: BTreeMap<&str, Vec<Candidate>> = BTreeMap::new();
    for (work, facts) in classes.iter().filter_map(facts) {
        by_work.entry(work).or_default().push(facts);
    }
    let mut pairs = Vec::new();
    for classes in by_work.into_values().filter(|classes| classes.len() > 1) {
        let (large, small): (Vec<_>, Vec<_>) = classes.iter().partition(|class| class.nodes >= MANY);
        let all = large.iter().chain(&small);
        for odd in all {
            let is_peer = |class: &&&Candidate| {
                let differences = differences(odd.facts, class.facts).len();
                odd.nodes > 0
                    && class.nodes >= MANY * odd.nodes
                    && (1..=MOST_DIFFERENCES).contains(&differences)
            };
            let peers = large.iter().filter(is_peer);
            let nearest = peers.min_by_key(|class| {
                (differences(odd.facts, class.facts).len(), std::cmp::Reverse(class.nodes))
            });
            if let Some(nearest) = nearest {
                let of = |class: &Candidate<'a>| Candidate {
                    rows: class.rows,
                    facts: class.facts,
                    nodes: class.nodes,
                };
                pairs.push((of(odd), of(nearest)));
            }
        }
    }
    pairs
}

/// The facts that differ, with the values of both. A fact of [`Key::Fact`] that is unknown in one of them does not differ: it
/// may only be unreadable.
pub(super) fn differences<'a>(
    a: &'a Facts,
    b: &'a Facts,
) -> Vec<(&'a Key, Option<&'a str>, Option<&'a str>)> {
    let keys: BTreeSet<&Key> = a.keys().chain(b.keys()).collect();
    let of = |key: &'a Key| {
        let values = [a, b].map(|facts| facts.get(key).map(String::as_str));
        let may_be_unreadable = matches!(key, Key::Fact(_)) && values.contains(&None);
        (values[0] != values[1] && !may_be_unreadable).then_some((key, values[0], values[1]))
    };
    keys.into_iter().filter_map(of).collect()
}

/// The latest session of each odd node, compared with the nodes of the other class in the same session: a row of the
/// node, and the result. `None` if that session has no two nodes of the other class.
fn judged(
    table: &RunTable,
    odd: ClassRows,
    large: ClassRows,
    settings: &JudgeSettings,
) -> Vec<(usize, Option<MemberReport>)> {
    let session = |rows: &[u32]| table.session.at(rows[0] as usize);
    let mut latest: BTreeMap<u32, &[u32]> = BTreeMap::new();
    for rows in odd {
        latest.insert(table.node.at(rows[0] as usize), rows);
    }
    let mut by_session: BTreeMap<u32, Vec<&[u32]>> = BTreeMap::new();
    latest.values().for_each(|rows| by_session.entry(session(rows)).or_default().push(rows));
    let mut found = Vec::new();
    for (number, odd) in by_session {
        let mut nodes: Vec<&[u32]> = large.iter().copied().filter(|rows| session(rows) == number).collect();
        let peers = nodes.len();
        nodes.extend(&odd);
        let judged = match peers {
            0 | 1 => None,
            _ => JudgedSession::of(table, &nodes).map(|session| session.with_starts(table).judged(settings)),
        };
        for (place, rows) in odd.iter().enumerate() {
            let member = judged.as_ref().map(|judged| {
                let judgement = &judged[peers + place];
                MemberReport {
                    class: table.class_name(nodes[0][0] as usize).to_owned(),
                    slowdown: judgement.slowdown,
                    slower_by_at_least: judgement.slower_by_at_least,
                    slower_by_at_most: judgement.slower_by_at_most,
                    verdict: judgement.verdict,
                    suggests_drain: judgement.suggests_drain,
                }
            });
            found.push((rows[0] as usize, member));
        }
    }
    found
}
