//! What is said of nodes and their runs. Keys of the report: they are only ever added to.

use crate::stats::verdict::Verdict;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// One node, in one class.
#[derive(Debug, Serialize)]
pub struct NodeReport {
    /// Host name.
    pub node: String,
    /// What it ought to be equal to.
    pub class: String,
    /// The latest in which it can be compared with others; all else is of this one.
    pub session: Option<String>,
    /// How many runs count.
    pub runs: usize,
    /// An actual run.
    pub median_run_id: String,
    /// Its time on this node (s).
    pub median_s: f64,
    /// Interval for the median (s).
    pub ci_s: Option<[f64; 2]>,
    /// Probability that it holds the median.
    pub ci_coverage: Option<f64>,
    /// Fraction of the class median: 0.05 is 5 % slower.
    pub slowdown: Option<f64>,
    /// It is slower by at least this fraction: the lower end of its median.
    pub slower_by_at_least: Option<f64>,
    /// Distance from the class in spreads of its nodes.
    pub score: Option<f64>,
    /// Probability that a healthy node has such a score.
    pub p_value: Option<f64>,
    /// The same when that many nodes are looked at.
    pub p_adjusted: Option<f64>,
    /// For ranking: what is left of the slowdown without what noise would do.
    pub shrunken: Option<f64>,
    /// Distance from its own first sessions in standard deviations.
    pub history_score: Option<f64>,
    /// OK, SLOW, SLOW-TAIL, UNUSUAL or SUSPECT.
    #[serde(serialize_with = "by_name")]
    pub verdict: Option<Verdict>,
    /// So much slower that the node had better be drained.
    pub suggests_drain: bool,
    /// Why it is slow: [`crate::stats::cause::Cause::name`].
    pub cause: Option<String>,
    /// The same for people.
    pub cause_text: Option<String>,
    /// What the cause's term makes up of all terms.
    pub cause_share: Option<f64>,
    /// What the slowdown is made of (in ln T): they add up to ln(time / time of the class's reference).
    pub terms: BTreeMap<String, f64>,
    /// What some terms are made of: the parts of a term add up to it.
    pub term_parts: BTreeMap<String, f64>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// A run that was slow on one node.
#[derive(Debug, Serialize)]
pub struct SlowRunReport {
    /// Its name.
    pub run_id: String,
    /// Host name.
    pub node: String,
    /// What it ought to be equal to.
    pub class: String,
    /// When it was made; `None` where nobody said so.
    pub session: Option<String>,
    /// Its time on that node (s).
    pub elapsed_s: f64,
    /// Fraction of the node's median in that session.
    pub slowdown: f64,
    /// Probability that a run that is like the others takes so long.
    pub p_value: f64,
    /// The same when that many runs are looked at.
    pub p_adjusted: f64,
}

/// A node that became slower, and still is.
#[derive(Debug, Serialize)]
pub struct DriftReport {
    /// Host name.
    pub node: String,
    /// What it ought to be equal to.
    pub class: String,
    /// The session in which it seems to have begun.
    pub since: Option<String>,
    /// Fraction of what it was before, next to its class.
    pub change: f64,
    /// The largest sum of its CUSUM, in standard deviations.
    pub score: f64,
}

fn by_name<S: Serializer>(verdict: &Option<Verdict>, serializer: S) -> Result<S::Ok, S::Error> {
    verdict.map(Verdict::name).serialize(serializer)
}
