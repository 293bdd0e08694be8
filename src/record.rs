//! What one measurement leaves behind: raw values only; everything derived is derived later.

use crate::bounds::{ElapsedBounds, JobStamps, MaxDrift};
use crate::node::{CpuSet, NodeFacts, NodeKey, Topology};
use crate::slew::RawClock;
use crate::stamps::Stamps;
use crate::wire::{self, WireError};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// How one rank's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// An MPI program that reached MPI_Finalize.
    Finalized,
    /// A program that returned this exit code; an MPI program after MPI_Finalize.
    Exited(i32),
    /// A program that this signal ended; an MPI program after MPI_Finalize.
    Signaled(i32),
    /// A plain program that could not be started: the errno of the exec.
    NotStarted(i32),
    /// A program that ended well after this signal had asked it to: it may not have done all its work.
    Interrupted(i32),
    /// An MPI program that called MPI_Abort with this code.
    Aborted(i32),
    /// A program that the tool ended after the time that the user gave it.
    TimedOut,
    /// A rank whose launcher was killed, or still runs: nobody saw its end.
    Lost,
}

impl End {
    /// What this end is worth where `signal` had asked for it.
    pub fn asked_for_by(self, signal: Option<i32>) -> Self {
        match signal {
            Some(signal) if self.is_success() => End::Interrupted(signal),
            _ => self,
        }
    }

    /// How likely it is that something else brought this end about: a launcher ends all ranks of a job in
    /// which one failed, by SIGTERM and SIGKILL.
    fn follows(self) -> u32 {
        match self {
            End::Aborted(_) | End::NotStarted(_) => 0,
            End::Exited(code) if code != 0 => 1,
            End::Signaled(libc::SIGTERM) => 4,
            End::Signaled(libc::SIGKILL) => 3,
            End::Signaled(_) => 1,
            End::TimedOut => 2,
            End::Interrupted(_) => 5,
            End::Lost => 6,
            End::Finalized | End::Exited(_) => 7,
        }
    }

    /// True for the ends that a healthy program has.
    pub fn is_success(self) -> bool {
        matches!(self, End::Finalized | End::Exited(0))
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Finalized => f.write_str("finalized"),
            End::Exited(code) => write!(f, "exited {code}"),
            End::Signaled(signal) => write!(f, "signal {signal}"),
            End::Interrupted(signal) => write!(f, "interrupted by signal {signal}"),
            End::Aborted(code) => write!(f, "aborted with {code}"),
            End::TimedOut => f.write_str("timed out"),
            End::Lost => f.write_str("lost"),
            End::NotStarted(errno) => write!(f, "not started, errno {errno}"),
        }
    }
}

/// One rank of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Index into [`Run::nodes`]: the clock that the stamps were read from.
    pub node: u32,
    /// CLOCK_MONOTONIC at t0..t3.
    pub stamps: Stamps,
    /// CLOCK_MONOTONIC_RAW around them.
    pub raw: RawClock,
    /// CLOCK_REALTIME right after t1 and right before t2, ns since 1970: when, never how long.
    pub real_ns: [i64; 2],
    /// Time stamp counter there, in ticks; `None` where it is not invariant.
    pub tsc: Option<[u64; 2]>,
    /// CPU time spent between t1 and t2 by the rank's process and its threads (MPI) or by the child
    /// and its descendants (plain), in user mode (ns).
    pub cpu_user_ns: i64,
    /// The same in the kernel.
    pub cpu_system_ns: i64,
    /// Hardware threads that the rank may run on.
    pub allowed: CpuSet,
    /// Hardware thread that it ran on at t1 and at t2; `None` where the kernel does not say.
    pub ran_on: [Option<u32>; 2],
    /// How its work ended.
    pub end: End,
    /// Time the tool took before t0, waiting for other ranks not included (ns).
    pub setup_ns: i64,
}

impl RankRecord {
    /// A rank of which nothing is known but its end.
    pub fn unmeasured(end: End) -> Self {
        Self {
            rank: 0,
            node: 0,
            stamps: Stamps::default(),
            raw: RawClock::default(),
            real_ns: [0; 2],
            tsc: None,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            allowed: CpuSet::default(),
            ran_on: [None; 2],
            end,
            setup_ns: 0,
        }
    }

    /// What its clock's rate differed by from the oscillator's, at least (ppm).
    pub fn slew_ppm(&self) -> f64 {
        self.raw.slew_ppm(self.stamps)
    }
}

/// A rank that came to t1 and not to t3.
#[derive(Clone, Debug, PartialEq)]
pub struct LostRank {
    /// Rank in MPI_COMM_WORLD.
    pub rank: u32,
    /// Index into [`Run::nodes`].
    pub node: u32,
    /// t0, t1 and, where it came so far, t2 (CLOCK_MONOTONIC, ns).
    pub t_ns: Vec<i64>,
    /// How it ended.
    pub end: End,
    /// When its launcher saw that (CLOCK_MONOTONIC, ns); `None` where the launcher did not.
    pub ended_ns: Option<i64>,
}

/// One node of one run, or more exactly one clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Which node and which clock.
    pub key: NodeKey,
    /// What could be read about it; `None` where no rank of it reported.
    pub facts: Option<NodeFacts>,
    /// Index into [`Run::topologies`].
    pub topology: Option<u32>,
}

/// Which of several repetitions a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Shared by the runs that were started together.
    pub id: String,
    /// From 0.
    pub round: u32,
}

/// What started the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// mpirun (Open MPI), mpiexec (Hydra), srun, ...
    pub launcher: Option<String>,
    /// The batch system's job id.
    pub job_id: Option<String>,
    /// Its step id.
    pub step_id: Option<String>,
    /// How many ranks the launcher says that it started.
    pub launched_ranks: Option<u32>,
}

/// How the work was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// From inside an MPI program, between MPI_Init and MPI_Finalize.
    Mpi,
    /// Around a child process.
    Plain,
}

/// What is known of a run without its ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Sorts by start time; unique without coordination.
    pub run_id: String,
    /// The version of the tool that measured.
    pub pmmpi_version: String,
    /// The program and its arguments; bytes that are not UTF-8 are replaced.
    pub command: Vec<String>,
    /// How it was measured.
    pub mode: Mode,
    /// Set where the run is one of several.
    pub series: Option<Series>,
    /// The user's own keys and values.
    pub labels: Vec<(String, String)>,
    /// What started the ranks.
    pub job: Job,
    /// What MPI_Get_library_version says; `None` without MPI.
    pub mpi_library: Option<String>,
    /// The environment variables known to change performance, as rank 0 had them.
    pub environment: Vec<(String, String)>,
    /// CLOCK_REALTIME when the measurement began, ns since 1970.
    pub started_unix_ns: i64,
    /// The rate error that the user allows any clock.
    pub max_drift: MaxDrift,
}

/// One run: complete where every rank came to t3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Command, job, library.
    pub header: RunHeader,
    /// Ranks in the job; `ranks` may hold fewer.
    pub size: u32,
    /// One a clock.
    pub nodes: Vec<NodeRecord>,
    /// The distinct topologies of the nodes.
    pub topologies: Vec<Topology>,
    /// Those that came to t3, in rank order.
    pub ranks: Vec<RankRecord>,
    /// Those that did not, in rank order. A run file holds none: see [`crate::partial`].
    #[serde(skip)]
    pub lost: Vec<LostRank>,
    /// Time from t3 until the gather was complete, on rank 0 (ns).
    pub gather_ns: i64,
}

/// What one rank sends to rank 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RankPart {
    /// Its node.
    pub key: NodeKey,
    /// Its record; `node` is set by rank 0.
    pub record: RankRecord,
    /// What MPI_Get_library_version says.
    pub mpi_library: Option<String>,
    /// A [`HostPart`] in wire form, from the one rank of a node that has it; else empty.
    pub host: Vec<u8>,
}

/// What the first rank of a node adds.
#[derive(Debug, Serialize, Deserialize)]
pub struct HostPart {
    /// The node's settings.
    pub facts: NodeFacts,
    /// Its hardware.
    pub topology: Option<Topology>,
}

impl Run {
    /// A run from the parts that its ranks sent, in rank order.
    pub fn assemble(header: RunHeader, parts: &[Vec<u8>], gather_ns: i64) -> Result<Self, WireError> {
        let mut run = Self { gather_ns, ..Self::empty(header, parts.len() as u32) };
        let mut known: HashMap<NodeKey, u32> = HashMap::new();
        for bytes in parts {
            let part: RankPart = wire::decode(bytes)?;
            let node = *known.entry(part.key).or_insert_with_key(|key| run.add_node(key.clone()));
            run.describe(node, &part.host)?;
            run.ranks.push(RankRecord { node, ..part.record });
            run.header.mpi_library = run.header.mpi_library.or(part.mpi_library);
        }
        run.ranks.sort_by_key(|r| r.rank);
        Ok(run)
    }

    /// A run of `size` ranks of which nothing is known.
    pub(crate) fn empty(header: RunHeader, size: u32) -> Self {
        let (nodes, topologies, ranks, lost) = (vec![], vec![], vec![], vec![]);
        Self { header, size, nodes, topologies, ranks, lost, gather_ns: 0 }
    }

    /// Another clock; gives its index.
    pub(crate) fn add_node(&mut self, key: NodeKey) -> u32 {
        self.nodes.push(NodeRecord { key, facts: None, topology: None });
        self.nodes.len() as u32 - 1
    }

    /// `host` is a [`HostPart`] in wire form, or empty.
    pub(crate) fn describe(&mut self, node: u32, host: &[u8]) -> Result<(), WireError> {
        if host.is_empty() {
            return Ok(());
        }
        let host: HostPart = wire::decode(host)?;
        let topology = host.topology.map(|topology| index_of(&mut self.topologies, topology));
        let record = &mut self.nodes[node as usize];
        (record.facts, record.topology) = (Some(host.facts), topology);
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

    /// How long it took; `None` where not every rank came to its end.
    pub fn elapsed(&self) -> Option<ElapsedBounds> {
        if !self.is_complete() {
            return None;
        }
        self.job_stamps().elapsed(self.max_drift())
    }

    /// The rate error that each clock is allowed: the user's limit, and above it what a time service
    /// was seen to slew a clock by, beyond the oscillator's own error.
    pub fn max_drift(&self) -> MaxDrift {
        let allowed = self.header.max_drift;
        let slew = self.ranks.iter().map(|rank| rank.slew_ppm().abs()).fold(0.0, f64::max);
        if slew <= allowed.ppm() { allowed } else { allowed.plus(slew) }
    }

    /// Time the tool added on the way from MPI_Init to MPI_Finalize (ns): the longest set-up, both
    /// barriers as the rank saw them that waited least, and the gather.
    pub fn overhead_ns(&self) -> Option<i64> {
        let setup = self.ranks.iter().map(|r| r.setup_ns).max()?;
        let start = self.ranks.iter().map(|r| r.stamps.start_barrier_ns()).min()?;
        let end = self.ranks.iter().map(|r| r.stamps.end_barrier_ns()).min()?;
        Some(setup.saturating_add(start).saturating_add(end).saturating_add(self.gather_ns))
    }

    /// True where every rank came to t3.
    pub fn is_complete(&self) -> bool {
        self.ranks.len() == self.size as usize
    }

    /// The end that tells most of why it ended so: the first one that was not a success, of those that no
    /// launcher brought about if there is one. `None` where no rank is known, and where none failed and of
    /// some no end was seen: it may still run.
    pub fn end(&self) -> Option<End> {
        self.telling_rank().map(|(_, _, end)| end)
    }

    /// The rank, its node and its end that [`Run::end`] is.
    pub fn telling_rank(&self) -> Option<(u32, u32, End)> {
        let complete = self.ranks.iter().map(|r| (r.end.follows(), r.rank, r.node, r.end));
        // A lost rank that left with 0 left too early all the same.
        let early = |end| if end == End::Exited(0) { 1 } else { End::follows(end) };
        let lost = self.lost.iter().map(|r| (early(r.end), r.rank, r.node, r.end));
        let telling = complete.chain(lost).min_by_key(|(follows, rank, ..)| (*follows, *rank));
        telling.filter(|(.., end)| *end != End::Lost).map(|(_, rank, node, end)| (rank, node, end))
    }

    /// Host names, each once: two clocks may belong to one.
    pub fn host_count(&self) -> usize {
        let names: std::collections::HashSet<&str> =
            self.nodes.iter().map(|n| n.key.hostname.as_str()).collect();
        names.len()
    }

    /// True where every index and count points at something: what a reader must know before use.
    pub(crate) fn is_sound(&self) -> bool {
        let nodes = self.nodes.len();
        let topology_exists =
            |n: &NodeRecord| n.topology.is_none_or(|t| (t as usize) < self.topologies.len());
        self.ranks.len() + self.lost.len() <= self.size as usize
            && self.ranks.iter().all(|r| (r.node as usize) < nodes && r.rank < self.size)
            && self.lost.iter().all(|r| (r.node as usize) < nodes && r.rank < self.size)
            && self.nodes.iter().all(topology_exists)
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
