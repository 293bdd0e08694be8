//! Shows slow nodes and slow runs.

use super::node_names::NodeNames;
use super::{and_more, line, shown};
use crate::render::answer;
use crate::render::cells::{class_numbers, classes, interval, percent, probability, seconds, shortened};
use crate::report::Report;
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::{DriftReport, NodeReport, SlowRunReport};

/// The answer, one sentence per line.
pub fn answer(text: &mut String, report: &Report) {
    line(text, "");
    answer::of(report).iter().for_each(|sentence| line(text, sentence));
}

/// Slow runs of all sessions.
pub fn slow_runs(text: &mut String, runs: &[SlowRunReport], names: &NodeNames, top: usize) {
    if runs.is_empty() {
        return;
    }
    line(text, "");
    let of_session = if runs.iter().any(|run| run.session.is_some()) { "  SESSION" } else { "" };
    let (shown, hidden) = shown(runs.len(), top);
    let width = names.width;
    line(text, &format!("{:<42} {:<width$} {:>8} {:>8}{of_session}", "SLOW RUN", "NODE", "SLOWER", "P"));
    for run in &runs[..shown] {
        let (slower, p) = (percent(run.slowdown, 1), probability(run.p_adjusted));
        let session = run.session.as_ref().map_or(String::new(), |session| format!("  {session}"));
        let node = names.shown(&run.node);
        line(text, &format!("{:<42} {node:<width$} {slower:>8} {p:>8}{session}", run.run_id));
    }
    and_more(text, hidden, "more slow runs");
}

/// Nodes that grew slower, and since when.
pub fn drift(text: &mut String, drifts: &[DriftReport], names: &NodeNames, top: usize) {
    if drifts.is_empty() {
        return;
    }
    line(text, "");
    let (shown, hidden) = shown(drifts.len(), top);
    let width = names.width;
    line(text, &format!("{:<width$} {:>8} {:>8}  SINCE", "GREW SLOWER", "BY", "SCORE"));
    for drift in &drifts[..shown] {
        let since = drift.since.as_deref().unwrap_or("");
        let (node, change) = (names.shown(&drift.node), percent(drift.change, 1));
        line(text, &format!("{node:<width$} {change:>8} {:>8.1}  {since}", drift.score));
    }
    and_more(text, hidden, "more nodes");
}

/// The slowest nodes, and a list of their classes.
pub fn table(text: &mut String, nodes: &[NodeReport], names: &NodeNames, top: usize) {
    if nodes.is_empty() {
        return;
    }
    let numbers = class_numbers(nodes);
    let (shown, hidden) = shown(nodes.len(), top);
    let width = names.width;
    line(text, "");
    line(
        text,
        &format!(
            "{:<width$} {:>5} {:>4} {:>10} {:<20} {:>8} {:<9}",
            "NODE", "CLASS", "RUNS", "MEDIAN, s", "ITS INTERVAL, s", "SLOWER", "VERDICT"
        ),
    );
    for node in &nodes[..shown] {
        let interval = interval(node.ci_s);
        let slower = node.slowdown.map_or("-".to_owned(), |slowdown| percent(slowdown, 2));
        line(
            text,
            &format!(
                "{:<width$} {:>5} {:>4} {:>10} {interval:<20} {slower:>8} {:<9}",
                names.shown(&node.node),
                numbers[node.class.as_str()],
                node.runs,
                seconds(node.median_s),
                node.verdict.map_or("-", Verdict::name),
            ),
        );
    }
    and_more(text, hidden, "more rows of nodes");
    for node in &nodes[..shown] {
        if let Some((share, why)) = node.cause_share.zip(node.cause_text.as_ref()) {
            line(text, &format!("why {}: {why} ({:.0} % of the slowdown)", node.node, share * 100.0));
        }
    }
    line(text, "");
    let classes = classes(nodes);
    let (shown, hidden) = super::shown(classes.len(), top);
    for (number, class) in classes[..shown].iter().enumerate() {
        line(text, &format!("class {}: {}", number + 1, shortened(class)));
    }
    and_more(text, hidden, "more classes");
}
