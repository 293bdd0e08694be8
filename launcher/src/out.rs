//! The folder that run files go to.

use pmmpi_rounds::Failure;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes sure, before the workload starts, that its run can be saved.
pub fn prepare(folder: &Path) -> Result<(), Failure> {
    let try_again = |_| fs::create_dir_all(folder).and_then(|()| try_to_write(folder));
    try_to_write(folder).or_else(try_again).map_err(|e| {
        let folder = folder.display();
        Failure::own(format_args!(
            "{folder}: runs cannot be saved here: {e}. Choose another folder with --out"
        ))
    })
}

/// Creates a file and lets it go. Asking for permission (access(2)) would be wrong for root, for
/// read-only mounts and for network file systems.
fn try_to_write(folder: &Path) -> io::Result<()> {
    let nameless = File::options().write(true).custom_flags(libc::O_TMPFILE).open(folder);
    match nameless.map_err(|e| e.raw_os_error()) {
        Ok(_) => return Ok(()),
        Err(Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => {} // NFS, Lustre: files have names
        Err(errno) => return Err(io::Error::from_raw_os_error(errno.unwrap_or(libc::EIO))),
    }
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let _ = fs::remove_file(&probe); // of a process that had this number and was killed
    File::options().write(true).create_new(true).open(&probe)?;
    fs::remove_file(&probe)
}
