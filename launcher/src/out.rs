//! The folder that run files go to.

use pmmpi_rounds::Failure;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes sure, before the workload starts, that its run can be saved.
pub fn prepare(folder: &Path) -> Result<(), Failure> {
    create_and_try(folder).map_err(|e| {
        let folder = folder.display();
        Failure::own(format_args!(
            "{folder}: runs cannot be saved here: {e}. Choose another folder with --out"
        ))
    })
}

fn create_and_try(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // access(2) would be wrong for root, for read-only mounts and for network file systems.
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let _ = fs::remove_file(&probe); // of a process that had this number and was killed
    File::options().write(true).create_new(true).open(&probe)?;
    fs::remove_file(&probe)
}
