//! The way of the ranks' parts to rank 0, in two steps: within each node, then from node to node.
//!
//! The ranks of a node send to its first one, which joins what they say before it travels: a job of
//! 1,000,000 ranks on 8,000 nodes ends in 8,000 messages to rank 0, not in 1,000,000. docs/scale.md
//! counts the bytes and steps.

use crate::fabric::{Fabric, FabricError};
use crate::message;
use crate::node::NodeKey;
use crate::part::Part;
use crate::wire;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// So many ranks in a row of one node. A job of which each node has its ranks in a row needs one a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Span {
    /// From 0, as they come.
    node: u32,
    ranks: u32,
}

/// From each rank's hash of its node.
fn spans(hashes: &[u8]) -> Vec<Span> {
    let mut nodes: HashMap<&[u8; 8], u32> = HashMap::new();
    let mut spans: Vec<Span> = Vec::new();
    for hash in hashes.as_chunks().0 {
        let next = nodes.len() as u32;
        let node = *nodes.entry(hash).or_insert(next);
        match spans.last_mut() {
            Some(last) if last.node == node => last.ranks += 1,
            _ => spans.push(Span { node, ranks: 1 }),
        }
    }
    spans
}

/// Who sends to whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The first rank of this rank's node.
    pub leader: u32,
    /// The other ranks of the node, ascending; empty but on the leader.
    members: Vec<u32>,
    /// The leaders of the other nodes, ascending; empty but on rank 0.
    pub leaders: Vec<u32>,
}

impl Tree {
    /// Collective over all ranks: rank 0 learns which ranks share a node, and tells all, together with the
    /// bytes that `tell` gives there. `key` is this rank's node; that two nodes have one hash costs a detour
    /// and no truth.
    pub fn grow<F: Fabric>(
        fabric: &mut F,
        key: &NodeKey,
        tell: impl FnOnce() -> Vec<u8>,
    ) -> Result<(Self, Vec<u8>), FabricError> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hashes = message::collect(fabric, hasher.finish().to_le_bytes().to_vec())?;
        let told = if fabric.rank() == 0 { (spans(&hashes), tell()) } else { Default::default() };
        // An encoder for a memory buffer does not fail, nor do ranks of one tool misunderstand one another.
        let told = message::spread(fabric, wire::encode(&told).unwrap_or_default())?;
        let (spans, told) = wire::decode::<(Vec<Span>, Vec<u8>)>(&told).unwrap_or_default();
        Ok((Self::of(fabric.rank(), &spans), told))
    }

    /// Of the rank `rank`.
    fn of(rank: u32, spans: &[Span]) -> Self {
        let mut begin = 0;
        let mut ranges = Vec::with_capacity(spans.len());
        for Span { node, ranks } in spans {
            ranges.push((*node, begin..begin + ranks));
            begin += ranks;
        }
        let own = ranges.iter().find(|(_, range)| range.contains(&rank)).map(|(node, _)| *node);
        let mates =
            || ranges.iter().filter(|(node, _)| Some(*node) == own).flat_map(|(_, range)| range.clone());
        let mut tree = Self { leader: mates().next().unwrap_or(rank), ..Self::default() };
        if rank == tree.leader {
            tree.members = mates().filter(|mate| *mate != rank).collect();
        }
        if rank == 0 {
            // Nodes are numbered as they come.
            let firsts = ranges.iter().scan(0, |next, (node, range)| {
                let is_first = node == next;
                *next += u32::from(is_first);
                Some(is_first.then_some(range.start))
            });
            tree.leaders = firsts.flatten().filter(|leader| *leader != 0).collect();
        }
        tree
    }

    /// The nodes' parts in wire form on rank 0, `None` elsewhere.
    pub fn gather<F: Fabric>(
        &self,
        fabric: &mut F,
        mut part: Part,
    ) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        for member in &self.members {
            // One that cannot be understood is a rank that is missing.
            part.join(wire::decode(&message::receive(fabric, *member)?).unwrap_or_default());
        }
        // An encoder for a memory buffer fails only above the limit: these ranks are missing then, not all.
        let bytes = wire::encode(&part).or_else(|_| wire::encode(&Part::default())).unwrap_or_default();
        let rank = fabric.rank();
        if rank != 0 {
            let to = if rank == self.leader { 0 } else { self.leader };
            message::send(fabric, to, &bytes)?;
            return Ok(None);
        }
        let mut parts = vec![bytes];
        for leader in &self.leaders {
            parts.push(message::receive(fabric, *leader)?);
        }
        Ok(Some(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_of_a_node_leads_it() {
        // Ranks placed node by node, in turns, and one node alone.
        let hashes = |nodes: &[u64]| nodes.iter().flat_map(|node| node.to_le_bytes()).collect::<Vec<_>>();
        for (nodes, leaders) in
            [(vec![7, 7, 8, 8, 9], vec![2, 4]), (vec![7, 8, 7, 8], vec![1]), (vec![7; 3], vec![])]
        {
            let trees: Vec<Tree> =
                (0..nodes.len()).map(|rank| Tree::of(rank as u32, &spans(&hashes(&nodes)))).collect();
            assert_eq!(trees[0].leaders, leaders);
            let mut reached: Vec<u32> = trees.iter().flat_map(|tree| tree.members.clone()).collect();
            reached.extend(&leaders);
            reached.push(0);
            reached.sort_unstable();
            assert_eq!(reached, (0..nodes.len() as u32).collect::<Vec<_>>(), "each rank sends once");
            for (rank, tree) in trees.iter().enumerate() {
                assert_eq!(nodes[tree.leader as usize], nodes[rank]);
                assert!(
                    tree.leader as usize <= rank && (tree.members.is_empty() || tree.leader as usize == rank)
                );
            }
        }
    }
}
