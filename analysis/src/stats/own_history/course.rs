//! How a change went: a lasting step, a single session, an unsteady node, or little by little.

use super::{SessionTime, running_deviations};
use crate::stats::within_nodes;

/// How a change went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Only the latest session shows it: the next one will tell whether it lasts.
    Latest,
    /// All later sessions show it: a lasting step.
    Step,
    /// Sessions that show it alternate with sessions that do not.
    Unsteady,
    /// It grew over many sessions.
    Creep,
}

impl Course {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latest => "LATEST",
            Self::Step => "STEP",
            Self::Unsteady => "UNSTEADY",
            Self::Creep => "CREEP",
        }
    }
}

/// How a change between two levels went. Sessions count to the nearer level.
pub(super) fn of(sessions: &[SessionTime], since: usize, [before, now]: [f64; 2]) -> Course {
    let changed = |session: &&SessionTime| (session.time - now).abs() < (session.time - before).abs();
    let (earlier, later) = sessions.split_at(since);
    let (too_early, late) = (earlier.iter().filter(changed).count(), later.iter().filter(changed).count());
    if too_early >= late || 3 * (later.len() - late) >= later.len() {
        return Course::Unsteady;
    }
    if is_creep(sessions, since) {
        return Course::Creep;
    }
    if later.len() == 1 { Course::Latest } else { Course::Step }
}

/// True if a line fits the sessions better than a step: its slope is the median slope between the first and the
/// second half of the sessions (H. Theil 1950, K. Conover 1980).
fn is_creep(sessions: &[SessionTime], since: usize) -> bool {
    const FEWEST: usize = 8;
    const BETTER: f64 = 0.8;
    if sessions.len() < FEWEST {
        return false;
    }
    let half = sessions.len() / 2;
    let apart = sessions.len() - half;
    let slope = |at: usize| (sessions[at + apart].time - sessions[at].time) / apart as f64;
    let slope = within_nodes::median_of(&mut (0..half).map(slope).collect::<Vec<_>>()).unwrap_or_default();
    let flat: Vec<f64> =
        sessions.iter().zip(0..).map(|(session, at)| session.time - slope * f64::from(at)).collect();
    let middle = within_nodes::median_of(&mut flat.clone()).unwrap_or_default();
    let line: f64 = flat.iter().map(|value| (value - middle).abs()).sum();
    let (earlier, later) = sessions.split_at(since);
    let deviations =
        |part: &[SessionTime]| running_deviations(part.iter()).last().copied().unwrap_or_default();
    line < BETTER * (deviations(earlier) + deviations(later))
}
