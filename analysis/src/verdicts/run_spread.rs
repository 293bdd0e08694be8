//! How much slower the runs of a class are than its fastest run.

use super::class_report::{RunSpread, ShareSlower};
use super::judged_session::JudgedSession;
use crate::table::RunTable;
use std::collections::BTreeMap;

/// With at least this number of runs, the report shows how they spread.
const FEWEST_RUNS: usize = 20;

/// The parts of the runs, from the fastest, of which the report has the slowest one.
const PARTS: [(&str, f64); 6] =
    [("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

/// For these slowdowns the report has the share of runs.
const SLOWER_BY: [f64; 5] = [0.01, 0.02, 0.05, 0.1, 0.2];

/// The runs of the session that judges most nodes of the class. `None` for few runs, for times without a ratio,
/// or if only medians are known.
pub(super) fn of(table: &RunTable, session: &JudgedSession) -> Option<RunSpread> {
    if session.has_medians() {
        return None;
    }
    let rows = || session.nodes.iter().copied().flatten().copied();
    let mut seconds: Vec<f64> = rows().map(|row| table.elapsed_s[row as usize]).collect();
    seconds.sort_unstable_by(f64::total_cmp);
    let (fastest, runs) = (*seconds.first()?, seconds.len());
    let slower = |seconds: f64| seconds / fastest - 1.0;
    // A quotient of extreme times may be no number that JSON has.
    if runs < FEWEST_RUNS || !slower(seconds[runs - 1]).is_finite() {
        return None;
    }
    // The nearest rank: an actual run.
    let at_rank = |rank: usize| slower(seconds[rank.clamp(1, runs) - 1]);
    let part = |(name, part): (&'static str, f64)| (name, at_rank((part * runs as f64).ceil() as usize));
    let mut slowdown: BTreeMap<&'static str, f64> = PARTS.into_iter().map(part).collect();
    slowdown.insert("max", slower(seconds[runs - 1]));
    let share = |by: f64| {
        let more = runs - seconds.partition_point(|at| slower(*at) <= by);
        ShareSlower { by, share: more as f64 / runs as f64 }
    };
    Some(RunSpread {
        session: rows().next().and_then(|row| table.session_name(row as usize)).map(str::to_owned),
        runs,
        fastest_s: fastest,
        slowdown,
        shares: SLOWER_BY.into_iter().map(share).collect(),
        // Whole numbers: 0.07 * 400 is a little more than 28.
        ecdf: (0..=100).map(|percent| at_rank((percent * runs).div_ceil(100))).collect(),
    })
}
