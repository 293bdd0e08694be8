//! Numbers of ranks and of nodes as types, so that the compiler does not accept one for the other.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Rank in MPI_COMM_WORLD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RankId(pub u32);

/// Index of a node in its run ([`Run::nodes`](crate::record::Run::nodes)); before the run is assembled, in its part
/// ([`Part::nodes`](crate::record::Part::nodes)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl RankId {
    /// The rank as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// The node as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for RankId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::wire::encode;

    #[test]
    fn numbers_are_bare_numbers_in_a_file() {
        assert_eq!(encode(&RankId(70_000)), encode(&70_000u32));
        assert_eq!(encode(&NodeId(300)), encode(&300u32));
    }
}
