//! Nodes and runs that are slow: is anything wrong, what, how sure.

use super::{and_more, line, seconds, shown};
use crate::nodes::{Drift, NodeReport, SlowRun};
use crate::report::Report;
use crate::stats::verdict::Verdict;
use pmmpi::summary::count;
use std::collections::{BTreeMap, HashSet};

/// What is less is no other news.
const LEAST_P: f64 = 1e-99;
/// Names in an answer.
const NAMED: usize = 3;

/// Is anything wrong, what, how sure: a line each.
pub fn answer(text: &mut String, report: &Report) {
    let judged = hosts(report.nodes.iter().filter(|node| node.verdict.is_some()));
    line(text, "");
    let mut quiet = true;
    for (verdicts, what) in [
        (&[Verdict::Slow, Verdict::SlowTail][..], "slower than its class"),
        (&[Verdict::Suspect][..], "may be slow: too few runs to say so"),
        (&[Verdict::Unusual][..], "stands out, and by less than what matters"),
    ] {
        let nodes: Vec<&NodeReport> =
            report.nodes.iter().filter(|node| node.verdict.is_some_and(|v| verdicts.contains(&v))).collect();
        let mut known = HashSet::new();
        let each: Vec<&&NodeReport> = nodes.iter().filter(|node| known.insert(&node.node)).collect();
        let named: Vec<String> = each.iter().take(NAMED).map(|node| in_short(node)).collect();
        if !nodes.is_empty() {
            quiet = false;
            let more = if each.len() > NAMED { ", ..." } else { "" };
            line(
                text,
                &format!("{} of {} {what}: {}{more}", each.len(), count(judged, "node"), named.join(", ")),
            );
        }
    }
    if quiet {
        line(text, &format!("no node stands out of {judged}"));
    }
    if !report.slow_runs.is_empty() {
        let runs: usize = report.nodes.iter().map(|node| node.runs).sum();
        line(
            text,
            &format!(
                "{} slower than the others of its node ({runs} in the latest sessions)",
                count(report.slow_runs.len(), "run")
            ),
        );
    }
    if !report.drift.is_empty() {
        line(text, &format!("{} grew slower over the sessions", count(report.drift.len(), "node")));
    }
}

/// A node may be in several classes.
fn hosts<'a>(nodes: impl Iterator<Item = &'a NodeReport>) -> usize {
    nodes.map(|node| node.node.as_str()).collect::<HashSet<_>>().len()
}

/// "n17 +8.1 % (at least +7.2 %)".
fn in_short(node: &NodeReport) -> String {
    let drain = if node.suggests_drain { ", drain it" } else { "" };
    match (node.slowdown, node.slower_by_at_least) {
        (Some(slowdown), Some(least)) => {
            format!("{} {} (at least {}{drain})", node.node, percent(slowdown), percent(least))
        }
        _ => node.node.clone(),
    }
}

fn percent(fraction: f64) -> String {
    format!("{:+.1} %", fraction * 100.0)
}

/// Of all sessions.
pub fn slow_runs(text: &mut String, runs: &[SlowRun], top: usize) {
    if runs.is_empty() {
        return;
    }
    line(text, "");
    line(text, &format!("{:<42} {:<18} {:>8} {:>8}", "SLOW RUN", "NODE", "SLOWER", "P"));
    let (shown, hidden) = shown(runs.len(), top);
    for run in &runs[..shown] {
        let slower = percent(run.slowdown);
        let p = match run.p_adjusted {
            p if p < LEAST_P => format!("<{LEAST_P:.0e}"),
            p => format!("{p:.1e}"),
        };
        line(text, &format!("{:<42} {:<18} {slower:>8} {p:>8}", run.run_id, run.node));
    }
    and_more(text, hidden, "slow runs");
}

/// Since when.
pub fn drift(text: &mut String, drifts: &[Drift], top: usize) {
    if drifts.is_empty() {
        return;
    }
    line(text, "");
    line(text, &format!("{:<18} {:>8} {:>8}  SINCE", "GREW SLOWER", "BY", "SCORE"));
    let (shown, hidden) = shown(drifts.len(), top);
    for drift in &drifts[..shown] {
        let since = drift.since.as_deref().unwrap_or("");
        line(text, &format!("{:<18} {:>8} {:>8.1}  {since}", drift.node, percent(drift.change), drift.score));
    }
    and_more(text, hidden, "nodes");
}

/// The slowest nodes, and what their classes are.
pub fn table(text: &mut String, nodes: &[NodeReport], top: usize) {
    if nodes.is_empty() {
        return;
    }
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes {
        let next = numbers.len();
        numbers.entry(&node.class).or_insert(next);
    }
    line(text, "");
    line(
        text,
        &format!(
            "{:<18} {:>5} {:>4} {:>10} {:<20} {:>8} {:<9}",
            "NODE", "CLASS", "RUNS", "MEDIAN, s", "ITS INTERVAL, s", "SLOWER", "VERDICT"
        ),
    );
    let (shown, hidden) = shown(nodes.len(), top);
    for node in &nodes[..shown] {
        let interval =
            node.ci_s.map_or("-".to_owned(), |[low, high]| format!("{} .. {}", seconds(low), seconds(high)));
        let slower = node.slowdown.map_or("-".to_owned(), |s| format!("{:+.2} %", s * 100.0));
        line(
            text,
            &format!(
                "{:<18} {:>5} {:>4} {:>10} {interval:<20} {slower:>8} {:<9}",
                node.node,
                numbers[node.class.as_str()] + 1,
                node.runs,
                seconds(node.median_s),
                node.verdict.map_or("-", Verdict::name),
            ),
        );
    }
    and_more(text, hidden, "more rows of nodes");
    line(text, "");
    let mut classes: Vec<_> = numbers.into_iter().collect();
    classes.sort_by_key(|(_, number)| *number);
    let (shown, hidden) = super::shown(classes.len(), top);
    for (class, number) in &classes[..shown] {
        line(text, &format!("class {}: {}", number + 1, shortened(class)));
    }
    and_more(text, hidden, "more classes");
}

/// A command line may be of any length; its end says how many ranks there were.
fn shortened(class: &str) -> String {
    const MOST: usize = 240;
    let length = class.chars().count();
    if length <= MOST {
        return class.to_owned();
    }
    let head: String = class.chars().take(MOST * 3 / 4).collect();
    let tail: String = class.chars().skip(length - MOST / 4).collect();
    format!("{head} ... {tail}")
}
