//! Whether a repaired node is fit to return to service.

use serde::Serialize;

/// The answer for one node.
#[derive(Debug, PartialEq, Serialize)]
pub struct GateAnswer {
    /// The name that the user gave.
    pub node: String,
    /// The name of its host; `None` if it took no part.
    #[serde(skip)]
    pub host: Option<String>,
    /// FIT, NOT-FIT or UNDECIDED.
    pub answer: Fitness,
    /// Why it is not fit, or what is missing for an answer.
    pub reason: GateReason,
    /// In each kernel, the node is slower than its class by at most this fraction, with a probability of 99 %; `None` if
    /// that is not known of each kernel.
    pub slower_by_at_most: Option<f64>,
}

/// Whether a node is fit to return to service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Fitness {
    /// In no kernel is the node so slow that it would be drained, and all results are right.
    Fit,
    /// A kernel is slow, failed, or computed a wrong result.
    NotFit,
    /// The measurement shows neither.
    Undecided,
}

impl Fitness {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "FIT",
            Self::NotFit => "NOT-FIT",
            Self::Undecided => "UNDECIDED",
        }
    }
}

/// Why a repaired node is not fit to return, or why this is not decided. A `kernel` is `None` if its name is not known.
#[derive(Clone, Debug, PartialEq)]
pub enum GateReason {
    /// The node is fit: nothing is missing.
    NothingMissing,
    /// It did not take part in the screen.
    NoPart,
    /// A kernel computed a wrong result.
    WrongResult {
        /// Its name.
        kernel: Option<String>,
    },
    /// A kernel failed.
    Failed {
        /// Its name.
        kernel: Option<String>,
    },
    /// The node is slower than its class.
    SlowerThanClass {
        /// In this kernel.
        kernel: Option<String>,
    },
    /// The node is slower than it was.
    SlowerThanBefore {
        /// In this kernel.
        kernel: Option<String>,
    },
    /// The node may be slow.
    MaybeSlow {
        /// In this kernel.
        kernel: Option<String>,
    },
    /// The node is much faster than its class.
    MuchFaster {
        /// In this kernel.
        kernel: Option<String>,
    },
    /// The archive has sessions of the node that began after the screen and in the future, so a clock is wrong.
    WrongClock {
        /// Host name of the node.
        host: String,
        /// The host whose clock gave the start of the screen. `None` if it is not known.
        clock_of: Option<String>,
    },
    /// A kernel did not run on the node.
    NotRun {
        /// Its name.
        kernel: String,
    },
    /// A kernel has no verdict: no other nodes to compare with.
    NotCompared {
        /// Its name.
        kernel: String,
    },
    /// A kernel has few runs on the node.
    FewRuns {
        /// Its name.
        kernel: String,
        /// Number of its runs.
        runs: usize,
    },
    /// Few other nodes of the class are OK in a kernel, whatever the number of repaired nodes.
    FewOthers {
        /// Its name.
        kernel: String,
        /// Number of these other nodes.
        others: usize,
        /// A node that may be slower than its class by this fraction is not fit for certain.
        limit: f64,
    },
    /// Few other nodes of the class are OK in a kernel, for so many repaired nodes.
    FewOthersForEach {
        /// Its name.
        kernel: String,
        /// Number of repaired nodes of the class.
        repaired: usize,
        /// Number of the other nodes that are OK.
        others: usize,
        /// The smallest number of them for a decision.
        needed: usize,
    },
    /// The node may be slower than its class by more than the limit.
    MaybeAboveLimit {
        /// In this kernel.
        kernel: String,
        /// It is slower by at most this fraction, with a probability of 99 %.
        slower_by_at_most: f64,
        /// It must be slower by less than this fraction.
        limit: f64,
    },
    /// The times do not show how slow the node may be.
    UnknownSlowdown {
        /// In this kernel.
        kernel: String,
    },
}
