//! What limits a comparison.

use super::NodeComparison;
use super::selector::Selector;
use super::units::{Matched, MatchedUnit};
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::count;
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
pub(super) fn about_shared(shared: usize) -> Option<Warning> {
    let message =
        || format!("A and B have {} in common: the comparison does not use them", count(shared, "run"));
    (shared > 0).then(|| Warning::new(WarningCode::SharedRuns, message()))
}

/// Warns if A and B were measured one after the other. A change of the machine in between then counts as a
/// difference.
pub(super) fn about_blocks(matched: &Matched, selectors: [&Selector; 2]) -> Option<Warning> {
    if selectors.iter().all(|selector| selector.is_of_time()) {
        return None; // that is the question
    }
    let is_apart = |unit: &&MatchedUnit| {
        let shared: Vec<_> = unit.sessions.iter().filter(|s| !s.a.is_empty() && !s.b.is_empty()).collect();
        shared.is_empty() || shared.iter().any(|session| session.is_in_blocks())
    };
    let apart = matched.units.iter().filter(is_apart).count();
    let all = matched.units.len();
    let message = format!(
        "A and B did not take turns ({apart} of {}): a change of the machine between A and B counts as a difference",
        count(all, "comparison")
    );
    (apart > 0).then(|| Warning::new(WarningCode::NotInTurns, message))
}

pub(super) fn about_unmatched(matched: &Matched) -> Option<Warning> {
    let of = |(set, units): (&str, &BTreeMap<&str, usize>)| {
        let runs = units.values().sum::<usize>();
        (runs > 0).then(|| format!("{} of {set} ({})", count(runs, "run"), some(units)))
    };
    let both: Vec<String> = ["A", "B"].into_iter().zip(&matched.unmatched).filter_map(of).collect();
    let message = || format!("runs without a partner in the other set: {}", both.join(", "));
    (!both.is_empty()).then(|| Warning::new(WarningCode::UnpairedRuns, message()))
}

pub(super) fn about_few(nodes: &[NodeComparison]) -> Option<Warning> {
    let few: Vec<&str> =
        nodes.iter().filter(|node| node.ci.is_none()).map(|node| node.node.as_str()).collect();
    let named = few.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let message = || {
        format!(
            "A or B has too few runs to show how much the times vary on {}: {named}{}; on a single node, \
             3 runs of A and 3 runs of B are enough",
            count(few.len(), "node"),
            if few.len() > NAMED { ", ..." } else { "" }
        )
    };
    (!few.is_empty()).then(|| Warning::new(WarningCode::FewRuns, message()))
}
