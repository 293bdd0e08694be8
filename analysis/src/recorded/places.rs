//! Where the ranks may run and where they ran, and what hardware the nodes have.

use super::{Named, Pairs, of_all, push};
use pmmpi::NodeId;
use pmmpi::node::{CpuSet, Topology};
use pmmpi::record::Run;
use std::collections::{BTreeMap, BTreeSet};

/// The hardware threads on which each rank may run.
pub(super) fn binding(run: &Run) -> Pairs {
    let mut pairs = Pairs::new();
    push(&mut pairs, "ranks_are_bound_to", run.ranks_are_bound_to());
    push(&mut pairs, "ranks_by_node", (!run.ranks.is_empty()).then(|| by_node(run)));
    for rank in &run.ranks {
        let set = rank.allowed.to_string();
        let set = if set.is_empty() { "unknown".to_owned() } else { format!("hardware threads {set}") };
        push(&mut pairs, &format!("rank {}", rank.rank), Some(set));
    }
    pairs
}

/// The ranks of each node, without the names of nodes: "0-3; 4-7".
fn by_node(run: &Run) -> String {
    let mut ranks: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
    run.ranks.iter().for_each(|rank| ranks.entry(rank.node).or_default().push(rank.rank.0));
    let mut nodes: Vec<Vec<u32>> = ranks.into_values().collect();
    nodes.sort();
    // A set of numbers in the kernel's form.
    let lists = nodes.into_iter().map(|ranks| CpuSet::from_numbers(ranks.into_iter()).to_string());
    lists.collect::<Vec<String>>().join("; ")
}

/// Where each rank was: its host, and the hardware threads on which it ran at t1 and t2.
pub(super) fn ranks(run: &Run) -> Pairs {
    let mut pairs = Pairs::new();
    for rank in &run.ranks {
        let ran = match rank.ran_on {
            [Some(from), Some(to)] if from == to => format!("; ran on hardware thread {from} at t1 and t2"),
            [Some(from), Some(to)] => format!("; ran on hardware thread {from} at t1 and {to} at t2"),
            _ => String::new(),
        };
        let host = &run.nodes[rank.node.index()].key.hostname;
        push(&mut pairs, &format!("rank {}", rank.rank), Some(format!("{host}{ran}")));
    }
    pairs
}

/// The hardware of the nodes.
pub(super) fn topology(run: &Run) -> Vec<Named> {
    let known = run.nodes.iter().filter_map(|node| {
        let topology = &run.topologies[node.topology? as usize];
        Some((node.key.hostname.as_str(), of_topology(topology)))
    });
    of_all(known)
}

fn of_topology(topology: &Topology) -> Pairs {
    let count = |of: fn(&pmmpi::node::HwThread) -> u32| {
        topology.threads.iter().map(of).collect::<BTreeSet<u32>>().len()
    };
    let mut pairs = Pairs::new();
    push(&mut pairs, "sockets", Some(count(|thread| thread.socket)));
    push(&mut pairs, "cores", Some(count(|thread| thread.core)));
    push(&mut pairs, "hardware_threads", Some(topology.threads.len()));
    let first = topology.threads.first();
    let siblings = first.map(|first| {
        topology
            .threads
            .iter()
            .filter(|thread| thread.core == first.core)
            .map(|thread| thread.cpu.to_string())
            .collect::<Vec<_>>()
    });
    push(&mut pairs, "hardware_threads_of_first_core", siblings.map(|siblings| siblings.join(", ")));
    for memory in &topology.memories {
        push(&mut pairs, &format!("memory_bytes of NUMA node {}", memory.numa), Some(memory.memory_bytes));
    }
    for cache in &topology.caches {
        push(
            &mut pairs,
            &format!("L{} caches of {} bytes", cache.level, cache.size_bytes),
            Some(cache.count),
        );
    }
    push(&mut pairs, "read_by", Some(&topology.source));
    pairs
}
