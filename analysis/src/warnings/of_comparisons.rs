//! Warnings about two sets of runs.

use super::{FirstFew, WarningCode};

/// A warning about two sets of runs.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparisonWarning {
    /// Some runs are in both sets.
    SharedRuns {
        /// Number of these runs.
        runs: usize,
    },
    /// A and B were measured one after the other.
    NotInTurns {
        /// Number of comparisons in which A and B did not take turns.
        apart: usize,
        /// Number of all comparisons.
        comparisons: usize,
    },
    /// Some runs have no run of the same work on the same node in the other set.
    UnpairedRuns {
        /// These runs of A.
        a: Unpaired,
        /// These runs of B.
        b: Unpaired,
    },
    /// Some nodes have too few runs to show how much their times vary.
    FewRuns {
        /// The names of these nodes.
        nodes: FirstFew<String>,
    },
}

/// The runs of a set without a partner in the other set.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaired {
    /// Number of these runs; may be 0.
    pub runs: usize,
    /// The names of their nodes; "n1+n2" for jobs on two nodes.
    pub nodes: FirstFew<String>,
}

impl ComparisonWarning {
    /// The kind of warning.
    pub fn code(&self) -> WarningCode {
        match self {
            Self::SharedRuns { .. } => WarningCode::SharedRuns,
            Self::NotInTurns { .. } => WarningCode::NotInTurns,
            Self::UnpairedRuns { .. } => WarningCode::UnpairedRuns,
            Self::FewRuns { .. } => WarningCode::FewRuns,
        }
    }
}
