//! When the nodes of a session were measured, and which differences this may explain.

use crate::stats::time_order::{self, RankRatio};
use crate::stats::within_nodes;

/// A node's runs.
pub(super) struct Node<'a> {
    /// Index in the session.
    pub place: usize,
    /// Start (Unix time, ns) and ln seconds of each run, by start.
    pub runs: &'a [(i64, f64)],
    /// ln seconds.
    pub median: f64,
}

/// Nodes that were measured at another time may be slow for this reason.
#[derive(Clone)]
pub(super) struct TimeOrder {
    pub found: Found,
    /// How much the time of the measurement may have changed the times of nodes (ln T).
    pub range: f64,
    /// The nodes that this limits, ascending; `None` for all.
    limited: Option<Vec<usize>>,
}

/// What shows it.
#[derive(Clone, Copy)]
pub(super) enum Found {
    /// Nodes that were measured one after another have similar times.
    Neighbours(RankRatio),
    /// This number of nodes was measured apart from the others, while times changed.
    Apart(usize),
}

impl TimeOrder {
    /// True if it limits the verdict on a node.
    pub fn limits(&self, place: usize) -> bool {
        self.limited.as_ref().is_none_or(|places| places.binary_search(&place).is_ok())
    }

    /// Compares nodes that were measured at different times. `rounds` is the standard deviation of the effects of rounds
    /// (ln T), 0 without such effects.
    pub fn of(nodes: &[Node], rounds: f64) -> Option<Self> {
        let spans: Vec<Span> = nodes.iter().enumerate().filter_map(|(at, node)| Span::of(at, node)).collect();
        let spans = sequence(spans);
        // Or all nodes were measured once, one after another, then all of them again.
        neighbours(nodes, &spans)
            .or_else(|| apart(nodes, &spans, rounds))
            .or_else(|| neighbours(nodes, &sequence(passes(nodes))))
    }
}

/// When a node was measured: the start of its first run and the end of its last (ns).
struct Span {
    start: i64,
    end: i64,
    /// Index in the nodes.
    at: usize,
}

impl Span {
    fn of(at: usize, node: &Node) -> Option<Self> {
        let (start, (last, ln_time)) = (node.runs.first()?.0, node.runs.last()?);
        Some(Self { start, end: last.saturating_add(ns(*ln_time)), at })
    }
}

fn ns(ln_time: f64) -> i64 {
    (ln_time.exp() * 1e9) as i64
}

/// In the order of starts. Nodes that start together have no order, and their names must not give them one.
fn sequence(mut spans: Vec<Span>) -> Vec<Span> {
    let mixed = |at: usize| (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    spans.sort_unstable_by_key(|span| (span.start, mixed(span.at)));
    spans
}

/// True if nodes were not measured at the same time: on average, in the middle of a node's time, less than nine of ten nodes
/// were being measured.
fn are_one_after_another(spans: &[Span]) -> bool {
    let mut ends: Vec<i64> = spans.iter().map(|span| span.end).collect();
    ends.sort_unstable();
    let at_once = |span: &Span| {
        let middle = span.start + span.end.saturating_sub(span.start) / 2;
        let started = spans.partition_point(|other| other.start <= middle);
        started - ends.partition_point(|end| *end < middle)
    };
    let nodes = spans.len();
    spans.iter().map(at_once).sum::<usize>() * 10 < nodes * nodes * 9
}

/// The usual time of each node after the start of a pass. Pass j has the j-th run of each node; nodes with more or fewer
/// runs than most have no place in it.
fn passes(nodes: &[Node]) -> Vec<Span> {
    let mut counts: Vec<f64> = nodes.iter().map(|node| node.runs.len() as f64).collect();
    let usual = within_nodes::median_of(&mut counts).unwrap_or_default() as usize;
    let of_pass = |pass: usize| {
        let starts = nodes.iter().filter(|node| node.runs.len() == usual).map(|node| node.runs[pass].0);
        starts.min().unwrap_or_default()
    };
    let starts: Vec<i64> = (0..usual).map(of_pass).collect();
    let of_node = |(at, node): (usize, &Node)| {
        let mut after: Vec<i64> =
            node.runs.iter().zip(&starts).map(|((start, _), pass)| start.saturating_sub(*pass)).collect();
        let middle = after.len() / 2;
        let start = *after.select_nth_unstable(middle).1;
        Span { start, end: start.saturating_add(ns(node.median)), at }
    };
    let is_usual = |(_, node): &(usize, &Node)| usual > 0 && node.runs.len() == usual;
    nodes.iter().enumerate().filter(is_usual).map(of_node).collect()
}

fn neighbours(nodes: &[Node], spans: &[Span]) -> Option<TimeOrder> {
    if !are_one_after_another(spans) {
        return None;
    }
    let medians: Vec<f64> = spans.iter().map(|span| nodes[span.at].median).collect();
    let found = time_order::rank_ratio(&medians).filter(|found| found.p < time_order::ALPHA)?;
    Some(TimeOrder { found: Found::Neighbours(found), range: time_order::range(&medians), limited: None })
}

/// Groups of nodes without a common time. The largest group with two thirds of the nodes is a reference for itself.
fn apart(nodes: &[Node], spans: &[Span], rounds: f64) -> Option<TimeOrder> {
    const MOST_GROUPS: usize = 5;
    let (mut groups, mut end): (Vec<Vec<&Span>>, _) = (Vec::new(), i64::MIN);
    for span in spans {
        match groups.last_mut() {
            Some(group) if span.start <= end => group.push(span),
            _ => groups.push(vec![span]),
        }
        end = end.max(span.end);
    }
    let main =
        groups.iter().max_by_key(|group| group.len()).filter(|group| 3 * group.len() >= 2 * spans.len());
    let medians = |group: &[&Span]| group.iter().map(|span| nodes[span.at].median).collect::<Vec<f64>>();
    let of_group: Vec<usize> =
        groups.iter().enumerate().flat_map(|(at, group)| std::iter::repeat_n(at, group.len())).collect();
    let alike = (groups.len() * MOST_GROUPS <= spans.len())
        .then(|| time_order::groups_alike(&medians(&groups.concat()), &of_group, groups.len()))
        .flatten();
    let differ = alike.is_some_and(|p| p < time_order::ALPHA);
    if groups.len() < 2 || !(differ || rounds > 0.0) {
        return None;
    }
    let middles: Vec<f64> =
        groups.iter().filter_map(|group| within_nodes::median_of(&mut medians(group))).collect();
    let low = middles.iter().copied().fold(f64::INFINITY, f64::min);
    let high = middles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Each group has its own rounds, and the median of their effects is no part of a node.
    const SURE: f64 = 3.0;
    let runs =
        |group: &Vec<&Span>| group.iter().map(|span| nodes[span.at].runs.len()).max().unwrap_or_default();
    let fewest = groups.iter().map(runs).min().unwrap_or_default();
    let by_rounds = SURE * rounds * (2.0 * within_nodes::variance_factor(fewest)).sqrt();
    let range = if differ { high - low } else { 0.0 }.max(by_rounds);
    let is_main = |group: &&Vec<&Span>| main.is_some_and(|main| std::ptr::eq(main, *group));
    let others = groups.iter().filter(|group| !is_main(group)).flatten().map(|span| nodes[span.at].place);
    let mut others: Vec<usize> = others.collect();
    others.sort_unstable();
    Some(TimeOrder { found: Found::Apart(others.len()), range, limited: main.map(|_| others) })
}
