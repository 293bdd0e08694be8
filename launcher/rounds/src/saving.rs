//! Runs on their way into a folder.

use crate::console::warn;
use crate::failure::Failure;
use pmmpi::record::Run;
use pmmpi::record::runfile::Slot;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Saves a whole run in `folder`, where `slot` was taken for it; gives the file.
pub fn save(folder: &Path, slot: Slot, run: &Run, quiet: bool) -> Result<PathBuf, Failure> {
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
