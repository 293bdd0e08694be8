//! The history of nodes over the sessions of their class.

use super::{JudgeSettings, Verdicts};
use crate::stats::class_runs::ClassRuns;
use crate::stats::flaky::NodeSession;
use crate::stats::verdict_rule::MeasuredNode;
use crate::stats::{drift, rounds, within_nodes};
use crate::table::RunTable;
use crate::verdicts::node_report::{DriftReport, NodeReport};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What is kept of a node while the sessions are judged.
pub(super) struct History {
    /// Number of the node in the table.
    pub node: u32,
    /// The sessions whose runs were tested for slowness.
    pub tested: Vec<NodeSession>,
    /// Each session with other nodes of the class.
    medians: Vec<SessionMedian>,
    /// The session that judges the node, and the node's index there: the latest that can judge it, or else the latest.
    pub latest: [usize; 2],
    /// The node in that session, with a median relative to the class; `None` if no session can judge it.
    pub standing: Option<MeasuredNode>,
}

/// The median of a node in a session.
#[derive(Clone, Copy)]
struct SessionMedian {
    /// One of the node's rows.
    row: u32,
    session: u32,
    /// ln seconds.
    median: f64,
}

impl History {
    pub fn new(node: u32) -> Self {
        Self { node, tested: Vec::new(), medians: Vec::new(), latest: [0; 2], standing: None }
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

    /// Number of slow runs in the session that judges the node; `None` if they were not tested.
    fn slow_runs(&self) -> Option<u32> {
        let is_latest = |tested: &&NodeSession| tested.session as usize == self.latest[0];
        self.tested.iter().rev().find(is_latest).map(|tested| tested.counts.slow)
    }

    /// Adds the median in a session with other nodes.
    pub fn add_median(&mut self, session: usize, row: u32, median: f64) {
        self.medians.push(SessionMedian { row, session: session as u32, median });
    }
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

/// ln T of each session of the class, without the differences of the nodes that happen to be in it. `centres` are the
/// medians of the sessions' nodes.
pub(super) fn session_effects(histories: &[History], centres: &[Option<f64>]) -> Vec<f64> {
    let known = centres.iter().flatten();
    let centres: Vec<f64> = centres.iter().map(|centre| centre.unwrap_or_default()).collect();
    let all_sessions = known.count();
    if histories.iter().all(|history| history.medians.len() == all_sessions) {
        return centres; // all nodes are in all sessions
    }
    let all = || histories.iter().flat_map(|history| &history.medians);
    let medians: Vec<f64> = all().map(|at| at.median).collect();
    let session: Vec<u32> = all().map(|at| at.session).collect();
    let mut end = 0;
    let some = histories.iter().filter(|history| !history.medians.is_empty());
    let ends: Vec<usize> = some
        .map(|history| {
            end += history.medians.len();
            end
        })
        .collect();
    match ClassRuns::new(&medians, &ends) {
        Some(class) => rounds::sessions(&class, &session, centres.len()),
        None => centres,
    }
}

/// Adds the history of each node to its report, and the drifts.
pub(super) fn over_time(
    table: &RunTable,
    settings: &JudgeSettings,
    histories: &[History],
    effects: &[f64],
    reports: Vec<Option<NodeReport>>,
    all: &mut Verdicts,
) {
    let settings = &settings.drift;
    let values = |history: &History| {
        history.medians.iter().map(|at| at.median - effects[at.session as usize]).collect()
    };
    let relative: Vec<Vec<f64>> = histories.iter().map(values).collect();
    let slices: Vec<&[f64]> = relative.iter().map(Vec::as_slice).collect();
    let deviation = drift::deviation(&slices, settings);
    let of_node = |((history, relative), mut report): ((&History, &Vec<f64>), Option<NodeReport>)| {
        if let Some(report) = &mut report {
            report.slow_runs = history.slow_runs();
            if report.slow_runs.is_none() {
                let reason =
                    "the test for slow runs needs at least 3 runs of the node in this session".to_owned();
                report.null_reasons.insert("slow_runs", reason);
            }
            report.history_score = deviation.and_then(|sd| drift::score(relative, sd, settings));
            if report.history_score.is_none() {
                let sessions = settings.baseline + 1;
                let reason =
                    format!("a score against the node's own history needs at least {sessions} sessions");
                report.null_reasons.insert("history_score", reason);
            }
        }
        let alarms = deviation.map(|sd| drift::alarms(relative, sd, settings)).unwrap_or_default();
        // A drift that has ended needs no attention.
        let lasting = alarms.into_iter().find(|alarm| alarm.until.is_none());
        let drift = lasting.map(|alarm| {
            let row = history.medians[alarm.since].row as usize;
            DriftReport {
                node: table.node_name(row).to_owned(),
                class: table.class_name(row).to_owned(),
                since: table.session_name(row).map(str::to_owned),
                change: alarm.change,
                score: alarm.score,
            }
        });
        (report, drift)
    };
    let all_nodes = histories.par_iter().zip(&relative).zip(reports);
    for (report, drift) in all_nodes.map(of_node).collect::<Vec<_>>() {
        all.nodes.extend(report);
        all.drift.extend(drift);
    }
}
