//! What limits a comparison.

use super::NodeComparison;
use super::selector::Selector;
use super::units::{Matched, MatchedUnit};
use crate::warnings::of_comparisons::Unpaired;
use crate::warnings::{ComparisonWarning, FirstFew};
use std::collections::{BTreeMap, BTreeSet};

/// Why no runs of A and B belong together.
pub(super) fn nothing_in_common(matched: &Matched) -> String {
    let [a, b] = matched.unmatched.each_ref().map(some);
    let texts = |texts: &BTreeSet<Option<String>>| {
        let known: Vec<&str> = texts.iter().flatten().take(NAMED).map(String::as_str).collect();
        if known.is_empty() {
            return "none".to_owned();
        }
        format!("{}{}", known.join(" | "), if texts.len() > NAMED { " | ..." } else { "" })
    };
    let keys = matched.differs.iter().filter(|(key, _)| !key.is_fact());
    let differ: Vec<String> = keys
        .map(|(key, [a, b])| format!("\n       {}: A has {}, B has {}", key.name(), texts(a), texts(b)))
        .collect();
    format!(
        "A and B have no runs of the same work on the same node: A has runs on {a}; B has runs \
         on {b}{}\n       --class-by KEYS chooses what must be equal",
        differ.concat()
    )
}

/// Number of units that a message names.
const NAMED: usize = 3;

fn some(units: &BTreeMap<&str, usize>) -> String {
    let named: Vec<&str> = units.keys().take(NAMED).copied().collect();
    let more = if units.len() > named.len() { ", ..." } else { "" };
    format!("{}{more}", named.join(", "))
}

/// Warns of runs that are in A and in B.
pub(super) fn about_shared(runs: usize) -> Option<ComparisonWarning> {
    (runs > 0).then_some(ComparisonWarning::SharedRuns { runs })
}

/// Warns if A and B were measured one after the other. A change of the machine in between then counts as a
/// difference.
pub(super) fn about_blocks(matched: &Matched, selectors: [&Selector; 2]) -> Option<ComparisonWarning> {
    if selectors.iter().all(|selector| selector.is_of_time()) {
        return None; // that is the question
    }
    let is_apart = |unit: &&MatchedUnit| {
        let shared: Vec<_> = unit.sessions.iter().filter(|s| !s.a.is_empty() && !s.b.is_empty()).collect();
        shared.is_empty() || shared.iter().any(|session| session.is_in_blocks())
    };
    let apart = matched.units.iter().filter(is_apart).count();
    let comparisons = matched.units.len();
    (apart > 0).then_some(ComparisonWarning::NotInTurns { apart, comparisons })
}

pub(super) fn about_unmatched(matched: &Matched) -> Option<ComparisonWarning> {
    let unpaired = |units: &BTreeMap<&str, usize>| Unpaired {
        runs: units.values().sum(),
        nodes: FirstFew::of(units.keys().copied(), NAMED, str::to_owned),
    };
    let [a, b] = matched.unmatched.each_ref().map(unpaired);
    (a.runs + b.runs > 0).then_some(ComparisonWarning::UnpairedRuns { a, b })
}

pub(super) fn about_few(nodes: &[NodeComparison]) -> Option<ComparisonWarning> {
    let few = nodes.iter().filter(|node| node.ci.is_none());
    let nodes = FirstFew::of(few, NAMED, |node| node.node.clone());
    (nodes.all > 0).then_some(ComparisonWarning::FewRuns { nodes })
}
