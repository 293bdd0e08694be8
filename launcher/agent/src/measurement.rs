//! The agent's one session: begun after MPI_Init, ended before MPI_Finalize.

use crate::mpi::{AgentWorld, MpiLibrary};
use crate::{environment, node_speaker, ranks_of_node, resolve};
use pmmpi::counters::counter_table::CounterTable;
use pmmpi::counters::perf_event_open::Inherited;
use pmmpi::counters::probe::HandedDown;
use pmmpi::counters::reading::WhyUnavailable;
use pmmpi::record::{End, wire};
use pmmpi::session::instructions::{AgentInstructions, Extras, Instructions, Marks};
use pmmpi::session::launch_check::Expectation;
use pmmpi::session::live_record::{Fault, LiveRecord, Phase};
use pmmpi::session::live_regions::RegionTable;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi::session::{Beginning, RankMemory, RankSession, Work};
use pmmpi::transport::fabric::{Fabric, FabricError};
use pmmpi::transport::node_meeting::Meeting;
use pmmpi::{clock, partial};
use std::ffi::c_int;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The session of an MPI program: its launcher opened its counters.
pub type AgentSession = RankSession<'static, AgentWorld, Inherited>;

struct Measurement {
    session: AgentSession,
    live: &'static LiveRecord,
    /// That the launcher waits for this program's records, not for those of another one.
    claimed: bool,
    library: String,
    host: Vec<u8>,
    /// The region that MPI_Pcontrol entered last.
    numbered: Option<c_int>,
}

static MEASUREMENT: Mutex<Option<Measurement>> = Mutex::new(None);
/// What needs no lock: another thread may have it while it waits for other ranks.
static UNLOCKED: OnceLock<Unlocked> = OnceLock::new();

struct Unlocked {
    live: &'static LiveRecord,
    /// Where regions are wanted, on all ranks or none.
    regions: Option<&'static RegionTable>,
    /// MPI_Pcontrol's levels are regions, on all ranks or none.
    numbers: bool,
}

/// The launcher reads a node's files while MPI starts, and is nearly always done first.
const NODE_RECORD_TIMEOUT: Duration = Duration::from_secs(10);

/// Right after the real MPI_Init.
pub fn begin() {
    if environment::is_of_another_launch() {
        // Others of this job may be on nodes that the agent did not come to: no barrier with them.
        note(Fault::OtherLaunch);
        return;
    }
    if !resolve::is_glibc() {
        note(Fault::OtherLibc);
        return;
    }
    let began_ns = clock::monotonic_ns();
    let shared = environment::shared().and_then(|path| SharedMemory::open(path).ok());
    let shared = shared.filter(|shared| {
        let claimed = shared.live().claim();
        if !claimed {
            shared.live().note(Fault::SecondProgram);
        }
        claimed
    });
    // A rank without shared memory measures for the others' sake: they count on it in every barrier.
    let live = shared.as_ref().map_or_else(|| &*Box::leak(Box::default()), SharedMemory::live);
    let regions = shared.as_ref().map_or_else(|| &*Box::leak(RegionTable::boxed()), SharedMemory::regions);
    let Some(library) = MpiLibrary::find() else {
        live.note(Fault::UnknownMpi);
        return;
    };
    let claimed = shared.is_some();
    let host = shared.as_ref().map(node_record).unwrap_or_default();
    let version = library.version.clone();
    let Ok((world, told)) = join(library, shared.as_ref(), live) else {
        live.note(Fault::MpiCall);
        return;
    };
    let Extras { pings, tight_end, .. } = told.extras;
    let beginning = Beginning { began_ns, pings, tight_end, meeting: told.meeting };
    let (probe, counters) = shared.as_ref().map(counters).unwrap_or_default();
    let memory = RankMemory { live, regions, counters };
    let mut session = RankSession::open(memory, probe, world, beginning);
    if let (Some(shared), Some(folder)) = (&shared, told.folder)
        && keep(shared, folder, &session, &version).is_err()
    {
        live.note(Fault::NoPartial);
    }
    let expectation = shared.as_ref().and_then(expectation);
    drop(shared); // no descriptor of the tool's is open while the work runs
    if session.start().is_err() {
        live.note(Fault::MpiCall);
    }
    session.fabric().never_mind();
    if let Some(expectation) = expectation {
        let size = session.fabric().size();
        session
            .fabric()
            .when_late(region_patience(expectation.rank), move || not_all_in_region(regions, size));
        node_speaker::prepare(expectation);
    }
    let marks = told.extras.marks;
    let unlocked = Unlocked {
        live,
        regions: (marks != Marks::Off).then_some(regions),
        numbers: marks == Marks::NamesAndNumbers,
    };
    let _ = UNLOCKED.set(unlocked); // once: MPI is initialised once
    let measurement = Measurement { session, live, claimed, library: version, host, numbered: None };
    *MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(measurement);
}

/// What the launcher opened, and room for its snapshots.
fn counters(shared: &SharedMemory) -> (Inherited, CounterTable<'static>) {
    let handed = shared.take(Blob::Counters).ok().and_then(|handed| wire::decode::<HandedDown>(&handed).ok());
    let HandedDown { opened, descriptors } = handed.unwrap_or_default();
    match shared.counters(&opened) {
        Ok(table) => {
            table.touch();
            (Inherited::take(opened, &descriptors), table)
        }
        Err(e) => {
            let cause = WhyUnavailable::NoRoom(e.raw_os_error().unwrap_or(libc::EFBIG));
            (Inherited::take(opened.closed(cause), &descriptors), CounterTable::default())
        }
    }
}

/// Finds the other ranks, and hears from rank 0 what all do.
fn join(
    library: MpiLibrary,
    shared: Option<&SharedMemory>,
    live: &LiveRecord,
) -> Result<(AgentWorld, Instructions), FabricError> {
    let expectation = shared.and_then(expectation);
    let version = library.version.clone();
    let mut world = AgentWorld::new(library)?;
    if let Some(expectation) = expectation.clone() {
        world.when_late(expectation.patience(), complaint(expectation, NOT_ALL_STARTED));
    }
    if let Some(expectation) = &expectation
        && let Some(message) = expectation.contradicted_by(world.size(), &version)
    {
        check_failed(expectation, world.size(), &message, live);
    }
    world.await_all()?;
    let size = world.size();
    let told = Instructions::share(&mut world, || told(shared, size))?;
    Ok((world, told))
}

/// On rank 0: what all ranks do.
fn told(shared: Option<&SharedMemory>, size: u32) -> Instructions {
    let meeting = Meeting::arrange();
    let Some(shared) = shared else { return Instructions { meeting, ..Instructions::default() } };
    let instructions = shared
        .take(Blob::Instructions)
        .ok()
        .and_then(|instructions| wire::decode::<AgentInstructions>(&instructions).ok());
    let instructions = instructions.unwrap_or_default();
    // Of one clock bounds are exact, however long ranks take to leave the end barrier.
    let tight_end = instructions.local_ranks != Some(size);
    let extras = Extras { tight_end, ..instructions.extras };
    Instructions { folder: instructions.keep.map(|keep| keep.folder), extras, meeting }
}

/// Says `text` if no other rank of the node has.
fn complaint(expectation: Expectation, text: &'static str) -> impl FnMut() + Send + 'static {
    let mut speaks = Vec::new(); // kept as long as this is: no other rank of the node says it
    move || {
        speaks.extend(expectation.speak_for_node("not all started"));
        if !speaks.is_empty() {
            environment::say(text);
        }
    }
}

/// MPI_Init lets the ranks go at about the same time: one that has not come by then never will.
const NOT_ALL_STARTED: &str = "still waiting for other ranks after MPI_Init. If some of this job were not started through \
                               pmmpi, it will not go on: start all of them with pmmpi";
/// How long this rank waits at a mark until it says so. Ranks may have unequal work between two marks; and not all
/// of a large job speak at once.
fn region_patience(rank: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(10);
    const AT_ONCE: u32 = 16;
    FIRST * (1 + (1 + rank / AT_ONCE).ilog2())
}

fn not_all_in_region(regions: &RegionTable, size: u32) {
    let Some(mark) = regions.whereabouts() else { return };
    node_speaker::say("late", |expectation| {
        let known = expectation
            .job
            .as_deref()
            .map(|job| ranks_of_node::describe(&mark, job, size))
            .unwrap_or_default();
        let advice = if mark.region.starts_with("MPI_Pcontrol(") {
            "measure without --regions pcontrol"
        } else {
            "measure with --regions off"
        };
        format!(
            "warning: {known}. All ranks must begin and end a region together. If some never come there, the program \
             does not go on: {advice}"
        )
    });
}

fn expectation(shared: &SharedMemory) -> Option<Expectation> {
    wire::decode(&shared.take(Blob::Expectation).ok()?).ok()
}

/// Said now, not after the job has burnt its hour.
fn check_failed(expectation: &Expectation, size: u32, message: &str, live: &LiveRecord) {
    if expectation.speaks_of_mismatch(size) {
        environment::say(&format!("{}{message}", if expectation.abort { "" } else { "warning: " }));
    }
    if expectation.abort {
        live.note(Fault::Mismatch);
        // SAFETY: writes what the program has buffered, and ends the process without what it registered
        // for its end: MPI is initialised, and nobody will finalise it.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(NOT_THE_JOB)
        };
    }
}

/// pmmpi's own failure, as its launcher has it.
const NOT_THE_JOB: i32 = 125;

/// Tells the launcher where the run is to be kept, and what it cannot see itself. No file is written here.
fn keep(shared: &SharedMemory, folder: PathBuf, session: &AgentSession, library: &str) -> io::Result<()> {
    let part = session.part_before(Some(library), Vec::new());
    partial::CarrierNote { folder, part }.write(shared)
}

fn node_record(shared: &SharedMemory) -> Vec<u8> {
    if !shared.live().wait_for_node(NODE_RECORD_TIMEOUT) {
        shared.live().note(Fault::NoNodeRecord);
        return Vec::new();
    }
    shared.take(Blob::Node).unwrap_or_else(|_| {
        shared.live().note(Fault::NoNodeRecord);
        Vec::new()
    })
}

/// Right before the real MPI_Finalize.
pub fn end() {
    let measurement = MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Measurement { mut session, live, claimed, library, host, .. }) = measurement else { return };
    session.fabric().never_mind();
    if session.stop().is_err() {
        live.note(Fault::MpiCall);
    }
    // A program may trap SIGTERM, write what it has, and end as if it had done all its work.
    let signal = live.asked_to_end.load(Ordering::Acquire);
    let finalized = End::Finalized.asked_for_by((signal != 0).then_some(signal));
    // MPICH 5's MPI_Abort returns: the program may come here before its launcher ends it.
    let end = live.aborted().unwrap_or(finalized);
    match session.gather(Work { end, child_cpu_ns: None }, Some(&library), host) {
        Ok(Some(parts)) => match hand_over(claimed, &parts) {
            Ok(()) => live.set_phase(Phase::Gathered),
            Err(_) => live.note(Fault::Handover),
        },
        Ok(None) => live.set_phase(Phase::Gathered),
        Err(_) => live.note(Fault::MpiCall),
    }
}

/// Rank 0 gives all ranks' parts to its launcher, which writes the run file: no file is written in
/// the workload's process, under its limits and with its signals.
fn hand_over(claimed: bool, parts: &[Vec<u8>]) -> io::Result<()> {
    // Opened anew: no descriptor of the tool's is open while the work runs.
    let path = environment::shared().filter(|_| claimed).ok_or(io::ErrorKind::NotFound)?;
    SharedMemory::open(path)?.put(Blob::Gathered, &wire::join(parts).map_err(io::Error::other)?)
}

/// Hands the session to `mark`, where regions are wanted, with the number of the region that the rank is in.
pub fn with_regions(mark: impl FnOnce(&mut AgentSession, &mut Option<c_int>)) {
    let mut measurement = MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(measurement) = measurement.as_mut().filter(|_| region_table().is_some()) {
        mark(&mut measurement.session, &mut measurement.numbered);
    }
}

/// A pmmpi_end without its pmmpi_begin is a mistake in the program; said once.
pub fn warn_of_stray_end(session: &mut AgentSession, name: &[u8]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !session.is_in_region(name) && !SAID.swap(true, Ordering::Relaxed) {
        let (rank, name) = (session.fabric().rank(), String::from_utf8_lossy(name));
        node_speaker::say("stray", |_| {
            format!("warning: rank {rank} ends region `{name}`, which it did not begin")
        });
    }
}

/// Where this rank's regions are recorded, if they are wanted.
pub fn region_table() -> Option<&'static RegionTable> {
    UNLOCKED.get()?.regions
}

/// True where MPI_Pcontrol is to make regions.
pub fn numbers_are_regions() -> bool {
    UNLOCKED.get().is_some_and(|unlocked| unlocked.numbers)
}

/// The program is about to end itself and the whole job.
pub fn note_abort(code: i32) {
    // Not waiting: a signal handler may call MPI_Abort, or a thread while another one waits in a region.
    match MEASUREMENT.try_lock() {
        Ok(measurement) => measurement.iter().for_each(|measurement| measurement.session.note_abort(code)),
        Err(_) => UNLOCKED.get().into_iter().for_each(|unlocked| unlocked.live.note_abort(code)),
    }
}

/// Right before the real MPI_Init, which may never return.
pub fn note_init() {
    note(Fault::InInit);
}

/// The tool's own code panicked.
pub fn note_panic() {
    note(Fault::Panic);
}

fn note(fault: Fault) {
    if let Some(shared) = environment::shared().and_then(|path| SharedMemory::open(path).ok()) {
        shared.live().note(fault);
    }
}
