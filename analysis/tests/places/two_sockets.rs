//! Runs as a node with two sockets of 24 cores would write them.

use pmmpi::bounds::Stamps;
use pmmpi::counters::counts::{CountRow, GroupCounts};
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::node::{CpuSet, Hardware, HwThread, NodeFacts, NodeKey, Topology};
use pmmpi::record::{End, Mode, NodeRecord, RankRecord, Run, RunHeader};
use pmmpi::{NodeId, RankId};

pub const SOCKETS: u32 = 2;
pub const CORES: u32 = 48;

/// How a kernel numbers the hardware threads of a core.
#[derive(Clone, Copy, Debug)]
pub enum Numbering {
    /// Threads 0 and 1 share core 0.
    Adjacent,
    /// Threads 0 and 48 share core 0.
    Apart,
}

/// Two sockets of 24 cores with two hardware threads each. Core `c` is on socket `c / 24`.
pub fn topology(numbering: Numbering) -> Topology {
    let mut threads: Vec<HwThread> = (0..CORES)
        .flat_map(|core| {
            threads_of(numbering, core).map(|cpu| HwThread {
                cpu,
                core,
                socket: core / (CORES / SOCKETS),
                numa: core / (CORES / SOCKETS),
                last_level_cache: None,
            })
        })
        .collect();
    threads.sort_by_key(|thread| thread.cpu);
    Topology { source: "test".into(), threads, ..Topology::default() }
}

pub fn threads_of(numbering: Numbering, core: u32) -> [u32; 2] {
    match numbering {
        Numbering::Adjacent => [2 * core, 2 * core + 1],
        Numbering::Apart => [core, core + CORES],
    }
}

/// What one run is like.
pub struct Like<'a> {
    pub node: &'a str,
    pub run: usize,
    pub model: (&'a str, u32, u32),
    pub numbering: Numbering,
    pub seconds: f64,
    /// By core.
    pub cycles: Vec<f64>,
    /// By core: lines into the L2 cache.
    pub fills: Vec<f64>,
    /// By socket.
    pub evictions: Vec<f64>,
    /// By socket: lines read from memory; empty if they were not counted.
    pub reads: Vec<f64>,
    /// False: a rank may run everywhere.
    pub is_bound: bool,
}

impl Like<'_> {
    /// One rank per core, each with its own counts.
    pub fn run(&self) -> Run {
        let id = format!("20261101T{:02}0000.000000000Z-{}", self.run, self.node);
        let started = 1_793_491_200_000_000_000 + 3_600_000_000_000 * self.run as i64;
        let mut run = Run::empty(RunHeader::new(id, vec!["./xhpl".into()], Mode::Mpi, started), CORES);
        let key = NodeKey { hostname: self.node.into(), boot_id: String::new(), time_namespace: 0 };
        let (vendor, family, model) = self.model;
        let hardware = Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_model_name: Some("Test".into()),
            cpu_family: Some(family),
            cpu_model: Some(model),
            cpu_stepping: Some(4),
            ..Hardware::default()
        };
        let facts = Some(NodeFacts { hardware, ..NodeFacts::default() });
        run.nodes.push(NodeRecord { facts, topology: Some(0), ..NodeRecord::new(key) });
        run.topologies.push(topology(self.numbering));
        let ns = (self.seconds * 1e9) as i64;
        let all = CpuSet(vec![(0, 2 * CORES - 1)]);
        run.ranks = (0..CORES)
            .map(|rank| RankRecord {
                rank: RankId(rank),
                node: NodeId(0),
                stamps: Stamps::new(0, 1_000, 1_000 + ns, 2_000 + ns).unwrap(),
                tsc: Some([0, (2.1 * ns as f64) as u64]),
                allowed: match self.is_bound {
                    true => CpuSet::from_numbers(threads_of(self.numbering, rank).into_iter()),
                    false => all.clone(),
                },
                ..RankRecord::unmeasured(End::Finalized)
            })
            .collect();
        let event = |name: &str| (Event::counted(name, Encoding::new(kind::RAW, 0)), None);
        let set = |scope, names: &[&str]| Set {
            scope,
            events: names.iter().map(|name| event(name)).collect(),
            groups: vec![(0..names.len() as u32).collect()],
        };
        let of_socket = if self.reads.is_empty() { 1 } else { 2 };
        run.counts.sets = vec![
            set(Scope::Task, &["instructions", "cycles", "ref_cycles", "task_clock_ns", "l2_lines_in"]),
            set(Scope::Socket, &["snoop_filter_evictions", "dram_reads"][..of_socket]),
        ];
        let row = |rank: u32, cpu, set, counts: &[f64]| CountRow {
            rank: RankId(rank),
            cpu,
            set,
            region: None,
            groups: vec![Some(GroupCounts {
                enabled_ns: ns as u64,
                running_ns: ns as u64,
                counts: counts.iter().map(|count| *count as u64).collect(),
            })],
        };
        let work = 2.1e9 * self.seconds;
        run.counts.rows = (0..CORES)
            .map(|rank| {
                let at = rank as usize;
                let counts = [4e10, self.cycles[at], work, 1e9 * self.seconds, self.fills[at]];
                row(rank, None, 0, &counts)
            })
            .chain((0..SOCKETS).map(|socket| {
                let cpu = threads_of(self.numbering, socket * CORES / SOCKETS)[0];
                let at = socket as usize;
                let reads = self.reads.get(at).copied().unwrap_or_default();
                row(0, Some(cpu), 1, &[self.evictions[at], reads][..of_socket])
            }))
            .collect();
        run
    }
}
