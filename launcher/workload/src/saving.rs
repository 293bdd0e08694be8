//! Saves runs in a folder.

use crate::console::warn;
use crate::failure::Failure;
use pmmpi::record::Run;
use pmmpi::record::run_file::Slot;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Saves a whole run in `folder`, in the reserved `slot` if there is one; gives the file.
pub fn save(folder: &Path, slot: Option<Slot>, run: &Run, quiet: bool) -> Result<PathBuf, Failure> {
    // MPI's rank 0 may be another process than the launcher's rank 0, so it may have no slot.
    let slot = slot.map_or_else(|| Slot::take(folder), Ok).map_err(|e| not_saved(folder, e))?;
    let is_gone = slot.is_gone();
    let file = slot.store(run).map_err(|e| not_saved(folder, e))?;
    if is_gone && !quiet {
        warn(format_args!(
            "{} was removed or unmounted while the program ran: pmmpi saved the run in the folder \
             that now has this path",
            folder.display()
        ));
    }
    Ok(file)
}

/// The failure for a run that could not be saved.
pub fn not_saved(folder: &Path, error: impl Display) -> Failure {
    Failure::own(format_args!("pmmpi could not save the run in {}: {error}", folder.display()))
}
