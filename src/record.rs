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
}

impl End {
    /// What this end is worth where `signal` had asked for it.
    pub fn asked_for_by(self, signal: Option<i32>) -> Self {
        match signal {
            Some(signal) if self.is_success() => End::Interrupted(signal),
            _ => self,
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
    /// What its clock's rate differed by from the oscillator's, at least (ppm).
    pub fn slew_ppm(&self) -> f64 {
        self.raw.slew_ppm(self.stamps)
    }
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

/// One complete run.
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
    /// In rank order.
    pub ranks: Vec<RankRecord>,
    /// Time from t3 until the gather was complete, on rank 0 (ns).
    pub gather_ns: i64,
}

/// What one rank sends to rank 0.
#[derive(Debug, Serialize, Deserialize)]
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
    pub fn assemble(mut header: RunHeader, parts: &[Vec<u8>], gather_ns: i64) -> Result<Self, WireError> {
        let mut known: HashMap<NodeKey, u32> = HashMap::new();
        let (mut nodes, mut topologies) = (Vec::<NodeRecord>::new(), Vec::<Topology>::new());
        let mut ranks = Vec::with_capacity(parts.len());
        for bytes in parts {
            let part: RankPart = wire::decode(bytes)?;
            let node = *known.entry(part.key.clone()).or_insert_with(|| {
                nodes.push(NodeRecord { key: part.key, facts: None, topology: None });
                nodes.len() as u32 - 1
            });
            if !part.host.is_empty() {
                let host: HostPart = wire::decode(&part.host)?;
                nodes[node as usize].facts = Some(host.facts);
                nodes[node as usize].topology = host.topology.map(|t| index_of(&mut topologies, t));
            }
            ranks.push(RankRecord { node, ..part.record });
            header.mpi_library = header.mpi_library.or(part.mpi_library);
        }
        ranks.sort_by_key(|r| r.rank);
        Ok(Self { header, size: parts.len() as u32, nodes, topologies, ranks, gather_ns })
    }

    /// The ranks' stamps, joined per clock.
    pub fn job_stamps(&self) -> JobStamps {
        let mut job = JobStamps::new();
        for rank in &self.ranks {
            job.add(rank.node, rank.stamps);
        }
        job
    }

    /// How long it took; `None` without a rank.
    pub fn elapsed(&self) -> Option<ElapsedBounds> {
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

    /// The first end that was not a success, or the end that all ranks share.
    pub fn end(&self) -> Option<End> {
        let failed = self.ranks.iter().find(|r| !r.end.is_success());
        failed.or(self.ranks.first()).map(|r| r.end)
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
        // A file of some bytes must not stand for a list of a million missing ranks.
        const MOST_MISSING: usize = 4096;
        self.size as usize <= MOST_MISSING * (1 + self.ranks.len())
            && self.ranks.iter().all(|r| (r.node as usize) < nodes && r.rank < self.size)
            && self.nodes.iter().all(topology_exists)
            && self.ranks.windows(2).all(|pair| pair[0].rank < pair[1].rank)
    }
}

fn index_of(topologies: &mut Vec<Topology>, topology: Topology) -> u32 {
    let known = topologies.iter().position(|t| *t == topology);
    known.unwrap_or_else(|| {
        topologies.push(topology);
        topologies.len() - 1
    }) as u32
}
