//! Sentences about nodes that are not judged like others: no node is lost without a word.

use super::NAMED;
use crate::render::cells::shortened;
use crate::report::accounted::{Accounted, Group};
use crate::report::{Report, WrongNode};
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::{MemberReport, NodeReport, OddFact};
use crate::warning_codes::percent;
use pmmpi::text::count;

/// How many nodes are judged, and which are not. Nothing if all are.
pub fn of(accounted: &Accounted) -> Option<String> {
    if accounted.judged == accounted.all() {
        return None;
    }
    let group = |(group, nodes): (&Group, &std::collections::BTreeSet<String>)| {
        let what = match group {
            Group::Wrong => "wrong results",
            Group::Odd => "odd",
            Group::Judged => return None,
            Group::FewRuns => "too few runs",
            Group::Alone => "alone in a class (not judged)",
            Group::Missing => "not in the latest session",
            Group::Gone => "only in earlier sessions",
            Group::Unmeasured => "without a time",
        };
        let named: Vec<String> = nodes.iter().take(NAMED).map(|node| shortened(node)).collect();
        let more = if nodes.len() > NAMED { ", ..." } else { "" };
        Some(format!("{} {what}: {}{more}", nodes.len(), named.join(", ")))
    };
    let groups: Vec<String> = accounted.nodes.iter().filter_map(group).collect();
    Some(format!("{}: {} judged; {}", count(accounted.all(), "node"), accounted.judged, groups.join("; ")))
}

/// One sentence per node with wrong results, for the first ones.
pub fn wrong(report: &Report) -> Vec<String> {
    let of = |wrong: &WrongNode| {
        let results = count(usize::try_from(wrong.results).unwrap_or(usize::MAX), "wrong result");
        format!("{} computed {results}: {}", shortened(&wrong.node), shortened(&wrong.first))
    };
    report.wrong.iter().take(NAMED).map(of).collect()
}

/// One sentence per odd node, for the first ones.
pub fn odd(report: &Report) -> Vec<String> {
    let nodes = report.nodes.iter().filter(|node| !node.odd.is_empty());
    nodes.take(NAMED).map(odd_node).collect()
}

/// For example "n012 is odd: memory is 96 GiB, its peers have 128 GiB; it is 8.0 % slower than they are (at least 6.9 %):
/// SLOW".
fn odd_node(node: &NodeReport) -> String {
    let fact = |fact: &OddFact| {
        let [value, class] = [&fact.value, &fact.class_value]
            .map(|value| value.as_deref().map_or_else(|| "unknown".to_owned(), shortened));
        format!("{} is {value}, its peers have {class}", fact.key)
    };
    let facts: Vec<String> = node.odd.iter().map(fact).collect();
    let compared = node.as_member_of.as_ref().and_then(as_member).unwrap_or_default();
    format!("{} is odd: {}{compared}", shortened(&node.node), facts.join("; "))
}

fn as_member(member: &MemberReport) -> Option<String> {
    let (slowdown, verdict) = (member.slowdown?, member.verdict?);
    let how = if slowdown < 0.0 { "faster" } else { "slower" };
    let least = member.slower_by_at_least.filter(|least| *least > 0.0 && verdict > Verdict::Ok);
    let least = least.map(|least| format!(" (at least {})", percent(least))).unwrap_or_default();
    Some(format!("; {} {how} than they are{least}: {}", percent(slowdown.abs()), verdict.name()))
}
