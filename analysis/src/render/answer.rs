//! The answer in sentences: is anything wrong, what, and how sure is it.
//!
//! Sentences that several formats share belong here. Tables are in `md_and_html_tables` and `text`, and the decisions
//! that the sentences report are in [`crate::verdicts`].

mod accounted;
pub mod own_history;
mod reconfigured;

pub use own_history::is_relative;

use super::cells::{percent, shortened};
use crate::report::Report;
use crate::report::often_waited_for::OftenWaitedFor;
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::{FlakyReport, NodeReport, Presence};
use hashbrown::{HashMap, HashSet};
use pmmpi::text::count;
use std::collections::BTreeMap;

/// Number of nodes that a sentence names.
const NAMED: usize = 3;

/// One sentence per finding.
pub fn of(report: &Report) -> Vec<String> {
    let mut of_class: Vec<String> = Vec::new();
    // An odd node is compared with the class that it would belong to: it has a sentence of its own.
    let compared = || report.nodes.iter().filter(|node| node.is_current() && node.as_member_of.is_none());
    let judged = hosts(compared().filter(|node| node.verdict.is_some()));
    let accounted = &report.accounted;
    // If some nodes are not judged, a sentence of its own counts all nodes.
    let of_all = if accounted.judged == accounted.all() { Some(count(judged, "node")) } else { None };
    for (verdicts, one, several) in [
        (&[Verdict::Slow, Verdict::SlowTail][..], "is slower than its class", "are slower than their class"),
        (
            &[Verdict::Suspect][..],
            "may be slow, but this is not certain",
            "may be slow, but this is not certain",
        ),
        (
            &[Verdict::Unusual][..],
            "is slower than its class, but perhaps by less than the limit (--delta)",
            "are slower than their class, but perhaps by less than the limit (--delta)",
        ),
        (
            &[Verdict::Fast][..],
            "is much faster than its class (check its results and its configuration)",
            "are much faster than their class (check their results and their configuration)",
        ),
    ] {
        let nodes: Vec<&NodeReport> =
            compared().filter(|node| node.verdict.is_some_and(|v| verdicts.contains(&v))).collect();
        let are_unchanged = verdicts.contains(&Verdict::Fast) && are_the_unchanged(report, &nodes);
        let [one, several] = match are_unchanged {
            true => [
                "did not become slower, although most of its class did",
                "did not become slower, although most of their class did",
            ],
            false => [one, several],
        };
        let mut known = HashSet::new();
        let each: Vec<&&NodeReport> = nodes.iter().filter(|node| known.insert(&node.node)).collect();
        let in_short = |node: &NodeReport| match are_unchanged {
            true => shortened(&node.node),
            false => in_short(node),
        };
        let named: Vec<String> = each.iter().take(NAMED).map(|node| in_short(node)).collect();
        if !nodes.is_empty() {
            let more = if each.len() > NAMED { ", ..." } else { "" };
            let what = if each.len() == 1 { one } else { several };
            let these = match &of_all {
                Some(of_all) => format!("{} of {of_all}", each.len()),
                None => count(each.len(), "node"),
            };
            of_class.push(format!("{these} {what}: {}{more}", named.join(", ")));
        }
    }
    if of_class.is_empty() {
        // In a small class no node can be FAST.
        let stands_out = match compared().any(|node| node.verdict.is_some() && node.score.is_none()) {
            true => "is slower than its class",
            false => "stands out from its class",
        };
        let none = match &of_all {
            Some(of_all) => format!("none of {of_all} {stands_out}"),
            None if accounted.wrong > 0 => format!("no other node {stands_out}"),
            None => format!("no node {stands_out}"),
        };
        let is_alone = |node: &NodeReport| node.slowdown.is_none();
        of_class.push(match judged {
            0 if report.nodes.is_empty() => {
                "no node can be compared: no run has a valid elapsed time".to_owned()
            }
            _ if compared().all(is_alone) => {
                "no node can be compared: no node was measured together with another node of its class"
                    .to_owned()
            }
            _ if accounted.judged + accounted.odd + accounted.wrong == 0 => {
                "no node looks slower than its class, but all compared nodes have too few runs to be judged"
                    .to_owned()
            }
            _ => match report.nodes.iter().filter(|node| is_slow_member(node)).count() {
                0 => none,
                1 => format!("apart from the odd node below, {none}"),
                _ => format!("apart from the odd nodes below, {none}"),
            },
        });
    }
    let mut answer = accounted::wrong(report);
    answer.extend(of_class);
    answer.extend(own_history::classes(report));
    answer.extend(reconfigured::of(report));
    answer.extend(accounted::odd(report));
    answer.extend(own_history::of(report));
    answer.extend(accounted::of(&report.accounted));
    answer.extend(accounted::small_sessions(report));
    if !report.slow_runs.is_empty() {
        let (slow, all) = (report.slow_runs.len(), count(report.runs_of_nodes, "run"));
        let (are, node) = if slow == 1 { ("is", "its node") } else { ("are", "their nodes") };
        let causes = causes_of_runs(report);
        answer.push(format!("{slow} of {all} {are} slower than the other runs of {node}{causes}"));
    }
    answer.extend(flaky(report));
    answer.extend(own_history::drift(report));
    answer.extend(waited_for(report));
    answer
}

/// True if most nodes of these nodes' classes became slower, and these nodes did not.
fn are_the_unchanged(report: &Report, nodes: &[&NodeReport]) -> bool {
    let is_unchanged = |node: &&NodeReport| node.history.verdict == Some(OwnVerdict::Same);
    if nodes.is_empty() || !nodes.iter().all(is_unchanged) {
        return false;
    }
    // Of each class, its nodes and those that became slower: a report may have a million nodes.
    let mut classes: HashMap<&str, [usize; 2]> = HashMap::new();
    for node in report.nodes.iter().filter(|node| node.is_current()) {
        let [all, slowed] = classes.entry(node.class.as_str()).or_default();
        *all += 1;
        *slowed += usize::from(node.history.verdict == Some(OwnVerdict::Slowed));
    }
    nodes.iter().all(|node| classes.get(node.class.as_str()).is_some_and(|[all, slowed]| 2 * slowed > *all))
}

/// The most common causes of slow runs, for example "; causes: frequency (7), cpi/cache (2)". Empty if none is known.
fn causes_of_runs(report: &Report) -> String {
    let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
    let causes = report.slow_runs.iter().filter_map(|run| run.why.cause_name());
    causes.for_each(|cause| *runs.entry(cause).or_default() += 1);
    let mut runs: Vec<(&str, usize)> = runs.into_iter().collect();
    runs.sort_by_key(|(cause, runs)| (std::cmp::Reverse(*runs), *cause));
    let named: Vec<String> =
        runs.iter().take(NAMED).map(|(cause, runs)| format!("{cause} ({runs})")).collect();
    match named.is_empty() {
        true => String::new(),
        false => format!("; causes: {}{}", named.join(", "), if runs.len() > NAMED { ", ..." } else { "" }),
    }
}

/// Names the flaky nodes, for example "2 nodes are flaky: n03 (9 of 40 runs are slow), n17 (6 of 40 runs are slow)".
fn flaky(report: &Report) -> Option<String> {
    let nodes: Vec<&FlakyReport> = report.flaky_now().collect();
    let of = |flaky: &&FlakyReport| {
        let are = if flaky.slow_runs == 1 { "is" } else { "are" };
        format!("{} ({} of {} {are} slow)", shortened(&flaky.node), flaky.slow_runs, count(flaky.runs, "run"))
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(of).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    let are = if nodes.len() == 1 { "is" } else { "are" };
    (!nodes.is_empty())
        .then(|| format!("{} {are} flaky: {}{more}", count(nodes.len(), "node"), named.join(", ")))
}

/// True for an odd node that is not OK as a member of the class that it would belong to.
fn is_slow_member(node: &NodeReport) -> bool {
    node.as_member_of.as_ref().is_some_and(|member| member.verdict > Some(Verdict::Ok))
}

/// How many runs of pmmpi failed, and on which nodes; for a line of monitoring.
pub fn failed_runs(report: &Report) -> Option<String> {
    accounted::failed(report)
}

/// What became of the nodes; for a report that compares no nodes. Nothing for a single node that has a time.
pub fn accounted(report: &Report) -> Option<String> {
    let accounted = &report.accounted;
    accounted::of(accounted).filter(|_| accounted.all() > 1 || accounted.unmeasured > 0)
}

/// Names the nodes that came last in more runs than expected by chance.
pub fn waited_for(report: &Report) -> Option<String> {
    let nodes = &report.waited_for;
    let of = |node: &OftenWaitedFor| {
        let runs = count(node.runs, "run");
        format!(
            "{} in {} of {runs} (in the median of these runs, for at least {:.1} % of the elapsed time)",
            shortened(&node.node),
            node.last,
            node.share * 100.0
        )
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(of).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    let all = count(nodes.len(), "node");
    (!nodes.is_empty()).then(|| format!("other nodes often waited for {all}: {}{more}", named.join(", ")))
}

/// Counts each host once: it may be in several classes.
fn hosts<'a>(nodes: impl Iterator<Item = &'a NodeReport>) -> usize {
    nodes.map(|node| node.node.as_str()).collect::<HashSet<_>>().len()
}

/// For example "n17 +8.1 % (at least +7.2 %)".
fn in_short(node: &NodeReport) -> String {
    let mut name = shortened(&node.node);
    if let Some(session) = node.session.as_deref().filter(|_| node.presence == Presence::Missing) {
        name += &format!(" in {}", shortened(session));
    }
    match (node.slowdown, node.slower_by_at_least) {
        (Some(slowdown), least) => {
            let least =
                least.filter(|least| *least > 0.0).map(|least| format!("at least {}", percent(least, 1)));
            let reason = node.why.cause_name().map(str::to_owned);
            let drain = node.should_be_drained().then(|| "drain it".to_owned());
            let details: Vec<String> = [least, reason, drain].into_iter().flatten().collect();
            match details.is_empty() {
                true => format!("{name} {}", percent(slowdown, 1)),
                false => format!("{name} {} ({})", percent(slowdown, 1), details.join(", ")),
            }
        }
        _ => name,
    }
}

/// What a verdict means; `None` for OK.
pub fn meaning(verdict: Verdict) -> Option<&'static str> {
    match verdict {
        Verdict::Slow => {
            Some("slower than its class by more than --delta (default: 3 %), and an outlier in the class")
        }
        Verdict::SlowTail => Some(
            "slower than its class by more than --delta (default: 3 %), but this is less certain than for \
             SLOW, or the node is not known to be an outlier in the class",
        ),
        Verdict::Unusual => Some(
            "slower than its class, and an outlier in the class, but perhaps slower by less than --delta \
             (default: 3 %)",
        ),
        Verdict::Suspect => Some(
            "looks slow, but this is not certain. The reason is one of these: the node has too few runs, \
             only some of its runs are slow, its times vary too much, or the nodes were measured at \
             different times",
        ),
        Verdict::Fast => Some(
            "faster than its class by more than --delta (default: 3 %), and an outlier in the class: its \
             results may be wrong, or its configuration differs from that of the class",
        ),
        Verdict::Wrong => Some("computed a wrong result; the report does not use the times of wrong results"),
        Verdict::Ok => None,
    }
}
