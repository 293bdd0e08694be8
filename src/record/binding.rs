//! The smallest part of a node that contains all hardware threads on which a rank may run.

use super::rank::RankRecord;
use super::run::Run;
use crate::node::{CpuSet, HwThread};
use std::collections::{BTreeSet, HashMap};

/// See [`Run::bindings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundTo {
    /// One hardware thread.
    HardwareThreads,
    /// One core, with one or more hardware threads.
    Cores,
    /// A NUMA node or a part of it.
    NumaNodes,
    /// A socket or a part of it.
    Sockets,
    /// Parts of several sockets.
    SeveralSockets,
    /// The rank may run everywhere on the node.
    Nothing,
    /// The topology of the node, or the hardware threads of the rank, are not known.
    Unknown,
}

impl BoundTo {
    /// What ranks are bound to, in the plural.
    pub fn text(self) -> &'static str {
        match self {
            Self::HardwareThreads => "hardware threads",
            Self::Cores => "cores",
            Self::NumaNodes => "NUMA nodes, or parts of these",
            Self::Sockets => "sockets, or parts of these",
            Self::SeveralSockets => "several sockets, or parts of these",
            Self::Nothing => "nothing",
            Self::Unknown => "unknown",
        }
    }
}

impl Run {
    /// What a rank is bound to.
    fn bound_to(&self, rank: &RankRecord) -> BoundTo {
        let topology = self.nodes[rank.node.index()].topology;
        let Some(topology) = topology.map(|topology| &self.topologies[topology as usize]) else {
            return BoundTo::Unknown;
        };
        let here: Vec<&HwThread> =
            topology.threads.iter().filter(|thread| rank.allowed.contains(thread.cpu)).collect();
        let count =
            |of: fn(&HwThread) -> u32| here.iter().map(|thread| of(thread)).collect::<BTreeSet<u32>>().len();
        match () {
            () if here.is_empty() => BoundTo::Unknown,
            () if here.len() == 1 => BoundTo::HardwareThreads,
            () if count(|thread| thread.core) == 1 => BoundTo::Cores,
            () if here.len() == topology.threads.len() => BoundTo::Nothing,
            () if count(|thread| thread.numa) == 1 => BoundTo::NumaNodes,
            () if count(|thread| thread.socket) == 1 => BoundTo::Sockets,
            () => BoundTo::SeveralSockets,
        }
    }

    /// What each rank is bound to, in the order of `ranks`.
    pub fn bindings(&self) -> Vec<BoundTo> {
        // Nodes of a job are alike, so there are few different pairs.
        let mut known: HashMap<(Option<u32>, &CpuSet), BoundTo> = HashMap::new();
        let mut bindings = Vec::with_capacity(self.ranks.len());
        for rank in &self.ranks {
            let key = (self.nodes[rank.node.index()].topology, &rank.allowed);
            bindings.push(*known.entry(key).or_insert_with(|| self.bound_to(rank)));
        }
        bindings
    }

    /// What the ranks of this run are bound to, each kind once: "cores", or "cores and nothing". `None` without ranks.
    pub fn ranks_are_bound_to(&self) -> Option<String> {
        let kinds: BTreeSet<BoundTo> = self.bindings().into_iter().collect();
        let kinds: Vec<&str> = kinds.into_iter().map(BoundTo::text).collect();
        (!kinds.is_empty()).then(|| kinds.join(" and "))
    }
}
