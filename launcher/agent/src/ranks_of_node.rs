//! Finds out where the ranks of this node are, for the warning of a rank that waits too long. It reads their shared
//! memory through the open descriptors of the `pmmpi` processes that started them.

use pmmpi::RankId;
use pmmpi::record::wire;
use pmmpi::regions::Whereabouts;
use pmmpi::session::launch_check::Expectation;
use pmmpi::session::live_record::Phase;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// The largest number of ranks in a list; further ranks are only counted.
const MOST_NAMED: usize = 16;

/// A rank of this node.
struct Neighbour {
    rank: RankId,
    phase: Phase,
    at: Option<Whereabouts>,
}

/// Describes a mark at which this rank waits: the ranks that are there, and the places of the node's other ranks.
pub fn describe(mark: &Whereabouts, job: &str, size: u32) -> String {
    let ranks = ranks_of(job, size);
    let is_there = |rank: &&Neighbour| rank.at.as_ref() == Some(mark);
    let there = listed(ranks.iter().filter(is_there).map(|rank| rank.rank.to_string()));
    let missing = ranks.iter().filter(|rank| !is_there(rank)).map(|rank| match (&rank.at, rank.phase) {
        (Some(at), _) => format!("{} ({at})", rank.rank),
        (None, Phase::Started) => format!("{} (in no region)", rank.rank),
        (None, _) => format!("{} (in MPI_Finalize)", rank.rank),
    });
    let missing = listed(missing);
    let others =
        if missing.is_empty() { String::new() } else { format!("; other ranks of this node: {missing}") };
    format!("ranks that wait {mark}: {there}{others}")
}

fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let named = all[..all.len().min(MOST_NAMED)].join(", ");
    match all.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The ranks of the job on this node, sorted by number.
fn ranks_of(job: &str, size: u32) -> Vec<Neighbour> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let launchers = processes.filter(|process| is_launcher(process));
    let files =
        launchers.flat_map(|process| fs::read_dir(process.join("fd")).into_iter().flatten().flatten());
    let is_spool =
        |path: &Path| fs::read_link(path).is_ok_and(|file| file.starts_with("/memfd:pmmpi (deleted)"));
    let all_shared = files.map(|file| file.path()).filter(|path| is_spool(path));
    let mut ranks: Vec<Neighbour> = all_shared
        .filter_map(|path| SharedMemory::open(&path).ok())
        .filter(|shared| shared.live().phase() >= Phase::Started && shared.live().size.load(Relaxed) == size)
        .filter(|shared| job_of(shared).as_deref() == Some(job))
        .map(|shared| Neighbour {
            rank: shared.live().rank(),
            phase: shared.live().phase(),
            at: shared.regions().whereabouts(),
        })
        .collect();
    ranks.sort_by_key(|rank| rank.rank);
    ranks.dedup_by_key(|rank| rank.rank);
    ranks
}

fn is_launcher(process: &Path) -> bool {
    fs::read_to_string(process.join("comm")).is_ok_and(|name| name.trim_end() == "pmmpi")
}

/// The job of the rank to which the shared memory belongs.
fn job_of(shared: &SharedMemory) -> Option<String> {
    wire::decode::<Expectation>(&shared.take(Blob::Expectation).ok()?).ok()?.job
}
