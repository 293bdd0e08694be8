//! The history of nodes over the sessions of their class.

use super::judged_session::JudgedSession;
use crate::stats::class_runs::ClassRuns;
use crate::stats::flaky::NodeSession;
use crate::stats::verdict_rule::MeasuredNode;
use crate::stats::{rounds, within_nodes};
use crate::table::RunTable;
use std::collections::BTreeMap;

/// What is kept of a node while the sessions are judged.
pub(super) struct History {
    /// Number of the node in the table.
    pub node: u32,
    /// The sessions whose runs were tested for slowness.
    pub tested: Vec<NodeSession>,
    /// Each session that has a level, in the order of time.
    pub medians: Vec<SessionMedian>,
    /// Indices of `medians`: the first sessions after a maintenance, ascending.
    pub restarts: Vec<usize>,
    /// The session that judges the node, and the node's index there: the latest that can judge it, or else the latest.
    pub latest: [usize; 2],
    /// The node in that session, with a median relative to the class; `None` if no session can judge it.
    pub standing: Option<MeasuredNode>,
    /// All sessions of the node, each with one of its rows; with the earliest one where the date of maintenance matters.
    pub seen: Vec<(u32, u32)>,
}

/// The median of a node in a session.
#[derive(Clone, Copy)]
pub(super) struct SessionMedian {
    /// One of the node's rows.
    pub row: u32,
    pub session: u32,
    /// ln seconds.
    pub median: f64,
    /// The variance of its error (ln T).
    pub variance: f64,
    /// How far the true median may be below and above, also because of rounding (ln T).
    pub reach: [f64; 2],
    pub runs: u32,
    /// True if the session judges the node, and the node was not so slow there that it would be drained.
    pub is_healthy: bool,
}

impl History {
    pub fn new(node: u32) -> Self {
        Self {
            node,
            tested: Vec::new(),
            medians: Vec::new(),
            restarts: Vec::new(),
            latest: [0; 2],
            standing: None,
            seen: Vec::new(),
        }
    }

    /// The session that judges the node, and the node's index there; `None` if no session does.
    pub fn judged_in(&self) -> Option<[usize; 2]> {
        self.standing.map(|_| self.latest)
    }

    /// Adds a session, in the order of time. `standing` is `None` if the session does not judge the node.
    pub fn add(&mut self, session: usize, place: usize, standing: Option<MeasuredNode>) {
        if standing.is_some() || self.standing.is_none() {
            self.latest = [session, place];
        }
        self.standing = standing.or(self.standing);
    }

    /// The sessions since the last maintenance.
    pub fn since_restart(&self) -> &[SessionMedian] {
        &self.medians[self.restarts.last().copied().unwrap_or(0)..]
    }

    /// The sessions since the last maintenance whose runs were tested for slowness.
    pub fn tested_since_restart(&self) -> &[NodeSession] {
        let first = match (self.restarts.last().map(|at| self.medians.get(*at)), self.medians.last()) {
            (None, _) | (Some(None), None) => 0,
            (Some(Some(first)), _) => first.session,
            (Some(None), Some(before)) => before.session + 1,
        };
        &self.tested[self.tested.partition_point(|at| at.session < first)..]
    }

    /// The sessions since the last maintenance, before and after the session with index `first`.
    pub fn since_restart_of(&self, first: usize) -> (&[SessionMedian], &[SessionMedian]) {
        let start = self.restarts.last().copied().unwrap_or(0).min(first);
        (&self.medians[start..first], &self.medians[first..])
    }

    /// The sessions between maintenances, in the order of time.
    fn between_restarts(&self) -> impl Iterator<Item = &[SessionMedian]> {
        let starts = std::iter::once(0).chain(self.restarts.iter().copied());
        let ends = self.restarts.iter().copied().chain([self.medians.len()]);
        starts.zip(ends).map(|(start, end)| &self.medians[start..end]).filter(|part| !part.is_empty())
    }

    /// Finds out after which sessions the node was maintained. A session without a level may be the first one.
    pub fn find_restarts(&mut self, table: &RunTable) {
        let of_session =
            |(_, row): &(u32, u32)| (table.session.at(*row as usize), table.started_unix_ns[*row as usize]);
        let restarts = table.maintenance.restarts(self.node, self.seen.iter().map(of_session));
        let place = |at: &usize| self.medians.partition_point(|median| median.session < self.seen[*at].0);
        self.restarts = restarts.iter().map(place).filter(|place| *place > 0).collect();
        self.restarts.dedup();
    }

    /// Number of slow runs in the session that judges the node; `None` if they were not tested.
    pub fn slow_runs(&self) -> Option<u32> {
        let is_latest = |tested: &&NodeSession| tested.session as usize == self.latest[0];
        self.tested.iter().rev().find(is_latest).map(|tested| tested.counts.slow)
    }

    /// Adds the median in a session that has a level: see [`has_level`].
    pub fn add_median(&mut self, median: SessionMedian) {
        self.medians.push(median);
    }
}

impl SessionMedian {
    /// Of the node with index `place` in a session; `row` is one of the node's rows. The session's verdict on the node is
    /// not known yet, so the node does not count as healthy.
    pub fn of(session: usize, row: u32, place: usize, judged: &JudgedSession) -> Self {
        let middle = &judged.medians[place];
        let rounding = judged.rounding(place);
        Self {
            row,
            session: session as u32,
            median: middle.median,
            variance: judged.variance(place).unwrap_or_default(),
            reach: middle.reach.map(|reach| reach + rounding),
            runs: middle.runs as u32,
            is_healthy: false,
        }
    }
}

/// A class whose sessions have fewer nodes has no level of its own: each node is compared with its own times.
pub const FEWEST_NODES: usize = 5;
/// The fewest nodes of a session whose level can be compared with that of others: a suspect, and three nodes that are OK.
const FEWEST_IN_SESSION: usize = 4;

/// The median of more nodes hardly depends on which of them change.
const ENOUGH_NODES: usize = 2000;

/// True if a session with this many nodes can be compared with other sessions, of which the largest has `most` nodes.
/// The nodes of a small session do not show whether they or the session were slow.
pub(super) fn has_level(nodes: usize, most: usize) -> bool {
    nodes >= FEWEST_IN_SESSION || !is_relative(most)
}

/// How much slower the nodes of a class became with a session (ln T): the median over the nodes of the latest
/// session that were also measured before session `since`. `None` if these are fewer than half.
pub(super) fn change(histories: &[History], since: usize) -> Option<f64> {
    let now = histories.iter().map(|history| history.medians.last().map_or(0, |at| at.session)).max()?;
    let is_there = |history: &&History| history.medians.last().is_some_and(|at| at.session == now);
    let nodes = histories.iter().filter(is_there).count();
    let of_node = |history: &History| {
        let first = history.medians.partition_point(|at| (at.session as usize) < since);
        let (before, after) = history.medians.split_at(first);
        let middle = |part: &[SessionMedian]| {
            within_nodes::median_of(&mut part.iter().map(|at| at.median).collect::<Vec<_>>())
        };
        Some(middle(after)? - middle(before)?)
    };
    let mut changes: Vec<f64> = histories.iter().filter(is_there).filter_map(of_node).collect();
    if 2 * changes.len() < nodes { None } else { within_nodes::median_of(&mut changes) }
}

/// The session that judges most nodes; the latest if there are several.
pub(super) fn most_judged(histories: &[History]) -> Option<usize> {
    let mut nodes: BTreeMap<usize, usize> = BTreeMap::new();
    histories.iter().for_each(|history| *nodes.entry(history.latest[0]).or_default() += 1);
    nodes.into_iter().max_by_key(|(_, nodes)| *nodes).map(|(session, _)| session)
}

/// True if times of nodes are relative to those of their class, of which the largest session has `most` nodes.
pub(super) fn is_relative(most: usize) -> bool {
    most >= FEWEST_NODES
}

/// The variance of the level of a session with this many nodes, as a multiple of the variance of one node's time. `most`
/// is the number of nodes of the class's largest session.
pub(super) fn level_error(nodes: usize, most: usize) -> f64 {
    if is_relative(most) { within_nodes::variance_factor(nodes) } else { 0.0 }
}

/// ln T of each session of the class, without the differences of the nodes that happen to be in it; 0 in a class of few
/// nodes. `centres` are the medians of the sessions' nodes, and `most` is the number of nodes of the largest session.
pub(super) fn session_effects(histories: &[History], centres: &[Option<f64>], most: usize) -> Vec<f64> {
    if !is_relative(most) {
        return vec![0.0; centres.len()];
    }
    let known = centres.iter().flatten();
    let centres: Vec<f64> = centres.iter().map(|centre| centre.unwrap_or_default()).collect();
    let all_sessions = known.count();
    let is_whole = |history: &History| history.medians.len() == all_sessions && history.restarts.is_empty();
    if histories.len() > ENOUGH_NODES && histories.iter().all(is_whole) {
        return centres; // all nodes are in all sessions, and no single node can move their median
    }
    let all = || histories.iter().flat_map(|history| &history.medians);
    let medians: Vec<f64> = all().map(|at| at.median).collect();
    let session: Vec<u32> = all().map(|at| at.session).collect();
    let mut end = 0;
    // After maintenance a node may have another level, like another node.
    let ends: Vec<usize> = histories
        .iter()
        .flat_map(History::between_restarts)
        .map(|part| {
            end += part.len();
            end
        })
        .collect();
    match ClassRuns::new(&medians, &ends) {
        Some(class) => rounds::sessions(&class, &session, centres.len()),
        None => centres,
    }
}
