//! The folder that run files go to.

use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::runfile::Slot;
use pmmpi_rounds::Failure;
use std::path::{Path, PathBuf};

/// Makes sure, before the workload starts, that its run can be saved.
pub fn prepare(folder: &Path, ranks: u32) -> Result<Slot, Failure> {
    let create = |_| std::fs::create_dir_all(folder).and_then(|()| Slot::take(folder));
    let slot = Slot::take(folder).or_else(create).and_then(|slot| slot.reserve(ranks));
    slot.map_err(|e| {
        let folder = folder.display();
        Failure::own(format_args!(
            "{folder}: runs cannot be saved here: {e}. Choose another folder with --out"
        ))
    })
}

/// Saves a whole run and removes what was kept of it while it ran; gives the file.
pub fn save(folder: &Path, slot: Option<Slot>, run: &Run) -> Result<PathBuf, Failure> {
    // Rank 0 by MPI's count may not be the one that the launcher numbered 0.
    let slot = slot.map_or_else(|| prepare(folder, run.size), Ok)?;
    let file = slot.store(run).map_err(not_kept)?;
    if let Ok(left) = partial::folder_of(folder, &run.header.run_id) {
        partial::remove(&left);
    }
    Ok(file)
}

/// The workload ran, and its run is not there.
pub fn not_kept(error: impl std::fmt::Display) -> Failure {
    Failure::own(format_args!("the run could not be saved: {error}"))
}
