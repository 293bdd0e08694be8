//! One round on this rank: starts a program or a kernel between the barriers, and gathers what the ranks measured.

use crate::health_watch::{HealthWatch, read_again};
use crate::kernel_process::KernelProcess;
use crate::net::{Net, NetRound};
use crate::process::{Ended, LEFT, PreparedProgram};
use crate::signals;
use pmmpi::clock;
use pmmpi::counters::counter_table::CounterTable;
use pmmpi::counters::open_counters::OpenCounters;
use pmmpi::counters::perf_event_open::Target;
use pmmpi::counters::selection::Selection;
use pmmpi::node::NodeKey;
use pmmpi::record::run_file::Slot;
use pmmpi::record::{End, KernelReport, KernelResult};
use pmmpi::session::live_record::LiveRecord;
use pmmpi::session::live_regions::RegionTable;
use pmmpi::session::{Beginning, OfNode, RankMemory, RankSession, Work};
use pmmpi::transport::fabric::{FabricError, Pairwise};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// This rank's data for every round's record, besides the measurement.
pub struct RoundsContext {
    /// The text of MPI_Get_library_version; `None` without MPI.
    pub mpi_library: Option<String>,
    /// A [`pmmpi::record::HostPart`] in wire form, or nothing.
    pub host: Vec<u8>,
    /// When pmmpi started to work for this rank (CLOCK_MONOTONIC, ns).
    pub began_ns: i64,
    /// The reserved file of the first measured round, if the launcher reserved one.
    pub slot: Option<Slot>,
}

/// The work of a round.
pub(crate) struct RoundWork<'a> {
    pub kind: RoundKind,
    pub program: &'a PreparedProgram,
    /// The program's file.
    pub file: &'a Path,
    pub timeout: Option<Duration>,
    /// True for `pmmpi screen`, whose records say why a rank has no time.
    pub is_screen: bool,
    pub selection: &'a Selection,
    /// True if the program's stdout is this process's stderr.
    pub output_to_stderr: bool,
    /// The program that reads the node's GPUs, if it is installed.
    pub gpus: Option<&'a Path>,
    /// True if the node's facts were read directly before.
    pub is_first: bool,
    /// True if this process starts no further program.
    pub is_last: bool,
}

/// Who does the work of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RoundKind {
    /// The program.
    Program,
    /// The program, which is a kernel of `pmmpi screen`: see [`crate::kernel_process`].
    Kernel,
    /// The ranks themselves: see [`crate::net`].
    Net(NetRound),
    /// Nothing runs on this rank, for this reason. The rank only takes part in the barriers, and the other ranks run
    /// the round.
    Nobody(&'static str),
}

/// How a rank's work ends after [`RoundKind::Nobody`].
pub(crate) const NOT_TRIED: End = End::NotStarted(libc::ECANCELED);

/// What a round gave.
pub(crate) struct Round {
    /// How this rank's program ended.
    pub own: Ended,
    /// Number of ranks.
    pub size: u32,
    /// The nodes' parts in wire form; on rank 0 only.
    pub parts: Option<Vec<Vec<u8>>>,
    pub started_unix_ns: i64,
    pub gather_ns: i64,
    /// The channels that the round used.
    pub channels: u16,
    /// How many instructions this rank's kernel executes.
    pub expected_instructions: Option<u64>,
}

/// Collective over the ranks of `fabric`.
pub(crate) fn measure<F: Pairwise>(
    fabric: &mut F,
    work: &RoundWork,
    place: &RoundsContext,
    beginning: Beginning,
) -> Result<Round, FabricError> {
    let started_unix_ns = clock::realtime_ns();
    let live = LiveRecord::default();
    let size = fabric.size();
    // Facts may have changed since the job began. They were read directly before its first round.
    let host = if work.is_first { place.host.clone() } else { read_again(&place.host) };
    let watch = (!host.is_empty()).then(|| HealthWatch::begin(work.gpus));
    let mut net = match work.kind {
        RoundKind::Net(round) => Some(Net::prepare(fabric, round, NodeKey::own())?),
        RoundKind::Program | RoundKind::Kernel | RoundKind::Nobody(_) => None,
    };
    let opening_ns = clock::monotonic_ns();
    let counters = match work.kind {
        RoundKind::Net(_) => work.selection.open(Target::ThisThread, None),
        RoundKind::Program | RoundKind::Kernel | RoundKind::Nobody(_) => {
            work.selection.open(Target::NextProgram, Some(work.file))
        }
    };
    live.opening_ns.store(clock::monotonic_ns() - opening_ns, Ordering::Relaxed);
    let words = CounterTable::words_of_snapshots(counters.opened());
    let words: Vec<_> = std::iter::repeat_with(AtomicU64::default).take(words).collect();
    let table = CounterTable::without_regions(&words, counters.opened());
    let memory = RankMemory { live: &live, regions: RegionTable::unused(), snapshots: table };
    let mut session = RankSession::open(memory, counters, fabric, beginning);
    // A kernel prepares its data before the barrier: only its repetitions are the work.
    let is_kernel = matches!(work.kind, RoundKind::Kernel);
    let mut kernel = is_kernel.then(|| KernelProcess::start(work.program, work.timeout));
    let is_ready =
        kernel.as_mut().and_then(|kernel| kernel.as_mut().ok()).is_some_and(KernelProcess::is_ready);
    // Report a failed barrier only after the round, because the children of the other ranks run in any case.
    let entered = session.start();
    let mut report = None;
    let (own, left) = match (kernel, work.kind) {
        (None, RoundKind::Net(_)) => {
            report = net.as_mut().and_then(|net| net.run(session.fabric(), work.timeout));
            (in_this_process(report.as_ref()), session.stop())
        }
        (None, RoundKind::Nobody(why)) => {
            report = Some(no_result(why));
            (Ended::without_cpu_time(NOT_TRIED), session.stop())
        }
        (None, RoundKind::Program | RoundKind::Kernel) => {
            let started = match work.output_to_stderr {
                true => work.program.start_with(&[(std::io::stderr().as_fd(), libc::STDOUT_FILENO)]),
                false => work.program.start(),
            };
            let ended = started.and_then(|running| running.wait(work.timeout));
            (ended.unwrap_or_else(|e| not_started(&e)), session.stop())
        }
        (Some(Ok(mut kernel)), _) => {
            if is_ready {
                kernel.go();
                kernel.is_done(); // if not, its results or its end say why
            }
            let left = session.stop();
            report = kernel.report();
            let time_left = kernel.time_left();
            (kernel.wait(time_left).unwrap_or_else(|e| not_started(&e)), left)
        }
        (Some(Err(e)), _) => (not_started(&e), session.stop()),
    };
    if work.is_screen && own.is_left && report.as_ref().is_none_or(|report| report.result.wrong.is_none()) {
        report = Some(no_result(LEFT));
    }
    if work.is_last {
        signals::no_more_children(); // the witness then ends during the gather
    }
    let child_cpu_ns = match &report {
        _ if net.is_some() => None,
        Some(report) => Some(report.cpu_ns),
        None => Some([own.cpu_user_ns, own.cpu_system_ns]),
    };
    let expected_instructions = report.as_ref().and_then(|report| report.expected_instructions);
    let done = Work { end: own.for_the_record(), child_cpu_ns, kernel: report };
    let watched = watch.map(|watch| watch.end_alone(&host)).unwrap_or_default();
    let of_node = OfNode { host, watched };
    let parts = session.gather(done, place.mpi_library.as_deref(), of_node)?;
    entered.and(left)?;
    let gather_ns = live.gather_ns.load(Ordering::Relaxed);
    let channels = net.as_ref().map_or(0, Net::channels);
    Ok(Round { own, size, parts, started_unix_ns, gather_ns, channels, expected_instructions })
}

/// How the work of this process ended.
fn in_this_process(report: Option<&KernelReport>) -> Ended {
    let has_failed = report.is_some_and(|report| report.result.failed.is_some());
    Ended::without_cpu_time(End::Exited(i32::from(has_failed)))
}

/// The report of a rank that has no result, for this reason.
fn no_result(why: &str) -> KernelReport {
    let result = KernelResult { failed: Some(why.to_owned()), ..KernelResult::default() };
    KernelReport { result, ..KernelReport::default() }
}

fn not_started(error: &std::io::Error) -> Ended {
    Ended::not_started(error.raw_os_error().unwrap_or(libc::EIO))
}
