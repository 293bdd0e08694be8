//! Past sessions in which a node was slower than usual.

use super::course::Course;
use super::{OwnChange, OwnHistorySettings, OwnVerdict, SLOWER, SessionTime, best_split, error_of, level};
use crate::stats::benjamini_hochberg::{self, Test};
use crate::stats::{normal, within_nodes};

/// What a session is compared with.
#[derive(Clone, Copy)]
struct Usual {
    /// ln T.
    level: f64,
    /// The variance of its error.
    error: f64,
}

impl Usual {
    fn of(sessions: &[SessionTime], between: f64) -> Self {
        Self { level: level(sessions), error: error_of(sessions, between) }
    }
}

/// Finds the sessions in which a node was slower than usual, and adds them to the results of the node.
///
/// If the node changed, "usual" is the level on the same side of the change. Sessions immediately before a
/// change for the worse are not bad sessions. A node that changes little by little, or in several steps, has
/// no bad sessions. If the verdict is SAME, "usual" is the slower side of the node's best split (the earlier
/// side if the later side has a single session). But "usual" is the faster side if the sides certainly
/// differ, and at least two sessions are slower than the faster side by at most delta.
pub(super) fn add_to(
    changes: &mut [Option<OwnChange>],
    nodes: &[&[SessionTime]],
    between: f64,
    settings: &OwnHistorySettings,
) {
    const FEWEST: usize = 4;
    let limit = settings.delta.ln_1p();
    let (mut tests, mut places, mut family) = (Vec::new(), Vec::new(), 0);
    for (node, (change, sessions)) in changes.iter().zip(nodes).enumerate() {
        let Some(change) = change.as_ref().filter(|_| sessions.len() >= FEWEST) else { continue };
        family += sessions.len() - 1;
        // Most nodes have no session that is far from their fastest ones.
        let fastest = sessions.iter().map(|session| session.time).fold(f64::INFINITY, f64::min);
        let has_two_levels = !matches!(change.course, Some(Course::Creep | Course::Steps));
        if !has_two_levels || sessions.iter().all(|at| at.time - fastest <= limit) {
            continue;
        }
        let usual = usual(change, sessions, between, settings);
        // The latest session is the matter of the verdict.
        for (at, session) in sessions.iter().enumerate().take(sessions.len() - 1) {
            let usual = usual[usize::from(change.since.is_some_and(|since| since <= at))];
            let slower = session.time - usual.level;
            let p = normal::upper(slower / (session.error(between) + usual.error).sqrt());
            if slower - session.reach[SLOWER] > limit && p <= settings.q {
                tests.push(Test { index: places.len(), p });
                places.push((node, at, slower));
            }
        }
    }
    benjamini_hochberg::adjust(&mut tests, family);
    let mut bad: Vec<(usize, usize, f64)> =
        tests.iter().filter(|test| test.p <= settings.q).map(|test| places[test.index]).collect();
    bad.sort_unstable_by_key(|(node, at, _)| (*node, *at));
    for of_node in bad.chunk_by(|a, b| a.0 == b.0) {
        let Some(change) = &mut changes[of_node[0].0] else { continue };
        // Back from a change for the worse, over the sessions that already show it.
        let is_bad = |at: usize| of_node.iter().any(|(_, bad, _)| *bad == at);
        let change_for_worse = change.since.filter(|_| change.verdict != OwnVerdict::Faster);
        let showing = change_for_worse.map_or(0..0, |since| {
            (0..since).rev().find(|at| !is_bad(*at)).map_or(0, |healthy| healthy + 1)..since
        });
        let alone = || of_node.iter().filter(|(_, at, _)| !showing.contains(at));
        change.bad_by =
            within_nodes::median_of(&mut alone().map(|(.., by)| *by).collect::<Vec<_>>()).unwrap_or_default();
        change.bad_sessions = alone().map(|(_, at, _)| *at).collect();
    }
}

/// What the sessions before and since the change are compared with.
fn usual(
    change: &OwnChange,
    sessions: &[SessionTime],
    between: f64,
    settings: &OwnHistorySettings,
) -> [Usual; 2] {
    let (earlier, later) = sessions.split_at(change.since.unwrap_or_else(|| best_split(sessions)));
    let sides = [earlier, later].map(|side| Usual::of(side, between));
    if change.since.is_some() {
        return sides;
    }
    let [fast, slow] = if sides[0].level <= sides[1].level { sides } else { [sides[1], sides[0]] };
    // A single later session is no level.
    let slow = if later.len() > 1 { slow } else { sides[0] };
    // Of two sides that differ by chance, the faster one is too fast.
    let differ = change.adjusted_p <= settings.q;
    let is_as_fast = |session: &&SessionTime| session.time - fast.level <= settings.delta.ln_1p();
    let has_several = sessions.iter().filter(is_as_fast).count() > 1;
    [if differ && has_several { fast } else { slow }; 2]
}
