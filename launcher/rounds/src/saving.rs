//! Runs on their way into a folder.

use crate::console::warn;
use crate::failure::Failure;
use pmmpi::record::Run;
use pmmpi::record::runfile::Slot;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Saves a whole run in `folder`, in `slot` if one was taken for it; gives the file.
pub fn save(folder: &Path, slot: Option<Slot>, run: &Run, quiet: bool) -> Result<PathBuf, Failure> {
    // Rank 0 by MPI's count may not be the one that the launcher numbered 0.
    let slot = slot.map_or_else(|| Slot::take(folder), Ok).map_err(|e| not_saved(folder, e))?;
    let is_gone = slot.is_gone();
    let file = slot.store(run).map_err(|e| not_saved(folder, e))?;
    if is_gone && !quiet {
        warn(format_args!(
            "{} was removed or unmounted while the program ran: its run is in the folder that is there now",
            folder.display()
        ));
    }
    Ok(file)
}

/// The workload ran, and its run is not there.
pub fn not_saved(folder: &Path, error: impl Display) -> Failure {
    Failure::own(format_args!("the run could not be saved in {}: {error}", folder.display()))
}
