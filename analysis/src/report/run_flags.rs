//! Flags of a run that need no counters: where its ranks ran, and how equal its nodes were. And counters that counted too
//! little of the time.

use super::metrics::{Flag, MetricReport};
use crate::table::run_settings::may_differ_between_nodes;
use pmmpi::node::{CpuSet, NodeFacts, Topology};
use pmmpi::record::{BoundTo, RankRecord, Run};
use pmmpi::text::count;
use pmmpi::{NodeId, RankId};
use pmmpi_events::metrics::RUNNING_SHARE_FLOOR;
use std::collections::{BTreeMap, BTreeSet};

/// A message names at most so many ranks, nodes or metrics.
const NAMED: usize = 4;

/// A kind of flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFlag {
    /// Ranks of a node may run on all of its hardware threads.
    UnboundRanks,
    /// Several ranks may run on the same hardware threads, and are bound.
    OverlappingRanks,
    /// A node has more ranks than cores for them.
    MoreRanksThanCores,
    /// A rank was on another core at the end.
    MovedRanks,
    /// Nodes of the run differ in facts.
    UnequalNodes,
    /// Values that were counted for a small part of the time.
    LowRunningShare,
}

impl RunFlag {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::UnboundRanks,
        Self::OverlappingRanks,
        Self::MoreRanksThanCores,
        Self::MovedRanks,
        Self::UnequalNodes,
        Self::LowRunningShare,
    ];

    /// A stable name for scripts.
    pub fn code(self) -> &'static str {
        match self {
            Self::UnboundRanks => "unbound-ranks",
            Self::OverlappingRanks => "overlapping-ranks",
            Self::MoreRanksThanCores => "more-ranks-than-cores",
            Self::MovedRanks => "moved-ranks",
            Self::UnequalNodes => "unequal-nodes",
            Self::LowRunningShare => "low-running-share",
        }
    }

    /// What the flag means, and what to do.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::UnboundRanks => {
                "several ranks of a node may run on all hardware threads of the node, so the kernel may move them: bind ranks, \
                 for example with `mpirun --bind-to core` or `srun --cpu-bind=cores`"
            }
            Self::OverlappingRanks => {
                "ranks that are bound may run on the same hardware threads: check the binding of the launcher"
            }
            Self::MoreRanksThanCores => {
                "the hardware threads on which the ranks of a node may run belong to fewer cores than there are ranks: ranks \
                 share cores, and wait for each other if there are also fewer hardware threads"
            }
            Self::MovedRanks => {
                "a rank was on one core when its work began, and on another core when its work ended: the kernel moved it"
            }
            Self::UnequalNodes => {
                "the nodes of the run differ in facts that may change their speed: `pmmpi show` prints all facts"
            }
            Self::LowRunningShare => {
                "metrics have inputs that were counted less than 20 % of the time, so no verdict uses them: count fewer groups \
                 at once, or use `pmmpi repeat --groups`"
            }
        }
    }
}

/// The flags that this run raises.
pub fn of(run: &Run, metrics: &[MetricReport]) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut raise = |flag: RunFlag, message: String| {
        flags.push(Flag { code: flag.code(), message: message.into(), discards: false });
    };
    let nodes = ranks_by_node(run);
    let several = || nodes.values().filter(|ranks| ranks.len() > 1);
    let unbound: Vec<RankId> = several()
        .flatten()
        .filter(|rank| run.bound_to(rank) == BoundTo::Nothing)
        .map(|rank| rank.rank)
        .collect();
    if !unbound.is_empty() {
        let message = format!(
            "{} may run on all hardware threads of {}: bind ranks, for example with mpirun --bind-to core or srun \
             --cpu-bind=cores",
            described(&unbound),
            if unbound.len() == 1 { "its node" } else { "their node" },
        );
        raise(RunFlag::UnboundRanks, message);
    }
    let overlapping: Vec<RankId> = several().flat_map(|ranks| overlapping(run, ranks)).collect();
    if !overlapping.is_empty() {
        let message = format!(
            "{} are bound to hardware threads that other ranks may use, too: check the binding of the launcher",
            described(&overlapping)
        );
        raise(RunFlag::OverlappingRanks, message);
    }
    if let Some(message) = crowded(run, &nodes) {
        raise(RunFlag::MoreRanksThanCores, message);
    }
    let moved: Vec<RankId> =
        run.ranks.iter().filter(|rank| has_moved(run, rank)).map(|rank| rank.rank).collect();
    if !moved.is_empty() {
        raise(RunFlag::MovedRanks, format!("{} began and ended on different cores", described(&moved)));
    }
    if let Some(message) = unequal(run, &nodes) {
        raise(RunFlag::UnequalNodes, message);
    }
    let is_low =
        |metric: &&MetricReport| metric.running_share.is_some_and(|share| share < RUNNING_SHARE_FLOOR);
    let low: Vec<&str> = metrics.iter().filter(is_low).map(|metric| metric.name).collect();
    if !low.is_empty() {
        let message = format!(
            "{}: counted less than 20 % of the time, so no verdict uses {}; count fewer groups at once, or use pmmpi repeat \
             --groups",
            named(&low),
            if low.len() == 1 { "it" } else { "them" }
        );
        raise(RunFlag::LowRunningShare, message);
    }
    flags
}

fn ranks_by_node(run: &Run) -> BTreeMap<NodeId, Vec<&RankRecord>> {
    let mut nodes: BTreeMap<NodeId, Vec<&RankRecord>> = BTreeMap::new();
    run.ranks.iter().for_each(|rank| nodes.entry(rank.node).or_default().push(rank));
    nodes
}

/// The topology of a node; `None` if it is not known.
fn topology(run: &Run, node: NodeId) -> Option<&Topology> {
    run.nodes[node.index()].topology.map(|topology| &run.topologies[topology as usize])
}

/// The bound ranks of a node that share a hardware thread with another rank.
fn overlapping(run: &Run, ranks: &[&RankRecord]) -> Vec<RankId> {
    let is_bound = |rank: &&RankRecord| !matches!(run.bound_to(rank), BoundTo::Nothing | BoundTo::Unknown);
    let bound: Vec<&RankRecord> = ranks.iter().copied().filter(|rank| is_bound(rank)).collect();
    let mut users: BTreeMap<u32, usize> = BTreeMap::new();
    let mut of_set: BTreeMap<String, (&CpuSet, usize)> = BTreeMap::new();
    bound.iter().for_each(|rank| of_set.entry(rank.allowed.to_string()).or_insert((&rank.allowed, 0)).1 += 1);
    for (set, ranks) in of_set.values() {
        set.numbers().for_each(|cpu| *users.entry(cpu).or_default() += ranks);
    }
    // Ranks that share a socket or a NUMA node, and have a hardware thread each, do not disturb one another.
    let crowds = |rank: &&RankRecord| {
        let here = rank.allowed.numbers().count();
        rank.allowed.numbers().any(|cpu| users[&cpu] > here)
    };
    bound.into_iter().filter(crowds).map(|rank| rank.rank).collect()
}

/// Nodes whose ranks outnumber their cores.
fn crowded(run: &Run, nodes: &BTreeMap<NodeId, Vec<&RankRecord>>) -> Option<String> {
    let of = |(node, ranks): (&NodeId, &Vec<&RankRecord>)| {
        let topology = topology(run, *node)?;
        let here = topology
            .threads
            .iter()
            .filter(|thread| ranks.iter().any(|rank| rank.allowed.contains(thread.cpu)));
        let here: Vec<_> = here.collect();
        let cores = here.iter().map(|thread| thread.core).collect::<BTreeSet<_>>().len();
        let host = &run.nodes[node.index()].key.hostname;
        (cores > 0 && ranks.len() > cores).then_some((ranks.len(), cores, here.len(), host))
    };
    let crowded: Vec<_> = nodes.iter().filter_map(of).collect();
    let (ranks, cores, threads, host) = crowded.first()?;
    let others = match crowded.len() - 1 {
        0 => String::new(),
        more => format!("; so do ranks of {}", count(more, "more node")),
    };
    let threads = if threads == cores {
        String::new()
    } else {
        format!(" with {}", count(*threads, "hardware thread"))
    };
    Some(format!("{ranks} ranks of {host} share {}{threads}{others}", count(*cores, "core")))
}

/// True if the rank was on different cores at t1 and t2.
fn has_moved(run: &Run, rank: &RankRecord) -> bool {
    let [Some(from), Some(to)] = rank.ran_on else { return false };
    let Some(topology) = topology(run, rank.node) else { return false };
    let core = |cpu: u32| topology.threads.iter().find(|thread| thread.cpu == cpu).map(|thread| thread.core);
    from != to && core(from).zip(core(to)).is_some_and(|(from, to)| from != to)
}

/// Facts in which nodes of the run differ. How processes communicate may differ between nodes with other numbers of ranks.
fn unequal(run: &Run, nodes: &BTreeMap<NodeId, Vec<&RankRecord>>) -> Option<String> {
    let alike = nodes.values().map(Vec::len).collect::<BTreeSet<_>>().len() < 2;
    let is_compared = |name: &str| {
        !may_differ_between_nodes(name) && (alike || !["transports", "mpi_components"].contains(&name))
    };
    let mut values: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for node in &run.nodes {
        let facts = node.facts.as_ref().map(NodeFacts::named).unwrap_or_default();
        for (name, value) in facts.into_iter().filter(|(name, _)| is_compared(name)) {
            values.entry(name.to_owned()).or_default().entry(value).or_default().push(&node.key.hostname);
        }
    }
    values.retain(|_, values| values.len() > 1);
    let differences = values.iter().map(|(name, values)| {
        let mut values: Vec<(&String, &Vec<&str>)> = values.iter().collect();
        values.sort_by_key(|(value, nodes)| (std::cmp::Reverse(nodes.len()), *value));
        let usual = values.first().map_or("", |(value, _)| value.as_str());
        let others =
            values.iter().skip(1).take(NAMED).map(|(value, nodes)| format!("{value} on {}", named(nodes)));
        format!("{name} is {usual}, but {}", others.collect::<Vec<String>>().join(", "))
    });
    let mut texts: Vec<String> = differences.take(NAMED).collect();
    if let Some(more) = values.len().checked_sub(NAMED).filter(|more| *more > 0) {
        texts.push(count(more, "more fact"));
    }
    (!texts.is_empty()).then(|| format!("nodes differ: {}", texts.join("; ")))
}

/// "rank 3", or "5 ranks (0, 1, 2, 3, ...)".
fn described(ranks: &[RankId]) -> String {
    match ranks {
        [rank] => format!("rank {rank}"),
        _ => {
            let first: Vec<String> = ranks.iter().take(NAMED).map(RankId::to_string).collect();
            let more = if ranks.len() > NAMED { ", ..." } else { "" };
            format!("{} ({}{more})", count(ranks.len(), "rank"), first.join(", "))
        }
    }
}

fn named(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let first = names[..names.len().min(NAMED)].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}
