//! The four stamps of one rank, and the joined stamps of a node.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Four readings of one rank's own clock, in nanoseconds: `t0; barrier; t1; WORK; t2; barrier; t3`.
///
/// The fields are private because clocks of two nodes must never be subtracted. This type only gives differences
/// within one rank; [`NodeStamps::join`] joins ranks that share a clock. Each instant lies within ±2^62 ns
/// (146 years), so that a difference of two always fits an `i64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "[i64; 4]", into = "[i64; 4]")]
pub struct Stamps {
    t_ns: [i64; 4],
}

/// An instant that no clock of a running machine shows (2^62 ns or more from its zero).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampOutOfRange(pub i64);

impl fmt::Display for StampOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns is not a valid clock reading: the limit is 2^62 ns (146 years)", self.0)
    }
}

impl std::error::Error for StampOutOfRange {}

impl Stamps {
    const LIMIT_NS: i64 = 1 << 62;

    /// The four instants in their order, nanoseconds of one clock.
    pub fn new(t0_ns: i64, t1_ns: i64, t2_ns: i64, t3_ns: i64) -> Result<Self, StampOutOfRange> {
        Self::try_from([t0_ns, t1_ns, t2_ns, t3_ns])
    }

    /// t2 - t1: this rank's work time; never longer than the job's elapsed time.
    pub fn inner_ns(&self) -> i64 {
        self.t_ns[2] - self.t_ns[1]
    }

    /// t3 - t0: both barriers included; never shorter than the job's elapsed time.
    pub fn outer_ns(&self) -> i64 {
        self.t_ns[3] - self.t_ns[0]
    }

    /// t1 - t0: how long the first barrier held this rank.
    pub fn start_barrier_ns(&self) -> i64 {
        self.t_ns[1] - self.t_ns[0]
    }

    /// t3 - t2: how long the second barrier held this rank.
    pub fn end_barrier_ns(&self) -> i64 {
        self.t_ns[3] - self.t_ns[2]
    }

    /// False if a clock ran backwards between two stamps: the clock was stepped.
    pub fn in_order(&self) -> bool {
        self.t_ns.is_sorted()
    }
}

impl TryFrom<[i64; 4]> for Stamps {
    type Error = StampOutOfRange;

    fn try_from(t_ns: [i64; 4]) -> Result<Self, StampOutOfRange> {
        match t_ns.iter().find(|t| **t <= -Self::LIMIT_NS || **t >= Self::LIMIT_NS) {
            Some(t) => Err(StampOutOfRange(*t)),
            None => Ok(Self { t_ns }),
        }
    }
}

impl From<Stamps> for [i64; 4] {
    fn from(stamps: Stamps) -> Self {
        stamps.t_ns
    }
}

/// The joined stamps of all ranks of one clock: the last entry and the first exit of each barrier.
///
/// In the notation of `src/bounds/elapsed.rs`: a = max t0, b = min t1, c = max t2, d = min t3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStamps {
    pub(crate) a_ns: i64,
    pub(crate) b_ns: i64,
    pub(crate) c_ns: i64,
    pub(crate) d_ns: i64,
    ordered: bool,
}

impl NodeStamps {
    /// A node with one rank.
    pub fn of(stamps: Stamps) -> Self {
        let [a_ns, b_ns, c_ns, d_ns] = stamps.t_ns;
        Self { a_ns, b_ns, c_ns, d_ns, ordered: stamps.in_order() }
    }

    /// Adds a rank that reads the same clock.
    pub fn join(&mut self, stamps: Stamps) {
        let [t0, t1, t2, t3] = stamps.t_ns;
        self.a_ns = self.a_ns.max(t0);
        self.b_ns = self.b_ns.min(t1);
        self.c_ns = self.c_ns.max(t2);
        self.d_ns = self.d_ns.min(t3);
        self.ordered &= stamps.in_order();
    }

    /// c - b: from the node's first start of work to its last end, on its own clock.
    pub fn work_ns(&self) -> i64 {
        self.c_ns - self.b_ns
    }

    /// True if the stamps alone prove that this clock was stepped or a barrier let a rank through
    /// early: an exit before the node's own last entry.
    pub fn impossible(&self) -> bool {
        !self.ordered || self.a_ns > self.b_ns || self.c_ns > self.d_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_stay_within_one_clock_and_one_integer() {
        let limit = 1i64 << 62;
        assert_eq!(Stamps::new(0, 0, 0, limit), Err(StampOutOfRange(limit)));
        let widest = Stamps::new(1 - limit, 1 - limit, limit - 1, limit - 1).unwrap();
        assert_eq!(widest.inner_ns(), 2 * (limit - 1));
        assert_eq!(widest.outer_ns(), widest.inner_ns());
    }

    #[test]
    fn a_node_joins_last_entries_and_first_exits() {
        let mut node = NodeStamps::of(Stamps::new(10, 20, 30, 40).unwrap());
        node.join(Stamps::new(12, 19, 35, 38).unwrap());
        assert_eq!((node.a_ns, node.b_ns, node.c_ns, node.d_ns), (12, 19, 35, 38));
        assert!(!node.impossible());
        node.join(Stamps::new(12, 11, 35, 38).unwrap());
        assert!(node.impossible());
    }
}
