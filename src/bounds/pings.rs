//! What a node exchanged with rank 0's, the hub.
//!
//! A ping that left at s and was back at e, on the node's clock, read h on the hub's in between: whatever the two
//! clocks' offset is, the hub's reading happened between those of the node.

use serde::{Deserialize, Serialize};

/// One exchange (CLOCK_MONOTONIC, ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// When it left, on the node's clock.
    pub sent_ns: i64,
    /// What the hub's clock read when it came.
    pub hub_ns: i64,
    /// When the answer was there, on the node's clock.
    pub back_ns: i64,
}

/// All exchanges of a node with the hub; empty where there were none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pings {
    /// Before t0.
    pub before: Vec<Ping>,
    /// After t3.
    pub after: Vec<Ping>,
}

impl Pings {
    /// True where there were none.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}
