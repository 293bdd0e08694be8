//! What ranks send to rank 0: the part of one rank, or the joined parts of several.

use super::rank::RankRecord;
use super::screened::Screened;
use crate::bounds::Pings;
use crate::clock::Crystal;
use crate::counters::counts::Counts;
use crate::counters::empty_entry::EmptyEntry;
use crate::ids::NodeId;
use crate::node::{Inventory, NodeFacts, NodeKey, Topology, Watched};
use crate::probes::Probes;
use crate::regions::Regions;
use serde::{Deserialize, Serialize};

/// What some ranks of a run measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Their nodes.
    pub nodes: Vec<NodePart>,
    /// Their records; here the field `node` is an index into this part's `nodes`.
    pub ranks: Vec<RankRecord>,
    /// Their regions.
    pub regions: Regions,
    /// Their counts.
    pub counts: Counts,
    /// What their counters count in a region without content.
    pub empty_entry: EmptyEntry,
    /// Their probes.
    pub probes: Probes,
    /// The least time of a rank from the end of its MPI_Init to t1 (ns).
    pub starting_ns: Option<i64>,
    /// The text of MPI_Get_library_version on rank 0.
    pub mpi_library: Option<String>,
    /// The results of their kernels in a round of `pmmpi screen`.
    pub screened: Option<Screened>,
}

/// Data of a node from its ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodePart {
    /// Which node and which clock.
    pub key: NodeKey,
    /// A [`HostPart`] in wire form, from the one rank of a node that has it; else empty.
    pub host: Vec<u8>,
    /// What was read of it around the work, by the same rank; else empty.
    pub watched: Watched,
    /// The pings between its first rank and the hub.
    pub pings: Pings,
}

/// What the first rank of a node adds.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostPart {
    /// The node's hardware and settings.
    facts: NodeFacts,
    /// Where its hardware threads, memory and caches are.
    topology: Option<Topology>,
    /// The crystal clock and the inventory, which the facts do not serialise.
    crystal: Crystal,
    /// See `crystal`.
    inventory: Inventory,
}

impl HostPart {
    /// From a node's facts and topology.
    pub fn new(facts: NodeFacts, topology: Option<Topology>) -> Self {
        Self { crystal: facts.hardware.crystal, inventory: facts.inventory.clone(), facts, topology }
    }

    /// The facts, with their crystal and inventory, and the topology.
    pub fn facts(mut self) -> (NodeFacts, Option<Topology>) {
        self.facts.hardware.crystal = self.crystal;
        self.facts.inventory = self.inventory;
        (self.facts, self.topology)
    }
}

impl Part {
    /// The part of one rank on the node `key`.
    pub fn of_rank(key: NodeKey, host: Vec<u8>, record: RankRecord) -> Self {
        let node = NodePart { key, host, watched: Watched::default(), pings: Pings::default() };
        Self { nodes: vec![node], ranks: vec![RankRecord { node: NodeId(0), ..record }], ..Self::default() }
    }

    /// Adds other ranks. A rank of a known node needs few bytes more than its record.
    pub fn join(&mut self, other: Self) {
        let nodes: Vec<NodeId> = other.nodes.into_iter().map(|node| self.add_node(node)).collect();
        let known = |rank: &RankRecord| nodes.get(rank.node.index()).copied();
        self.ranks.extend(
            other.ranks.into_iter().filter_map(|rank| Some(RankRecord { node: known(&rank)?, ..rank })),
        );
        self.regions.join(other.regions);
        self.counts.join(other.counts);
        self.empty_entry.join(other.empty_entry);
        self.probes.join(other.probes);
        self.starting_ns = [self.starting_ns, other.starting_ns].into_iter().flatten().min();
        self.mpi_library = self.mpi_library.take().or(other.mpi_library);
        if let Some(screened) = other.screened {
            self.screened.get_or_insert_default().join(screened);
        }
    }

    fn add_node(&mut self, node: NodePart) -> NodeId {
        // Search from the end: ranks come node by node.
        let known = self.nodes.iter().rposition(|known| known.key == node.key);
        let at = known.unwrap_or(self.nodes.len());
        match self.nodes.get_mut(at) {
            None => self.nodes.push(node),
            Some(known) => {
                if known.host.is_empty() {
                    known.host = node.host;
                }
                if known.watched == Watched::default() {
                    known.watched = node.watched;
                }
                if known.pings.is_empty() {
                    known.pings = node.pings;
                }
            }
        }
        NodeId(at as u32)
    }
}
