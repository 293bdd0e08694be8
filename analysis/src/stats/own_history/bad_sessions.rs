//! Single bad sessions of a node.

use super::{OwnHistorySettings, SLOWER, SessionTime, best_split, level};
use crate::stats::benjamini_hochberg::{self, Test};
use crate::stats::normal;

/// Single sessions in which a node was slower than before and after: (node, session), ascending. The session is
/// compared with the slower of the two levels before and after the node's best split, so that a lasting change is no
/// bad session.
pub(super) fn of(
    nodes: &[&[SessionTime]],
    between: f64,
    settings: &OwnHistorySettings,
) -> Vec<(usize, usize)> {
    const FEWEST: usize = 4;
    let (mut tests, mut places, mut family) = (Vec::new(), Vec::new(), 0);
    let deviation = |session: &SessionTime| session.error(between).sqrt();
    for (node, sessions) in nodes.iter().enumerate().filter(|(_, sessions)| sessions.len() >= FEWEST) {
        family += sessions.len() - 1;
        let middle = level(sessions);
        // Most nodes have no session that is far from their median.
        let limit = settings.delta.ln_1p();
        if sessions.iter().all(|session| session.time - middle <= limit) {
            continue;
        }
        let since = best_split(sessions);
        let (earlier, later) = sessions.split_at(since);
        let usual = if later.len() > 1 { level(earlier).max(level(later)) } else { level(earlier) };
        // The latest session is the matter of the verdict.
        for (at, session) in sessions.iter().enumerate().take(sessions.len() - 1) {
            let slower = session.time - usual;
            let p = normal::upper(slower / deviation(session));
            if slower - session.reach[SLOWER] > limit && p <= settings.q {
                tests.push(Test { index: places.len(), p });
                places.push((node, at));
            }
        }
    }
    benjamini_hochberg::adjust(&mut tests, family);
    let mut bad: Vec<(usize, usize)> =
        tests.iter().filter(|test| test.p <= settings.q).map(|test| places[test.index]).collect();
    bad.sort_unstable();
    bad
}
