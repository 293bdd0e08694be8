//! What the sessions of a class show of its nodes: each node's own history, its drift, and whether it is flaky.

use super::history::History;
use super::judged_node::JudgedReport;
use super::judged_session::Sessions;
use super::node_report::{DriftReport, FlakyReport};
use super::null_reasons::NodeNullReason;
use super::own_history::{self, SessionEffects};
use super::{JudgeSettings, Verdicts};
use crate::stats::drift;
use crate::stats::flaky::{self, Flaky, NodeSession};
use crate::table::RunTable;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Adds the history of each node to its report, and the drifts.
pub(super) fn add_to(
    judging: &Sessions,
    settings: &JudgeSettings,
    histories: &[History],
    effects: SessionEffects,
    reports: Vec<Option<JudgedReport>>,
    all: &mut Verdicts,
) {
    let drifts = drifts(judging.table, &settings.drift, histories, effects.effects);
    all.drift.extend(drifts);
    let limits = |(history, report): (&History, &Option<JudgedReport>)| {
        (history.latest[0], report.as_ref().map_or(0.0, |report| report.limit))
    };
    let limits: Vec<(usize, f64)> = histories.iter().zip(&reports).map(limits).collect();
    let own = own_history::reports(judging, &settings.own_history, histories, effects, &limits);
    let mut known = BTreeSet::new();
    all.nodes.reserve_exact(histories.len());
    for ((history, report), own) in histories.iter().zip(reports).zip(own) {
        let Some(JudgedReport { mut report, .. }) = report else { continue };
        report.slow_runs = history.slow_runs();
        if report.slow_runs.is_none() {
            let reason = match report.runs >= settings.run.min_runs {
                true => NodeNullReason::OnlyMedian,
                false => NodeNullReason::FewRuns { needed: settings.run.min_runs },
            };
            report.null_reasons.insert("slow_runs", reason);
        }
        own.add_to(&mut report);
        report.null_reasons.share(&mut known);
        all.nodes.push(*report);
    }
}

/// Nodes with too many slow runs in all sessions together, by node: a few slow runs per session are not significant in any
/// single one. `q` is the false discovery rate.
pub(super) fn flaky(table: &RunTable, q: f64, histories: &[History]) -> Vec<FlakyReport> {
    let nodes: Vec<&[NodeSession]> = histories.iter().map(History::tested_since_restart).collect();
    let of_node = |Flaky { node, runs, slow, p, adjusted_p }: Flaky| {
        let history = &histories[node];
        let class = history.seen.last().map(|(_, row)| table.class_name(*row as usize));
        FlakyReport {
            node: table.nodes.get(history.node).unwrap_or_default().to_owned(),
            class: class.unwrap_or_default().to_owned(),
            slow_runs: slow,
            runs,
            p_value: p,
            p_adjusted: adjusted_p,
        }
    };
    let mut all: Vec<FlakyReport> = flaky::flaky(&nodes, q).into_iter().map(of_node).collect();
    all.sort_by(|a, b| a.node.cmp(&b.node));
    all
}

/// The drifts that continue.
fn drifts(
    table: &RunTable,
    settings: &drift::DriftSettings,
    histories: &[History],
    effects: &[f64],
) -> Vec<DriftReport> {
    let values = |history: &History| {
        history.since_restart().iter().map(|at| at.median - effects[at.session as usize]).collect()
    };
    let relative: Vec<Vec<f64>> = histories.iter().map(values).collect();
    let slices: Vec<&[f64]> = relative.iter().map(Vec::as_slice).collect();
    let Some(deviation) = drift::deviation(&slices, settings) else { return Vec::new() };
    let of_node = |(history, relative): (&History, &Vec<f64>)| {
        let alarms = drift::alarms(relative, deviation, settings);
        // A drift that has ended needs no attention.
        let lasting = alarms.into_iter().find(|alarm| alarm.until.is_none())?;
        let row = history.since_restart()[lasting.since].row as usize;
        Some(DriftReport {
            node: table.node_name(row).to_owned(),
            class: table.class_name(row).to_owned(),
            since: table.session_name(row).map(str::to_owned),
            change: lasting.change,
            score: lasting.score,
        })
    };
    histories.par_iter().zip(&relative).filter_map(of_node).collect()
}
