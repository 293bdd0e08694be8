//! Sentences about nodes that became slower or faster than they were.

use super::NAMED;
use crate::render::cells::{class_numbers, shortened};
use crate::report::Report;
use crate::stats::own_history::{Course, OwnVerdict};
use crate::verdicts::node_report::{ClassReport, HistoryReport, NodeReport};
use crate::warning_codes::percent;
use pmmpi::text::count;

/// One sentence per node, or one for many nodes.
pub fn of(report: &Report) -> Vec<String> {
    [OwnVerdict::Slowed, OwnVerdict::Suspect, OwnVerdict::Faster]
        .into_iter()
        .flat_map(|verdict| about(report, verdict))
        .chain(maintained(report))
        .chain(bad_sessions(report))
        .collect()
}

/// Classes that became slower or faster as a whole, for example "class 1 is 3.1 % slower than it was until 2026-11-14
/// (2.9 % .. 3.3 %)".
pub fn classes(report: &Report) -> Vec<String> {
    let numbers = class_numbers(&report.nodes);
    let of = |class: &ClassReport| {
        let (number, moved) = (numbers.get(class.class.as_str())?, class.moved.as_ref()?);
        let how = if moved.change < 0.0 { "faster" } else { "slower" };
        let until = or_unnamed(moved.until_date.as_deref().or(moved.until.as_deref()));
        let mut interval = moved.ci.map(f64::abs);
        interval.sort_unstable_by(f64::total_cmp);
        let [low, high] = interval.map(percent);
        let change = percent(moved.change.abs());
        Some(format!(
            "class {number} as a whole is {change} {how} than it was until {until} ({low} .. {high})"
        ))
    };
    let moved: Vec<String> = report.classes.iter().filter_map(of).collect();
    match moved.len() {
        0..=NAMED => moved,
        many => vec![format!("{many} classes as a whole changed: {}; ...", moved[..NAMED].join("; "))],
    }
}

/// What maintenance changed, for example "n007 is 7.6 % faster after its maintenance (since s4)".
fn maintained(report: &Report) -> Vec<String> {
    let changed = |node: &NodeReport| {
        let maintenance = node.history.maintenance.as_ref().filter(|maintenance| maintenance.is_certain)?;
        Some((maintenance.change, node.node.clone(), maintenance.since.clone()))
    };
    let mut nodes: Vec<_> = report.nodes.iter().filter_map(changed).collect();
    nodes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then_with(|| a.1.cmp(&b.1)));
    let of = |(change, node, since): &(f64, String, Option<String>)| {
        let how = if *change < 0.0 { "faster" } else { "slower" };
        let since = or_unnamed(since.as_deref());
        format!(
            "{} is {} {how} after its maintenance (since {since})",
            shortened(node),
            percent(change.abs())
        )
    };
    match nodes.len() {
        0..=NAMED => nodes.iter().map(of).collect(),
        many => {
            let faster = nodes.iter().filter(|(change, ..)| *change < 0.0).count();
            vec![format!(
                "maintenance changed {many} nodes: {faster} are faster, {} are slower",
                many - faster
            )]
        }
    }
}

/// Nodes with single bad sessions, for example "1 node was slow in single sessions: n012 (s3)".
fn bad_sessions(report: &Report) -> Option<String> {
    let mut nodes: Vec<&NodeReport> =
        report.nodes.iter().filter(|node| !node.history.bad_sessions.is_empty()).collect();
    nodes.sort_by_key(|node| (std::cmp::Reverse(node.history.bad_sessions.len()), &node.node));
    let of = |node: &&NodeReport| {
        let sessions = &node.history.bad_sessions;
        let named: Vec<String> = sessions.iter().take(NAMED).map(|session| shortened(session)).collect();
        let more = if sessions.len() > NAMED { ", ..." } else { "" };
        format!("{} ({}{more})", shortened(&node.node), named.join(", "))
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(of).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    (!nodes.is_empty()).then(|| {
        let were = if nodes.len() == 1 { "was" } else { "were" };
        format!("{} {were} slow in single sessions: {}{more}", count(nodes.len(), "node"), named.join(", "))
    })
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
