//! Runs made by hand.

use super::common::Folder;
use pmmpi::bounds::{MaxDrift, RawClock, Stamps};
use pmmpi::counters::counter_table::CounterTable;
use pmmpi::counters::open_counters::Scripted;
use pmmpi::node::{CpuSet, Hardware, NodeFacts, NodeKey};
use pmmpi::partial::{About, CarrierNote, Frame, KeptRank, NodeFile, folder_of};
use pmmpi::record::{End, Mode, NodeRecord, RankRecord, Run, RunHeader, run_file};
use pmmpi::session::launcher_request::Keep;
use pmmpi::session::shared_memory::SharedMemory;
use pmmpi::session::{Beginning, RankMemory, RankSession};
use pmmpi::transport::fabric::Solo;
use pmmpi::transport::node_meeting::Meeting;
use pmmpi::{NodeId, RankId};
use std::path::{Path, PathBuf};

impl Folder {
    pub fn write(&self, run: &Run) -> PathBuf {
        run_file::write(self.path(), run).unwrap()
    }

    /// Creates a partial run of `size` ranks in which rank 0 works. Returns its folder, that rank's file and its
    /// shared memory.
    pub fn begin(&self, run_id: &str, size: u32) -> (PathBuf, PathBuf, SharedMemory) {
        let folder = folder_of(self.path(), run_id).unwrap();
        let shared = SharedMemory::create().unwrap();
        assert!(shared.live().claim());
        let beginning = Beginning { began_ns: 0, pings: false, tight_end: true, meeting: Meeting::default() };
        let (live, regions) = (shared.live(), shared.regions());
        let memory = RankMemory { live, regions, snapshots: CounterTable::default() };
        let mut session = RankSession::open(memory, Scripted::default(), Solo, beginning);
        let part = session.part_before(None, vec![]);
        CarrierNote { folder: folder.clone(), part }.write(&shared).unwrap();
        session.start().unwrap();
        shared.live().size.store(size, std::sync::atomic::Ordering::Relaxed);
        carry(&folder, &shared);
        let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
        (folder, file, shared)
    }
}

/// Writes the shared memory of a rank to disk, as the carrier does.
pub fn carry(folder: &Path, shared: &SharedMemory) {
    let header = run("by this launcher", &[]).header;
    let place = Keep { folder: folder.to_owned(), header, asked: Vec::new(), expected: Vec::new() };
    let kept = KeptRank::of(shared, &CarrierNote::read(shared).unwrap()).unwrap();
    let frame = |whole: bool| Frame {
        about: whole.then(|| About::of(shared, place.clone(), folder).unwrap()),
        ranks: vec![kept.clone()],
        ..Frame::default()
    };
    NodeFile::of(folder, None).add(frame).unwrap();
}

/// A node that is equal to all others.
pub fn node(hostname: &str) -> NodeRecord {
    let hardware = Hardware {
        cpu_model_name: Some("Test CPU".into()),
        cpu_family: Some(6),
        cpu_model: Some(85),
        cpu_stepping: Some(4),
        memory_bytes: Some(192 << 30),
        kernel: Some("6.1.0".into()),
        ..Hardware::default()
    };
    let key = NodeKey { hostname: hostname.into(), boot_id: hostname.into(), time_namespace: 1 };
    NodeRecord { facts: Some(NodeFacts { hardware, ..NodeFacts::default() }), ..NodeRecord::new(key) }
}

/// A run with one rank per element: its node's name and its stamps.
pub fn run(run_id: &str, ranks: &[(&str, [i64; 4])]) -> Run {
    let mut nodes: Vec<NodeRecord> = Vec::new();
    let mut records = Vec::new();
    for (rank, (hostname, t_ns)) in ranks.iter().enumerate() {
        let known = nodes.iter().position(|n| n.key.hostname == *hostname);
        let at = known.unwrap_or_else(|| {
            nodes.push(node(hostname));
            nodes.len() - 1
        });
        records.push(RankRecord {
            rank: RankId(rank as u32),
            node: NodeId(at as u32),
            stamps: Stamps::try_from(*t_ns).unwrap(),
            raw: RawClock::default(),
            real_ns: [0, 1],
            tsc: None,
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            allowed: CpuSet::default(),
            ran_on: [None, None],
            end: End::Finalized,
            setup_ns: 7,
        });
    }
    let header = RunHeader {
        labels: vec![("build".into(), "O3".into())],
        mpi_library: Some("MPICH Version: 4.0.2".into()),
        max_drift: MaxDrift::from_ppm(0.0).unwrap(),
        ..RunHeader::new(
            run_id.into(),
            vec!["./hpl".into(), "-n".into()],
            Mode::Mpi,
            1_700_000_000_000_000_000,
        )
    };
    let size = records.len() as u32;
    Run { nodes, ranks: records, gather_ns: 3, ..Run::empty(header, size) }
}
