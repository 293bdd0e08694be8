//! The report of each node, from the session that judges it.

use super::health::{self, NodeHealth};
use super::history::{self, History};
use super::judged_session::{JudgedSession, Sessions};
use super::measured_when::TimeOrder;
use super::named_cause::Among;
use super::suspects::SuspectSessions;
use super::{JudgeSettings, sessions_at_a_time, why};
use crate::stats::cause::{Explanation, NoCause};
use crate::stats::node_median;
use crate::stats::verdict_rule::{NodeJudgement, Verdict};
use crate::table::{RunTable, SharedNames};
use crate::verdicts::node_report::{HistoryReport, NodeReport, Presence};
use crate::verdicts::null_reasons::{NodeNullReason, NullReasons};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A node as the session that judges it sees it.
pub(super) struct JudgedReport {
    pub report: Box<NodeReport>,
    /// A slowdown of up to this (ln T) may come from the moment of the measurement.
    pub limit: f64,
}

/// The report of each node, from the session that judges it; and the sessions in which the order of the measurements
/// limits a verdict, without the session that judges most nodes.
pub(super) fn reports(
    sessions: &Sessions,
    settings: &JudgeSettings,
    histories: &[History],
    suspects: &SuspectSessions,
) -> (Vec<Option<JudgedReport>>, Vec<(usize, TimeOrder)>) {
    let table = sessions.table;
    let most = history::most_judged(histories);
    let mut limited = Vec::new();
    let mut asked: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, History { latest: [session, place], .. }) in histories.iter().enumerate() {
        asked.entry(*session).or_default().push((at, *place));
    }
    let asked: Vec<_> = asked.into_iter().collect();
    let mut reports: Vec<Option<JudgedReport>> = histories.iter().map(|_| None).collect();
    let of_session = |(number, nodes): &(usize, Vec<(usize, usize)>)| {
        let session = sessions.judging(*number)?;
        let judged = suspects.judged(*number, &session, settings);
        let why = match suspects.has_causes(*number) {
            true => why::explain(table, &session),
            false => vec![Explanation::without(NoCause::OnlySuspects); session.nodes.len()],
        };
        let health = health::of_session(table, &session);
        let of_node = |(at, place): &(usize, usize)| {
            let why = Why {
                explanation: why.get(*place).cloned().unwrap_or_default(),
                health: health.get(*place).cloned().unwrap_or_default(),
            };
            let limit = session.time_order.as_ref().map_or(0.0, |order| order.limit(*place));
            let report =
                node_report((table, sessions.names), settings, &session, *place, &judged[*place], why);
            (*at, JudgedReport { report: Box::new(report), limit })
        };
        let reports: Vec<(usize, JudgedReport)> = nodes.par_iter().map(of_node).collect();
        let is_limited =
            |(_, judged): &(usize, JudgedReport)| judged.report.verdict == Some(Verdict::Suspect);
        let has_limited = most != Some(*number) && reports.iter().any(is_limited);
        Some((reports, session.time_order.clone().filter(|_| has_limited).map(|order| (*number, order))))
    };
    for asked in asked.chunks(sessions_at_a_time()) {
        for (of_nodes, order) in asked.par_iter().filter_map(of_session).collect::<Vec<_>>() {
            of_nodes.into_iter().for_each(|(at, report)| reports[at] = Some(report));
            limited.extend(order);
        }
    }
    (reports, limited)
}

/// What may explain a node's time.
struct Why {
    /// From its counters.
    explanation: Explanation,
    /// From its kernel's counts of hardware that did not work as it should.
    health: NodeHealth,
}

/// `place` is the node's index in the session that judges it.
fn node_report(
    (table, names): (&RunTable, &SharedNames),
    settings: &JudgeSettings,
    session: &JudgedSession,
    place: usize,
    judgement: &NodeJudgement,
    why: Why,
) -> NodeReport {
    let (rows, middle) = (session.nodes[place], &session.medians[place]);
    let row = rows[middle.median_run] as usize;
    let is_corrected = !session.round_effects.effects.is_empty();
    // The exact value, where the report does not compute with it.
    let seconds = |time: f64, row: u32| if is_corrected { time.exp() } else { table.elapsed_s[row as usize] };
    let median_s = match rows.len().is_multiple_of(2) {
        true => middle.median.exp(),
        false => seconds(middle.median, row as u32),
    };
    let ranks = node_median::interval(rows.len()).filter(|_| middle.interval.is_some());
    let interval = ranks.zip(middle.interval).map(|((low, high, _), interval)| {
        [seconds(interval.low, rows[low]), seconds(interval.high, rows[high])]
    });
    let mut null_reasons = NullReasons::default();
    let mut explain = |key, is_null: bool, reason: NodeNullReason| {
        if is_null {
            null_reasons.insert(key, reason);
        }
    };
    let settings = &settings.node;
    for key in ["ci_s", "ci_coverage"] {
        let reason = match table.median_of(row) {
            Some(_) => NodeNullReason::OnlyMedian,
            None => NodeNullReason::NoInterval { runs: rows.len() },
        };
        explain(key, interval.is_none(), reason);
    }
    let session_name = names.session(table, row);
    explain("session", session_name.is_none(), NodeNullReason::NoSession);
    let alone = match session.nodes.len() {
        1 => NodeNullReason::Alone,
        _ => NodeNullReason::FewAnchors,
    };
    for (key, is_null) in
        [("slowdown", judgement.slowdown.is_none()), ("verdict", judgement.verdict.is_none())]
    {
        explain(key, is_null, alone.clone());
    }
    let [small, single] = match judgement.slowdown {
        None => [alone.clone(), alone],
        Some(_) => [NodeNullReason::SmallClass { needed: settings.min_nodes }, NodeNullReason::NoRepeatedRun],
    };
    for (key, is_null) in [
        ("score", judgement.score.is_none()),
        ("p_value", judgement.p.is_none()),
        ("p_adjusted", judgement.adjusted_p.is_none()),
    ] {
        explain(key, is_null, small.clone());
    }
    for (key, is_null) in [
        ("slower_by_at_least", judgement.slower_by_at_least.is_none()),
        ("shrunken", judgement.shrunken.is_none()),
    ] {
        explain(key, is_null, single.clone());
    }
    let Why { explanation, mut health } = why;
    let may_be_slow = !matches!(judgement.verdict, None | Some(Verdict::Ok | Verdict::Fast));
    if !may_be_slow {
        health.unusual.clear();
    }
    let explanation = explanation.for_verdict(judgement.verdict);
    let why = why::why_report(explanation, health, Among::NodesOfClass, &mut null_reasons);
    NodeReport {
        node: names.node(table, row),
        class: names.class(table, row),
        session: session_name,
        runs: middle.runs,
        median_run_id: table.run_id(row).into(),
        median_s,
        ci_s: interval,
        ci_coverage: ranks.map(|(outside, _, coverage)| {
            session.dependence.map_or(coverage, |found| found.coverage(rows.len(), outside))
        }),
        slowdown: judgement.slowdown,
        slower_by_at_least: judgement.slower_by_at_least,
        slower_by_at_most: judgement.slower_by_at_most,
        score: judgement.score,
        p_value: judgement.p,
        p_adjusted: judgement.adjusted_p,
        shrunken: judgement.shrunken,
        history_score: None,
        history: HistoryReport::without(0),
        verdict: judgement.verdict,
        presence: Presence::default(),
        odd: Vec::new(),
        as_member_of: None,
        suggests_drain: judgement.suggests_drain,
        why,
        places: None,
        slow_runs: None,
        kernels: None,
        null_reasons,
    }
}
