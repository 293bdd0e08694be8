//! When the nodes of a session were measured, and which differences this may explain.

use crate::stats::time_order::{self, RankRatio};
use crate::stats::{binomial, poisson, within_nodes};
use crate::warnings::of_classes::TimeOrderEvidence;
use std::f64::consts::TAU;

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
    /// What shows it.
    pub found: TimeOrderEvidence,
    /// How much the moment of the measurement may have changed the time of each node (ln T), by index in the session.
    limits: Vec<f64>,
}

impl TimeOrder {
    /// How much the moment of the measurement may have changed the time of a node (ln T).
    pub fn limit(&self, place: usize) -> f64 {
        self.limits.get(place).copied().unwrap_or(0.0)
    }

    /// The largest limit (ln T).
    pub fn range(&self) -> f64 {
        self.limits.iter().copied().fold(0.0, f64::max)
    }

    /// Compares nodes that were measured at different times. `rounds` is the spread of the effects of rounds (ln T), if
    /// starts show the rounds; 0 without effects.
    pub fn of(nodes: &[Node], rounds: f64) -> Option<Self> {
        let spans =
            in_sequence(nodes.iter().enumerate().filter_map(|(at, node)| Span::of(at, node)).collect());
        let groups = Groups::of(&spans);
        let mut limits = vec![0.0f64; nodes.iter().map(|node| node.place + 1).max().unwrap_or_default()];
        let (slow, other_rounds) = (groups.slow(nodes), groups.other_rounds(nodes, rounds));
        for (group, range) in slow.iter().chain(&other_rounds) {
            for span in *group {
                let limit = &mut limits[nodes[span.at].place];
                *limit = limit.max(*range);
            }
        }
        // The nodes of the main group are a reference for one another, whatever the others are. A slow group is explained.
        let is_slow = |group: &[Span]| slow.iter().any(|(slow, _)| std::ptr::eq(*slow, group));
        let main = groups.main.map(|main| groups.all[main]);
        let sequence: Vec<&Span> = match main {
            Some(main) => main.iter().collect(),
            None => groups.all.iter().filter(|group| !is_slow(group)).copied().flatten().collect(),
        };
        let alike = are_one_after_another(&sequence).then(|| neighbours(nodes, sequence)).flatten();
        let (found, range) = match alike {
            Some((found, range)) => (TimeOrderEvidence::Neighbours { ratio: found.ratio }, range),
            None if !slow.is_empty() => (TimeOrderEvidence::SlowTogether { nodes: nodes_of(&slow) }, 0.0),
            None if !other_rounds.is_empty() => {
                (TimeOrderEvidence::OtherRounds { nodes: nodes_of(&other_rounds) }, 0.0)
            }
            None => {
                let hours = by_hour(nodes)?;
                let (found, range) = neighbours(nodes, &hours)?;
                (TimeOrderEvidence::Hours { ratio: found.ratio }, range)
            }
        };
        limits.iter_mut().for_each(|limit| *limit = limit.max(range));
        Some(Self { found, limits })
    }
}

fn nodes_of(groups: &[(&[Span], f64)]) -> usize {
    groups.iter().map(|(group, _)| group.len()).sum()
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
        Some(Self { start, end: last.saturating_add((ln_time.exp() * 1e9) as i64), at })
    }
}

/// In the order of starts. Nodes that start together have no order, and their names must not give them one.
fn in_sequence(mut spans: Vec<Span>) -> Vec<Span> {
    let mixed = |at: usize| (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    spans.sort_unstable_by_key(|span| (span.start, mixed(span.at)));
    spans
}

/// True if nodes were not measured at the same time: on average, in the middle of a node's time, less than nine of ten nodes
/// were being measured.
fn are_one_after_another(spans: &[&Span]) -> bool {
    let mut ends: Vec<i64> = spans.iter().map(|span| span.end).collect();
    ends.sort_unstable();
    let at_once = |span: &&Span| {
        let middle = span.start + span.end.saturating_sub(span.start) / 2;
        let started = spans.partition_point(|other| other.start <= middle);
        started - ends.partition_point(|end| *end < middle)
    };
    let nodes = spans.len();
    spans.iter().map(at_once).sum::<usize>() * 10 < nodes * nodes * 9
}

/// Whether neighbours in this order are alike, and how much the order may explain.
fn neighbours<'a>(nodes: &[Node], spans: impl IntoIterator<Item = &'a Span>) -> Option<(RankRatio, f64)> {
    let medians: Vec<f64> = spans.into_iter().map(|span| nodes[span.at].median).collect();
    let found = time_order::rank_ratio(&medians).filter(|found| found.p < time_order::ALPHA)?;
    Some((found, time_order::range(&medians)))
}

/// The nodes in the order of their hour, if each was measured at the same hour of several days.
fn by_hour(nodes: &[Node]) -> Option<Vec<Span>> {
    const DAY_NS: i64 = 86_400_000_000_000;
    const HOUR: f64 = TAU / 24.0;
    /// The mean direction of the runs' hours is this long if they vary by an hour (standard deviation).
    const SAME_HOUR: f64 = 0.966;
    let hour = |(at, node): (usize, &Node)| {
        let (first, last) = (node.runs.first()?.0, node.runs.last()?.0);
        let angle = |start: i64| start.rem_euclid(DAY_NS) as f64 / DAY_NS as f64 * TAU;
        let sum = |of: fn(f64) -> f64| node.runs.iter().map(|(start, _)| of(angle(*start))).sum::<f64>();
        let (sine, cosine) = (sum(f64::sin), sum(f64::cos));
        let is_same = sine.hypot(cosine) >= SAME_HOUR * node.runs.len() as f64;
        let days = last.saturating_sub(first) >= DAY_NS / 24 * 20;
        (is_same && days).then(|| (sine.atan2(cosine).rem_euclid(TAU), at))
    };
    let mut hours: Vec<(f64, usize)> = nodes.iter().enumerate().filter_map(hour).collect();
    if hours.len() * 10 < nodes.len() * 9 {
        return None;
    }
    hours.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    // The day begins after the longest pause.
    let pause = |at: usize| match at.checked_sub(1) {
        Some(before) => hours[at].0 - hours[before].0,
        None => TAU - hours[hours.len() - 1].0 + hours[0].0,
    };
    let first = (0..hours.len()).max_by(|a, b| pause(*a).total_cmp(&pause(*b)))?;
    if TAU - pause(first) < 2.0 * HOUR {
        return None;
    }
    hours.rotate_left(first);
    Some(hours.into_iter().map(|(_, at)| Span { start: 0, end: 0, at }).collect())
}

/// Smaller limits (ln T) are of no interest.
const WORTH_A_WARNING: f64 = 0.01;

/// Groups of nodes without a common time.
struct Groups<'a> {
    all: Vec<&'a [Span]>,
    /// The group with two thirds of the nodes, if there is one.
    main: Option<usize>,
}

impl<'a> Groups<'a> {
    /// `spans` is in the order of starts.
    fn of(spans: &'a [Span]) -> Self {
        let (mut all, mut first, mut end) = (Vec::new(), 0, i64::MIN);
        for (at, span) in spans.iter().enumerate() {
            if span.start > end && at > first {
                all.push(&spans[first..at]);
                first = at;
            }
            end = end.max(span.end);
        }
        all.push(&spans[first..]);
        let main = (0..all.len()).find(|at| 3 * all[*at].len() >= 2 * spans.len());
        Self { all, main }
    }

    fn others(&self) -> impl Iterator<Item = &'a [Span]> + Clone + '_ {
        self.all.iter().enumerate().filter(|(at, _)| Some(*at) != self.main).map(|(_, group)| *group)
    }

    /// Groups with more slow nodes than expected by chance, and how much slower the group is (ln T).
    ///
    /// Slow nodes are those more than 2.5 standard deviations above the median, from the median absolute deviation. By
    /// chance their number in a group is binomial; in small groups, the number of pairs of slow nodes is a Poisson
    /// number.
    fn slow(&self, nodes: &[Node]) -> Vec<(&'a [Span], f64)> {
        const SLOW: f64 = 2.5 * 1.4826;
        const ALPHA: f64 = 0.01;
        const SMALL: usize = 5;
        let groups = self.others().count();
        if self.all.len() < 2 {
            return Vec::new();
        }
        let mut all: Vec<f64> = nodes.iter().map(|node| node.median).collect();
        let Some(middle) = within_nodes::median_of(&mut all) else { return Vec::new() };
        all.iter_mut().for_each(|median| *median = (*median - middle).abs());
        let deviation = within_nodes::median_of(&mut all).unwrap_or_default();
        let is_slow = |span: &&Span| nodes[span.at].median - middle > SLOW * deviation;
        let slow_in = |group: &[Span]| group.iter().filter(is_slow).count();
        let share = self.all.iter().map(|group| slow_in(group)).sum::<usize>() as f64 / nodes.len() as f64;
        let pairs = |count: usize| (count * count.saturating_sub(1) / 2) as f64;
        let small = self.others().filter(|group| group.len() <= SMALL);
        let together: f64 = small.clone().map(|group| pairs(slow_in(group))).sum();
        let by_chance = share * share * small.map(|group| pairs(group.len())).sum::<f64>();
        let small_differ = together > 0.0 && poisson::at_least(together as usize, by_chance) < ALPHA;
        let differs = |group: &&[Span]| {
            let slow = slow_in(group);
            slow > 1
                && (small_differ && group.len() <= SMALL
                    || binomial::at_least(group.len(), share, slow) * (groups as f64) < ALPHA)
        };
        let shift = |group: &'a [Span]| {
            let mut medians: Vec<f64> = group.iter().map(|span| nodes[span.at].median).collect();
            Some((group, within_nodes::median_of(&mut medians)? - middle))
        };
        self.others()
            .filter(differs)
            .filter_map(shift)
            .filter(|(_, shift)| *shift >= WORTH_A_WARNING)
            .collect()
    }

    /// Groups beside the main group if rounds differ, and the difference that this may explain. A group has its own
    /// rounds, and the median of their effects is no property of its nodes.
    fn other_rounds(&self, nodes: &[Node], rounds: f64) -> Vec<(&'a [Span], f64)> {
        const SURE: f64 = 3.0;
        let runs =
            |group: &[Span]| group.iter().map(|span| nodes[span.at].runs.len()).max().unwrap_or_default();
        let Some(main) = self.main.filter(|_| rounds > 0.0) else { return Vec::new() };
        let range = |group: &[Span]| {
            let variance = [group, self.all[main]].map(|group| within_nodes::variance_factor(runs(group)));
            SURE * rounds * (variance[0] + variance[1]).sqrt()
        };
        let of =
            |group: &'a [Span]| Some((group, range(group))).filter(|(_, range)| *range >= WORTH_A_WARNING);
        self.others().filter_map(of).collect()
    }
}
