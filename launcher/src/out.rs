//! The folder that run files go to.

use pmmpi::runfile::Slot;
use pmmpi_rounds::Failure;
use std::path::Path;

/// Makes sure, before the workload starts, that its run can be saved.
pub fn prepare(folder: &Path) -> Result<Slot, Failure> {
    let create = |_| std::fs::create_dir_all(folder).and_then(|()| Slot::take(folder));
    Slot::take(folder).or_else(create).map_err(|e| {
        let folder = folder.display();
        Failure::own(format_args!(
            "{folder}: runs cannot be saved here: {e}. Choose another folder with --out"
        ))
    })
}
