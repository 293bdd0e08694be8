//! What limits a comparison.

use super::ClassComparison;
use super::selector::Selector;
use super::units::{Matched, MatchedUnit};
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::count;
use std::collections::BTreeSet;

/// The first units.
pub(super) fn some(units: &BTreeSet<&str>) -> String {
    let named: Vec<&str> = units.iter().take(3).copied().collect();
    let more = if units.len() > named.len() { ", ..." } else { "" };
    format!("{}{more}", named.join(", "))
}

/// Warns if A and B were measured one after the other: then what changed in between counts as a difference.
pub(super) fn about_blocks(matched: &Matched, selectors: [&Selector; 2]) -> Option<Warning> {
    if selectors.iter().all(|selector| selector.is_of_time()) {
        return None; // that is the question
    }
    let is_apart = |unit: &&MatchedUnit| {
        let shared: Vec<_> = unit.sessions.iter().filter(|s| !s.a.is_empty() && !s.b.is_empty()).collect();
        shared.is_empty() || shared.iter().any(|session| session.is_in_blocks())
    };
    let apart = matched.units.iter().filter(is_apart).count();
    let message = format!(
        "A and B were not measured in turns on {}: what changed between them on the machine counts as a difference",
        count(apart, "node")
    );
    (apart > 0).then(|| Warning::new(WarningCode::NotInTurns, message))
}

pub(super) fn about_unmatched(matched: &Matched) -> Option<Warning> {
    let of = |(set, units): (&str, &BTreeSet<&str>)| {
        (!units.is_empty()).then(|| format!("{} only in {set}: {}", count(units.len(), "node"), some(units)))
    };
    let both: Vec<String> = ["A", "B"].into_iter().zip(&matched.unmatched).filter_map(of).collect();
    (!both.is_empty()).then(|| Warning::new(WarningCode::UnpairedNodes, both.join("; ")))
}

pub(super) fn about_few(classes: &[ClassComparison]) -> Option<Warning> {
    let few = classes.iter().filter(|class| class.ci.is_none()).count();
    let message = format!(
        "{} too few runs to show how certain a difference is: at least 3 runs of A and 3 of B on a node are needed",
        if few == 1 { "1 class has".to_owned() } else { format!("{few} classes have") }
    );
    (few > 0).then(|| Warning::new(WarningCode::FewRuns, message))
}
