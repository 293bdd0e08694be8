//! Flags of a run that need no counters: where its ranks ran, and how equal its nodes were. And counters that counted too
//! little of the time.

use super::flag_findings::{Finding, RunFinding, UnequalFact};
use super::metrics::{Flag, MetricReport};
use super::turbo_flag;
use crate::table::node_class;
use crate::table::run_settings::may_differ_between_nodes;
use crate::warnings::FirstFew;
use pmmpi::NodeId;
use pmmpi::node::{CpuSet, HwThread, NodeFacts, Topology};
use pmmpi::record::{BoundTo, RankRecord, Run};
use pmmpi_events::metrics::RUNNING_SHARE_FLOOR;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A finding names at most this number of ranks, nodes, facts, other values of a fact, or metrics.
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
    fn of(finding: &RunFinding) -> Self {
        match finding {
            RunFinding::UnboundRanks(_) => Self::UnboundRanks,
            RunFinding::OverlappingRanks(_) => Self::OverlappingRanks,
            RunFinding::MoreRanksThanCores { .. } => Self::MoreRanksThanCores,
            RunFinding::MovedRanks(_) => Self::MovedRanks,
            RunFinding::UnequalNodes(_) => Self::UnequalNodes,
            RunFinding::LowRunningShare(_) => Self::LowRunningShare,
            RunFinding::BelowTurboStep { .. } => Self::BelowTurboStep,
            RunFinding::ShortEntries { .. } => Self::ShortEntries,
        }
    }

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
                "a node has several ranks, and one or more of them are not bound: the Linux kernel may move an \
                 unbound rank to any hardware thread of the node. Bind ranks, for example with `mpirun \
                 --bind-to core` or `srun --cpu-bind=cores`"
            }
            Self::OverlappingRanks => {
                "ranks are bound to too few hardware threads, so some ranks share a hardware thread: check how the \
                 launcher binds the ranks"
            }
            Self::MoreRanksThanCores => {
                "a node has more ranks than cores on which these ranks may run, so ranks share cores. If a node also has \
                 more ranks than hardware threads on which these ranks may run, ranks wait for each other"
            }
            Self::MovedRanks => {
                "a rank began its work on one core, and ended its work on another core: the Linux kernel moved \
                 the rank"
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
                 lower of two: the turbo step (the highest frequency for this number of active cores), and the \
                 configured maximum frequency. Look at power and temperature, at wide vector instructions (they \
                 lower the turbo step), and at other programs on the sockets. The report does not show this \
                 flag if turbo is off on a node, or if the fact `turbo_steps` of a node is unknown (only root \
                 can read it)"
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
    let nodes = ranks_by_node(run);
    let bindings = run.bindings();
    let several = || nodes.values().filter(|ranks| ranks.len() > 1);
    let rank = |at: &usize| run.ranks[*at].rank;
    let unbound = several().flatten().filter(|at| bindings[**at] == BoundTo::Nothing);
    let mut threads = ThreadsOfSets::default();
    let mut overlapping: Vec<usize> = Vec::new();
    for ranks in several() {
        let is_bound = |at: &&usize| !matches!(bindings[**at], BoundTo::Nothing | BoundTo::Unknown);
        let bound: Vec<usize> = ranks.iter().filter(is_bound).copied().collect();
        overlapping.extend(sharing(run, &bound, &mut threads));
    }
    let moved = run.ranks.iter().filter(|rank| has_moved(run, rank));
    let findings = [
        finding_about(unbound, rank, RunFinding::UnboundRanks),
        finding_about(overlapping.iter(), rank, RunFinding::OverlappingRanks),
        crowded(run, &nodes, &mut threads),
        finding_about(moved, |rank| rank.rank, RunFinding::MovedRanks),
        unequal(run),
        seldom_counted(metrics),
        turbo_flag::below_step(run, metrics),
    ];
    findings.into_iter().flatten().map(flag).collect()
}

/// The flags that a region raises. An entry took `mean_entry_ns` in the mean.
pub fn of_region(metrics: &[MetricReport], mean_entry_ns: f64) -> Vec<Flag> {
    let is_counted = metrics.iter().any(|metric| metric.value.is_some());
    let is_short = is_counted && mean_entry_ns < SHORT_NS;
    let short = is_short.then_some(RunFinding::ShortEntries { mean_entry_ns });
    [seldom_counted(metrics), short].into_iter().flatten().map(flag).collect()
}

fn flag(finding: RunFinding) -> Flag {
    Flag { code: RunFlag::of(&finding).code(), finding: Finding::Run(finding), discards: false }
}

/// The finding about all these; `None` if there are none.
fn finding_about<I, T>(
    all: impl Iterator<Item = I>,
    keep: impl FnMut(I) -> T,
    finding: fn(FirstFew<T>) -> RunFinding,
) -> Option<RunFinding> {
    let few = FirstFew::of(all, NAMED, keep);
    (few.all > 0).then(|| finding(few))
}

/// McCalpin (2018-07-23): in a section under 1 ms, the kernel should do nothing.
const SHORT_NS: f64 = 1e6;

/// The metrics that were counted for a small part of the time.
fn seldom_counted(metrics: &[MetricReport]) -> Option<RunFinding> {
    let is_low =
        |metric: &&MetricReport| metric.running_share.is_some_and(|share| share < RUNNING_SHARE_FLOOR);
    finding_about(metrics.iter().filter(is_low), |metric| metric.name.to_owned(), RunFinding::LowRunningShare)
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
) -> Option<RunFinding> {
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
    let &(ranks, cores, hardware_threads, host) = crowded.first()?;
    let (node, more_nodes) = (host.clone(), crowded.len() - 1);
    Some(RunFinding::MoreRanksThanCores { node, ranks, cores, hardware_threads, more_nodes })
}

/// True if the rank was on different cores at t1 and t2.
fn has_moved(run: &Run, rank: &RankRecord) -> bool {
    let [Some(from), Some(to)] = rank.ran_on else { return false };
    let Some(topology) = topology(run, rank.node) else { return false };
    let core = |cpu: u32| topology.threads.iter().find(|thread| thread.cpu == cpu).map(|thread| thread.core);
    from != to && core(from).zip(core(to)).is_some_and(|(from, to)| from != to)
}

/// Facts in which nodes of the run differ.
fn unequal(run: &Run) -> Option<RunFinding> {
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
    let fact = |(name, values): (&str, BTreeMap<String, Vec<&str>>)| {
        let mut values: Vec<(String, Vec<&str>)> = values.into_iter().collect();
        // Equally frequent values stay in the order of the alphabet.
        values.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
        let mut values = values.into_iter();
        let usual = values.next().map(|(value, _)| value).unwrap_or_default();
        let with_nodes = |(value, nodes): (String, Vec<&str>)| {
            (value, FirstFew::of(nodes.into_iter(), NAMED, str::to_owned))
        };
        UnequalFact { name: name.to_owned(), usual, others: values.take(NAMED).map(with_nodes).collect() }
    };
    finding_about(values.into_iter(), fact, RunFinding::UnequalNodes)
}
