//! The kind of a change: for example a lasting step, a single session, or little by little.

use super::{SessionTime, running_deviations};
use crate::stats::within_nodes;

/// The kind of a change. A session shows the change if it is nearer to the level after than to the level
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// Only the latest session shows it: the next one will tell whether it lasts.
    Latest,
    /// More than two thirds of the later sessions show it: a lasting step.
    Step,
    /// The node became faster, and only the first session was slower: this may be a repair, or a single bad
    /// session.
    First,
    /// The change came in several steps.
    Steps,
    /// Sessions that show it alternate with sessions that do not.
    Unsteady,
    /// The change grew over many sessions.
    Creep,
}

impl Course {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latest => "LATEST",
            Self::Step => "STEP",
            Self::First => "FIRST",
            Self::Steps => "STEPS",
            Self::Unsteady => "UNSTEADY",
            Self::Creep => "CREEP",
        }
    }
}

/// The kind of a change between two levels. Each session belongs to the nearer level.
pub(super) fn of(sessions: &[SessionTime], since: usize, [before, now]: [f64; 2]) -> Course {
    let changed = |session: &&SessionTime| (session.time - now).abs() < (session.time - before).abs();
    let (earlier, later) = sessions.split_at(since);
    let (too_early, late) = (earlier.iter().filter(changed).count(), later.iter().filter(changed).count());
    if too_early >= late || 3 * (later.len() - late) >= later.len() {
        return Course::Unsteady;
    }
    if let Some(course) = of_slow_change(sessions, since, now - before) {
        return course;
    }
    match (earlier.len(), later.len()) {
        (_, 1) => Course::Latest,
        (1, 3..) if now < before => Course::First,
        _ => Course::Step,
    }
}

/// A model describes the sessions better than another if its sum of absolute deviations is less than this part.
const BETTER: f64 = 0.8;

/// CREEP or STEPS; `None` for a single step. CREEP: a line fits the sessions better than the step. Or, for
/// the sessions since the step, a line fits better than a level, and rises by at least half of the change.
/// STEPS: a line fits, but two steps fit better than the line.
fn of_slow_change(sessions: &[SessionTime], since: usize, change: f64) -> Option<Course> {
    const FEWEST: usize = 8;
    const FEWEST_SINCE: usize = 5;
    if sessions.len() < FEWEST {
        return None;
    }
    let (earlier, later) = sessions.split_at(since);
    let before = deviations(earlier);
    let step = before + deviations(later);
    let (_, line) = line(sessions);
    let line = match line < BETTER * step {
        true => Some(line),
        false if later.len() >= FEWEST_SINCE => {
            let (slope, line) = self::line(later);
            let rise = slope * (later.len() - 1) as f64 * change.signum();
            (rise >= change.abs() / 2.0 && line < BETTER * deviations(later)).then_some(before + line)
        }
        false => None,
    }?;
    Some(if two_steps(sessions) < BETTER * line { Course::Steps } else { Course::Creep })
}

/// A line through the sessions: its slope, which is the median slope between the first and the second half of the sessions
/// (H. Theil 1950, W. J. Conover 1980), and the sum of absolute deviations from it.
fn line(sessions: &[SessionTime]) -> (f64, f64) {
    let half = sessions.len() / 2;
    let apart = sessions.len() - half;
    let slope = |at: usize| (sessions[at + apart].time - sessions[at].time) / apart as f64;
    let slope = within_nodes::median_of(&mut (0..half).map(slope).collect::<Vec<_>>()).unwrap_or_default();
    let flat: Vec<f64> =
        sessions.iter().zip(0..).map(|(session, at)| session.time - slope * f64::from(at)).collect();
    let middle = within_nodes::median_of(&mut flat.clone()).unwrap_or_default();
    (slope, flat.iter().map(|value| (value - middle).abs()).sum())
}

/// The least sum of absolute deviations from three levels, of at least two sessions each. Infinite if there
/// are too many sessions.
fn two_steps(sessions: &[SessionTime]) -> f64 {
    const LEAST: usize = 2;
    /// The time grows with the third power of the number of sessions.
    const MOST: usize = 200;
    if sessions.len() > MOST {
        return f64::INFINITY;
    }
    let until = running_deviations(sessions.iter());
    let since = running_deviations(sessions.iter().rev());
    let mut least = f64::INFINITY;
    for first in LEAST..sessions.len() {
        for (length, between) in (1..).zip(running_deviations(sessions[first..].iter())) {
            let left = sessions.len() - first - length;
            if length >= LEAST && left >= LEAST {
                least = least.min(until[first - 1] + between + since[left - 1]);
            }
        }
    }
    least
}

fn deviations(part: &[SessionTime]) -> f64 {
    running_deviations(part.iter()).last().copied().unwrap_or_default()
}
