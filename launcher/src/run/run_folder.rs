//! The folder for run files.

use pmmpi::record::run_file::Slot;
use pmmpi::text::count;
use pmmpi_workload::Failure;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reserves `bytes` for the run's file before the program starts, so that saving the run cannot fail later.
pub fn prepare(folder: &Path, ranks: u32, bytes: u64) -> Result<Slot, Failure> {
    Slot::take(folder).and_then(|slot| slot.reserve(bytes)).map_err(|e| {
        let room = match e.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => missing_room(folder, ranks, bytes),
            _ => String::new(),
        };
        let folder = folder.display();
        Failure::own(format_args!(
            "cannot save runs in {folder}: {e}{room}. Choose another folder with --out"
        ))
    })
}

/// The disk space that a run needs, and the free space, as text.
fn missing_room(folder: &Path, ranks: u32, bytes: u64) -> String {
    let kib = |bytes: u64| bytes.div_ceil(1024);
    let needed = kib(bytes);
    let free = free_bytes(folder).map_or(String::new(), |free| format!(", {} KiB are free", kib(free)));
    format!(" (a run of {} needs {needed} KiB{free})", count(ranks as usize, "rank"))
}

/// The bytes that this user may still write to the file system of `folder`.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).map_err(io::Error::other)?;
    // SAFETY: an all-zero statvfs is valid, and the kernel fills it in.
    unsafe {
        let mut space: libc::statvfs = std::mem::zeroed();
        match libc::statvfs(path.as_ptr(), &mut space) {
            0 => Ok((space.f_bavail as u64).saturating_mul(space.f_frsize as u64)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The failure for a program that ran but whose run cannot be assembled.
pub fn not_kept(error: impl std::fmt::Display) -> Failure {
    Failure::own(format_args!("pmmpi could not save the run: {error}"))
}
