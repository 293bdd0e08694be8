//! Pings between a node and the node of rank 0, the hub.
//!
//! A ping leaves at s and returns at e on the node's clock; in between, the hub's clock reads h. Whatever the
//! offset of the two clocks is, the hub's reading happens between the node's two readings.

use serde::{Deserialize, Serialize};

/// One exchange (CLOCK_MONOTONIC, ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// The node's clock when the ping left.
    pub sent_ns: i64,
    /// The hub's clock when the ping arrived.
    pub hub_ns: i64,
    /// The node's clock when the answer arrived.
    pub back_ns: i64,
}

/// All pings of a node to the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pings {
    /// Before t0.
    pub before: Vec<Ping>,
    /// After t3.
    pub after: Vec<Ping>,
}

impl Pings {
    /// True without any ping.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}
