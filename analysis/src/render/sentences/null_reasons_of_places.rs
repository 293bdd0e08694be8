//! Why values of places are null or absent, in English and as JSON.

use crate::report::by_place::PlaceNullReason;
use crate::table::place_values::MetricNullReason;
use std::fmt::{self, Display, Formatter};

impl Display for PlaceNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let several = match self {
            Self::Sockets => "sockets",
            Self::NumaNodes => "NUMA nodes",
            Self::Cores => "cores",
            Self::HardwareThreads => "hardware threads",
            Self::Ranks => return f.write_str("several ranks share the place"),
        };
        write!(f, "the ranks may run on several {several}, or the topology of the node is unknown")
    }
}

impl Display for MetricNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyForCores => f.write_str("the metric exists only for cores: use --by core"),
            Self::NotComputed { reason } => f.write_str(reason),
        }
    }
}
