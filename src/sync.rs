//! What the first rank of each node exchanges with rank 0, the hub: `--sync pingpong`.
//!
//! A ping that left at s and was back at e, on the node's clock, read h on the hub's in between: whatever the
//! two clocks' offset is, the hub's reading happened between those of the node. That is an anchor for
//! [`crate::bounds`], not a clock that is trusted.

use crate::clock;
use crate::fabric::{Fabric, FabricError};
use crate::gather::Tree;
use serde::{Deserialize, Serialize};

/// Pings of a node before the work and after it.
pub const PINGS: u32 = 10;

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

/// Collective over the first ranks of all nodes; the others return at once. The hub answers one node after
/// the other, so that each finds it waiting.
pub fn exchange<F: Fabric>(fabric: &mut F, tree: &Tree) -> Result<Vec<Ping>, FabricError> {
    let rank = fabric.rank();
    if rank == 0 {
        for leader in &tree.leaders {
            for _ in 0..=PINGS {
                fabric.receive(*leader, &mut [0; 1])?;
                fabric.send(*leader, &clock::monotonic_ns().to_le_bytes())?;
            }
        }
        return Ok(Vec::new());
    }
    if rank != tree.leader {
        return Ok(Vec::new());
    }
    // The first one waits for its turn, and says little.
    (0..=PINGS).map(|_| ping(fabric)).skip(1).collect()
}

fn ping<F: Fabric>(fabric: &mut F) -> Result<Ping, FabricError> {
    let mut hub = [0; size_of::<i64>()];
    let sent_ns = clock::monotonic_ns();
    fabric.send(0, &[0])?;
    fabric.receive(0, &mut hub)?;
    let back_ns = clock::monotonic_ns();
    Ok(Ping { sent_ns, hub_ns: i64::from_le_bytes(hub), back_ns })
}
