//! The agent's one session: begun after MPI_Init, ended before MPI_Finalize.

use crate::environment;
use crate::mpi::{Library, World};
use pmmpi::cell::{Fault, Phase, RankCell};
use pmmpi::clock;
use pmmpi::fabric::{Broadcast, Fabric};
use pmmpi::partial::{self, Page, Place};
use pmmpi::record::End;
use pmmpi::selfcheck::Expectation;
use pmmpi::session::{Session, Work};
use pmmpi::spool::{Blob, Spool};
use pmmpi::wire;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

struct Measurement {
    session: Session<'static, World>,
    cell: &'static RankCell,
    /// That the launcher waits for this program's records, not for those of another one.
    claimed: bool,
    library: String,
    host: Vec<u8>,
}

static MEASUREMENT: Mutex<Option<Measurement>> = Mutex::new(None);

/// The launcher reads a node's files while MPI starts, and is nearly always done first.
const NODE_RECORD_TIMEOUT: Duration = Duration::from_secs(10);

/// Right after the real MPI_Init.
pub fn begin() {
    let began_ns = clock::monotonic_ns();
    let spool = environment::spool().and_then(|path| Spool::open(path).ok());
    let spool = spool.filter(|spool| {
        let claimed = spool.cell().claim();
        if !claimed {
            spool.cell().note(Fault::SecondProgram);
        }
        claimed
    });
    // A rank without a spool measures for the others' sake: they count on it in every barrier.
    let cell = spool.as_ref().map_or_else(|| &*Box::leak(Box::default()), Spool::cell);
    let Some(library) = Library::find() else {
        cell.note(Fault::UnknownMpi);
        return;
    };
    let claimed = spool.is_some();
    let host = spool.as_ref().map(node_record).unwrap_or_default();
    let version = library.version.clone();
    let before_dup_ns = clock::monotonic_ns();
    let expectation = spool.as_ref().and_then(expectation);
    // MPI_Init lets the ranks go at about the same time: one that has not come by then never will.
    let patience = expectation.as_ref().map_or(Duration::from_secs(30), Expectation::patience);
    let mut speaks = None;
    let complain = || {
        speaks = expectation.as_ref().and_then(Expectation::speak_for_node);
        if speaks.is_some() {
            environment::say(
                "still waiting for other ranks after MPI_Init. If some of this job were not started through \
                 pmmpi, it will not go on: start all of them with pmmpi",
            );
        }
    };
    match World::duplicate(library, patience, complain) {
        Ok(mut world) => {
            drop(speaks);
            if let Some(expectation) = &expectation
                && let Some(message) = expectation.contradicted_by(world.size(), &version)
            {
                check_failed(expectation, &message, cell);
            }
            let place = match world.rank() {
                0 => spool.as_ref().and_then(|spool| begin_partial(spool, world.size())).unwrap_or_default(),
                _ => Vec::new(),
            };
            let place = world.tell(place).unwrap_or_default();
            // Both wait for other ranks: that is no cost of this one.
            let waited_ns = clock::monotonic_ns() - before_dup_ns;
            let mut session = Session::open(cell, world, began_ns + waited_ns);
            if let (Some(spool), Ok(place)) = (&spool, wire::decode::<Place>(&place))
                && keep(spool, &place, &mut session, &version, &host).is_err()
            {
                cell.note(Fault::NoPartial);
            }
            drop(spool); // no descriptor of the tool's is open while the work runs
            if session.start().is_err() {
                cell.note(Fault::MpiCall);
            }
            let measurement = Measurement { session, cell, claimed, library: version, host };
            *MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(measurement);
        }
        Err(_) => cell.note(Fault::MpiCall),
    }
}

fn expectation(spool: &Spool) -> Option<Expectation> {
    wire::decode(&spool.take(Blob::Expectation).ok()?).ok()
}

/// Said now, not after the job has burnt its hour.
fn check_failed(expectation: &Expectation, message: &str, cell: &RankCell) {
    if expectation.speaks {
        environment::say(&format!("{}{message}", if expectation.abort { "" } else { "warning: " }));
    }
    if expectation.abort {
        cell.note(Fault::Mismatch);
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

/// Makes the folder in which the run is kept while it runs, if the launcher wants that; gives its place in
/// wire form.
fn begin_partial(spool: &Spool, size: u32) -> Option<Vec<u8>> {
    let place = spool.take(Blob::Place).ok().filter(|place| !place.is_empty())?;
    let begun = wire::decode(&place).map_err(io::Error::other).and_then(|place| partial::begin(&place, size));
    if begun.is_err() {
        spool.cell().note(Fault::NoPartial);
    }
    begun.is_ok().then_some(place)
}

/// Makes a page for this rank there, and tells the launcher.
fn keep(
    spool: &Spool,
    place: &Place,
    session: &mut Session<'static, World>,
    library: &str,
    host: &[u8],
) -> io::Result<()> {
    let part = session.part_before(Some(library), host.to_vec());
    let page = Page::create(&place.folder, &part, spool.cell())?;
    spool.put(Blob::Kept, page.file().as_os_str().as_bytes())?;
    session.keep_in(page);
    Ok(())
}

fn node_record(spool: &Spool) -> Vec<u8> {
    if !spool.cell().wait_for_node(NODE_RECORD_TIMEOUT) {
        spool.cell().note(Fault::NoNodeRecord);
        return Vec::new();
    }
    spool.take(Blob::Node).unwrap_or_else(|_| {
        spool.cell().note(Fault::NoNodeRecord);
        Vec::new()
    })
}

/// Right before the real MPI_Finalize.
pub fn end() {
    let measurement = MEASUREMENT.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(Measurement { mut session, cell, claimed, library, host }) = measurement else { return };
    if session.stop().is_err() {
        cell.note(Fault::MpiCall);
    }
    // A program may trap SIGTERM, write what it has, and end as if it had done all its work.
    let signal = cell.asked_to_end.load(Ordering::Acquire);
    let end = End::Finalized.asked_for_by((signal != 0).then_some(signal));
    match session.gather(Work { end, child_cpu_ns: None }, Some(&library), host) {
        Ok(Some(parts)) => match hand_over(claimed, &parts) {
            Ok(()) => cell.set_phase(Phase::Gathered),
            Err(_) => cell.note(Fault::Handover),
        },
        Ok(None) => cell.set_phase(Phase::Gathered),
        Err(_) => cell.note(Fault::MpiCall),
    }
}

/// Rank 0 gives all ranks' parts to its launcher, which writes the run file: no file is written in
/// the workload's process, under its limits and with its signals.
fn hand_over(claimed: bool, parts: &[Vec<u8>]) -> io::Result<()> {
    // Opened anew: no descriptor of the tool's is open while the work runs.
    let path = environment::spool().filter(|_| claimed).ok_or(io::ErrorKind::NotFound)?;
    Spool::open(path)?.put(Blob::Gathered, &wire::join(parts).map_err(io::Error::other)?)
}

/// The program is about to end itself and the whole job.
pub fn note_abort(code: i32) {
    // Not waiting: a signal handler may call MPI_Abort.
    if let Ok(measurement) = MEASUREMENT.try_lock()
        && let Some(measurement) = &*measurement
    {
        measurement.session.note_abort(code);
    }
}

/// The tool's own code panicked.
pub fn note_panic() {
    if let Some(spool) = environment::spool().and_then(|path| Spool::open(path).ok()) {
        spool.cell().note(Fault::Panic);
    }
}
