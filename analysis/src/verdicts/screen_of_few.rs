//! A screen of too few nodes to know its level: each node is compared with its own earlier sessions as they are.
//!
//! Elsewhere such a session is no part of a node's history, because it cannot tell whether the node or the work changed. In
//! a screen, the work is the same each time, and a single node must get an answer. What all nodes of a session have in common,
//! such as a warm room, counts against the node. So a change is certain only if it is larger than the usual
//! changes of all nodes from session to session.

use super::history::{History, SessionMedian};
use super::judged_session::Sessions;
use super::rounds_of_runs;
use crate::stats::own_history::{self, OwnChange, OwnHistorySettings, SessionTime};
use std::collections::HashMap;

/// The nodes of the latest session, if it is a screen and no part of their histories: index in `histories`, sessions with
/// the latest one, result. Nodes without an earlier session are left out. `effects` has the level of each session (ln T).
pub(super) fn compared(
    judging: &Sessions,
    settings: &OwnHistorySettings,
    histories: &[History],
    effects: &[f64],
) -> HashMap<usize, (Vec<SessionMedian>, OwnChange)> {
    let Some((number, latest)) = &judging.latest else { return HashMap::new() };
    let table = judging.table;
    if !latest.nodes.iter().all(|rows| rounds_of_runs::are_of_a_screen(table, rows)) {
        return HashMap::new();
    }
    let places: HashMap<u32, usize> =
        (0..).zip(latest.nodes).map(|(place, rows)| (table.node.at(rows[0] as usize), place)).collect();
    let of_node = |(at, history): (usize, &History)| {
        let place = *places.get(&history.node)?;
        let earlier = history.since_restart();
        let last = earlier.last()?;
        let now = || SessionMedian::of(*number, latest.nodes[place][0], place, latest);
        (last.session as usize != *number)
            .then(|| (at, earlier.iter().copied().chain([now()]).collect::<Vec<_>>()))
    };
    let nodes: Vec<(usize, Vec<SessionMedian>)> = histories.iter().enumerate().filter_map(of_node).collect();
    let time = |at: &SessionMedian| SessionTime {
        time: at.median,
        variance: at.variance,
        reach: at.reach,
        level: 0.0,
        runs: at.runs,
    };
    let times: Vec<Vec<SessionTime>> =
        nodes.iter().map(|(_, medians)| medians.iter().map(time).collect()).collect();
    let times: Vec<&[SessionTime]> = times.iter().map(Vec::as_slice).collect();
    // A few sessions of one node may be alike by chance; the levels of the sessions come from many nodes.
    let levels = |medians: &[SessionMedian]| -> Vec<f64> {
        medians[..medians.len() - 1].iter().map(|at| effects[at.session as usize]).collect()
    };
    let of_levels = nodes.iter().map(|(_, medians)| variance(&levels(medians), settings)).fold(0.0, f64::max);
    let between = own_history::between_sessions(&times, settings).max(of_levels);
    let changes = own_history::changes(&times, between, settings);
    nodes
        .into_iter()
        .zip(changes)
        .filter_map(|((at, medians), change)| Some((at, (medians, change?))))
        .collect()
}

/// The variance of the levels of sessions; 0 for a single one. It is widened like the spread of a node's sessions,
/// because the spread of few values is uncertain.
fn variance(levels: &[f64], settings: &OwnHistorySettings) -> f64 {
    if levels.len() < 2 {
        return 0.0;
    }
    let count = levels.len() as f64;
    let mean = levels.iter().sum::<f64>() / count;
    let squares: f64 = levels.iter().map(|level| (level - mean).powi(2)).sum();
    own_history::widened(squares / (count - 1.0), levels.len(), settings)
}
