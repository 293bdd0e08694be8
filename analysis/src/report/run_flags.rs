//! Flags of a run that need no counters: where its ranks ran, and how equal its nodes were. And counters that counted too
//! little of the time.

use super::metrics::{Flag, MetricReport};
use super::turbo_flag;
use crate::table::node_class;
use crate::table::run_settings::may_differ_between_nodes;
use pmmpi::node::{CpuSet, HwThread, NodeFacts, Topology};
use pmmpi::record::{BoundTo, RankRecord, Run};
use pmmpi::text::count;
use pmmpi::{NodeId, RankId};
use pmmpi_events::metrics::RUNNING_SHARE_FLOOR;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A message names at most this number of ranks, nodes or metrics.
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
    /// Cores were slower than the turbo step of so many active cores.
    BelowTurboStep,
    /// Entries of a region that are too short for the reads of its counters.
    ShortEntries,
}

impl RunFlag {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::UnboundRanks,
        Self::OverlappingRanks,
        Self::MoreRanksThanCores,
        Self::MovedRanks,
        Self::UnequalNodes,
        Self::LowRunningShare,
        Self::BelowTurboStep,
        Self::ShortEntries,
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
            Self::BelowTurboStep => "below-turbo-step",
            Self::ShortEntries => "short-entries",
        }
    }

    /// What the flag means, and what to do.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::UnboundRanks => {
                "a node has several ranks, and one or more of them are not bound: the Linux kernel may move an unbound rank to any \
                 hardware thread of the node. Bind ranks, for example with `mpirun --bind-to core` or \
                 `srun --cpu-bind=cores`"
            }
            Self::OverlappingRanks => {
                "ranks are bound to too few hardware threads, so ranks share a hardware thread: check how the \
                 launcher binds the ranks"
            }
            Self::MoreRanksThanCores => {
                "a node has more ranks than cores that these ranks may use, so ranks share cores. If the \
                 node also has more ranks than hardware threads that these ranks may use, ranks wait for \
                 each other"
            }
            Self::MovedRanks => {
                "a rank began its work on one core, and ended its work on another core: the Linux kernel moved the rank"
            }
            Self::UnequalNodes => {
                "the nodes of the run differ in facts that may change their speed: `pmmpi show` prints all facts"
            }
            Self::LowRunningShare => {
                "the events of some metrics were counted less than 20 % of the time, so pmmpi draws no conclusion \
                 from these metrics: count fewer groups at once, or use `pmmpi repeat --groups`"
            }
            Self::BelowTurboStep => {
                "cores ran more than 5 % below the frequency that they could reach. This frequency is the \
                 lower of two: the turbo step (the highest frequency for this number of active cores), and \
                 the maximum frequency that is set. Look at power and temperature, at wide vector \
                 instructions (they lower the turbo step), and at other programs on the sockets. The report \
                 does not show this flag if turbo is off on a node, or if the fact `turbo_steps` of a node \
                 is unknown (only root can read it)"
            }
            Self::ShortEntries => {
                "the entries of a region took less than 1 ms on average: their counts contain a part of the \
                 system calls that read the counters. Measure such short work with a probe (`pmmpi_probe_begin`)"
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
    let bindings = run.bindings();
    let several = || nodes.values().filter(|ranks| ranks.len() > 1);
    let rank = |at: &usize| run.ranks[*at].rank;
    let unbound = several().flatten().filter(|at| bindings[**at] == BoundTo::Nothing);
    let unbound: Vec<RankId> = unbound.map(rank).collect();
    if !unbound.is_empty() {
        let message = format!(
            "{} may run on all hardware threads of {}: bind ranks, for example with mpirun --bind-to core or srun \
             --cpu-bind=cores",
            described(&unbound),
            if unbound.len() == 1 { "its node" } else { "their node" },
        );
        raise(RunFlag::UnboundRanks, message);
    }
    let mut threads = ThreadsOfSets::default();
    let mut overlapping: Vec<RankId> = Vec::new();
    for ranks in several() {
        let is_bound = |at: &&usize| !matches!(bindings[**at], BoundTo::Nothing | BoundTo::Unknown);
        let bound: Vec<usize> = ranks.iter().filter(is_bound).copied().collect();
        overlapping.extend(sharing(run, &bound, &mut threads).iter().map(rank));
    }
    if !overlapping.is_empty() {
        let message = format!(
            "{} {} bound to hardware threads that other ranks may use, too: check how the launcher binds the \
             ranks",
            described(&overlapping),
            if overlapping.len() == 1 { "is" } else { "are" }
        );
        raise(RunFlag::OverlappingRanks, message);
    }
    if let Some(message) = crowded(run, &nodes, &mut threads) {
        raise(RunFlag::MoreRanksThanCores, message);
    }
    let moved: Vec<RankId> =
        run.ranks.iter().filter(|rank| has_moved(run, rank)).map(|rank| rank.rank).collect();
    if !moved.is_empty() {
        raise(RunFlag::MovedRanks, format!("{} began and ended on different cores", described(&moved)));
    }
    if let Some(message) = unequal(run) {
        raise(RunFlag::UnequalNodes, message);
    }
    if let Some(message) = seldom_counted(metrics) {
        raise(RunFlag::LowRunningShare, message);
    }
    if let Some(message) = turbo_flag::below_step(run, metrics) {
        raise(RunFlag::BelowTurboStep, message);
    }
    flags
}

/// The flags that a region raises. An entry took `mean_entry_ns` in the mean.
pub fn of_region(metrics: &[MetricReport], mean_entry_ns: f64) -> Vec<Flag> {
    let seldom = seldom_counted(metrics).map(|message| (RunFlag::LowRunningShare, message));
    let is_counted = metrics.iter().any(|metric| metric.value.is_some());
    let short = (is_counted && mean_entry_ns < SHORT_NS).then(|| {
        let message = format!(
            "an entry took {:.1} us on average, so its counts contain a part of the system calls that read the counters; \
             measure it with a probe (pmmpi_probe_begin)",
            mean_entry_ns / 1e3
        );
        (RunFlag::ShortEntries, message)
    });
    let flag = |(flag, message): (RunFlag, String)| Flag {
        code: flag.code(),
        message: message.into(),
        discards: false,
    };
    [seldom, short].into_iter().flatten().map(flag).collect()
}

/// McCalpin (2018-07-23): in a section under 1 ms, the kernel should do nothing.
const SHORT_NS: f64 = 1e6;

/// Names the metrics that were counted for a small part of the time.
fn seldom_counted(metrics: &[MetricReport]) -> Option<String> {
    let is_low =
        |metric: &&MetricReport| metric.running_share.is_some_and(|share| share < RUNNING_SHARE_FLOOR);
    let low: Vec<&str> = metrics.iter().filter(is_low).map(|metric| metric.name).collect();
    (!low.is_empty()).then(|| {
        format!(
            "{}: counted less than 20 % of the time, so pmmpi draws no conclusion from {}; count fewer groups at once, \
             or use pmmpi repeat --groups",
            named(&low),
            if low.len() == 1 { "it" } else { "them" }
        )
    })
}

/// The ranks of each node, as indices into the ranks of the run.
fn ranks_by_node(run: &Run) -> BTreeMap<NodeId, Vec<usize>> {
    let mut nodes: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    run.ranks.iter().enumerate().for_each(|(at, rank)| nodes.entry(rank.node).or_default().push(at));
    nodes
}

/// The topology of a node; `None` if it is not known.
fn topology(run: &Run, node: NodeId) -> Option<&Topology> {
    run.nodes[node.index()].topology.map(|topology| &run.topologies[topology as usize])
}

/// Hardware threads of the node in each set. Nodes of a job are alike, so there are few different sets.
#[derive(Default)]
struct ThreadsOfSets<'a>(HashMap<(u32, &'a CpuSet), Vec<&'a HwThread>>);

impl<'a> ThreadsOfSets<'a> {
    /// None without a topology.
    fn of(&mut self, run: &'a Run, rank: &'a RankRecord) -> &[&'a HwThread] {
        let Some(number) = run.nodes[rank.node.index()].topology else { return &[] };
        let threads = &run.topologies[number as usize].threads;
        let here = || threads.iter().filter(|thread| rank.allowed.contains(thread.cpu)).collect();
        self.0.entry((number, &rank.allowed)).or_insert_with(here)
    }
}

/// The ranks of a node that share hardware threads with so many other ranks that not every rank can have its own
/// hardware thread.
fn sharing<'a>(run: &'a Run, ranks: &[usize], threads: &mut ThreadsOfSets<'a>) -> Vec<usize> {
    let mut users: BTreeMap<u32, usize> = BTreeMap::new();
    for at in ranks {
        threads.of(run, &run.ranks[*at]).iter().for_each(|thread| *users.entry(thread.cpu).or_default() += 1);
    }
    // Ranks that share a socket or a NUMA node, and have a hardware thread each, do not disturb one another.
    let mut shares = |at: &&usize| {
        let here = threads.of(run, &run.ranks[**at]);
        here.iter().any(|thread| users[&thread.cpu] > here.len())
    };
    ranks.iter().filter(|at| shares(at)).copied().collect()
}

/// Nodes whose ranks outnumber their cores.
fn crowded<'a>(
    run: &'a Run,
    nodes: &BTreeMap<NodeId, Vec<usize>>,
    threads: &mut ThreadsOfSets<'a>,
) -> Option<String> {
    let of = |(node, ranks): (&NodeId, &Vec<usize>)| {
        let (mut cores, mut here) = (BTreeSet::new(), BTreeSet::new());
        let mut known: HashSet<&CpuSet> = HashSet::new();
        for rank in ranks.iter().map(|at| &run.ranks[*at]).filter(|rank| known.insert(&rank.allowed)) {
            for thread in threads.of(run, rank) {
                cores.insert(thread.core);
                here.insert(thread.cpu);
            }
        }
        let host = &run.nodes[node.index()].key.hostname;
        let is_crowded = !cores.is_empty() && ranks.len() > cores.len();
        is_crowded.then_some((ranks.len(), cores.len(), here.len(), host))
    };
    let crowded: Vec<_> = nodes.iter().filter_map(of).collect();
    let (ranks, cores, threads, host) = crowded.first()?;
    let others = match crowded.len() - 1 {
        0 => String::new(),
        more => format!("; ranks of {} share cores, too", count(more, "more node")),
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

/// Facts in which nodes of the run differ.
fn unequal(run: &Run) -> Option<String> {
    if run.nodes.windows(2).all(|pair| node_class::are_alike(&pair[0], &pair[1])) {
        return None;
    }
    let mut values: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for node in &run.nodes {
        let Some(NodeFacts { hardware, .. }) = &node.facts else { continue };
        // The kernel keeps a part of the memory that differs by some MiB.
        let gibibytes = hardware.memory_bytes.map(|bytes| format!("{} GiB", (bytes + (1 << 29)) >> 30));
        let hardware = [
            ("cpu", hardware.cpu_model_name.clone()),
            ("microcode", hardware.microcode.clone()),
            ("memory", gibibytes),
            ("kernel", hardware.kernel.clone()),
        ];
        let hardware = hardware.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let facts = node.facts.as_ref().map(NodeFacts::named).unwrap_or_default();
        for (name, value) in hardware.chain(facts).filter(|(name, _)| !may_differ_between_nodes(name)) {
            values.entry(name).or_default().entry(value).or_default().push(&node.key.hostname);
        }
    }
    values.retain(|_, values| values.len() > 1);
    let differences = values.iter().map(|(name, values)| {
        let mut values: Vec<(&String, &Vec<&str>)> = values.iter().collect();
        values.sort_by_key(|(value, nodes)| (std::cmp::Reverse(nodes.len()), *value));
        let usual = values.first().map_or("", |(value, _)| value.as_str());
        let others = values
            .iter()
            .skip(1)
            .take(NAMED)
            .map(|(value, nodes)| format!("{} on {}", brief(value), named(nodes)));
        format!("{name} is {}, but {}", brief(usual), others.collect::<Vec<String>>().join(", "))
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

/// The beginning of a long value, such as the kernel's options.
fn brief(value: &str) -> String {
    const LONGEST: usize = 60;
    let more = if value.chars().count() > LONGEST { "..." } else { "" };
    value.chars().take(LONGEST).collect::<String>() + more
}
