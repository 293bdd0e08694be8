//! The parts of the report about classes, and about nodes whose facts changed. The keys are a contract: later versions
//! may only add keys.

use serde::Serialize;
use std::collections::BTreeMap;

/// A class of nodes that ought to be equally fast.
#[derive(Debug, Serialize)]
pub struct ClassReport {
    /// Its name.
    pub class: String,
    /// Number of nodes in all sessions.
    pub nodes: usize,
    /// Number of nodes in the latest session.
    pub nodes_in_latest_session: usize,
    /// Number of these nodes that it judges: none if they are too few for a comparison.
    pub judged_by_latest_session: usize,
    /// How much the runs differ. `None` with fewer than 20 runs.
    pub run_spread: Option<RunSpread>,
    /// Nodes of the latest session if it has too few of them to be compared with earlier sessions, the slowest first.
    pub measured_again: Vec<MeasuredAgain>,
    /// True if the latest session shows whether the whole class became slower or faster.
    #[serde(skip)]
    pub shows_change: bool,
    /// Whether the whole class became slower or faster. `None` if not, or if fewer than 5 nodes show it.
    pub moved: Option<ClassMoved>,
}

/// How much slower than the fastest run the runs of a class are, in the session that judges most of its nodes.
#[derive(Debug, Serialize)]
pub struct RunSpread {
    /// The session.
    pub session: Option<String>,
    /// Number of runs; a run on several nodes counts once per node.
    pub runs: usize,
    /// The time of the fastest run (s).
    pub fastest_s: f64,
    /// p50 is the slowdown of the slowest run of the faster half (the nearest rank), as a fraction of the fastest run: 0.05 is
    /// 5 % slower. p25, p75, p90, p95, p99 likewise; max is that of the slowest run.
    pub slowdown: BTreeMap<&'static str, f64>,
    /// Shares of runs that are slower than the fastest one by more than a limit.
    pub shares: Vec<ShareSlower>,
    /// The empirical distribution: at index p, the slowdown of the slowest of the fastest p % of the runs (the nearest rank;
    /// at index 0, of the fastest run).
    pub ecdf: Vec<f64>,
}

/// A share of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShareSlower {
    /// Slower than the fastest run by more than this fraction.
    pub by: f64,
    /// The share of the runs.
    pub share: f64,
}

/// A node of a session that is not compared with earlier sessions: in seconds, the node cannot be told from the session.
#[derive(Debug, Serialize)]
pub struct MeasuredAgain {
    /// Host name.
    pub node: String,
    /// The session.
    pub session: Option<String>,
    /// The median there (s).
    #[serde(rename = "median_s")]
    pub seconds: f64,
    /// Number of its runs.
    pub runs: usize,
    /// The node's latest session that is compared with others.
    pub session_before: Option<String>,
    /// The median there (s).
    #[serde(rename = "before_s")]
    pub seconds_before: f64,
    /// median_s / before_s - 1: 0.05 is 5 % slower.
    pub change: f64,
}

/// The change of a whole class.
#[derive(Debug, Serialize)]
pub struct ClassMoved {
    /// The median over the nodes of time after / time before - 1: 0.03 is 3 % slower.
    pub change: f64,
    /// An interval for this median, from the order statistics of the nodes: at least 93.75 %.
    pub ci: [f64; 2],
    /// Number of nodes that were measured before and after.
    pub nodes: usize,
    /// The first session after the change.
    pub since: Option<String>,
    /// The last session before the change.
    pub until: Option<String>,
    /// The date of that session (UTC).
    pub until_date: Option<String>,
    /// The date of the first session after the change (UTC).
    pub since_date: Option<String>,
}

/// Nodes whose facts changed with a session. If the facts make up classes, the nodes are in another class since then.
#[derive(Debug, Serialize)]
pub struct Reconfigured {
    /// The facts.
    pub facts: Vec<ChangedFact>,
    /// The nodes' class since then.
    pub class: String,
    /// The nodes, by name.
    pub nodes: Vec<String>,
    /// The median over the nodes of time after / time before - 1: 0.03 is 3 % slower.
    pub change: f64,
    /// An interval for this median, from the order statistics of the nodes; `None` with fewer than 5 nodes.
    pub ci: Option<[f64; 2]>,
    /// The first session after the change.
    pub since: Option<String>,
    /// The last session before the change.
    pub until: Option<String>,
    /// The date of that session (UTC).
    pub until_date: Option<String>,
    /// The date of the first session after the change (UTC).
    pub since_date: Option<String>,
}

/// A fact that changed.
#[derive(Debug, Serialize)]
pub struct ChangedFact {
    /// cpu, microcode, memory, kernel, or one of [`pmmpi::node::FACTS`].
    pub key: String,
    /// The value before; `None` if it is unknown.
    pub before: Option<String>,
    /// The value after.
    pub after: Option<String>,
}
