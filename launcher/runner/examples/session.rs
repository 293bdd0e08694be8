//! A program that measures itself: it enters a region twice, each time for 10 ms plus the rank's number in ms. Rank 0
//! saves the run in the folder of the argument.

use mpi::traits::Communicator;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: session FOLDER")?);
    let universe = mpi::initialize().ok_or("MPI is initialised already")?;
    let world = universe.world();
    let mut session = pmmpi::Session::begin(&world)?;
    let pause = Duration::from_millis(10 + u64::from(world.rank().unsigned_abs()));
    for _ in 0..2 {
        session.region("sleep", || std::thread::sleep(pause))?;
    }
    if let Some(run) = session.end()? {
        let file = pmmpi::record::run_file::write(&folder, &run)?;
        println!("{}", pmmpi_events::summary_line::Summary { run: &run, file: Some(&file) });
    }
    Ok(())
}
