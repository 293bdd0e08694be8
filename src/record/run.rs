//! One run, assembled from what its ranks and nodes sent, and the values that follow from it.

use super::contribution::{HostPart, NodePart, Part};
use super::header::RunHeader;
use super::outcome::End;
use super::rank::{LostRank, RankRecord};
use super::screened::Screened;
use super::wire::{self, WireError};
use crate::bounds::{Anchors, ElapsedBounds, JobStamps, MaxDrift, NodeLateness, Pings};
use crate::counters::counts::Counts;
use crate::counters::empty_entry::EmptyEntry;
use crate::counters::expected::ExpectedInstructions;
use crate::counters::requested::AskedFor;
use crate::counters::selection::Selection;
use crate::ids::{NodeId, RankId};
use crate::node::{HealthCount, NodeFacts, NodeKey, Topology};
use crate::probes::Probes;
use crate::regions::Regions;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One node of one run, or more exactly one clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Which node and which clock.
    pub key: NodeKey,
    /// Its hardware and settings; `None` if none of its ranks reported.
    pub facts: Option<NodeFacts>,
    /// Index into [`Run::topologies`].
    pub topology: Option<u32>,
    /// What its kernel counted when hardware did not work as it should, during the work. Empty if nothing was read;
    /// run files have it from schema 6 on.
    #[serde(skip)]
    pub health: Vec<HealthCount>,
}

impl NodeRecord {
    /// A node of which nothing else is known.
    pub fn new(key: NodeKey) -> Self {
        Self { key, facts: None, topology: None, health: Vec::new() }
    }
}

/// Time that the tool itself took (ns), as the last rank saw it: the other ranks would have waited for this rank
/// without the tool, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overhead {
    /// From the end of MPI_Init to t1.
    pub starting_ns: i64,
    /// t3 - t2.
    pub end_barrier_ns: i64,
    /// From t3 until rank 0 had every rank's part.
    pub gather_ns: i64,
}

impl Overhead {
    /// The sum of all.
    pub fn total_ns(self) -> i64 {
        self.starting_ns.saturating_add(self.end_barrier_ns).saturating_add(self.gather_ns)
    }
}

/// One run. It is complete if every rank reached t3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Command, job, library.
    pub header: RunHeader,
    /// Ranks in the job; `ranks` may hold fewer.
    pub size: u32,
    /// One per clock.
    #[serde(deserialize_with = "wire::long_list")]
    pub nodes: Vec<NodeRecord>,
    /// The distinct topologies of the nodes.
    pub topologies: Vec<Topology>,
    /// Ranks that reached t3, in rank order.
    #[serde(deserialize_with = "wire::long_list")]
    pub ranks: Vec<RankRecord>,
    /// Ranks that reached t1 but not t3, in rank order. A run file holds none: see [`crate::partial`].
    #[serde(skip)]
    pub lost: Vec<LostRank>,
    /// Time from t3 until the gather was complete, on rank 0 (ns).
    pub gather_ns: i64,
    /// The regions of the program. In a run file, each schema stores this and the following fields in a part of its
    /// own: see [`crate::record::run_file`].
    #[serde(skip)]
    pub regions: Regions,
    /// Pings between the nodes and rank 0's node, the hub; empty without `--sync pingpong`.
    #[serde(skip)]
    pub sync: Vec<(NodeId, Pings)>,
    /// The least time of a rank from the end of its MPI_Init to t1 (ns).
    #[serde(skip)]
    pub starting_ns: Option<i64>,
    /// What ranks counted between their t1 and t2.
    #[serde(skip)]
    pub counts: Counts,
    /// What the counters count in a region without content; empty if pmmpi did not read them in the program itself.
    #[serde(skip)]
    pub empty_entry: EmptyEntry,
    /// The probes of the program.
    #[serde(skip)]
    pub probes: Probes,
    /// The options that asked for events beside the default set.
    #[serde(skip)]
    pub asked: Vec<AskedFor>,
    /// What `--expect` gives, or what a kernel of `pmmpi screen` should execute.
    #[serde(skip)]
    pub expected: Vec<ExpectedInstructions>,
    /// Set if the run is a round of `pmmpi screen`.
    #[serde(skip)]
    pub screened: Option<Screened>,
}

impl Run {
    /// A run of `size` ranks from their nodes' parts in wire form.
    pub fn assemble(
        header: RunHeader,
        size: u32,
        parts: &[Vec<u8>],
        gather_ns: i64,
    ) -> Result<Self, WireError> {
        let mut run = Self { gather_ns, ..Self::empty(header, size) };
        let mut known: HashMap<NodeKey, NodeId> = HashMap::new();
        for bytes in parts {
            run.add(wire::decode(bytes)?, &mut known)?;
        }
        run.sort();
        Ok(run)
    }

    /// Adds the part of some ranks; `known` are the nodes so far.
    pub(crate) fn add(&mut self, part: Part, known: &mut HashMap<NodeKey, NodeId>) -> Result<(), WireError> {
        let mut nodes = Vec::with_capacity(part.nodes.len());
        for NodePart { key, host, watched, pings } in part.nodes {
            let node = *known.entry(key).or_insert_with_key(|key| self.add_node(key.clone()));
            self.describe(node, &host)?;
            let record = &mut self.nodes[node.index()];
            if !watched.counts.is_empty() {
                record.health = watched.counts;
            }
            if let Some(facts) = &mut record.facts {
                facts.inventory.join(watched.inventory);
            }
            self.sync.extend((!pings.is_empty()).then_some((node, pings)));
            nodes.push(node);
        }
        let known = |rank: &RankRecord| nodes.get(rank.node.index()).copied();
        let ranks =
            part.ranks.into_iter().filter_map(|rank| Some(RankRecord { node: known(&rank)?, ..rank }));
        self.ranks.extend(ranks);
        self.regions.join(part.regions);
        self.counts.join(part.counts);
        self.empty_entry.join(part.empty_entry);
        self.probes.join(part.probes);
        if let Some(screened) = part.screened {
            self.screened.get_or_insert_default().join(screened);
        }
        self.starting_ns = [self.starting_ns, part.starting_ns].into_iter().flatten().min();
        self.header.mpi_library = self.header.mpi_library.take().or(part.mpi_library);
        Ok(())
    }

    /// Sorts all rows, and removes duplicate counts of a node.
    pub(crate) fn sort(&mut self) {
        self.ranks.sort_by_key(|rank| rank.rank);
        self.lost.sort_by_key(|rank| rank.rank);
        self.regions.totals.sort_by_key(|totals| (totals.region, totals.rank));
        self.regions.paused.sort_unstable();
        self.counts.rows.sort_by_key(|row| (row.region, row.set, row.rank, row.cpu));
        self.probes.totals.sort_by_key(|totals| (totals.probe, totals.rank));
        self.sync.sort_by_key(|(node, _)| *node);
        if let Some(screened) = &mut self.screened {
            screened.results.sort_by_key(|result| result.rank);
        }
        let (ranks, lost) = (&self.ranks, &self.lost);
        self.counts.keep_nodes_once(|rank| match ranks.binary_search_by_key(&rank, |own| own.rank) {
            Ok(at) => Some(ranks[at].node),
            Err(_) => lost.binary_search_by_key(&rank, |own| own.rank).ok().map(|at| lost[at].node),
        });
    }

    /// A run of `size` ranks of which nothing is known.
    pub fn empty(header: RunHeader, size: u32) -> Self {
        Self {
            header,
            size,
            nodes: Vec::new(),
            topologies: Vec::new(),
            ranks: Vec::new(),
            lost: Vec::new(),
            gather_ns: 0,
            regions: Regions::default(),
            sync: Vec::new(),
            starting_ns: None,
            counts: Counts::default(),
            empty_entry: EmptyEntry::default(),
            probes: Probes::default(),
            asked: Vec::new(),
            expected: Vec::new(),
            screened: None,
        }
    }

    /// Keeps the options that said what to count.
    pub fn keep_options(&mut self, selection: &Selection) {
        self.asked.clone_from(&selection.asked);
        self.expected.clone_from(&selection.expected);
    }

    /// Adds a clock.
    pub(crate) fn add_node(&mut self, key: NodeKey) -> NodeId {
        self.nodes.push(NodeRecord::new(key));
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Sets a node's facts and topology. `host` is a [`HostPart`] in wire form, or empty.
    pub(crate) fn describe(&mut self, node: NodeId, host: &[u8]) -> Result<(), WireError> {
        if host.is_empty() {
            return Ok(());
        }
        let (facts, topology) = wire::decode::<HostPart>(host)?.facts();
        let topology = topology.map(|topology| index_of(&mut self.topologies, topology));
        let record = &mut self.nodes[node.index()];
        (record.facts, record.topology) = (Some(facts), topology);
        Ok(())
    }

    /// The ranks' stamps, joined per clock.
    pub fn job_stamps(&self) -> JobStamps {
        let mut job = JobStamps::new();
        for rank in &self.ranks {
            job.add(rank.node, rank.stamps);
        }
        job
    }

    /// Bounds on the elapsed time; `None` if not every rank reached its end.
    pub fn elapsed(&self) -> Option<ElapsedBounds> {
        if !self.is_complete() {
            return None;
        }
        let (stamps, drift) = (self.job_stamps(), self.max_drift());
        match self.anchors() {
            Some(anchors) => stamps.elapsed_with(&anchors, drift),
            None => stamps.elapsed(drift),
        }
    }

    /// How much later than others each clock's last rank reached the end. Empty if not every rank reached it, if
    /// there is only one clock, and if the clocks contradict each other.
    pub fn lateness(&self) -> Vec<NodeLateness> {
        match self.is_complete() {
            true => self.job_stamps().lateness(self.anchors().as_ref(), self.max_drift()),
            false => Vec::new(),
        }
    }

    /// Pings between the nodes and the hub, rank 0's node.
    fn anchors(&self) -> Option<Anchors<'_>> {
        Anchors::new(self.ranks.first()?.node, &self.sync)
    }

    /// The rate error that each clock is allowed: the user's limit. If a time service slewed a clock by more than
    /// this limit, the limit plus this slew: the oscillator has its own error, too.
    pub fn max_drift(&self) -> MaxDrift {
        let allowed = self.header.max_drift;
        let slew = self.ranks.iter().map(|rank| rank.slew_ppm().abs()).fold(0.0, f64::max);
        if slew <= allowed.ppm() { allowed } else { allowed.plus(slew) }
    }

    /// Time that the tool added between MPI_Init and MPI_Finalize; `None` if no rank reached t3.
    pub fn overhead(&self) -> Option<Overhead> {
        let starting = |r: &RankRecord| r.setup_ns.saturating_add(r.stamps.start_barrier_ns());
        let end_barrier_ns = self.ranks.iter().map(|r| r.stamps.end_barrier_ns()).min()?;
        Some(Overhead {
            // A run file of schema 1 lacks the time that ranks took to find each other.
            starting_ns: self.starting_ns.or_else(|| self.ranks.iter().map(starting).min())?,
            end_barrier_ns,
            gather_ns: self.gather_ns,
        })
    }

    /// All of [`Run::overhead`] (ns).
    pub fn overhead_ns(&self) -> Option<i64> {
        self.overhead().map(Overhead::total_ns)
    }

    /// True if every rank reached t3.
    pub fn is_complete(&self) -> bool {
        self.ranks.len() == self.size as usize
    }

    /// The end of a rank that best explains how the run ended: the end that is least likely to be a consequence of
    /// another rank's end. Of several such ends, the end of the lowest rank. `None` if no rank is known. Also `None`
    /// if no rank failed and some ends are unknown: the run may still go on.
    pub fn end(&self) -> Option<End> {
        self.telling_rank().map(|(_, _, end)| end)
    }

    /// The rank whose end [`Run::end`] returns, its node and its end.
    pub fn telling_rank(&self) -> Option<(RankId, NodeId, End)> {
        let complete = self.ranks.iter().map(|r| (r.end.follows(), r.rank, r.node, r.end));
        // A lost rank that exited with 0 has exited too early.
        let early = |end| if end == End::Exited(0) { 1 } else { End::follows(end) };
        let lost = self.lost.iter().map(|r| (early(r.end), r.rank, r.node, r.end));
        let telling = complete.chain(lost).min_by_key(|(follows, rank, ..)| (*follows, *rank));
        // If a launcher ended the ranks and a node is silent, the loss of this node is the cause.
        if let Some((_, _, _, end)) = telling
            && end.is_brought_about()
            && let Some(rank) = self.rank_of_a_lost_node()
        {
            return Some((rank.rank, rank.node, End::Lost));
        }
        telling.filter(|(.., end)| *end != End::Lost).map(|(_, rank, node, end)| (rank, node, end))
    }

    /// The first rank of a node that has lost all its ranks together with their launchers.
    fn rank_of_a_lost_node(&self) -> Option<&LostRank> {
        let mut heard_of = vec![false; self.nodes.len()];
        let mut hear = |node: NodeId| heard_of[node.index()] = true;
        self.ranks.iter().for_each(|rank| hear(rank.node));
        self.lost.iter().filter(|rank| rank.end != End::Lost).for_each(|rank| hear(rank.node));
        self.lost.iter().find(|rank| !heard_of[rank.node.index()])
    }

    /// Number of host names: two clocks may belong to one host.
    pub fn host_count(&self) -> usize {
        let names: std::collections::HashSet<&str> =
            self.nodes.iter().map(|n| n.key.hostname.as_str()).collect();
        names.len()
    }

    /// The host name of a complete rank's node; `None` if the rank is not complete.
    pub fn host_of(&self, rank: RankId) -> Option<&str> {
        let at = self.ranks.binary_search_by_key(&rank, |record| record.rank).ok()?;
        let node = self.nodes.get(self.ranks.get(at)?.node.index())?;
        Some(node.key.hostname.as_str())
    }

    /// True if every index is valid and all rows are in order. A reader must check this before it uses the run.
    pub(crate) fn is_sound(&self) -> bool {
        let nodes = self.nodes.len();
        let topology_exists =
            |n: &NodeRecord| n.topology.is_none_or(|t| (t as usize) < self.topologies.len());
        self.ranks.len() + self.lost.len() <= self.size as usize
            && self.ranks.iter().all(|r| r.node.index() < nodes && r.rank.0 < self.size)
            && self.lost.iter().all(|r| r.node.index() < nodes && r.rank.0 < self.size)
            && self.nodes.iter().all(topology_exists)
            && self.regions.is_sound(self.size)
            && self.counts.is_sound(self.size)
            && self.probes.is_sound(self.size)
            && self.screened.as_ref().is_none_or(|screened| screened.is_sound(self.size))
            && self.sync.iter().all(|(node, _)| node.index() < nodes)
            && self.ranks.windows(2).all(|pair| pair[0].rank < pair[1].rank)
            && self.lost.windows(2).all(|pair| pair[0].rank < pair[1].rank)
            && self.lost.iter().all(|l| self.ranks.binary_search_by_key(&l.rank, |r| r.rank).is_err())
    }
}

fn index_of(topologies: &mut Vec<Topology>, topology: Topology) -> u32 {
    let known = topologies.iter().position(|t| *t == topology);
    known.unwrap_or_else(|| {
        topologies.push(topology);
        topologies.len() - 1
    }) as u32
}
