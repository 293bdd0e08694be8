//! The folder that run files go to.

use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::runfile::Slot;
use pmmpi_rounds::{Failure, saving};
use std::path::{Path, PathBuf};

/// Makes sure, before the workload starts, that its run can be saved.
pub fn prepare(folder: &Path, ranks: u32) -> Result<Slot, Failure> {
    Slot::take(folder).and_then(|slot| slot.reserve(ranks)).map_err(|e| {
        let folder = folder.display();
        Failure::own(format_args!(
            "{folder}: runs cannot be saved here: {e}. Choose another folder with --out"
        ))
    })
}

/// Saves a whole run and removes what was kept of it while it ran; gives the file.
pub fn save(folder: &Path, slot: Option<Slot>, run: &Run, quiet: bool) -> Result<PathBuf, Failure> {
    // Rank 0 by MPI's count may not be the one that the launcher numbered 0.
    let slot = slot.map_or_else(|| Slot::take(folder), Ok).map_err(|e| saving::not_saved(folder, e))?;
    let file = saving::save(folder, slot, run, quiet)?;
    if let Ok(left) = partial::folder_of(folder, &run.header.run_id) {
        partial::remove(&left);
    }
    Ok(file)
}

/// The workload ran, and its run cannot be put together.
pub fn not_kept(error: impl std::fmt::Display) -> Failure {
    Failure::own(format_args!("the run could not be saved: {error}"))
}
