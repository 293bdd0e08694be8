//! Whether a repaired node is fit to return to service.

use serde::Serialize;

/// The answer for one node.
#[derive(Debug, PartialEq, Eq, Serialize)]
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
}

/// Whether a node is fit to return to service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Fitness {
    /// All kernels are as fast as usual, and their results are right.
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
