//! The history of nodes over the sessions of their class.

use super::judged_session::JudgedSession;
use super::{JudgeSettings, SESSIONS_AT_A_TIME, Verdicts, judged_node, why};
use crate::stats::drift;
use crate::table::RunTable;
use crate::verdicts::node_report::{DriftReport, NodeReport};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// What is kept of a node while the sessions are judged.
pub(super) struct History {
    /// Number of the node in the table.
    pub node: u32,
    /// Number of runs of all sessions that were tested for slowness, and number of slow ones.
    pub tested: usize,
    pub slow: usize,
    /// For each session with other nodes of the class: a row, and ln(node's median / class's median).
    relative: Vec<(u32, f64)>,
    /// The session that judges the node, and the node's index there: the latest with other nodes, or else the latest.
    latest: [usize; 2],
}

impl History {
    pub fn new(node: u32) -> Self {
        Self { node, tested: 0, slow: 0, relative: Vec::new(), latest: [0; 2] }
    }

    /// Adds a session, in the order of time. `relative` is `None` if there is no other node.
    pub fn add(&mut self, session: usize, place: usize, row: u32, relative: Option<f64>) {
        if relative.is_some() || self.relative.is_empty() {
            self.latest = [session, place];
        }
        self.relative.extend(relative.map(|relative| (row, relative)));
    }
}

/// The session that judges most nodes; the latest if there are several.
pub(super) fn most_judged(histories: &[History]) -> Option<usize> {
    let mut nodes: BTreeMap<usize, usize> = BTreeMap::new();
    histories.iter().for_each(|history| *nodes.entry(history.latest[0]).or_default() += 1);
    nodes.into_iter().max_by_key(|(_, nodes)| *nodes).map(|(session, _)| session)
}

/// The report of each node, from the session that judges it.
pub(super) fn latest(
    table: &RunTable,
    settings: &JudgeSettings,
    sessions: &[&[&[u32]]],
    histories: &[History],
) -> Vec<Option<NodeReport>> {
    let mut asked: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, History { latest: [session, place], .. }) in histories.iter().enumerate() {
        asked.entry(*session).or_default().push((at, *place));
    }
    let asked: Vec<_> = asked.into_iter().collect();
    let mut reports: Vec<Option<NodeReport>> = histories.iter().map(|_| None).collect();
    let of_session = |(session, nodes): &(usize, Vec<(usize, usize)>)| -> Vec<(usize, NodeReport)> {
        let Some(session) = JudgedSession::of(table, sessions[*session]) else { return Vec::new() };
        let (judged, why) = (session.judged(settings), why::explain(table, &session));
        let report = |(at, place): &(usize, usize)| {
            let (rows, middle) = (session.nodes[*place], &session.medians[*place]);
            let why = why.get(*place).cloned().unwrap_or_default();
            (*at, judged_node::report(table, settings, rows, middle, &judged.nodes[*place], why))
        };
        nodes.par_iter().map(report).collect()
    };
    for asked in asked.chunks(SESSIONS_AT_A_TIME) {
        for (at, report) in asked.par_iter().flat_map_iter(of_session).collect::<Vec<_>>() {
            reports[at] = Some(report);
        }
    }
    reports
}

/// Adds the history of each node to its report, and the drifts.
pub(super) fn over_time(
    table: &RunTable,
    settings: &JudgeSettings,
    histories: &[History],
    reports: Vec<Option<NodeReport>>,
    all: &mut Verdicts,
) {
    let settings = &settings.drift;
    let values = |history: &History| history.relative.iter().map(|(_, relative)| *relative).collect();
    let relative: Vec<Vec<f64>> = histories.iter().map(values).collect();
    let slices: Vec<&[f64]> = relative.iter().map(Vec::as_slice).collect();
    let deviation = drift::deviation(&slices, settings);
    let of_node = |((history, relative), mut report): ((&History, &Vec<f64>), Option<NodeReport>)| {
        if let Some(report) = &mut report {
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
            let row = history.relative[alarm.since].0 as usize;
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
