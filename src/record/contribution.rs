//! What ranks send to rank 0: of one rank, or of several, joined.

use super::rank::RankRecord;
use crate::bounds::Pings;
use crate::clock::Crystal;
use crate::counters::counts::Counts;
use crate::node::{NodeFacts, NodeKey, Topology};
use crate::regions::Regions;
use serde::{Deserialize, Serialize};

/// What some ranks of a run measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Their nodes.
    pub nodes: Vec<NodePart>,
    /// Their records; `node` counts in `nodes`.
    pub ranks: Vec<RankRecord>,
    /// What they did in regions.
    pub regions: Regions,
    /// What they counted.
    pub counts: Counts,
    /// The least time that one of them took from the end of its MPI_Init to t1 (ns).
    pub starting_ns: Option<i64>,
    /// What MPI_Get_library_version says on rank 0.
    pub mpi_library: Option<String>,
}

/// What the ranks of a node know of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodePart {
    /// Which node and which clock.
    pub key: NodeKey,
    /// A [`HostPart`] in wire form, from the one rank of a node that has it; else empty.
    pub host: Vec<u8>,
    /// What its first rank exchanged with the hub.
    pub pings: Pings,
}

/// What the first rank of a node adds.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostPart {
    /// The node's settings.
    facts: NodeFacts,
    /// Its hardware.
    topology: Option<Topology>,
    /// What the facts have of it does not travel with them.
    crystal: Crystal,
}

impl HostPart {
    /// What is known of a node.
    pub fn new(facts: NodeFacts, topology: Option<Topology>) -> Self {
        Self { crystal: facts.hardware.crystal, facts, topology }
    }

    /// The same, as it came from a rank.
    pub fn facts(mut self) -> (NodeFacts, Option<Topology>) {
        self.facts.hardware.crystal = self.crystal;
        (self.facts, self.topology)
    }
}

impl Part {
    /// Of one rank, on the node `key`.
    pub fn of_rank(key: NodeKey, host: Vec<u8>, record: RankRecord) -> Self {
        let node = NodePart { key, host, pings: Pings::default() };
        Self { nodes: vec![node], ranks: vec![RankRecord { node: 0, ..record }], ..Self::default() }
    }

    /// Adds other ranks. Those of a node that is known already need few bytes more than their records.
    pub fn join(&mut self, other: Self) {
        let nodes: Vec<u32> = other.nodes.into_iter().map(|node| self.add_node(node)).collect();
        let known = |rank: &RankRecord| nodes.get(rank.node as usize).copied();
        self.ranks.extend(
            other.ranks.into_iter().filter_map(|rank| Some(RankRecord { node: known(&rank)?, ..rank })),
        );
        self.regions.join(other.regions);
        self.counts.join(other.counts);
        self.starting_ns = [self.starting_ns, other.starting_ns].into_iter().flatten().min();
        self.mpi_library = self.mpi_library.take().or(other.mpi_library);
    }

    fn add_node(&mut self, node: NodePart) -> u32 {
        // From the end: ranks come node by node.
        let known = self.nodes.iter().rposition(|known| known.key == node.key);
        let at = known.unwrap_or(self.nodes.len());
        match self.nodes.get_mut(at) {
            None => self.nodes.push(node),
            Some(known) => {
                if known.host.is_empty() {
                    known.host = node.host;
                }
                if known.pings.is_empty() {
                    known.pings = node.pings;
                }
            }
        }
        at as u32
    }
}
