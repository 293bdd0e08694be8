//! `pmmpi-runner`: what the launcher becomes to measure a plain program on every rank of a job.
//!
//! An MPI program, built once for each MPI. It finds its plan in the spool that the launcher left.

#![no_main]

mod descriptors;

use descriptors::Descriptors;
use pmmpi::clock;
use pmmpi::record::End;
use pmmpi::rsmpi::World;
use pmmpi::spool::{Blob, SPOOL_VARIABLE, Spool};
use pmmpi::wire;
use pmmpi_rounds::console::say;
use pmmpi_rounds::plan::Plan;
use pmmpi_rounds::rounds::{self, Place};
use pmmpi_rounds::{Failure, process, signals};
use std::ffi::{c_char, c_int};
use std::path::Path;

/// C's main, for the launcher's reason: the child inherits what this process was started with.
#[unsafe(no_mangle)]
pub extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    process::occupy_standard_descriptors();
    match run() {
        Ok(end) => process::end_as(end),
        Err(failure) => {
            say(&failure);
            failure.code
        }
    }
}

fn run() -> Result<End, Failure> {
    let (plan, host) = orders()?;
    signals::started_by_launcher();
    signals::prepare();
    let before = Descriptors::open_now();
    let universe = mpi::initialize().ok_or_else(|| Failure::own("MPI is initialised already"))?;
    before.keep_the_rest_from_children();
    // Until here a signal ends this process: other ranks may never come to MPI_Init.
    signals::forward();
    let mpi_library = mpi::environment::library_version().ok();
    let mpi_library = mpi_library.and_then(|text| text.lines().next().map(|line| line.trim().to_owned()));
    // MPI's start-up is no cost of a round's: a job pays it once, before the first.
    let place = Place { mpi_library, host, began_ns: clock::monotonic_ns(), slot: None };
    let result = rounds::run(World::duplicate(&universe.world()), &plan, place);
    drop(universe); // MPI_Finalize
    result
}

fn orders() -> Result<(Plan, Vec<u8>), Failure> {
    let path = std::env::var_os(SPOOL_VARIABLE)
        .ok_or_else(|| Failure::own("pmmpi-runner is started by pmmpi, not by hand"))?;
    let read = || {
        let spool = Spool::open(Path::new(&path))?;
        let plan = wire::decode(&spool.take(Blob::Plan)?).map_err(std::io::Error::other)?;
        Ok((plan, spool.take(Blob::Node)?))
    };
    read()
        .map_err(|e: std::io::Error| Failure::own(format_args!("the launcher's orders cannot be read: {e}")))
}
