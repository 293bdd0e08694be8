//! Which counters, metrics and facts go with slowness in a class: within nodes, and between nodes.

mod blocks;
mod columns;

pub use columns::ColumnKind;

use super::judged_session::JudgedSession;
use crate::stats::benjamini_hochberg;
use crate::stats::goes_with_slowness::{Association, NoAssociation};
use crate::table::RunTable;
pub(super) use blocks::RunsInBlocks;
use blocks::TimesInBlocks;
use columns::SlownessColumn;
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;

/// What goes with slowness in a class.
#[derive(Debug, Serialize)]
pub struct ClassSlowness {
    /// The class of nodes that ought to be equally fast.
    pub class: String,
    /// The session whose nodes are compared with one another; runs are compared within nodes over all sessions.
    pub session: Option<String>,
    /// Number of runs of all sessions; a job on several nodes counts once.
    pub runs: usize,
    /// The time of the slow runs over that of the fast runs, relative to the median of the node; `None` if there are too few.
    pub slow_runs_take: Option<f64>,
    /// The time of the slow nodes over that of the fast nodes.
    pub slow_nodes_take: Option<f64>,
    /// Counters, metrics and facts: what is significant comes first, then the strongest correlation.
    pub columns: Vec<ColumnSlowness>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, SlownessNullReason>,
}

/// How a counter, a metric or a fact goes with slowness.
#[derive(Debug, Serialize)]
pub struct ColumnSlowness {
    /// Its name.
    pub name: String,
    /// counter, metric or fact.
    pub kind: ColumnKind,
    /// Runs of one node compared with one another.
    pub within: Option<SlownessReport>,
    /// Nodes compared with one another.
    pub between: Option<SlownessReport>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, SlownessNullReason>,
}

/// A correlation with the time.
#[derive(Debug, Serialize)]
pub struct SlownessReport {
    /// Top-down rank correlation, -1 to 1: above 0 if slow runs have higher values.
    pub rho: f64,
    /// An interval of about 95 %.
    pub ci: [f64; 2],
    /// The probability of such a correlation without an association.
    pub p_value: f64,
    /// The same, adjusted for all tests of the class.
    pub p_adjusted: f64,
    /// True if `p_adjusted` is at most the false discovery rate.
    pub significant: bool,
    /// The value of slow runs (or nodes) over that of fast ones: `None` if some values are 0 or below.
    pub ratio: Option<f64>,
    /// True for a significant counter that rises, but not per second: slow runs count for longer, that may be all.
    pub only_counts_longer: bool,
    /// Number of runs that count.
    pub runs: usize,
    /// Number of nodes that count (within nodes: of nodes in sessions); nodes of one job count once.
    pub nodes: usize,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, SlownessNullReason>,
}

/// Why a value of what goes with slowness is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlownessNullReason {
    /// The input has only medians of the runs of the class.
    OnlyMedians,
    /// There is no session by which the report judges the nodes of the class.
    NoSession,
    /// The runs have no label `session`.
    NoLabel,
    /// The counter measures the time itself.
    TimeItself,
    /// Some values are 0 or below.
    NoRatio,
    /// The runs of one node show no correlation.
    WithinNodes(NoAssociation),
    /// The nodes show no correlation.
    BetweenNodes(NoAssociation),
}

/// Correlates all columns of a class with the time. `runs` has the runs of all sessions, `session` is the one whose nodes
/// are compared. `None` if there is no column.
pub(super) fn of(
    table: &RunTable,
    class: &str,
    runs: RunsInBlocks,
    session: Option<&JudgedSession>,
    q: f64,
) -> Option<ClassSlowness> {
    let columns = columns::of(table, &runs.rows);
    if columns.is_empty() {
        return None;
    }
    let between = session.map(|session| blocks::between(table, session));
    let within = runs.part();
    let mut reports: Vec<ColumnSlowness> =
        columns.par_iter().map(|column| of_column(column, &within, between.as_ref())).collect();
    let p = |found: &Option<SlownessReport>| found.as_ref().map_or(f64::NAN, |found| found.p_value);
    let all: Vec<f64> = reports.iter().flat_map(|of| [p(&of.within), p(&of.between)]).collect();
    let adjusted = benjamini_hochberg::adjusted(&all);
    for (report, adjusted) in reports.iter_mut().zip(adjusted.chunks_exact(2)) {
        for (found, adjusted) in [&mut report.within, &mut report.between].into_iter().zip(adjusted) {
            let Some(found) = found else { continue };
            (found.p_adjusted, found.significant) = (*adjusted, *adjusted <= q);
            found.only_counts_longer &= found.significant;
        }
    }
    reports.sort_by(|a, b| {
        let (a_key, b_key) = (strength(a), strength(b));
        b_key.0.cmp(&a_key.0).then(b_key.1.total_cmp(&a_key.1)).then_with(|| a.name.cmp(&b.name))
    });
    let ratio = |part: &TimesInBlocks| part.slowness.time_ratio(&part.slow);
    let [slow_runs_take, slow_nodes_take] = [ratio(&within), between.as_ref().and_then(ratio)];
    let mut null_reasons = BTreeMap::new();
    if slow_runs_take.is_none() {
        null_reasons.insert("slow_runs_take", SlownessNullReason::OnlyMedians);
    }
    if slow_nodes_take.is_none() {
        null_reasons.insert("slow_nodes_take", SlownessNullReason::NoSession);
    }
    let session = session.and_then(|session| table.session_name(session.nodes[0][0] as usize));
    if session.is_none() {
        null_reasons.insert("session", SlownessNullReason::NoLabel);
    }
    Some(ClassSlowness {
        class: class.to_owned(),
        session: session.map(str::to_owned),
        runs: within.slowness.times().len(),
        slow_runs_take,
        slow_nodes_take,
        columns: reports,
        null_reasons,
    })
}

/// The sort key of a column.
fn strength(of: &ColumnSlowness) -> (bool, f64) {
    let found = || [&of.within, &of.between].into_iter().flatten();
    let significant = found().any(|found| found.significant);
    let counts = found().filter(|found| found.significant == significant);
    (significant, counts.map(|found| found.rho.abs()).fold(-1.0, f64::max))
}

fn of_column(
    column: &SlownessColumn,
    within: &TimesInBlocks,
    between: Option<&TimesInBlocks>,
) -> ColumnSlowness {
    let mut null_reasons = BTreeMap::new();
    let mut part = |key, part: Option<&TimesInBlocks>| {
        let found = match part {
            _ if column.is_time_itself => Err(SlownessNullReason::TimeItself),
            Some(part) => of_part(column, part, key),
            None => Err(SlownessNullReason::NoSession),
        };
        found.map_err(|reason| null_reasons.insert(key, reason)).ok()
    };
    let [within, between] = [part("within", Some(within)), part("between", between)];
    ColumnSlowness { name: column.name.clone(), kind: column.kind, within, between, null_reasons }
}

fn of_part(
    column: &SlownessColumn,
    part: &TimesInBlocks,
    key: &'static str,
) -> Result<SlownessReport, SlownessNullReason> {
    let is_within = key == "within";
    let raw: Vec<f64> = part.rows.iter().map(|row| column.value(*row as usize)).collect();
    let is_positive = !raw.iter().any(|value| *value <= 0.0);
    let values = match is_positive {
        true => part.values(raw.iter().map(|value| value.ln()).collect()),
        false => part.values(raw),
    };
    if column.kind == ColumnKind::Counter && is_positive && part.slowness.is_time_itself(&values) {
        return Err(SlownessNullReason::TimeItself);
    }
    let reason = if is_within { SlownessNullReason::WithinNodes } else { SlownessNullReason::BetweenNodes };
    let Association { rho, interval, p, values: count, blocks } =
        part.slowness.association(&values).map_err(reason)?;
    let per_second = || {
        let rates: Vec<f64> = values.iter().zip(part.slowness.times()).map(|(ln, time)| ln - time).collect();
        part.slowness.association(&rates).is_ok_and(|rate| rate.rho > 0.0 && rate.p <= RATE_P)
    };
    let ratio = part.slowness.ratio(&values, &part.slow).filter(|ratio| is_positive && ratio.is_finite());
    let mut null_reasons = BTreeMap::new();
    if ratio.is_none() {
        null_reasons.insert("ratio", SlownessNullReason::NoRatio);
    }
    Ok(SlownessReport {
        rho,
        ci: interval,
        p_value: p,
        p_adjusted: p,
        significant: false,
        ratio,
        only_counts_longer: column.kind == ColumnKind::Counter && rho > 0.0 && is_positive && !per_second(),
        runs: if is_within { count } else { part.rows.len() },
        nodes: if is_within { blocks } else { count },
        null_reasons,
    })
}

/// A count per second that rises with the time counts at this probability.
const RATE_P: f64 = 0.01;
