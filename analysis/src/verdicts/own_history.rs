//! Each node compared with its own earlier sessions.

use super::history::{self, History, SessionMedian};
use super::judged_session::Sessions;
use super::node_report::{EventsReport, HistoryReport, MaintenanceReport, NodeReport};
use super::null_reasons::NodeNullReason;
use super::screen_of_few;
use crate::stats::own_history::{self, OwnChange, OwnHistorySettings, SessionTime};
use crate::stats::{normal, within_nodes};
use std::ops::Range;

/// What the history says of one node.
pub(super) struct OwnHistory {
    score: Option<f64>,
    history: HistoryReport,
    null_reasons: Vec<(&'static str, NodeNullReason)>,
}

impl OwnHistory {
    pub fn add_to(self, report: &mut NodeReport) {
        report.history_score = self.score;
        report.history = self.history;
        self.null_reasons.into_iter().for_each(|(key, reason)| report.null_reasons.insert(key, reason));
    }
}

/// The level of each session (ln T).
#[derive(Clone, Copy)]
pub(super) struct SessionEffects<'a> {
    /// That of most nodes.
    pub of_most: &'a [f64],
    /// That of the class: see [`super::class_moved::follow_unchanged`].
    pub effects: &'a [f64],
}

/// Compares each node of a class with its earlier sessions. `limits` has, for
/// each node, a session and by how much the moment of the measurement may have slowed the node there (ln T).
pub(super) fn reports(
    judging: &Sessions,
    settings: &OwnHistorySettings,
    histories: &[History],
    SessionEffects { of_most, effects }: SessionEffects,
    limits: &[(usize, f64)],
) -> Vec<OwnHistory> {
    let sizes: Vec<usize> = judging.nodes.iter().map(|nodes| nodes.len()).collect();
    let most = sizes.iter().copied().max().unwrap_or_default();
    let of_session = |at: &SessionMedian, effects: &[f64], (limited, limit): (usize, f64)| {
        let limit = if at.session as usize == limited { limit } else { 0.0 };
        SessionTime {
            time: at.median - effects[at.session as usize],
            variance: at.variance,
            reach: at.reach.map(|reach| reach + limit),
            level: history::level_error(sizes[at.session as usize], most),
            runs: at.runs,
        }
    };
    let all_times = |effects: &[f64]| -> Vec<Vec<SessionTime>> {
        let of_node = |(history, limit): (&History, &(usize, f64))| {
            history.medians.iter().map(|at| of_session(at, effects, *limit)).collect()
        };
        histories.iter().zip(limits).map(of_node).collect()
    };
    let times = all_times(effects);
    let slices = since_restart(histories, &times);
    let mut between = own_history::between_sessions(&slices, settings);
    if effects != of_most {
        // If most nodes changed, only a comparison with them shows how much nodes usually vary. If just half of them did,
        // the level of most nodes lies between both halves, and only a comparison with the others shows it.
        let next_to_most = all_times(of_most);
        let next_to_most = since_restart(histories, &next_to_most);
        between = between.min(own_history::between_sessions(&next_to_most, settings));
    }
    let changes = own_history::changes(&slices, between, settings);
    let is_relative = history::is_relative(most);
    let mut of_few = screen_of_few::compared(judging, settings, histories, of_most);
    let no_effects = vec![0.0; effects.len()];
    let report = |(at, change): (usize, Option<OwnChange>)| {
        let history = &histories[at];
        let changed_again = change.as_ref().and_then(|change| change.since);
        let maintenance = maintained(judging, history, &times[at], changed_again, effects, between, settings);
        if let Some((medians, change)) = of_few.remove(&at) {
            return changed(judging, &medians, &no_effects, false, (change, maintenance));
        }
        match change {
            Some(change) => {
                let medians = history.since_restart();
                changed(judging, medians, effects, is_relative, (change, maintenance))
            }
            None => without(history, maintenance),
        }
    };
    changes.into_iter().enumerate().map(report).collect()
}

/// The sessions of each node since its last maintenance.
fn since_restart<'a>(histories: &[History], times: &'a [Vec<SessionTime>]) -> Vec<&'a [SessionTime]> {
    let start = |history: &History| history.restarts.last().copied().unwrap_or_default();
    let of_node =
        |(history, times): (&History, &'a Vec<SessionTime>)| &times[start(history).min(times.len())..];
    histories.iter().zip(times).map(of_node).collect()
}

/// What the last maintenance of a node changed. `changed_again` is the number of sessions since then, without those after
/// another change.
fn maintained(
    judging: &Sessions,
    history: &History,
    times: &[SessionTime],
    changed_again: Option<usize>,
    effects: &[f64],
    between: f64,
    settings: &OwnHistorySettings,
) -> Option<MaintenanceReport> {
    let since = history.restarts.last().copied().filter(|since| *since < times.len())?;
    let first = history.restarts.iter().rev().nth(1).copied().unwrap_or(0);
    // A node is repaired because it changed: what counts is how it was since then.
    let changed = own_history::changes(&[&times[first..since]], between, settings).pop().flatten();
    let first = first + changed.as_ref().and_then(|change| change.since).unwrap_or_default();
    let last = changed_again.map_or(times.len(), |sessions| since + sessions);
    let [before, now, error] = own_history::levels(&times[first..since], &times[since..last], between);
    let changed = changed.filter(|change| change.since.is_some());
    let latest = effects[history.medians.last()?.session as usize];
    let seconds = |time: f64| (time + latest).exp();
    let session = |at: usize| judging.table.session_name(history.medians[at].row as usize).map(str::to_owned);
    let least = (now - before).abs() - normal::quantile(0.99) * error;
    Some(MaintenanceReport {
        since: session(since),
        date: judging.date(history.medians[since].row),
        before_s: seconds(before),
        now_s: seconds(now),
        change: (now - before).exp_m1(),
        is_certain: least > 0.0 && (now - before).abs() > settings.delta.ln_1p(),
        change_before: changed.map_or(0.0, |change| (change.now - change.before).exp_m1()),
    })
}

/// `medians` are the sessions that were compared, two at least.
fn changed(
    judging: &Sessions,
    medians: &[SessionMedian],
    effects: &[f64],
    is_relative: bool,
    (change, maintenance): (OwnChange, Option<MaintenanceReport>),
) -> OwnHistory {
    let last = medians[medians.len() - 1];
    // All times as they would be in the latest session.
    let seconds = |time: f64| (time + effects[last.session as usize]).exp();
    let session = |at: usize| judging.table.session_name(medians[at].row as usize).map(str::to_owned);
    let until = change.since.map(|since| since - 1);
    let until_date = until.and_then(|at| judging.date(medians[at].row));
    let since_date = change.since.and_then(|at| judging.date(medians[at].row));
    let reason = match change.since {
        None => Some(NodeNullReason::NoChange),
        Some(_) if until_date.is_none() => Some(NodeNullReason::NoDate),
        Some(_) => None,
    };
    let null_reasons = reason.map(|reason| ("history", reason)).into_iter().collect();
    let history = HistoryReport {
        verdict: Some(change.verdict),
        sessions: medians.len(),
        latest: judging.names.session(judging.table, last.row as usize),
        was_healthy: was_healthy(medians, &change),
        before_s: Some(seconds(change.before)),
        now_s: Some(seconds(change.now)),
        change: Some((change.now - change.before).exp_m1()),
        relative_to_class: Some(is_relative),
        p_adjusted: Some(change.adjusted_p),
        events: EventsReport {
            at_least: change.since.map(|_| change.at_least.exp_m1()),
            since: change.since.and_then(session),
            until: until.and_then(session),
            until_date,
            since_date,
            course: change.course,
            class_change: change.since.filter(|_| is_relative).map(|since| {
                let level = |part: &[SessionMedian]| {
                    let mut levels: Vec<f64> = part.iter().map(|at| effects[at.session as usize]).collect();
                    within_nodes::median_of(&mut levels).unwrap_or_default()
                };
                let (earlier, later) = medians.split_at(since);
                (level(later) - level(earlier)).exp_m1()
            }),
            maintenance,
            bad_periods: successive(&change.bad_sessions)
                .filter_map(|[first, last]| Some([session(first)?, session(last)?]))
                .collect(),
            bad_slowdown: (!change.bad_sessions.is_empty()).then(|| change.bad_by.exp_m1()),
            bad_sessions: change.bad_sessions.into_iter().filter_map(session).collect(),
        }
        .shared(),
    };
    OwnHistory { score: Some(change.score), history, null_reasons }
}

/// A repeated gate is no proof of itself: after a change, one earlier session may be the gate of some minutes ago.
const FEWEST_SINCE_CHANGE: usize = 2;

/// True if at least half of the sessions that show one of the node's earlier levels were healthy: the level before the
/// change, or the level since then without the latest session. Bad sessions show no level.
fn was_healthy(medians: &[SessionMedian], change: &OwnChange) -> bool {
    let earlier = medians.len() - 1;
    let since = change.since.unwrap_or(earlier);
    let is_mostly_healthy = |sessions: Range<usize>, fewest: usize| {
        let counted = sessions.filter(|at| !change.bad_sessions.contains(at));
        let (healthy, others): (Vec<usize>, Vec<usize>) = counted.partition(|at| medians[*at].is_healthy);
        healthy.len() >= fewest && healthy.len() >= others.len()
    };
    is_mostly_healthy(0..since, 1) || is_mostly_healthy(since..earlier, FEWEST_SINCE_CHANGE)
}

/// The first and the last of each group of successive numbers.
fn successive(numbers: &[usize]) -> impl Iterator<Item = [usize; 2]> {
    numbers.chunk_by(|a, b| a + 1 == *b).map(|group| [group[0], group[group.len() - 1]])
}

fn without(history: &History, maintenance: Option<MaintenanceReport>) -> OwnHistory {
    let sessions = history.since_restart().len();
    let reason = match sessions {
        0 => NodeNullReason::FewOthers,
        _ => NodeNullReason::FewSessions { sessions, since_maintenance: !history.restarts.is_empty() },
    };
    OwnHistory {
        score: None,
        history: HistoryReport {
            events: EventsReport { maintenance, ..EventsReport::default() }.shared(),
            ..HistoryReport::without(sessions)
        },
        null_reasons: ["history", "history_score"].map(|key| (key, reason.clone())).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::own_history::OwnVerdict;

    /// `sessions` has the health of each session, and `true` for the latest.
    fn is_healthy_before(sessions: &[bool], since: Option<usize>, bad_sessions: &[usize]) -> bool {
        let median = |is_healthy: &bool| SessionMedian {
            row: 0,
            session: 0,
            median: 0.0,
            variance: 0.0,
            reach: [0.0; 2],
            runs: 7,
            is_healthy: *is_healthy,
        };
        let medians: Vec<SessionMedian> = sessions.iter().map(median).collect();
        let change = OwnChange {
            verdict: if since.is_some() { OwnVerdict::Faster } else { OwnVerdict::Same },
            since,
            before: 0.0,
            now: 0.0,
            at_least: 0.0,
            score: 0.0,
            adjusted_p: 1.0,
            course: None,
            bad_sessions: bad_sessions.to_vec(),
            bad_by: 0.0,
        };
        was_healthy(&medians, &change)
    }

    #[test]
    fn most_sessions_of_a_level_must_be_healthy() {
        let (yes, no) = (true, false);
        // Without a change, all earlier sessions are one level.
        for (sessions, expected) in [
            (&[no, yes][..], false),
            (&[yes, yes], true),
            (&[yes, no, yes], true),
            (&[yes, no, no, yes], false),
            (&[yes, no, no, no, no, no, no, no, no, no, no, yes], false),
        ] {
            assert_eq!(is_healthy_before(sessions, None, &[]), expected, "{sessions:?}");
        }
        // Two bad sessions of a healthy node.
        assert!(is_healthy_before(&[yes, no, no, yes], None, &[1, 2]));
        // The node became faster: in the latest session, or before it.
        assert!(!is_healthy_before(&[no, no, yes], Some(2), &[]));
        assert!(!is_healthy_before(&[no, no, no, yes, yes], Some(3), &[]));
        assert!(is_healthy_before(&[no, no, no, yes, yes, yes], Some(3), &[]));
        assert!(!is_healthy_before(&[no, no, no, no, no, yes], Some(2), &[]));
        // Also before the change, the node was healthy.
        assert!(is_healthy_before(&[yes, yes, yes], Some(2), &[]));
    }
}
