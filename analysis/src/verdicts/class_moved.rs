//! Whether a whole class became slower or faster: no verdict on a node can show this.

use super::history::{History, SessionMedian};
use super::judged_session::Sessions;
use super::node_report::{ClassMoved, ClassReport};
use super::own_history::date;
use crate::stats::own_history::{self, OwnHistorySettings, OwnVerdict, SessionTime};
use crate::stats::{median, within_nodes};

/// The level of a class in its sessions is known less well than that of a node: how much it usually varies (ln T), and
/// the number of sessions that this assumption counts for.
const ASSUMED: (f64, f64) = (0.005, 4.0);

/// The class, and the change of its level. `effects` has the level of each session; `centres` is `None` for a session that
/// compares no nodes.
pub(super) fn report(
    sessions: &Sessions,
    settings: &OwnHistorySettings,
    histories: &[History],
    effects: &[f64],
    centres: &[Option<f64>],
) -> ClassReport {
    let table = sessions.table;
    let latest = sessions.nodes.last().map_or(0, |nodes| nodes.len());
    ClassReport {
        class: table.class_name(sessions.nodes[0][0][0] as usize).to_owned(),
        nodes: histories.len(),
        nodes_in_latest_session: latest,
        moved: moved(sessions, settings, histories, effects, centres),
    }
}

fn moved(
    sessions: &Sessions,
    settings: &OwnHistorySettings,
    histories: &[History],
    effects: &[f64],
    centres: &[Option<f64>],
) -> Option<ClassMoved> {
    let known: Vec<usize> = (0..effects.len()).filter(|at| centres[*at].is_some()).collect();
    let level = |at: &usize| SessionTime { time: effects[*at], runs: u32::MAX, ..SessionTime::default() };
    let series: Vec<SessionTime> = known.iter().map(level).collect();
    let settings = &OwnHistorySettings { assumed: ASSUMED, ..*settings };
    // No other classes show how much sessions vary.
    let between = own_history::between_neighbours(&series, settings);
    let change = own_history::changes(&[&series], between, settings).pop().flatten()?;
    let since = change.since.filter(|_| change.verdict != OwnVerdict::Same)?;
    let (first, last_before) = (known[since], known[since - 1]);
    let changes = of_nodes(histories, first, *known.last()?)?;
    let (low, high, _) = median::interval(changes.len())?;
    let middle = median::of_ascending(&changes)?;
    // The nodes themselves must agree: new nodes in place of others also change a level.
    let [low, high] = [changes[low], changes[high]];
    let is_moved = low * high > 0.0 && middle.abs() > settings.delta.ln_1p();
    let row = |session: usize| sessions.nodes[session][0][0] as usize;
    is_moved.then(|| ClassMoved {
        change: middle.exp_m1(),
        ci: [low.exp_m1(), high.exp_m1()],
        nodes: changes.len(),
        since: sessions.table.session_name(row(first)).map(str::to_owned),
        until: sessions.table.session_name(row(last_before)).map(str::to_owned),
        until_date: date(sessions.table.started_unix_ns[row(last_before)]),
    })
}

/// How much each node of session `now` changed that was also measured before session `since` (ln T), ascending. `None`
/// if these are fewer than half of the nodes of the session.
fn of_nodes(histories: &[History], since: usize, now: usize) -> Option<Vec<f64>> {
    let is_there = |history: &&History| history.medians.last().is_some_and(|at| at.session as usize == now);
    let of_node = |history: &History| {
        let first = history.medians.partition_point(|at| (at.session as usize) < since);
        let (before, after) = history.since_restart_of(first);
        let middle = |part: &[SessionMedian]| {
            within_nodes::median_of(&mut part.iter().map(|at| at.median).collect::<Vec<_>>())
        };
        Some(middle(after)? - middle(before)?)
    };
    let nodes = histories.iter().filter(is_there).count();
    let mut changes: Vec<f64> = histories.iter().filter(is_there).filter_map(of_node).collect();
    changes.sort_unstable_by(f64::total_cmp);
    (2 * changes.len() >= nodes).then_some(changes)
}
