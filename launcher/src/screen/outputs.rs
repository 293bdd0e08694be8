//! Checks before the first round that pmmpi can write what it writes after the last round.

use pmmpi::record::run_file::Slot;
use pmmpi_workload::Failure;
use std::fs::File;
use std::io;
use std::path::Path;

/// Checks the archive, and creates its folder if it is missing.
pub fn check_archive(archive: &Path) -> Result<(), Failure> {
    Slot::take(archive).map(drop).map_err(|e| {
        let archive = archive.display();
        Failure::own(format_args!(
            "pmmpi cannot write the archive {archive}: {e}. Choose another folder with --archive"
        ))
    })
}

/// Checks the log of changes. Does not create it, because the first use of a log is a dry run.
pub fn check_log(log: &Path) -> Result<(), Failure> {
    can_append(log).map_err(|e| {
        let log = log.display();
        Failure::own(format_args!("pmmpi cannot write the log {log}: {e}. Choose another file with --log"))
    })
}

fn can_append(file: &Path) -> io::Result<()> {
    match file.metadata() {
        // Opening a pipe could wait forever.
        Ok(about) if !about.is_file() => Err(io::Error::other("it is not a regular file")),
        Ok(_) => File::options().append(true).open(file).map(drop),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            // The slot would create a missing folder.
            folder.read_dir().map(drop)?;
            Slot::take(folder).map(drop)
        }
        Err(e) => Err(e),
    }
}
