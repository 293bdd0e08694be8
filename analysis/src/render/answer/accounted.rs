//! Sentences about nodes that are not judged like others: no node is lost without a word.

use super::NAMED;
use super::own_history::{NOTABLE, in_class};
use crate::render::cells::{class_numbers, shortened};
use crate::render::sentences::percent;
use crate::report::accounted::{Accounted, NodeGroup};
use crate::report::{Report, WrongNode};
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::class_report::{ClassReport, MeasuredAgain};
use crate::verdicts::node_report::{MemberReport, NodeReport, OddFact, Presence};
use hashbrown::{HashMap, HashSet};
use pmmpi::text::count;
use std::cell::LazyCell;
use std::collections::BTreeSet;

/// How many nodes are judged, and which are not. Nothing if all are.
pub fn of(accounted: &Accounted) -> Option<String> {
    if accounted.judged == accounted.all() {
        return None;
    }
    let group = |(group, nodes): (&NodeGroup, &BTreeSet<String>)| {
        let what = match group {
            NodeGroup::Wrong => "with wrong results",
            NodeGroup::Odd => "odd",
            NodeGroup::Judged => return None,
            NodeGroup::OwnHistory if nodes.len() == 1 => "compared only with its own earlier sessions",
            NodeGroup::OwnHistory => "compared only with their own earlier sessions",
            NodeGroup::FewRuns => "with too few runs",
            NodeGroup::Alone => "alone in a class (not judged)",
            NodeGroup::Missing => "not in the latest session",
            NodeGroup::Gone => "in neither of the latest two sessions",
            NodeGroup::Unmeasured => "without a time",
        };
        let named: Vec<String> = nodes.iter().take(NAMED).map(|node| shortened(node)).collect();
        let more = if nodes.len() > NAMED { ", ..." } else { "" };
        let why = match accounted.failed_runs {
            runs if runs > 0 && *group == NodeGroup::Unmeasured => {
                format!(" ({} failed or not complete)", count(runs, "run"))
            }
            _ => String::new(),
        };
        Some(format!("{} {what}{why}: {}{more}", nodes.len(), named.join(", ")))
    };
    let groups: Vec<String> = accounted.nodes.iter().filter_map(group).collect();
    Some(format!("{}: {} judged; {}", count(accounted.all(), "node"), accounted.judged, groups.join("; ")))
}

/// Classes whose latest session has few of their nodes, for example of suspects that were measured again.
pub fn small_sessions(report: &Report) -> Vec<String> {
    let mut present: HashMap<&str, usize> = HashMap::new();
    for node in report.nodes.iter().filter(|node| node.presence == Presence::Present) {
        *present.entry(node.class.as_str()).or_default() += 1;
    }
    let is_unjudged = |node: &&NodeReport| node.presence == Presence::Present && node.verdict.is_none();
    let unjudged: HashSet<&str> =
        report.nodes.iter().filter(is_unjudged).map(|node| node.class.as_str()).collect();
    let numbers = LazyCell::new(|| class_numbers(&report.nodes));
    let of = |class: &ClassReport| {
        let all = present.get(class.class.as_str())?;
        let latest = class.nodes_in_latest_session;
        (latest < *all).then(|| {
            let number = numbers.get(class.class.as_str()).copied().unwrap_or_default();
            let by = match class.judged_by_latest_session {
                0 if unjudged.contains(class.class.as_str()) => {
                    ", too few for a comparison: the report judges nodes by earlier sessions, but cannot \
                     judge all nodes"
                        .to_owned()
                }
                0 => ", too few for a comparison: the report judges all nodes by earlier sessions".to_owned(),
                judged if judged < latest => {
                    let judged = count(judged, "node");
                    format!(
                        "; the report judges {judged} by this session, and the others by earlier sessions"
                    )
                }
                _ => format!(
                    "; the report judges these {latest} by this session, and the others by earlier sessions"
                ),
            };
            let again = in_seconds(&class.measured_again).unwrap_or_default();
            format!("the latest session has {latest} of the {all} nodes of class {number}{by}{again}")
        })
    };
    report.classes.iter().filter_map(of).take(NAMED).collect()
}

/// What the seconds show where the latest session is not compared with earlier ones, for example "; the
/// column HISTORY ignores the latest session; without a correction for the class, n003 is 8.1 % slower in s5 than in
/// s4".
fn in_seconds(nodes: &[MeasuredAgain]) -> Option<String> {
    let session = |name: &Option<String>| {
        name.as_deref().map_or_else(|| "the session without a name".to_owned(), shortened)
    };
    let of = |node: &MeasuredAgain| {
        let how = if node.change < 0.0 { "faster" } else { "slower" };
        let (now, before) = (session(&node.session), session(&node.session_before));
        let by = percent(node.change.abs());
        format!("{} is {by} {how} in {now} than in {before}", shortened(&node.node))
    };
    let named: Vec<String> = nodes.iter().map(of).collect();
    (!nodes.is_empty()).then(|| {
        let named = named.join(", ");
        format!(
            "; the column HISTORY ignores the latest session; without a correction for the class, {named}"
        )
    })
}

/// How many runs of pmmpi failed, and where. Nothing if none did.
pub fn failed(report: &Report) -> Option<String> {
    let runs = report.failed_runs;
    let named: Vec<String> = report.failed.iter().take(NAMED).map(|failed| shortened(&failed.node)).collect();
    let more = if report.failed.len() > NAMED { ", ..." } else { "" };
    let on = if named.is_empty() { String::new() } else { format!(" on {}{more}", named.join(", ")) };
    let last = report.failed.iter().max_by_key(|failed| failed.started_unix_ns);
    let how = last.map(|last| format!("; the latest: {}", last.reason)).unwrap_or_default();
    let are = if runs == 1 { "is" } else { "are" };
    (runs > 0).then(|| format!("{} failed or {are} not complete{on}{how}", count(runs, "run")))
}

/// One sentence per node and session with wrong results, for the first ones.
pub fn wrong(report: &Report) -> Vec<String> {
    let wrong = report.nodes.iter().filter(|node| node.verdict == Some(Verdict::Wrong));
    let slow = |node: &NodeReport| {
        let is_certain = node.slower_by_at_least.is_some_and(|least| least > 0.0);
        node.slowdown.filter(|by| is_certain && *by > NOTABLE)
    };
    let slow: HashMap<&str, f64> = wrong.filter_map(|node| Some((node.node.as_str(), slow(node)?))).collect();
    let of = |wrong: &WrongNode| {
        let results = count(usize::try_from(wrong.results).unwrap_or(usize::MAX), "wrong result");
        let when = match (wrong.is_latest, &wrong.session) {
            (true, _) => String::new(),
            (false, Some(session)) => format!(" in the earlier session {}", shortened(session)),
            (false, None) => " in an earlier session".to_owned(),
        };
        let first = if wrong.results == 1 { ":" } else { "; the first:" };
        let slow = slow.get(wrong.node.as_str()).filter(|_| wrong.is_latest);
        let slow = slow.map(|by| format!("; the node is also {} slower than its class", percent(*by)));
        format!(
            "{} computed {results}{when}{first} {}{}",
            shortened(&wrong.node),
            shortened(&wrong.first),
            slow.unwrap_or_default()
        )
    };
    let mut all: Vec<String> = report.wrong.iter().take(NAMED).map(of).collect();
    let more = report.wrong.len().saturating_sub(NAMED);
    match more {
        0 => {}
        1 => all.push("there is 1 more node or session with wrong results".to_owned()),
        _ => all.push(format!("there are {more} more nodes or sessions with wrong results")),
    }
    all
}

/// One sentence per odd node, for the first ones.
pub fn odd(report: &Report) -> Vec<String> {
    let in_class = in_class(report);
    let nodes = report.nodes.iter().filter(|node| !node.odd.is_empty());
    nodes.take(NAMED).map(|node| odd_node(node, &in_class(node))).collect()
}

/// For example "n012 is odd: memory is 96 GiB, its peers have 128 GiB; it is 8.0 % slower than they are (at least 6.9 %):
/// SLOW".
fn odd_node(node: &NodeReport, in_class: &str) -> String {
    let fact = |fact: &OddFact| {
        let [value, class] = [&fact.value, &fact.class_value]
            .map(|value| value.as_deref().map_or_else(|| "unknown".to_owned(), shortened));
        format!("{} is {value}, its peers have {class}", fact.key)
    };
    let facts: Vec<String> = node.odd.iter().map(fact).collect();
    let compared = node.as_member_of.as_deref().and_then(as_member).unwrap_or_default();
    format!("{}{in_class} is odd: {}{compared}", shortened(&node.node), facts.join("; "))
}

fn as_member(member: &MemberReport) -> Option<String> {
    let (slowdown, verdict) = (member.slowdown?, member.verdict?);
    let how = if slowdown < 0.0 { "faster" } else { "slower" };
    let least = member.slower_by_at_least.filter(|least| *least > 0.0 && verdict > Verdict::Ok);
    let least = least.map(|least| format!(" (at least {})", percent(least))).unwrap_or_default();
    Some(format!("; the node is {} {how} than its peers{least}: {}", percent(slowdown.abs()), verdict.name()))
}
