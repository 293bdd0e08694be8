//! Pings between the first rank of each node and rank 0, the hub: `--sync pingpong`.
//!
//! A ping leaves at s and returns at e on the node's clock; in between, the hub's clock reads h. Whatever the
//! offset of the two clocks is, the hub's reading happens between the node's two readings. [`crate::bounds`] uses
//! only this, and need not trust the offset of any clock.

use crate::bounds::Ping;
use crate::clock;
use crate::node::NodeKey;
use crate::record::wire;
use crate::transport::collectives;
use crate::transport::fabric::{Fabric, FabricError};
use std::collections::HashSet;

/// Number of pings of a node before the work, and again after it.
pub const PINGS: u32 = 10;

/// The first rank of each node except rank 0's, ascending.
#[derive(Clone, Debug, Default)]
pub struct Leaders(Vec<u32>);

impl Leaders {
    /// Collective over all ranks. If two nodes have the same digest, the second one gets no pings.
    pub fn find<F: Fabric>(fabric: &mut F, key: &NodeKey) -> Result<Self, FabricError> {
        let digests = fabric.gather(&key.digest().to_le_bytes())?;
        let mut known = HashSet::new();
        let firsts = digests.as_chunks::<8>().0.iter().zip(0..).filter(|(digest, _)| known.insert(*digest));
        let leaders: Vec<u32> = firsts.map(|(_, rank)| rank).skip(1).collect();
        // Encoding into memory does not fail. All ranks run the same version, so decoding does not fail either.
        let leaders = collectives::spread(fabric, wire::encode(&leaders).unwrap_or_default())?;
        Ok(Self(wire::decode(&leaders).unwrap_or_default()))
    }

    /// True for the first rank of a node.
    pub fn contain(&self, rank: u32) -> bool {
        rank == 0 || self.0.binary_search(&rank).is_ok()
    }
}

/// Collective over the first ranks of all nodes; other ranks return at once. The hub answers one node after the
/// other, so that it is ready for each node's pings.
pub fn exchange<F: Fabric>(fabric: &mut F, leaders: &Leaders) -> Result<Vec<Ping>, FabricError> {
    let rank = fabric.rank();
    if rank == 0 {
        for leader in &leaders.0 {
            for _ in 0..=PINGS {
                fabric.receive(*leader, &mut [0; 1])?;
                fabric.send(*leader, &clock::monotonic_ns().to_le_bytes())?;
            }
        }
        return Ok(Vec::new());
    }
    if !leaders.contain(rank) {
        return Ok(Vec::new());
    }
    // The first ping waits for the node's turn, so it proves little.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::fabric::Threads;

    #[test]
    fn the_first_rank_of_a_node_leads_it() {
        // Ranks placed node by node, in turns, and one node alone.
        for (nodes, leaders) in
            [(vec![7, 7, 8, 8, 9], vec![2, 4]), (vec![7, 8, 7, 8], vec![1]), (vec![7; 3], vec![])]
        {
            let ranks = Threads::new(nodes.len() as u32).into_iter().zip(nodes).map(|(mut fabric, node)| {
                std::thread::spawn(move || {
                    let key = NodeKey { time_namespace: node, ..NodeKey::own().clone() };
                    let found = Leaders::find(&mut fabric, &key).unwrap();
                    (exchange(&mut fabric, &found).unwrap().len(), found.0)
                })
            });
            for (rank, found) in ranks.collect::<Vec<_>>().into_iter().enumerate() {
                let (pings, found) = found.join().unwrap();
                assert_eq!(found, leaders);
                assert_eq!(pings, if leaders.contains(&(rank as u32)) { PINGS as usize } else { 0 });
            }
        }
    }
}
