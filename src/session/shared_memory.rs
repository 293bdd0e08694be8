//! Memory that a rank shares with the `pmmpi` process that started it, so that measured values outlive the rank.
//!
//! It is an anonymous file (memfd_create(2)): no name in /dev/shm or /tmp that anyone could guess, link to or have to
//! clean up. The rank reaches it through the entry of the `pmmpi` process in /proc, so the rank inherits no descriptor
//! of this memory. The memory begins with the rank's live record and its regions, written by plain stores while the
//! work runs; byte strings follow in fixed places.

use crate::counters::counter_table::CounterTable;
use crate::counters::open_counters::Opened;
use crate::session::live_record::LiveRecord;
use crate::session::live_regions::RegionTable;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// The environment variable that tells an agent or a runner where its shared memory is.
pub const SHARED_MEMORY_VARIABLE: &str = "PMMPI_SPOOL";

/// A byte string with a fixed place in the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blob {
    /// The node's [`crate::record::HostPart`], from the launcher.
    Node = 0,
    /// The plan for the runner, from the launcher.
    Plan = 1,
    /// What the launcher asks of the agent: [`crate::session::launcher_request::LauncherRequest`] or
    /// nothing.
    Request = 2,
    /// Where to keep the run, from the agent: a [`crate::partial::CarrierNote`].
    Kept = 3,
    /// The expected world of MPI, from the launcher: a [`crate::session::launch_check::Expectation`], or nothing.
    Expectation = 4,
    /// A [`crate::counters::open_counters::HandedDown`], from the launcher, or nothing.
    Counters = 5,
    /// The counts of a rank that ended badly, from its launcher: [`crate::counters::counts::Counts`].
    Counted = 6,
    /// What was read of the node around the work, from the launcher: [`crate::node::Watched`].
    Health = 7,
    /// All nodes' parts, from rank 0 to its launcher. This is the last blob because it may be the longest.
    Gathered = 8,
}

impl Blob {
    fn place(self) -> u64 {
        // The mapped memory takes the first place.
        (self as u64 + 1) * Self::SPACING_BYTES
    }

    const SPACING_BYTES: u64 = 8 << 20;

    fn limit_bytes(self) -> u64 {
        if self == Blob::Gathered { crate::record::wire::LIMIT_BYTES as u64 } else { Self::SPACING_BYTES }
    }
}

const LIVE_RECORD_BYTES: usize = 4096;
const MAPPED_BYTES: usize = LIVE_RECORD_BYTES + (1 << 15);
/// Where the counters begin: at the start of a page, whatever the page size is.
const COUNTERS_AT: u64 = 1 << 16;
const _: () = assert!(
    size_of::<LiveRecord>() <= LIVE_RECORD_BYTES
        && size_of::<RegionTable>() <= MAPPED_BYTES - LIVE_RECORD_BYTES
);

/// A rank's live record and, at offset [`LIVE_RECORD_BYTES`], its regions. They stay mapped as long as the process
/// lives, because the process may write to them until its end.
#[derive(Clone, Copy)]
struct Mapping(NonNull<u8>);

// SAFETY: the mapping is never taken away, and every field of both is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The shared memory as one process sees it.
pub struct SharedMemory {
    file: File,
    live: Mapping,
}

impl SharedMemory {
    /// Creates empty shared memory. The launcher calls this.
    pub fn create() -> io::Result<Self> {
        // If the user may execute the launcher's file but not read it (mode 711), the kernel lets only root reach
        // this memory through /proc (PR_SET_DUMPABLE(2const)). This call lifts that: the memory holds nothing that
        // this user may not see.
        // SAFETY: no memory is involved. If the call fails, the agent cannot open the memory, and pmmpi reports that.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) };
        // SAFETY: the name is a C string; the result is checked before it is used.
        let fd = unsafe { libc::memfd_create(c"pmmpi".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nothing else owns.
        let file = unsafe { File::from_raw_fd(fd) };
        within_file_limit(MAPPED_BYTES as u64)?;
        file.set_len(MAPPED_BYTES as u64)?;
        let shared = Self { live: map(&file, 0, MAPPED_BYTES, true)?, file };
        shared.live().layout.store(LiveRecord::LAYOUT, Ordering::Release);
        Ok(shared)
    }

    /// Opens it in an agent or a runner; `path` is from [`SharedMemory::path`].
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::from_file(File::options().read(true).write(true).open(path)?)
    }

    /// Opens another launcher's shared memory from its descriptor.
    pub fn from_file(file: File) -> io::Result<Self> {
        let invalid = || {
            io::Error::new(io::ErrorKind::InvalidData, "this is not shared memory of this version of pmmpi")
        };
        if file.metadata()?.len() < MAPPED_BYTES as u64 {
            return Err(invalid());
        }
        let shared = Self { live: map(&file, 0, MAPPED_BYTES, true)?, file };
        if shared.live().layout.load(Ordering::Acquire) == LiveRecord::LAYOUT {
            Ok(shared)
        } else {
            Err(invalid())
        }
    }

    /// The path by which other processes of this user can open it while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// The file to give to another launcher: see [`SharedMemory::from_file`].
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Keeps the descriptor open when this process executes a runner; its path stays valid.
    pub fn keep_across_exec(&self) -> io::Result<()> {
        // SAFETY: sets a flag of a descriptor that this process owns.
        let failed = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFD, 0) } < 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The rank's live record; it stays valid after the shared memory is dropped.
    pub fn live(&self) -> &'static LiveRecord {
        // SAFETY: the mapping is never unmapped and begins with the live record (see Mapping).
        unsafe { self.live.0.cast().as_ref() }
    }

    /// The rank's regions; they stay valid as well.
    pub fn regions(&self) -> &'static RegionTable {
        // SAFETY: the mapping is never unmapped and has the table at this place (see Mapping).
        unsafe { self.live.0.add(LIVE_RECORD_BYTES).cast().as_ref() }
    }

    /// Memory for the counters, initially zeros.
    pub fn counters(&self, opened: &Opened) -> io::Result<CounterTable<'static>> {
        let words = CounterTable::words(opened);
        if words == 0 {
            return Ok(CounterTable::default());
        }
        let bytes = words * size_of::<u64>();
        let end = COUNTERS_AT + bytes as u64;
        if end > Blob::SPACING_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the shared memory has no room for so many counters",
            ));
        }
        within_file_limit(end)?;
        if self.file.metadata()?.len() < end {
            self.file.set_len(end)?;
        }
        let mapped = map(&self.file, COUNTERS_AT, bytes, false)?;
        // SAFETY: mapped for as long as the process lives; every word is an atomic number.
        let words = unsafe { std::slice::from_raw_parts(mapped.0.as_ptr().cast(), words) };
        Ok(CounterTable::new(words, opened))
    }

    /// Stores a byte string for the other process.
    pub fn put(&self, blob: Blob, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > blob.limit_bytes() {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the data is too long for its place in the shared memory",
            ));
        }
        within_file_limit(blob.place() + bytes.len() as u64)?;
        self.file.write_all_at(bytes, blob.place())?;
        self.live().blob_bytes[blob as usize].store(bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// The byte string that the other process stored; empty if it stored none.
    pub fn take(&self, blob: Blob) -> io::Result<Vec<u8>> {
        let bytes = self.live().blob_bytes[blob as usize].load(Ordering::Acquire);
        if bytes > blob.limit_bytes() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the shared memory contains an invalid length",
            ));
        }
        let mut content = vec![0; bytes as usize];
        self.file.read_exact_at(&mut content, blob.place())?;
        Ok(content)
    }
}

/// An error if the limit on file sizes (ulimit -f, setrlimit(2)) is below `bytes`: a write beyond it would send
/// SIGXFSZ, and in the agent the workload would receive it.
pub fn within_file_limit(bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is a live local.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if asked && limit.rlim_cur < bytes { Err(io::Error::from_raw_os_error(libc::EFBIG)) } else { Ok(()) }
}

fn map(file: &File, offset: u64, bytes: usize, populate: bool) -> io::Result<Mapping> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | if populate { libc::MAP_POPULATE } else { 0 };
    // SAFETY: a new mapping of an open file, checked before it is used.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, access, flags, file.as_raw_fd(), offset as libc::off_t)
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(at.cast()).map(Mapping).ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::live_record::Phase;

    #[test]
    fn two_ends_share_the_record_and_the_byte_strings() {
        let here = SharedMemory::create().unwrap();
        let there = SharedMemory::open(Path::new(&here.path())).unwrap();
        assert_eq!(there.take(Blob::Plan).unwrap(), b"");
        here.put(Blob::Plan, b"do this").unwrap();
        there.put(Blob::Gathered, &[7; 100_000]).unwrap();
        assert_eq!(there.take(Blob::Plan).unwrap(), b"do this");
        assert_eq!(here.take(Blob::Gathered).unwrap(), [7; 100_000]);
        assert!(there.live().claim());
        assert!(!here.live().claim());
        there.live().set_phase(Phase::Started);
        assert_eq!(here.live().phase(), Phase::Started);
    }

    #[test]
    fn the_agent_waits_for_the_node_but_not_for_ever() {
        let shared = SharedMemory::create().unwrap();
        let live = shared.live();
        assert!(!live.wait_for_node(std::time::Duration::from_millis(5)));
        let waiter = std::thread::spawn(move || live.wait_for_node(std::time::Duration::from_secs(60)));
        live.announce_node();
        assert!(waiter.join().unwrap());
    }

    #[test]
    fn the_launcher_reads_the_health_when_the_agent_asks() {
        let shared = SharedMemory::create().unwrap();
        let live = shared.live();
        assert!(!live.ask_for_health(std::time::Duration::from_millis(5)), "no launcher answers");
        let answering = std::thread::spawn(move || {
            live.wait_for_health_request();
            live.announce_health();
        });
        assert!(live.ask_for_health(std::time::Duration::from_secs(60)));
        answering.join().unwrap();
    }

    #[test]
    fn a_file_that_is_no_spool_is_refused() {
        assert!(SharedMemory::open(Path::new("/dev/null")).is_err());
        assert!(SharedMemory::open(Path::new("/nonexistent")).is_err());
    }
}
