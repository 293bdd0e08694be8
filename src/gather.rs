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
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

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
    /// Collective over all ranks. `key` is this rank's node; that two nodes have one hash costs a detour and
    /// no truth.
    pub fn grow<F: Fabric>(fabric: &mut F, key: &NodeKey) -> Result<Self, FabricError> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let nodes = fabric.numbers(hasher.finish())?;
        Ok(Self::of(fabric.rank(), &nodes))
    }

    /// Of the rank `rank`, from every rank's node.
    fn of(rank: u32, nodes: &[u64]) -> Self {
        let own = nodes[rank as usize];
        let ranks = || (0u32..).zip(nodes);
        let leader = ranks().find(|(_, node)| **node == own).map_or(rank, |(leader, _)| leader);
        let mut tree = Self { leader, ..Self::default() };
        if rank == leader {
            tree.members =
                ranks().filter(|(at, node)| **node == own && *at != rank).map(|(at, _)| at).collect();
        }
        if rank == 0 {
            let mut first: HashMap<u64, u32> = HashMap::new();
            ranks().for_each(|(at, node)| _ = first.entry(*node).or_insert(at));
            tree.leaders = first.into_values().filter(|leader| *leader != 0).collect();
            tree.leaders.sort_unstable();
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
        // An encoder for a memory buffer fails only above the limit; the empty part then says so.
        let bytes = wire::encode(&part).unwrap_or_default();
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
        for (nodes, leaders) in
            [(vec![7, 7, 8, 8, 9], vec![2, 4]), (vec![7, 8, 7, 8], vec![1]), (vec![7; 3], vec![])]
        {
            let trees: Vec<Tree> = (0..nodes.len()).map(|rank| Tree::of(rank as u32, &nodes)).collect();
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
