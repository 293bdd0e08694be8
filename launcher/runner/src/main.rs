//! `pmmpi-runner`: `pmmpi` execs it to measure a plain program on every rank of a job.
//!
//! It is an MPI program; the build makes one for each MPI. It reads its plan from the shared memory of `pmmpi`.

#![no_main]

mod descriptors;

use descriptors::Descriptors;
use mpi::traits::Communicator;
use pmmpi::clock;
use pmmpi::record::{End, wire};
use pmmpi::rsmpi::World;
use pmmpi::session::launch_check::Expectation;
use pmmpi::session::shared_memory::{Blob, SHARED_MEMORY_VARIABLE, SharedMemory};
use pmmpi_workload::console::{say, warn};
use pmmpi_workload::plan::ABORT;
use pmmpi_workload::rounds::{self, RoundsContext};
use pmmpi_workload::runner_plan::RunnerPlan;
use pmmpi_workload::{Failure, process, screen_report, screen_rounds, signals};
use std::ffi::{c_char, c_int};
use std::path::Path;

/// C's main, for the same reason as in the launcher: the child must inherit the descriptors and signal dispositions
/// that this process inherited.
#[unsafe(no_mangle)]
pub extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    signals::begin();
    process::occupy_standard_descriptors();
    match run() {
        Ok(end) => process::end_as(end),
        Err(failure) => {
            say(&failure);
            process::end_as(End::Exited(failure.code))
        }
    }
}

/// Ends the job from a rank whose launcher failed, because the other ranks wait for this rank in MPI_Init.
fn abort() -> Result<End, Failure> {
    let universe = mpi::initialize().ok_or_else(|| Failure::own("MPI is initialised already"))?;
    universe.world().abort(OWN_FAILURE)
}

fn run() -> Result<End, Failure> {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ABORT) {
        return abort();
    }
    let Orders { plan, host, expectation } = orders()?;
    signals::prepare();
    if let Some(descriptor) = plan.rounds().leads_by {
        descriptors::keep_from_children(descriptor);
    }
    if let RunnerPlan::Screen(plan) = &plan
        && let Some(descriptor) = plan.told_on
    {
        descriptors::keep_from_children(descriptor);
        // The launcher may stop this process, and then end.
        // SAFETY: no memory is involved.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT) };
    }
    let before = Descriptors::open_now();
    let universe = mpi::initialize().ok_or_else(|| Failure::own("MPI is initialised already"))?;
    before.keep_the_rest_from_children();
    // Before this point, a signal ends this process, because MPI_Init may wait forever for other ranks.
    signals::forward();
    let mpi_library = mpi::environment::library_version().ok();
    let mpi_library = mpi_library.and_then(|text| text.lines().next().map(|line| line.trim().to_owned()));
    let world = universe.world();
    let library = mpi_library.as_deref().unwrap_or_default();
    let size = world.size().unsigned_abs();
    if !expectation.is_none_or(|expectation| is_right(&expectation, size, library)) {
        return Ok(End::Exited(OWN_FAILURE));
    }
    // The time of MPI_Init does not count as cost of a round: a job pays it once, before the first round.
    let place = RoundsContext { mpi_library, host, began_ns: clock::monotonic_ns(), slot: None };
    match plan {
        RunnerPlan::Rounds(plan) => {
            let result = rounds::run(World::duplicate(&world), &plan, place);
            drop(universe); // MPI_Finalize
            result
        }
        RunnerPlan::Screen(plan) => {
            let result = screen_rounds::run(World::duplicate(&world), &plan, place);
            drop(universe);
            match result? {
                Some(done) => screen_report::finish(&plan, &done),
                None => Ok(End::Exited(0)),
            }
        }
    }
}

/// The exit status for pmmpi's own failure.
const OWN_FAILURE: i32 = 125;

/// Checks that MPI sees the launched ranks; otherwise each rank may be a job of its own. True if the ranks may
/// continue.
fn is_right(expectation: &Expectation, size: u32, mpi_library: &str) -> bool {
    let Some(message) = expectation.contradicted_by_runner(size, mpi_library) else { return true };
    match (expectation.speaks_of_mismatch(size), expectation.abort) {
        (true, true) => say(message),
        (true, false) => warn(message),
        (false, _) => {}
    }
    !expectation.abort
}

/// The launcher's data in the shared memory.
struct Orders {
    plan: RunnerPlan,
    /// A [`pmmpi::record::HostPart`] in wire form, or nothing.
    host: Vec<u8>,
    /// `None` if no launcher started this process.
    expectation: Option<Expectation>,
}

fn orders() -> Result<Orders, Failure> {
    let path = std::env::var_os(SHARED_MEMORY_VARIABLE)
        .ok_or_else(|| Failure::own("only pmmpi can start pmmpi-runner"))?;
    let read = || {
        let shared = SharedMemory::open(Path::new(&path))?;
        let plan = wire::decode(&shared.take(Blob::Plan)?).map_err(std::io::Error::other)?;
        let expectation = wire::decode(&shared.take(Blob::Expectation)?).ok();
        Ok(Orders { plan, host: shared.take(Blob::Node)?, expectation })
    };
    read().map_err(|e: std::io::Error| Failure::own(format_args!("pmmpi-runner cannot read its plan: {e}")))
}
