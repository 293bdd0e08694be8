//! Sentences about nodes that became slower or faster than they were.

use super::NAMED;
use crate::render::cells::shortened;
use crate::report::Report;
use crate::stats::own_history::{Course, OwnVerdict};
use crate::verdicts::node_report::{HistoryReport, NodeReport};
use crate::warning_codes::percent;

/// One sentence per node, or one for many nodes.
pub fn of(report: &Report) -> Vec<String> {
    [OwnVerdict::Slowed, OwnVerdict::Suspect, OwnVerdict::Faster]
        .into_iter()
        .flat_map(|verdict| about(report, verdict))
        .collect()
}

fn about(report: &Report, verdict: OwnVerdict) -> Vec<String> {
    let is_of = |node: &&NodeReport| node.history.verdict == Some(verdict);
    let mut nodes: Vec<&NodeReport> = report.nodes.iter().filter(is_of).collect();
    let size = |node: &NodeReport| node.history.change.unwrap_or_default().abs();
    nodes.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.node.cmp(&b.node)));
    let what = match verdict {
        OwnVerdict::Slowed => "are slower than they were",
        OwnVerdict::Suspect => "may be slower than they were, but this is not certain",
        OwnVerdict::Faster => "are faster than they were",
        OwnVerdict::Same => return Vec::new(),
    };
    if nodes.len() <= NAMED {
        return nodes.iter().map(|node| of_node(&node.node, &node.history, verdict)).collect();
    }
    let in_short = |node: &&NodeReport| {
        let change = crate::render::cells::percent(node.history.change.unwrap_or_default(), 1);
        format!("{} {change} since {}", shortened(&node.node), or_unnamed(node.history.since.as_deref()))
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(in_short).collect();
    vec![format!("{} nodes {what}: {}, ...", nodes.len(), named.join(", "))]
}

/// For example "n007 is 3.1 % slower than it was until 2026-11-14 (at least 2.5 %)".
fn of_node(node: &str, history: &HistoryReport, verdict: OwnVerdict) -> String {
    let change = history.change.unwrap_or_default();
    let how = if change < 0.0 { "faster" } else { "slower" };
    let is = if verdict == OwnVerdict::Suspect { "may be" } else { "is" };
    let until = history.until_date.as_deref().or(history.until.as_deref());
    let least = history.at_least.filter(|least| *least != 0.0);
    let least = least.map(|least| format!(" (at least {})", percent(least.abs()))).unwrap_or_default();
    let course = match (verdict, history.course) {
        (OwnVerdict::Suspect, _) => ": its latest session has too few runs to be certain",
        (_, Some(Course::Latest)) => ": only its latest session shows this",
        (_, Some(Course::Unsteady)) => ": some later sessions show this, others do not",
        (_, Some(Course::Creep)) => ": it changed little by little",
        (_, Some(Course::Step) | None) => "",
    };
    format!(
        "{} {is} {} {how} than it was until {}{least}{course}",
        shortened(node),
        percent(change.abs()),
        or_unnamed(until)
    )
}

fn or_unnamed(session: Option<&str>) -> String {
    session.map_or_else(|| "an earlier session".to_owned(), shortened)
}
