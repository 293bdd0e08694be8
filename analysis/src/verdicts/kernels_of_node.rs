//! What the kernels of `pmmpi screen` say of a node.

use crate::table::SharedText;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The kernels of a node, by name.
pub type KernelsOfNode = BTreeMap<String, KernelOfNode>;

/// One kernel on one node.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct KernelOfNode {
    /// The median over the rounds; `None` for the user's program, and if the kernel failed.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: Option<String>,
    /// Fraction of the median time of the other nodes of the class.
    pub slowdown: Option<f64>,
    /// The node is slower by at least this fraction, with a probability of 99 %.
    pub slower_by_at_least: Option<f64>,
    /// The node is slower by at most this fraction, with a probability of 99 %; `None` if this screen does not compare
    /// the node with its class.
    #[serde(skip)]
    pub slower_by_at_most: Option<f64>,
    /// The class that this screen compares the node with.
    #[serde(skip)]
    pub class: Option<SharedText>,
    /// True if the node is also compared with earlier screens of itself, and was not slow enough to be drained in at least
    /// half of them.
    #[serde(skip)]
    pub was_healthy: bool,
    /// How many of the node's hardware threads the kernel used; 0 if it has no values of hardware threads.
    #[serde(skip)]
    pub threads: usize,
    /// The ranks on the node.
    #[serde(skip)]
    pub ranks: usize,
    /// OK, SLOW, SLOW-TAIL, SLOWED, UNUSUAL, SUSPECT, FAST, FAILED or WRONG; `None` if the node was not judged.
    pub verdict: Option<ScreenVerdict>,
    /// Number of runs with a time.
    pub runs: usize,
    /// Number of runs of the screen in which the kernel failed or computed a wrong result.
    pub failed_runs: usize,
}

/// A verdict on a node from all its kernels, or from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenVerdict {
    /// See [`Verdict::Ok`](crate::stats::verdict_rule::Verdict::Ok).
    Ok,
    /// See [`Verdict::Fast`](crate::stats::verdict_rule::Verdict::Fast).
    Fast,
    /// See [`Verdict::Unusual`](crate::stats::verdict_rule::Verdict::Unusual).
    Unusual,
    /// See [`Verdict::Suspect`](crate::stats::verdict_rule::Verdict::Suspect) and [`OwnVerdict::Suspect`](crate::stats::own_history::OwnVerdict::Suspect).
    Suspect,
    /// The kernel failed or took too long in at least one round, or data arrived wrong and the link may be the reason.
    Failed,
    /// Slower than the node itself was: [`OwnVerdict::Slowed`](crate::stats::own_history::OwnVerdict::Slowed).
    Slowed,
    /// See [`Verdict::SlowTail`](crate::stats::verdict_rule::Verdict::SlowTail).
    SlowTail,
    /// See [`Verdict::Slow`](crate::stats::verdict_rule::Verdict::Slow).
    Slow,
    /// A result of the kernel is wrong.
    Wrong,
}

impl ScreenVerdict {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Fast => "FAST",
            Self::Unusual => "UNUSUAL",
            Self::Suspect => "SUSPECT",
            Self::Failed => "FAILED",
            Self::Slowed => "SLOWED",
            Self::SlowTail => "SLOW-TAIL",
            Self::Slow => "SLOW",
            Self::Wrong => "WRONG",
        }
    }

    /// The verdict of the node is the one with the highest severity.
    pub fn severity(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Fast | Self::Unusual => 1,
            Self::Suspect => 2,
            Self::Failed => 3,
            // A healthy class has a slow tail, and a node that became a little slower may still be a fast one: the larger
            // slowdown decides.
            Self::Slowed | Self::SlowTail => 4,
            Self::Slow => 5,
            Self::Wrong => 6,
        }
    }

    /// The node is slow or computes wrong results.
    pub fn is_slow_or_wrong(self) -> bool {
        matches!(self, Self::Slowed | Self::SlowTail | Self::Slow | Self::Wrong)
    }

    /// The node may be slow, so a further round may show more.
    pub fn is_suspicious(self) -> bool {
        matches!(self, Self::Unusual | Self::Suspect | Self::Slowed | Self::SlowTail | Self::Slow)
    }
}

impl Serialize for ScreenVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
