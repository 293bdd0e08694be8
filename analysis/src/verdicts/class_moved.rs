//! Whether a whole class became slower or faster: no verdict on a node can show this.

use super::class_report::{ClassMoved, ClassReport};
use super::history::{History, SessionMedian};
use super::judged_session::Sessions;
use super::measured_again;
use crate::stats::node_median::{self, FEWEST_OF_INTERVAL};
use crate::stats::own_history::{self, OwnChange, OwnHistorySettings, OwnVerdict, SessionTime};
use crate::stats::within_nodes;

/// The level of a class in its sessions is known less well than that of a node: how much it usually varies (ln T), and
/// the number of sessions that this assumption counts for.
const ASSUMED: (f64, f64) = (0.005, 4.0);
/// A node is unchanged if its time changed by less than this part of the change of most nodes.
const UNCHANGED_PART: f64 = 0.25;
/// Fewer than a tenth of the nodes do not show the level of the other nodes.
const FEWEST_UNCHANGED_PART: usize = 10;

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
    let is_judged_there = |history: &&History| {
        history.judged_in().is_some_and(|[session, _]| session + 1 == sessions.nodes.len())
    };
    ClassReport {
        class: table.class_name(sessions.nodes[0][0][0] as usize).to_owned(),
        nodes: histories.len(),
        nodes_in_latest_session: latest,
        judged_by_latest_session: histories.iter().filter(is_judged_there).count(),
        run_spread: None,
        measured_again: measured_again::of(sessions, histories),
        shows_change: shows_change(histories, centres),
        moved: moved(sessions, settings, histories, effects, centres),
    }
}

/// True if the latest session shows whether the class changed: it has a level, as an earlier session has, and enough
/// nodes.
fn shows_change(histories: &[History], centres: &[Option<f64>]) -> bool {
    let Some((latest, earlier)) = centres.split_last() else { return false };
    let are_known = latest.is_some() && earlier.iter().any(Option::is_some);
    let nodes = of_nodes(histories, earlier.len(), earlier.len()).map_or(0, |nodes| nodes.len());
    are_known && nodes >= FEWEST_OF_INTERVAL
}

/// If most nodes became slower (or faster) at once and a group did not change at all, then not the class moved but these
/// nodes. The level of the class is then that of the nodes that did not change. `effects` has the level of most nodes in
/// each session; the result has the level of the class.
pub(super) fn follow_unchanged(
    settings: &OwnHistorySettings,
    histories: &[History],
    effects: &[f64],
    centres: &[Option<f64>],
) -> Vec<f64> {
    let mut followed = effects.to_vec();
    let Some(step) = Step::of(settings, effects, centres) else { return followed };
    let Some(mut nodes) = of_nodes(histories, step.first, step.last) else { return followed };
    // In the direction of most nodes, ascending.
    nodes.iter_mut().for_each(|(_, change)| *change *= step.sign);
    nodes.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    let moved: Vec<f64> =
        nodes.iter().map(|(_, change)| *change).filter(|change| *change > settings.delta.ln_1p()).collect();
    let Some(by) = node_median::of_ascending(&moved) else { return followed };
    let is_unchanged = |change: f64| change.abs() <= by * UNCHANGED_PART;
    let is_between = |change: f64| change > by * UNCHANGED_PART && change < by * (1.0 - UNCHANGED_PART);
    let unchanged: Vec<usize> =
        nodes.iter().filter(|(_, change)| is_unchanged(*change)).map(|(node, _)| *node).collect();
    let between = nodes.iter().filter(|(_, change)| is_between(*change)).count();
    let fewest = (nodes.len() / FEWEST_UNCHANGED_PART).max(1);
    if unchanged.len() < fewest || 2 * between > unchanged.len() {
        return followed;
    }
    let relative = |node: &usize| change_of(&histories[*node], step.first, effects);
    let shift = within_nodes::median_of(&mut unchanged.iter().filter_map(relative).collect::<Vec<_>>());
    followed[step.first..].iter_mut().for_each(|effect| *effect += shift.unwrap_or_default());
    followed
}

/// A change of the level of a class.
struct Step {
    /// The first session after it, and the one before.
    first: usize,
    before: usize,
    /// The latest session.
    last: usize,
    /// 1 if the level rose, else -1.
    sign: f64,
}

impl Step {
    fn of(settings: &OwnHistorySettings, effects: &[f64], centres: &[Option<f64>]) -> Option<Self> {
        let known: Vec<usize> = (0..effects.len()).filter(|at| centres[*at].is_some()).collect();
        let change = change_of_levels(known.iter().map(|at| effects[*at]), settings)?;
        let since = change.since.filter(|_| change.verdict != OwnVerdict::Same)?;
        let sign = (change.now - change.before).signum();
        Some(Self { first: known[since], before: known[since - 1], last: *known.last()?, sign })
    }
}

/// True if a change of these nodes can be a change of a class: not if they are few of `all` nodes.
pub fn is_large_class(nodes: usize, all: usize) -> bool {
    nodes >= FEWEST_OF_INTERVAL || are_half(nodes, all)
}

/// True if `measured_before` of `all` nodes of a class show whether it changed. A class of fewer nodes than an interval
/// needs is shown by all of them.
pub fn stand_for_class(measured_before: usize, all: usize) -> bool {
    are_half(measured_before, all) && measured_before >= FEWEST_OF_INTERVAL.min(all)
}

fn are_half(nodes: usize, all: usize) -> bool {
    2 * nodes >= all
}

/// True if this change of a class (ln T), from one session to the next, is larger than the differences between sessions in
/// which nothing changed.
pub fn is_change_of_level(change: f64, settings: &OwnHistorySettings) -> bool {
    let change = change_of_levels([0.0, change].into_iter(), settings);
    change.is_some_and(|change| change.verdict != OwnVerdict::Same)
}

/// The change in a series of levels (ln T), in the order of the sessions.
fn change_of_levels(levels: impl Iterator<Item = f64>, settings: &OwnHistorySettings) -> Option<OwnChange> {
    let level = |time: f64| SessionTime { time, runs: u32::MAX, ..SessionTime::default() };
    let series: Vec<SessionTime> = levels.map(level).collect();
    let settings = &OwnHistorySettings { assumed: ASSUMED, ..*settings };
    // No other classes show how much sessions vary.
    let between = own_history::between_neighbours(&series, settings);
    own_history::changes(&[&series], between, settings).pop().flatten()
}

fn moved(
    sessions: &Sessions,
    settings: &OwnHistorySettings,
    histories: &[History],
    effects: &[f64],
    centres: &[Option<f64>],
) -> Option<ClassMoved> {
    let step = Step::of(settings, effects, centres)?;
    let changes: Vec<f64> =
        of_nodes(histories, step.first, step.last)?.into_iter().map(|(_, change)| change).collect();
    let (low, high, _) = node_median::interval(changes.len())?;
    let middle = node_median::of_ascending(&changes)?;
    // The nodes themselves must agree: new nodes in place of others also change a level.
    let [low, high] = [changes[low], changes[high]];
    let is_moved = low * high > 0.0 && middle.abs() > settings.delta.ln_1p();
    let row = |session: usize| sessions.nodes[session][0][0];
    let name = |session: usize| sessions.table.session_name(row(session) as usize).map(str::to_owned);
    is_moved.then(|| ClassMoved {
        change: middle.exp_m1(),
        ci: [low.exp_m1(), high.exp_m1()],
        nodes: changes.len(),
        since: name(step.first),
        until: name(step.before),
        until_date: sessions.date(row(step.before)),
        since_date: sessions.date(row(step.first)),
    })
}

/// How much each node of session `now` changed that was also measured before session `since` (ln T), ascending; with the
/// node's place in `histories`. `None` if these are fewer than half of the nodes of the session.
fn of_nodes(histories: &[History], since: usize, now: usize) -> Option<Vec<(usize, f64)>> {
    let is_there = |history: &History| history.medians.last().is_some_and(|at| at.session as usize == now);
    let all = || histories.iter().enumerate().filter(|(_, history)| is_there(history));
    let change = |(node, history): (usize, &History)| Some((node, change_of(history, since, &[])?));
    let mut changes: Vec<(usize, f64)> = all().filter_map(change).collect();
    changes.sort_unstable_by(|a, b| a.1.total_cmp(&b.1));
    are_half(changes.len(), all().count()).then_some(changes)
}

/// How much a node changed with a session (ln T), without `effects` of the sessions.
fn change_of(history: &History, since: usize, effects: &[f64]) -> Option<f64> {
    let first = history.medians.partition_point(|at| (at.session as usize) < since);
    let (before, after) = history.since_restart_of(first);
    let time = |at: &SessionMedian| at.median - effects.get(at.session as usize).unwrap_or(&0.0);
    let middle =
        |part: &[SessionMedian]| within_nodes::median_of(&mut part.iter().map(time).collect::<Vec<_>>());
    Some(middle(after)? - middle(before)?)
}
