//! Sentences about nodes that became slower or faster than they were.

use super::NAMED;
use crate::render::cells::{class_numbers, shortened};
use crate::render::sentences::percent;
use crate::report::Report;
use crate::stats::node_median;
use crate::stats::own_history::{Course, OwnVerdict};
use crate::verdicts::class_report::ClassReport;
use crate::verdicts::node_report::{DriftReport, MaintenanceReport, NodeReport};
use hashbrown::{HashMap, HashSet};
use pmmpi::text::count;
use std::cell::LazyCell;

/// The report has no sentence about a smaller change.
pub(super) const NOTABLE: f64 = 0.01;

const HIDDEN_CLASS: &str = "; --node hides the rest of its class, so the report cannot find out \
     whether the node or the work changed";
const HIDDEN_CLASSES: &str = "; --node hides other nodes of the classes, so the report cannot find out \
     whether nodes or the work changed";
const NODE_OR_WORK: &str = "; too few nodes of its class were measured together, so the report \
     cannot find out whether the node or the work changed";
const NODE_OR_WORK_OF_SOME: &str = "; too few nodes of some classes were measured together, so the report \
     cannot find out whether the nodes or the work changed";

/// One sentence per node, or one for many nodes.
pub fn of(report: &Report) -> Vec<String> {
    [OwnVerdict::Slowed, OwnVerdict::Suspect, OwnVerdict::Faster]
        .into_iter()
        .flat_map(|verdict| about(report, verdict))
        .chain(maintained(report))
        .chain(maintained_in_vain(report))
        .chain(bad_sessions(report))
        .collect()
}

/// Classes that became slower or faster as a whole, for example "class 1 is 3.1 % slower than it was until 2026-11-14
/// (2.9 % .. 3.3 %)". A class of a screen has the name of its kernel: "the class of triad (48 nodes)".
pub fn classes(report: &Report) -> Vec<String> {
    let numbers = LazyCell::new(|| class_numbers(&report.nodes));
    let kernels = report.screen.as_ref().map(|screen| &screen.kernel_of_class);
    let of = |class: &ClassReport| {
        let moved = class.moved.as_ref()?;
        let name = match kernels.and_then(|kernels| kernels.get(&*class.class)) {
            Some(kernel) => {
                format!(
                    "the class of {} ({})",
                    shortened(kernel),
                    count(class.nodes_in_latest_session, "node")
                )
            }
            None => format!("class {}", numbers.get(class.class.as_str())?),
        };
        let how = if moved.change < 0.0 { "faster" } else { "slower" };
        let until = until(moved.until.as_deref(), moved.until_date.as_deref(), moved.since_date.as_deref());
        let mut interval = moved.ci.map(f64::abs);
        interval.sort_unstable_by(f64::total_cmp);
        let [low, high] = interval.map(percent);
        let change = percent(moved.change.abs());
        Some(format!("{name} as a whole is {change} {how} than it was until {until} ({low} .. {high})"))
    };
    let moved: Vec<String> = report.classes_now().filter_map(of).collect();
    match moved.len() {
        0..=NAMED => moved,
        many => vec![format!("{many} classes changed as a whole: {}; ...", moved[..NAMED].join("; "))],
    }
}

/// What the last maintenance certainly changed: fraction, node, first session after it.
fn certainly_changed(node: &NodeReport) -> Option<(f64, &str, Option<&str>)> {
    let maintenance =
        node.history.events.maintenance.as_ref().filter(|maintenance| maintenance.is_certain)?;
    Some((maintenance.change, &node.node, maintenance.since.as_deref()))
}

/// A node that had become slower, and that is not even a little faster after its maintenance: fraction, node, first session
/// after it. If a node seems to be faster, but this is not certain, there is nothing to say.
fn not_repaired(node: &NodeReport) -> Option<(f64, &str, Option<&str>)> {
    let in_vain =
        |maintenance: &&MaintenanceReport| maintenance.change_before > 0.0 && maintenance.change > -NOTABLE;
    let maintenance = node.history.events.maintenance.as_ref().filter(in_vain)?;
    Some((maintenance.change_before, &node.node, maintenance.since.as_deref()))
}

/// Nodes whose maintenance was in vain, for example "n007 had become 6.4 % slower; its maintenance (first
/// session after it: s5) did not make the node faster".
fn maintained_in_vain(report: &Report) -> Vec<String> {
    let mut nodes: Vec<_> = current(report).filter_map(not_repaired).collect();
    nodes.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    if nodes.len() > NAMED {
        let named: Vec<String> = nodes[..NAMED].iter().map(|(_, node, _)| shortened(node)).collect();
        let all = count(nodes.len(), "node");
        return vec![format!(
            "{all} had become slower, and their maintenance did not make the nodes faster: {}, ...",
            named.join(", ")
        )];
    }
    let of = |(change, node, since): &(f64, &str, Option<&str>)| {
        let (first, change) = (first_after(*since), percent(*change));
        let node = shortened(node);
        format!("{node} had become {change} slower; its maintenance{first} did not make the node faster")
    };
    nodes.iter().map(of).collect()
}

/// What changed with maintenance, for example "n007 has been 7.6 % faster since its maintenance (first
/// session after it: s4)".
fn maintained(report: &Report) -> Vec<String> {
    let mut nodes: Vec<_> = current(report).filter_map(certainly_changed).collect();
    nodes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()).then_with(|| a.1.cmp(b.1)));
    let how = |change: f64| if change < 0.0 { "faster" } else { "slower" };
    let of = |(change, node, since): &(f64, &str, Option<&str>)| {
        let (how, first) = (how(*change), first_after(*since));
        let by = percent(change.abs());
        format!("{} has been {by} {how} since its maintenance{first}", shortened(node))
    };
    if nodes.len() <= NAMED {
        return nodes.iter().map(of).collect();
    }
    let (faster, slower): (Vec<f64>, Vec<f64>) =
        nodes.iter().map(|(change, ..)| *change).partition(|change| *change < 0.0);
    let many = |mut changes: Vec<f64>| {
        changes.sort_unstable_by(f64::total_cmp);
        let middle = node_median::of_ascending(&changes)?;
        let (all, by) = (count(changes.len(), "node"), percent(middle.abs()));
        let (is, their) = if changes.len() == 1 { ("is", "its") } else { ("are", "their") };
        Some(format!("{all} {is} {} after {their} maintenance (median {by})", how(middle)))
    };
    [faster, slower].into_iter().filter_map(many).collect()
}

/// Nodes that were slow for a time, for example "1 node was slow in earlier sessions: n012 (5.1 % slower in s3 to s5)".
fn bad_sessions(report: &Report) -> Option<String> {
    let mut nodes: Vec<&NodeReport> =
        current(report).filter(|node| !node.history.events.bad_sessions.is_empty()).collect();
    nodes.sort_by_key(|node| (std::cmp::Reverse(node.history.events.bad_sessions.len()), &node.node));
    let of = |node: &&NodeReport| {
        let events = &node.history.events;
        let period = |[first, last]: &[String; 2]| match first == last {
            true => shortened(first),
            false => format!("{} to {}", shortened(first), shortened(last)),
        };
        let named: Vec<String> = events.bad_periods.iter().take(NAMED).map(period).collect();
        let by = percent(events.bad_slowdown.unwrap_or_default());
        let sessions = match events.bad_periods.len() > NAMED {
            true => format!("{} sessions: {}, ...", events.bad_sessions.len(), named.join(", ")),
            false => named.join(", "),
        };
        format!("{} ({by} slower in {sessions})", shortened(&node.node))
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(of).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    (!nodes.is_empty()).then(|| {
        let were = if nodes.len() == 1 { "was" } else { "were" };
        let work = match nodes.iter().any(|node| node.history.relative_to_class == Some(false)) {
            true if selects_nodes(report) && nodes.len() == 1 => HIDDEN_CLASS,
            true if selects_nodes(report) => HIDDEN_CLASSES,
            true if nodes.len() == 1 => NODE_OR_WORK,
            true => NODE_OR_WORK_OF_SOME,
            false => "",
        };
        let all = count(nodes.len(), "node");
        format!("{all} {were} slow in earlier sessions: {}{more}{work}", named.join(", "))
    })
}

/// Nodes that became slower over many sessions, so slowly that no change of the node is certain; for example "1 node drifts:
/// n012 has become 2.1 % slower since s21".
pub fn drift(report: &Report) -> Option<String> {
    let known: HashSet<(&str, &str)> = current(report)
        .filter(|node| node.history.verdict == Some(OwnVerdict::Slowed))
        .map(|node| (node.node.as_str(), node.class.as_str()))
        .collect();
    let is_new = |drift: &&DriftReport| !known.contains(&(drift.node.as_str(), drift.class.as_str()));
    let nodes: Vec<&DriftReport> = report.drift_now().filter(is_new).collect();
    let of = |drift: &&DriftReport| {
        let since = or_unnamed(drift.since.as_deref());
        format!("{} has become {} slower since {since}", shortened(&drift.node), percent(drift.change))
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(of).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    let drifts = if nodes.len() == 1 { "drifts" } else { "drift" };
    (!nodes.is_empty())
        .then(|| format!("{} {drifts}: {}{more}", count(nodes.len(), "node"), named.join(", ")))
}

fn about(report: &Report, verdict: OwnVerdict) -> Vec<String> {
    let is_of = |node: &&NodeReport| node.history.verdict == Some(verdict);
    let mut nodes: Vec<&NodeReport> = current(report).filter(is_of).collect();
    let size = |node: &NodeReport| node.history.change.unwrap_or_default().abs();
    nodes.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.node.cmp(&b.node)));
    let [one, several] = match verdict {
        OwnVerdict::Slowed => ["is slower than it was", "are slower than they were"],
        OwnVerdict::Suspect => [
            "may be slower than it was, but this is not certain",
            "may be slower than they were, but this is not certain",
        ],
        OwnVerdict::Faster => ["is faster than it was", "are faster than they were"],
        OwnVerdict::Same => return Vec::new(),
    };
    if nodes.len() <= NAMED {
        let in_class = in_class(report);
        let is_hidden = selects_nodes(report);
        return nodes.iter().map(|node| of_node(node, &in_class(node), verdict, is_hidden)).collect();
    }
    // A node may be in several classes, as in a screen of several kernels: its largest change counts.
    let mut known = HashSet::new();
    nodes.retain(|node| known.insert(&node.node));
    let all = super::hosts(current(report).filter(|node| node.history.verdict.is_some()));
    let in_short = |node: &&NodeReport| {
        let change = crate::render::cells::percent(node.history.change.unwrap_or_default(), 1);
        format!(
            "{} {change} since {}",
            shortened(&node.node),
            or_unnamed(node.history.events.since.as_deref())
        )
    };
    let named: Vec<String> = nodes.iter().take(NAMED).map(in_short).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    let seconds = nodes.iter().any(|node| node.history.relative_to_class == Some(false));
    let seconds = match seconds {
        true if selects_nodes(report) && nodes.len() == 1 => HIDDEN_CLASS,
        true if selects_nodes(report) => HIDDEN_CLASSES,
        true => NODE_OR_WORK_OF_SOME,
        false => "",
    };
    let what = if nodes.len() == 1 { one } else { several };
    vec![format!("{} of {} {what}: {}{more}{seconds}", nodes.len(), count(all, "node"), named.join(", "))]
}

/// For example "n007 is 3.1 % (at least 2.5 %) slower than it was until 2026-11-14".
/// `is_hidden` tells whether the user selected nodes.
fn of_node(node: &NodeReport, in_class: &str, verdict: OwnVerdict, is_hidden: bool) -> String {
    let history = &node.history;
    let change = history.change.unwrap_or_default();
    let how = if change < 0.0 { "faster" } else { "slower" };
    let is = if verdict == OwnVerdict::Suspect { "may be" } else { "is" };
    let until = until(
        history.events.until.as_deref(),
        history.events.until_date.as_deref(),
        history.events.since_date.as_deref(),
    );
    // "May be" and "at least" would contradict each other.
    let least = history.events.at_least.filter(|least| *least != 0.0 && verdict != OwnVerdict::Suspect);
    let least = least.map(|least| format!(" (at least {})", percent(least.abs()))).unwrap_or_default();
    let course = match (verdict, history.events.course) {
        (OwnVerdict::Suspect, _) => ": its latest session has too few runs for certainty",
        (_, Some(Course::Latest)) => ": only its latest session shows this",
        (_, Some(Course::Unsteady)) => ": some sessions show this, others do not",
        (_, Some(Course::Creep)) => ": it changed little by little",
        (_, Some(Course::Steps)) => ": it changed in several steps",
        (_, Some(Course::First)) => ": only its first session was slower",
        (_, Some(Course::Step) | None) => "",
    };
    let in_its_class = if is_relative(node) { ", relative to its class," } else { "" };
    let seconds = match history.relative_to_class {
        Some(false) if is_hidden => HIDDEN_CLASS,
        Some(false) => NODE_OR_WORK,
        _ => "",
    };
    format!(
        "{}{in_class} {is} {}{least} {how}{in_its_class} than it was until {until}{course}{seconds}",
        shortened(&node.node),
        percent(change.abs()),
    )
}

fn selects_nodes(report: &Report) -> bool {
    report.selected.as_ref().is_some_and(|selected| selected.nodes.is_some())
}

/// True if the class changed together with the node, so that the node's seconds alone do not show its change.
pub fn is_relative(node: &NodeReport) -> bool {
    node.history.events.class_change.is_some_and(|change| change.abs() > NOTABLE)
}

/// Reports of nodes in their present state.
fn current(report: &Report) -> impl Iterator<Item = &NodeReport> {
    report.nodes.iter().filter(|node| node.is_current())
}

/// Says the class of a node that is in several classes, for example " (class 2)".
pub fn in_class(report: &Report) -> impl Fn(&NodeReport) -> String {
    // Most reports name no such node.
    let known = LazyCell::new(|| {
        let mut classes: HashMap<&str, usize> = HashMap::new();
        current(report).for_each(|node| *classes.entry(&node.node).or_default() += 1);
        (classes, class_numbers(&report.nodes))
    });
    move |node| match (known.0.get(node.node.as_str()), known.1.get(node.class.as_str())) {
        (Some(2..), Some(number)) => format!(" (class {number})"),
        _ => String::new(),
    }
}

/// The last session before a change: its date, or its name if the first session after the change has the same date.
pub fn until(session: Option<&str>, date: Option<&str>, since_date: Option<&str>) -> String {
    let date = date.filter(|date| session.is_none() || Some(*date) != since_date);
    date.map_or_else(|| or_unnamed(session), str::to_owned)
}

/// The first session after maintenance, if it has a name.
fn first_after(session: Option<&str>) -> String {
    session.map_or_else(String::new, |session| format!(" (first session after it: {})", shortened(session)))
}

fn or_unnamed(session: Option<&str>) -> String {
    session.map_or_else(|| "an earlier session".to_owned(), shortened)
}
