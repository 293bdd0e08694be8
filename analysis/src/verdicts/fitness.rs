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
    /// Why it is not fit, or what is missing for an answer; empty if it is fit.
    pub reason: String,
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
