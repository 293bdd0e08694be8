//! Why values of places are null or absent, in English and as JSON.

use crate::report::by_place::PlaceNull;
use crate::table::place_values::MetricNull;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Formatter};

impl Display for PlaceNull {
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

impl Serialize for PlaceNull {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Display for MetricNull {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyForCores => f.write_str("the metric exists only for cores: use --by core"),
            Self::NotComputed { reason } => f.write_str(reason),
        }
    }
}

impl Serialize for MetricNull {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
