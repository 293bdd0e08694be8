//! One class in one session.

use super::JudgeSettings;
use super::rounds_of_runs::{self, RoundEffects};
use crate::stats::class_runs::ClassRuns;
use crate::stats::median::{self, NodeMedian};
use crate::stats::time_order::{self, Dependence, RankRatio};
use crate::stats::verdict_rule::{self, MeasuredNode, NodeJudgement, Verdict};
use crate::stats::{resolution, runs, within_nodes};
use crate::table::{RunTable, UNDATED};
use std::sync::Arc;

/// Nodes that were measured close in time have similar times.
#[derive(Clone, Copy)]
pub(super) struct TimeOrder {
    pub found: RankRatio,
    /// How much the time of the measurement may have changed the times of nodes (ln T).
    pub range: f64,
}

/// The sessions of a class.
pub(super) struct Sessions<'a> {
    pub table: &'a RunTable,
    /// The rows of each node, by session.
    pub nodes: &'a [&'a [&'a [u32]]],
    /// The latest one, with its number: most nodes are judged by it.
    pub latest: Option<(usize, Arc<JudgedSession<'a>>)>,
}

impl<'a> Sessions<'a> {
    /// A session that judges nodes.
    pub fn judging(&self, number: usize) -> Option<Arc<JudgedSession<'a>>> {
        match &self.latest {
            Some((latest, session)) if *latest == number => Some(Arc::clone(session)),
            _ => Some(Arc::new(JudgedSession::of(self.table, self.nodes[number])?.with_starts(self.table))),
        }
    }
}

/// Fraction of the time from which rounding matters.
pub(super) const WORTH_A_WARNING: f64 = 0.005;

/// The times in the session, node by node.
pub(super) struct JudgedSession<'a> {
    /// The rows of each node, sorted by time.
    pub nodes: &'a [&'a [u32]],
    /// Of each node, from times without the effects of rounds.
    pub medians: Vec<NodeMedian>,
    /// The median of these medians (ln s).
    middle: f64,
    /// The unit of which all times are multiples (s); `None` if it is too fine to matter.
    pub unit: Option<f64>,
    /// What was subtracted from the times of each round.
    pub round_effects: RoundEffects,
    /// What the order explains in which nodes were measured one after another.
    pub time_order: Option<TimeOrder>,
    /// How much successive runs of a node resemble each other, if they do.
    pub dependence: Option<Dependence>,
    /// Standard deviation of ln T over the runs of a node.
    sigma: Option<f64>,
    /// ln seconds of each row; `ends` has the end of each node's rows.
    times: Vec<f64>,
    ends: Vec<usize>,
}

impl<'a> JudgedSession<'a> {
    /// Builds it from the rows of each node; `None` if a node has no row.
    pub fn of(table: &RunTable, nodes: &'a [&'a [u32]]) -> Option<Self> {
        let rows = nodes.concat();
        let seconds: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize]).collect();
        let mut times: Vec<f64> = seconds.iter().map(|seconds| seconds.ln()).collect();
        let ends = rounds_of_runs::ends(nodes);
        let class = ClassRuns::new(&times, &ends)?;
        let unit = resolution::unit(&seconds, &ends);
        let (mut medians, mut sigma) = medians_and_sigma(&class);
        let mut middle = middle_of(&medians)?;
        let hidden = resolution::hidden(unit, middle);
        let round_effects = sigma.map_or_else(RoundEffects::default, |sigma| {
            rounds_of_runs::effects(table, nodes, &rows, &class, &medians, sigma.max(hidden))
        });
        let RoundEffects { effects, of_run } = &round_effects;
        if !effects.is_empty() {
            times.iter_mut().zip(of_run).for_each(|(time, round)| *time -= effects[*round as usize]);
            (medians, sigma) = medians_and_sigma(&ClassRuns::new(&times, &ends)?);
            middle = middle_of(&medians)?;
        }
        Some(Self {
            nodes,
            medians,
            middle,
            unit,
            round_effects,
            time_order: None,
            dependence: None,
            sigma,
            times,
            ends,
        })
    }

    /// Adds what depends on time, if the starts of nine of ten nodes are known: verdicts need it, slow runs do not.
    pub fn with_starts(mut self, table: &RunTable) -> Self {
        self.consult_starts(table);
        self
    }

    /// See [`Self::with_starts`].
    pub fn consult_starts(&mut self, table: &RunTable) {
        let start = |row: u32| table.started_unix_ns[row as usize];
        let (mut first, mut of_node) = (0, Vec::new());
        let (mut ordered, mut ends) = (Vec::with_capacity(self.times.len()), Vec::new());
        let mut spans: Vec<Span> = Vec::with_capacity(self.nodes.len());
        for (place, rows) in self.nodes.iter().enumerate() {
            let runs = &self.times[first..first + rows.len()];
            first += rows.len();
            if rows.iter().any(|row| start(*row) == UNDATED) {
                continue;
            }
            of_node.clear();
            of_node.extend(rows.iter().map(|row| start(*row)).zip(runs.iter().copied()));
            of_node.sort_unstable_by(|a: &(i64, f64), b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let are_distinct = of_node.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let (last_start, last) = of_node.last().copied().unwrap_or_default();
            let end = last_start.saturating_add((last.exp() * 1e9) as i64);
            spans.push(Span { start: of_node[0].0, end, place });
            if are_distinct {
                ordered.extend(of_node.iter().map(|(_, time)| *time));
                ends.push(ordered.len());
            }
        }
        if spans.len() * 10 < self.nodes.len() * 9 {
            return;
        }
        self.dependence = ClassRuns::new(&ordered, &ends)
            .and_then(|class| time_order::dependence(class.nodes(), self.sigma?));
        // Nodes that start together have no order in time, and their names must not give them one.
        let mixed = |place: usize| (place as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        spans.sort_unstable_by_key(|span| (span.start, mixed(span.place)));
        self.time_order = are_one_after_another(&spans).then(|| self.explained_by(&spans)).flatten();
    }

    fn explained_by(&self, spans: &[Span]) -> Option<TimeOrder> {
        let medians: Vec<f64> = spans.iter().map(|span| self.medians[span.place].median).collect();
        let found = time_order::rank_ratio(&medians).filter(|found| found.p < time_order::ALPHA)?;
        Some(TimeOrder { found, range: time_order::range(&medians) })
    }

    /// True if rounding matters: a unit is at least 0.5 % of the usual time.
    pub fn is_coarse(&self) -> bool {
        self.unit.is_some_and(|unit| unit >= WORTH_A_WARNING * self.middle.exp())
    }

    /// The round of a node's run, if rounds differ.
    pub fn round(&self, place: usize, run: usize) -> usize {
        let first = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.round_effects.of_run[first + run] as usize
    }

    /// The median of its nodes' medians (ln s). `None` if there is no second node.
    pub fn centre(&self) -> Option<f64> {
        (self.medians.len() > 1).then_some(self.middle)
    }

    /// The variance of the error of a node's median (ln T); `None` if no node ran twice.
    pub fn variance(&self, node: &NodeMedian) -> Option<f64> {
        let sigma = self.sigma?.max(resolution::hidden(self.unit, node.median));
        let inflation = self.dependence.map_or(1.0, |dependence| dependence.inflation(node.runs));
        Some(within_nodes::variance_factor(node.runs) * sigma * sigma * inflation)
    }

    /// The nodes, for a comparison.
    pub fn measured(&self) -> Vec<MeasuredNode> {
        let of = |node: &NodeMedian| MeasuredNode::new(node, self.variance(node));
        self.medians.iter().map(of).collect()
    }

    /// Compares each node with the others.
    pub fn judged(&self, settings: &JudgeSettings) -> Vec<NodeJudgement> {
        self.limited(verdict_rule::judge(&self.measured(), self.unit, &settings.node), settings)
    }

    /// If the time of the measurement may be the reason of a difference, the verdict is at most SUSPECT.
    pub fn limited(&self, mut judged: Vec<NodeJudgement>, settings: &JudgeSettings) -> Vec<NodeJudgement> {
        let Some(TimeOrder { range, .. }) = self.time_order else { return judged };
        for node in judged.iter_mut().filter(|node| node.verdict > Some(Verdict::Ok)) {
            let slower = node.slower_by_at_least.map_or(f64::NEG_INFINITY, f64::ln_1p);
            if slower - range <= settings.node.delta.ln_1p() {
                (node.verdict, node.suggests_drain) = (Some(Verdict::Suspect), false);
            }
        }
        judged
    }

    /// True if a node with this many runs can be tested for slow runs.
    pub fn tests(&self, runs: usize, settings: &JudgeSettings) -> bool {
        self.sigma.is_some() && runs >= settings.run.min_runs
    }

    /// Runs that are slower than the other runs of their node.
    pub fn slow_runs(&self, settings: &JudgeSettings) -> Vec<runs::SlowRunTest> {
        let class = ClassRuns::new(&self.times, &self.ends).zip(self.sigma);
        let slow = |(class, sigma)| runs::slow(&class, &self.medians, sigma, self.unit, &settings.run);
        class.map(slow).unwrap_or_default()
    }
}

/// The median of each node, and the standard deviation of runs.
fn medians_and_sigma(class: &ClassRuns) -> (Vec<NodeMedian>, Option<f64>) {
    let medians = median::of_nodes(class);
    let sigma = within_nodes::sigma(class, &medians);
    (medians, sigma)
}

/// The median of the nodes' medians.
fn middle_of(medians: &[NodeMedian]) -> Option<f64> {
    within_nodes::median_of(&mut medians.iter().map(|node| node.median).collect::<Vec<_>>())
}

/// When a node was measured: the start of its first run and the end of its last (Unix time, ns).
struct Span {
    start: i64,
    end: i64,
    place: usize,
}

/// True if nodes were not measured at the same time: on average, in the middle of a node's time, less than nine of ten nodes
/// were being measured. `spans` is in the order of starts.
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
