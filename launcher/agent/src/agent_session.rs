//! The agent's only session: it starts after MPI_Init and ends before MPI_Finalize.

use crate::mpi_calls::{AgentWorld, MpiLibrary};
use crate::{environment, once_per_node, probe_functions, ranks_of_node, resolve};
use pmmpi::counters::count_and_quality::WhyUnavailable;
use pmmpi::counters::counter_table::CounterTable;
use pmmpi::counters::open_counters::{HandedDown, OpenCounters};
use pmmpi::counters::perf_event_open::Inherited;
use pmmpi::node::Watched;
use pmmpi::record::{End, wire};
use pmmpi::session::launch_check::Expectation;
use pmmpi::session::launcher_request::{Extras, LauncherRequest, Marks, SharedRequest};
use pmmpi::session::live_probes;
use pmmpi::session::live_record::{Fault, LiveRecord, Phase};
use pmmpi::session::live_regions::RegionTable;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi::session::{Beginning, OfNode, RankMemory, RankSession, Work};
use pmmpi::transport::fabric::{Fabric, FabricError};
use pmmpi::transport::node_meeting::Meeting;
use pmmpi::{clock, partial};
use std::ffi::c_int;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The session of an MPI program, with the counters that its launcher opened.
pub type AgentSession = RankSession<'static, AgentWorld, Inherited>;

struct Measurement {
    session: AgentSession,
    live: &'static LiveRecord,
    /// True if the launcher waits for this program's records, not for those of another program.
    claimed: bool,
    library: String,
    host: Vec<u8>,
    /// The region that MPI_Pcontrol entered last.
    numbered: Option<c_int>,
}

static MEASUREMENT: Mutex<Option<Measurement>> = Mutex::new(None);
/// Data outside the lock, because another thread may hold the lock while it waits for other ranks.
static UNLOCKED: OnceLock<Unlocked> = OnceLock::new();

struct Unlocked {
    live: &'static LiveRecord,
    /// `None` if regions are off. The same on all ranks.
    regions: Option<&'static RegionTable>,
    /// True if MPI_Pcontrol's levels are regions. The same on all ranks.
    numbers: bool,
}

/// The longest wait for the node's record. Normally there is no wait, because the launcher stores the record before it
/// starts the program.
const NODE_RECORD_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait for what the launcher reads after the work. The launcher waits for drivers of GPUs for 1.5 s at most.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs directly after the real MPI_Init.
pub fn begin() {
    if environment::is_of_another_launch() {
        // Other ranks of this job may be on nodes without the agent, so a barrier could block.
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
    // A rank without shared memory measures, too, because the other ranks need it in every barrier.
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
    let (counters, snapshots) = shared.as_ref().map(counters).unwrap_or_default();
    if told.extras.marks != Marks::Off {
        probe_functions::arm(counters.opened());
    }
    let memory = RankMemory { live, regions, snapshots };
    let mut session = RankSession::open(memory, counters, world, beginning);
    if told.extras.marks != Marks::Off {
        session.measure_empty_entry();
    }
    if let (Some(shared), Some(folder)) = (&shared, told.folder)
        && keep(shared, folder, &session, &version).is_err()
    {
        live.note(Fault::NoPartial);
    }
    let expectation = shared.as_ref().and_then(expectation);
    drop(shared); // pmmpi keeps no descriptor open while the program works
    if session.start().is_err() {
        live.note(Fault::MpiCall);
    }
    session.fabric().never_mind();
    if let Some(expectation) = expectation {
        let size = session.fabric().size();
        session
            .fabric()
            .when_late(region_patience(expectation.rank), move || not_all_in_region(regions, size));
        once_per_node::prepare(expectation);
    }
    let marks = told.extras.marks;
    let unlocked = Unlocked {
        live,
        regions: (marks != Marks::Off).then_some(regions),
        numbers: marks == Marks::NamesAndNumbers,
    };
    let _ = UNLOCKED.set(unlocked); // cannot fail: MPI initialises once
    let measurement = Measurement { session, live, claimed, library: version, host, numbered: None };
    *MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(measurement);
}

/// The counters that the launcher opened, and the table for their snapshots.
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

/// Finds the other ranks and receives the request from rank 0.
fn join(
    library: MpiLibrary,
    shared: Option<&SharedMemory>,
    live: &LiveRecord,
) -> Result<(AgentWorld, SharedRequest), FabricError> {
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
    let told = SharedRequest::share(&mut world, || told(shared, size))?;
    Ok((world, told))
}

/// On rank 0: the request for all ranks.
fn told(shared: Option<&SharedMemory>, size: u32) -> SharedRequest {
    let meeting = Meeting::arrange();
    let Some(shared) = shared else { return SharedRequest { meeting, ..SharedRequest::default() } };
    let request =
        shared.take(Blob::Request).ok().and_then(|request| wire::decode::<LauncherRequest>(&request).ok());
    let request = request.unwrap_or_default();
    // If all ranks share one node, and so one clock, bounds are exact even if ranks leave the end barrier slowly.
    let tight_end = request.local_ranks != Some(size);
    let extras = Extras { tight_end, ..request.extras };
    SharedRequest { folder: request.keep.map(|keep| keep.folder), extras, meeting }
}

/// Prints `text` if no other rank of the node has printed it.
fn complaint(expectation: Expectation, text: &'static str) -> impl FnMut() + Send + 'static {
    let mut speaks = Vec::new(); // lives as long as the closure, so that no other rank of the node prints the text
    move || {
        speaks.extend(expectation.speak_for_node("not all started"));
        if !speaks.is_empty() {
            environment::say(text);
        }
    }
}

/// Ranks leave MPI_Init at about the same time: a rank that is still missing after the wait never comes.
const NOT_ALL_STARTED: &str = "a rank is still waiting for other ranks after MPI_Init. If the launcher started some ranks \
                               without pmmpi, the job hangs: start all ranks with pmmpi";
/// How long this rank waits at a mark before it prints a warning. The time is long because ranks may have unequal work
/// between two marks. It grows with the rank, so that the ranks of a large job do not all print at once.
fn region_patience(rank: u32) -> Duration {
    const FIRST: Duration = Duration::from_secs(10);
    const AT_ONCE: u32 = 16;
    FIRST * (1 + (1 + rank / AT_ONCE).ilog2())
}

fn not_all_in_region(regions: &RegionTable, size: u32) {
    let Some(mark) = regions.whereabouts() else { return };
    once_per_node::say("late", |expectation| {
        let known = expectation
            .job
            .as_deref()
            .map(|job| ranks_of_node::describe(&mark, job, size))
            .unwrap_or_default();
        let advice = if mark.region.starts_with("MPI_Pcontrol(") {
            "in that case, measure without --regions pcontrol"
        } else {
            "in that case, measure with --regions off"
        };
        format!(
            "warning: {known}. All ranks must begin and end a region together. If a rank never reaches \
             this point, the program hangs: {advice}"
        )
    });
}

fn expectation(shared: &SharedMemory) -> Option<Expectation> {
    wire::decode(&shared.take(Blob::Expectation).ok()?).ok()
}

/// Prints that the job is not the launched one, and ends this rank if the user wants that. This happens at the start,
/// before the job wastes its time.
fn check_failed(expectation: &Expectation, size: u32, message: &str, live: &LiveRecord) {
    if expectation.speaks_of_mismatch(size) {
        environment::say(&format!("{}{message}", if expectation.abort { "" } else { "warning: " }));
    }
    if expectation.abort {
        live.note(Fault::Mismatch);
        // SAFETY: flushes the program's output, then ends the process without its exit handlers, because MPI is
        // initialised and stays without MPI_Finalize.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(NOT_THE_JOB)
        };
    }
}

/// The exit status for pmmpi's own failure, as in the launcher.
const NOT_THE_JOB: i32 = 125;

/// Gives the launcher the folder for the partial run and the facts that only the rank knows. Writes no file.
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

/// What the node's kernel counted during the work, and its GPUs. The launcher reads both, because this process belongs to
/// the program.
fn watched(live: &LiveRecord) -> Watched {
    if !live.ask_for_health(HEALTH_TIMEOUT) {
        return Watched::default();
    }
    let shared = environment::shared().and_then(|path| SharedMemory::open(path).ok());
    let health = shared.and_then(|shared| shared.take(Blob::Health).ok());
    health.and_then(|health| wire::decode(&health).ok()).unwrap_or_default()
}

/// Runs directly before the real MPI_Finalize.
pub fn end() {
    let measurement = MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Measurement { mut session, live, claimed, library, host, .. }) = measurement else { return };
    session.fabric().never_mind();
    if session.stop().is_err() {
        live.note(Fault::MpiCall);
    }
    live_probes::disarm();
    // A program may catch SIGTERM, save its state and end as if it had finished its work.
    let signal = live.asked_to_end.load(Ordering::Acquire);
    let finalized = End::Finalized.asked_for_by((signal != 0).then_some(signal));
    // MPICH 5's MPI_Abort returns, so the program may reach this point before its launcher ends it.
    let end = live.aborted().unwrap_or(finalized);
    let watched = if host.is_empty() { Watched::default() } else { watched(live) };
    match session.gather(
        Work { end, child_cpu_ns: None, kernel: None },
        Some(&library),
        OfNode { host, watched },
    ) {
        Ok(Some(parts)) => match hand_over(claimed, &parts) {
            Ok(()) => live.set_phase(Phase::Gathered),
            Err(_) => live.note(Fault::Handover),
        },
        Ok(None) => live.set_phase(Phase::Gathered),
        Err(_) => live.note(Fault::MpiCall),
    }
}

/// Rank 0 gives all ranks' parts to its launcher, which writes the run file. The program's process writes no file,
/// because its limits and signals apply there.
fn hand_over(claimed: bool, parts: &[Vec<u8>]) -> io::Result<()> {
    // Open it again: pmmpi keeps no descriptor open while the program works.
    let path = environment::shared().filter(|_| claimed).ok_or(io::ErrorKind::NotFound)?;
    SharedMemory::open(path)?.put(Blob::Gathered, &wire::join(parts).map_err(io::Error::other)?)
}

/// Calls `mark` with the session and the number of the current MPI_Pcontrol region, unless regions are off.
pub fn with_regions(mark: impl FnOnce(&mut AgentSession, &mut Option<c_int>)) {
    let mut measurement = MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(measurement) = measurement.as_mut().filter(|_| region_table().is_some()) {
        mark(&mut measurement.session, &mut measurement.numbered);
    }
}

/// Warns once of a pmmpi_end without its pmmpi_begin, which is an error in the program.
pub fn warn_of_stray_end(session: &mut AgentSession, name: &[u8]) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !session.is_in_region(name) && !SAID.swap(true, Ordering::Relaxed) {
        let (rank, name) = (session.fabric().rank(), String::from_utf8_lossy(name));
        once_per_node::say("stray", |_| {
            format!("warning: rank {rank} ends region `{name}`, but is not in this region")
        });
    }
}

/// The table of this rank's regions; `None` if regions are off.
pub fn region_table() -> Option<&'static RegionTable> {
    UNLOCKED.get()?.regions
}

/// True if MPI_Pcontrol's levels are regions.
pub fn numbers_are_regions() -> bool {
    UNLOCKED.get().is_some_and(|unlocked| unlocked.numbers)
}

/// Notes that the program calls MPI_Abort, which ends the whole job.
pub fn note_abort(code: i32) {
    // Do not wait for the lock: a signal handler may call MPI_Abort, or one thread while another waits in a region.
    match MEASUREMENT.try_lock() {
        Ok(measurement) => measurement.iter().for_each(|measurement| measurement.session.note_abort(code)),
        Err(_) => UNLOCKED.get().into_iter().for_each(|unlocked| unlocked.live.note_abort(code)),
    }
}

/// Runs directly before the real MPI_Init, which may never return.
pub fn note_init() {
    note(Fault::InInit);
}

pub fn note_panic() {
    note(Fault::Panic);
}

fn note(fault: Fault) {
    if let Some(shared) = environment::shared().and_then(|path| SharedMemory::open(path).ok()) {
        shared.live().note(fault);
    }
}
