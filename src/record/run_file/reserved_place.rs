//! A place for one run file: pmmpi takes it, and reserves room on the disk, before the program starts.

use super::encoding::to_bytes;
use super::{EXTENSION, temporary, wire};
use crate::record::header::RunHeader;
use crate::record::run::Run;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A place for one run file. pmmpi takes it before the run, to find out early if it cannot write there.
pub struct Slot {
    directory: PathBuf,
    /// Device and inode identify the directory itself: its name may lead elsewhere later.
    identity: (u64, u64),
    /// A file without a name, if the file system supports such files (open(2), O_TMPFILE).
    unnamed: Option<File>,
    /// Bytes of the disk that are reserved for this file.
    reserved: u64,
}

impl Slot {
    /// Takes a place in a directory, and creates the directory if it is missing. Creates a file as a test, because
    /// access(2) gives wrong answers for root, for read-only mounts and for network file systems.
    pub fn take(directory: &Path) -> io::Result<Self> {
        let identity = identity(directory).or_else(|_| {
            std::fs::create_dir_all(directory)?;
            identity(directory)
        })?;
        let unnamed = File::options().write(true).custom_flags(libc::O_TMPFILE).open(directory);
        let unnamed = match unnamed.map_err(|e| e.raw_os_error()) {
            Ok(file) => Some(file),
            // NFS, Lustre: each file has a name.
            Err(Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)) => None,
            Err(errno) => return Err(io::Error::from_raw_os_error(errno.unwrap_or(libc::EIO))),
        };
        if unnamed.is_none() {
            let (_, probe) = temporary::create(directory, ".probe-", 0o666)?;
            std::fs::remove_file(&probe)?;
        }
        Ok(Self { directory: directory.to_owned(), identity, unnamed, reserved: 0 })
    }

    /// Reserves room, so that the run can be saved even if the disk fills up meanwhile: see [`reserved_bytes`].
    /// Returns an error only if there is no room; not every file system can reserve it.
    pub fn reserve(mut self, bytes: u64) -> io::Result<Self> {
        let Some(file) = self.unnamed.as_ref().filter(|_| bytes > 0) else { return Ok(self) };
        let length = libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
        // KEEP_SIZE: the file does not get longer, which a limit on file sizes could forbid with a signal.
        // SAFETY: no memory is involved.
        let failed = unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, length) } != 0;
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) if failed => return Err(error),
            _ if !failed => self.reserved = bytes,
            _ => {}
        }
        Ok(self)
    }

    /// The file that has the reserved room. If the room is needed for something else, set this file's length to 0.
    pub fn room(&self) -> Option<File> {
        self.unnamed.as_ref()?.try_clone().ok()
    }

    /// True if the directory was removed or unmounted since.
    pub fn is_gone(&self) -> bool {
        identity(&self.directory).ok() != Some(self.identity)
    }

    /// Writes `<directory>/<run_id>.pmr`: writes a file without a name or with a temporary one, syncs it, then
    /// names it. In the end either the whole file exists or none. Creates the directory again if it was removed.
    ///
    /// Does not sync a run whose barriers are less than a second apart if room was reserved for it. The reason:
    /// syncing takes as long as a short program, and the user can quickly measure such a run again. Only if the
    /// machine fails within half a minute, the file may be empty.
    pub fn store(self, run: &Run) -> io::Result<PathBuf> {
        std::fs::create_dir_all(&self.directory)?;
        let bytes = to_bytes(run).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        let target = self.directory.join(format!("{}.{EXTENSION}", run.header.run_id));
        if let Some(mut file) = self.unnamed {
            file.write_all(&bytes)?;
            let length = bytes.len() as u64;
            if self.reserved > length.next_multiple_of(BLOCK_BYTES) {
                file.set_len(length)?; // frees what it does not need
            }
            // Without reserved room, a full disk may only show here.
            if self.reserved < length || outer_ns(run) >= SHORT_NS {
                file.sync_data()?; // fdatasync(2) syncs the file's size, but not its times
            }
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            if link(Path::new(&own), &target).is_ok() {
                return Ok(target);
            }
        }
        temporary::replace(&target, 0o666, |file| file.write_all(&bytes).and_then(|()| file.sync_data()))?;
        Ok(target)
    }
}

/// See [`Slot::store`].
const SHORT_NS: i64 = 1_000_000_000;

/// What most file systems allocate at once.
const BLOCK_BYTES: u64 = 4096;

/// The longest time of a rank from t0 to t3.
fn outer_ns(run: &Run) -> i64 {
    run.ranks.iter().map(|rank| rank.stamps.outer_ns()).max().unwrap_or(0)
}

/// The room to reserve for a run of `ranks`.
pub fn reserved_bytes(ranks: u32) -> u64 {
    const LEAST_BYTES: u64 = 64 << 10;
    const RANK_BYTES: u64 = 2048; // with counters, and thirty regions
    const MOST_BYTES: u64 = 256 << 20;
    (LEAST_BYTES + RANK_BYTES * u64::from(ranks)).min(MOST_BYTES)
}

/// The room for a run with this `header`, of one rank that counts the default set and has no regions.
pub fn reserved_bytes_alone(header: &RunHeader) -> u64 {
    const MORE_BYTES: u64 = 2048;
    let header = wire::encode(header).map_or(0, |header| header.len() as u64);
    (header + MORE_BYTES).next_multiple_of(BLOCK_BYTES)
}

fn identity(directory: &Path) -> io::Result<(u64, u64)> {
    std::fs::metadata(directory).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Gives an open file a name: linkat(2) through its entry in /proc.
fn link(open_file: &Path, target: &Path) -> io::Result<()> {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
    let (from, to) = (text(open_file)?, text(target)?);
    // SAFETY: both paths are C strings.
    let failed = unsafe {
        libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW)
    } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
