//! One class in one session.

use super::JudgeSettings;
use super::measured_when::{self, TimeOrder};
use super::rounds_of_runs::{self, RoundEffects};
use crate::stats::class_runs::ClassRuns;
use crate::stats::node_median::{self, NodeMedian};
use crate::stats::resolution::{self, Units};
use crate::stats::time_order::{self, Dependence};
use crate::stats::verdict_rule::{self, MeasuredNode, NodeJudgement, Verdict};
use crate::stats::{slow_runs, within_nodes};
use crate::table::{RunTable, SharedNames, UNDATED, instant};
use std::ops::Range;
use std::sync::Arc;

/// The sessions of a class.
pub(super) struct Sessions<'a> {
    pub table: &'a RunTable,
    pub names: &'a SharedNames,
    /// The rows of each node, by session.
    pub nodes: &'a [&'a [&'a [u32]]],
    /// The latest one, with its number: most nodes are judged by it.
    pub latest: Option<(usize, Arc<JudgedSession<'a>>)>,
    /// See [`crate::table::Order::sessions_are_dated`].
    pub are_dated: bool,
}

impl<'a> Sessions<'a> {
    /// The date of a row; `None` if sessions are in the order of their names, which dates may contradict.
    pub fn date(&self, row: u32) -> Option<String> {
        instant::date(self.table.started_unix_ns[row as usize]).filter(|_| self.are_dated)
    }

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
    /// The units of which the times are multiples.
    pub units: Units,
    /// What was subtracted from the times of each round.
    pub round_effects: RoundEffects,
    /// What is explained by when nodes were measured.
    pub time_order: Option<TimeOrder>,
    /// How much successive runs of a node resemble each other, if they do.
    pub dependence: Option<Dependence>,
    /// Standard deviation of ln T over the runs of a node.
    sigma: Option<f64>,
    /// Only the median of each node's runs is known: nothing can be said of single runs.
    has_medians: bool,
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
        let units = Units::of(&seconds, &ends);
        if rows.iter().any(|row| table.median_of(*row as usize).is_some()) {
            return Self::of_medians(table, nodes, times, ends, units);
        }
        let (mut medians, mut sigma) = medians_and_sigma(&class, &units);
        let mut middle = middle_of(&medians)?;
        let hidden = resolution::hidden(units.class, middle);
        let round_effects = sigma.map_or_else(RoundEffects::default, |sigma| {
            rounds_of_runs::effects(table, nodes, &rows, &class, &medians, sigma.max(hidden))
        });
        let RoundEffects { effects, of_run, .. } = &round_effects;
        if !effects.is_empty() {
            times.iter_mut().zip(of_run).for_each(|(time, round)| *time -= effects[*round as usize]);
            (medians, sigma) = medians_and_sigma(&ClassRuns::new(&times, &ends)?, &units);
            middle = middle_of(&medians)?;
        }
        Some(Self {
            nodes,
            medians,
            middle,
            units,
            round_effects,
            time_order: None,
            dependence: None,
            sigma,
            has_medians: false,
            times,
            ends,
        })
    }

    /// The same where only the median of each node is known. Differences between rounds, and between the moments of the
    /// measurements, are unknown then.
    fn of_medians(
        table: &RunTable,
        nodes: &'a [&'a [u32]],
        times: Vec<f64>,
        ends: Vec<usize>,
        units: Units,
    ) -> Option<Self> {
        let of = |row: &u32| {
            table.median_of(*row as usize).map_or((1, f64::NAN), |of| (of.runs as usize, of.deviation.into()))
        };
        let sigma = within_nodes::sigma_of_deviations(nodes.iter().flat_map(|rows| rows.iter().map(of)));
        let class = ClassRuns::new(&times, &ends)?;
        let median = |(rows, medians): (&&[u32], &[f64])| {
            let runs: Vec<usize> = rows.iter().map(|row| of(row).0).collect();
            within_nodes::known_median(runs.iter().sum(), node_median::weighted(medians, &runs), sigma)
        };
        let medians: Vec<NodeMedian> = nodes.iter().zip(class.nodes()).map(median).collect();
        let middle = middle_of(&medians)?;
        Some(Self {
            nodes,
            medians,
            middle,
            units,
            round_effects: RoundEffects::default(),
            time_order: None,
            dependence: None,
            sigma,
            has_medians: true,
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
        if self.has_medians {
            return;
        }
        let start = |row: &u32| table.started_unix_ns[*row as usize];
        let mut runs: Vec<(i64, f64)> = Vec::with_capacity(self.times.len());
        let (mut first, mut started) = (0, Vec::with_capacity(self.nodes.len()));
        let (mut ordered, mut ends) = (Vec::with_capacity(self.times.len()), Vec::new());
        for (place, rows) in self.nodes.iter().enumerate() {
            let times = &self.times[first..first + rows.len()];
            first += rows.len();
            if rows.iter().any(|row| start(row) == UNDATED) {
                continue;
            }
            let before = runs.len();
            runs.extend(rows.iter().map(start).zip(times.iter().copied()));
            let of_node = &mut runs[before..];
            of_node.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            if of_node.windows(2).all(|pair| pair[0].0 < pair[1].0) {
                ordered.extend(of_node.iter().map(|(_, time)| *time));
                ends.push(ordered.len());
            }
            started.push((place, before..runs.len()));
        }
        if started.len() * 10 < self.nodes.len() * 9 {
            return;
        }
        self.dependence = ClassRuns::new(&ordered, &ends)
            .and_then(|class| time_order::dependence(class.nodes(), self.sigma?));
        let node = |(place, of_node): (usize, Range<usize>)| measured_when::Node {
            place,
            runs: &runs[of_node],
            median: self.medians[place].median,
        };
        let nodes: Vec<measured_when::Node> = started.into_iter().map(node).collect();
        self.time_order = TimeOrder::of(&nodes, self.round_effects.spread());
    }

    /// ln seconds of each row, node after node, without the effects of rounds.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The end of each node's rows.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// Only the median of each node's runs is known.
    pub fn has_medians(&self) -> bool {
        self.has_medians
    }

    /// True if runs are jobs on several nodes.
    pub fn has_jobs(&self, table: &RunTable) -> bool {
        rounds_of_runs::has_jobs(table, self.nodes)
    }

    /// True if rounding matters: a unit is at least 0.5 % of the usual time.
    pub fn is_coarse(&self) -> bool {
        self.units.class.is_some_and(|unit| unit >= WORTH_A_WARNING * self.middle.exp())
    }

    /// The round of a node's run, if rounds differ.
    pub fn round(&self, place: usize, run: usize) -> usize {
        self.round_effects.of_run[self.first_run(place) + run] as usize
    }

    /// The median of its nodes' medians (ln s). `None` if there is no second node.
    pub fn centre(&self) -> Option<f64> {
        (self.medians.len() > 1).then_some(self.middle)
    }

    /// The variance of the error of a node's median (ln T); `None` if no node ran twice.
    pub fn variance(&self, place: usize) -> Option<f64> {
        let node = &self.medians[place];
        let sigma = self.sigma?.max(resolution::hidden(self.units.of_node(place), node.median));
        let inflation = self.dependence.map_or(1.0, |dependence| dependence.inflation(node.runs));
        Some(within_nodes::variance_factor(node.runs) * sigma * sigma * inflation)
    }

    /// How much rounding may change a node's median (ln T).
    pub fn rounding(&self, place: usize) -> f64 {
        let unit = self.units.of_node(place).unwrap_or_default();
        (unit / self.medians[place].median.exp()).ln_1p()
    }

    /// The nodes, for a comparison.
    pub fn measured(&self) -> Vec<MeasuredNode> {
        let of = |(place, node)| MeasuredNode::new(node, self.variance(place));
        self.medians.iter().enumerate().map(of).collect()
    }

    /// Compares each node with the others.
    pub fn judged(&self, settings: &JudgeSettings) -> Vec<NodeJudgement> {
        self.limited(verdict_rule::judge(&self.measured(), &self.units, &settings.node), settings)
    }

    /// If the moment of the measurement may be the reason of a difference, the verdict is at most SUSPECT.
    pub fn limited(&self, mut judged: Vec<NodeJudgement>, settings: &JudgeSettings) -> Vec<NodeJudgement> {
        let Some(order) = &self.time_order else { return judged };
        for (place, node) in judged.iter_mut().enumerate() {
            let (limit, slower) =
                (order.limit(place), node.slower_by_at_least.map_or(f64::NEG_INFINITY, f64::ln_1p));
            let faster = -node.slowdown.map_or(0.0, f64::ln_1p);
            if node.verdict == Some(Verdict::Fast) && faster - limit <= settings.node.delta.ln_1p() {
                node.verdict = Some(Verdict::Ok);
            }
            if limit > 0.0
                && node.verdict > Some(Verdict::Ok)
                && slower - limit <= settings.node.delta.ln_1p()
            {
                (node.verdict, node.suggests_drain) = (Some(Verdict::Suspect), false);
            }
        }
        judged
    }

    /// True if a node with this many runs can be tested for slow runs.
    pub fn tests(&self, runs: usize, settings: &JudgeSettings) -> bool {
        self.sigma.is_some() && runs >= settings.run.min_runs && !self.has_medians
    }

    /// Runs that are slower than the other runs of their node.
    pub fn slow_runs(&self, settings: &JudgeSettings) -> Vec<slow_runs::SlowRunTest> {
        let class = ClassRuns::new(&self.times, &self.ends).zip(self.sigma).filter(|_| !self.has_medians);
        let slow = |(class, sigma)| slow_runs::slow(&class, &self.medians, sigma, &self.units, &settings.run);
        let mut found = class.map(slow).unwrap_or_default();
        found.retain(|slow: &slow_runs::SlowRunTest| {
            !self.round_effects.may_explain(self.first_run(slow.node) + slow.run, slow.slowdown.ln_1p())
        });
        found
    }

    /// The index of a node's first run among all runs.
    fn first_run(&self, place: usize) -> usize {
        place.checked_sub(1).map_or(0, |before| self.ends[before])
    }
}

/// The median of each node, and the standard deviation of runs; runs of nodes with coarser times vary by whole units.
fn medians_and_sigma(class: &ClassRuns, units: &Units) -> (Vec<NodeMedian>, Option<f64>) {
    let medians = node_median::of_nodes(class);
    if units.coarser.is_empty() {
        let sigma = within_nodes::sigma(class, &medians);
        return (medians, sigma);
    }
    let (mut times, mut ends, mut of_others) = (Vec::new(), Vec::new(), Vec::new());
    for (node, (runs, middle)) in class.nodes().zip(&medians).enumerate() {
        if !units.coarser.contains_key(&node) {
            times.extend_from_slice(runs);
            ends.push(times.len());
            of_others.push(*middle);
        }
    }
    let sigma = ClassRuns::new(&times, &ends).and_then(|class| within_nodes::sigma(&class, &of_others));
    (medians, sigma)
}

/// The median of the nodes' medians.
fn middle_of(medians: &[NodeMedian]) -> Option<f64> {
    within_nodes::median_of(&mut medians.iter().map(|node| node.median).collect::<Vec<_>>())
}
