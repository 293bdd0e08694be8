//! Memory that a rank and its launcher share, so that what was measured outlives the rank.
//!
//! It is an anonymous file (memfd_create(2)): no name in /dev/shm or /tmp that anyone could guess, link
//! to or have to clean up. The workload reaches it through the launcher's entry in /proc, so no open
//! descriptor is handed down to it. Its first page is the rank's live record, written by plain stores
//! while the work runs; byte strings follow in fixed places.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

/// The environment variable that tells an agent or a runner where its spool is.
pub const SPOOL_VARIABLE: &str = "PMMPI_SPOOL";

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// Nobody measures yet.
    Fresh = 0,
    /// A process has taken the spool for itself.
    Claimed = 1,
    /// t0 and t1 are stamped: the work has begun.
    Started = 2,
    /// t2 is stamped: the work is over.
    Stopped = 3,
    /// t3 is stamped.
    Released = 4,
    /// Rank 0 has every rank's part, or another rank has sent its own.
    Gathered = 5,
}

/// What one rank measures, while it measures. Plain memory of both processes: every field is atomic,
/// and a reader sees a phase only after what was stored before it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct RankCell {
    layout: AtomicU64,
    phase: AtomicU32,
    node_is_ready: AtomicU32,
    /// Rank in MPI_COMM_WORLD and its size.
    pub rank: AtomicU32,
    /// See `rank`.
    pub size: AtomicU32,
    /// t0..t3, ns of CLOCK_MONOTONIC.
    pub t_ns: [AtomicI64; 4],
    /// CLOCK_MONOTONIC_RAW right before t0 and right after t3, ns.
    pub raw_ns: [AtomicI64; 2],
    /// How long those two readings took (CLOCK_MONOTONIC, ns).
    pub raw_slack_ns: AtomicI64,
    /// CLOCK_REALTIME at t1 and t2, ns.
    pub real_ns: [AtomicI64; 2],
    /// Time stamp counter at t1 and t2; 0 where it is not invariant.
    pub tsc: [AtomicU64; 2],
    /// User CPU time of the process at t1 and t2, ns.
    pub cpu_user_ns: [AtomicI64; 2],
    /// The same in the kernel.
    pub cpu_system_ns: [AtomicI64; 2],
    /// Hardware thread at t1 and t2; negative where the kernel does not say.
    pub ran_on: [AtomicI32; 2],
    /// Tool's time before t0, ns.
    pub setup_ns: AtomicI64,
    /// From t3 until the gather was complete, ns.
    pub gather_ns: AtomicI64,
    /// What went wrong in the tool, as a bit set of [`Fault`].
    pub faults: AtomicU32,
    blob_bytes: [AtomicU64; 3],
}

/// Something that the tool could not do for a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// The MPI library is of a family whose handles are not known.
    UnknownMpi = 1,
    /// An MPI call of the tool failed.
    MpiCall = 2,
    /// The launcher did not give the node's record in time.
    NoNodeRecord = 4,
    /// The gathered records could not be handed to the launcher.
    Handover = 8,
    /// The tool's own code panicked; the workload went on.
    Panic = 16,
    /// Another MPI program of the same launch had been measured before, or was being.
    SecondProgram = 32,
}

/// A byte string with a fixed place in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blob {
    /// The node's [`crate::record::HostPart`], from the launcher.
    Node = 0,
    /// What the runner is to do, from the launcher.
    Plan = 1,
    /// All ranks' parts, from rank 0 to its launcher.
    Gathered = 2,
}

impl Blob {
    fn place(self) -> u64 {
        CELL_BYTES as u64 + self as u64 * Self::SPACING_BYTES
    }

    const SPACING_BYTES: u64 = 16 << 20;

    fn limit_bytes(self) -> u64 {
        if self == Blob::Gathered { crate::wire::LIMIT_BYTES as u64 } else { Self::SPACING_BYTES }
    }
}

const CELL_BYTES: usize = 4096;
/// "PMMPI" and the layout's number: an agent of another version must not write here.
const LAYOUT: u64 = u64::from_le_bytes(*b"PMMPI\0\0\x01");

impl RankCell {
    /// How far the rank has come.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Fresh,
            1 => Phase::Claimed,
            2 => Phase::Started,
            3 => Phase::Stopped,
            4 => Phase::Released,
            _ => Phase::Gathered,
        }
    }

    /// Everything that was stored before is visible to whoever sees the phase.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
    }

    /// True for the first process that asks: a wrapper may start several MPI programs.
    pub fn claim(&self) -> bool {
        let (fresh, claimed) = (Phase::Fresh as u32, Phase::Claimed as u32);
        self.phase.compare_exchange(fresh, claimed, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Notes that the tool failed in some way.
    pub fn note(&self, fault: Fault) {
        self.faults.fetch_or(fault as u32, Ordering::Relaxed);
    }

    /// True if `fault` was noted.
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.load(Ordering::Relaxed) & fault as u32 != 0
    }

    /// The launcher has stored the node's record, or has none to give.
    pub fn announce_node(&self) {
        self.node_is_ready.store(1, Ordering::Release);
        // SAFETY: FUTEX_WAKE only takes the address of a live word.
        unsafe { libc::syscall(libc::SYS_futex, self.node_is_ready.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Waits until the launcher reads nothing any more; false after `timeout`.
    pub fn wait_for_node(&self, timeout: std::time::Duration) -> bool {
        let deadline = std::time::Instant::now() + timeout;
        while self.node_is_ready.load(Ordering::Acquire) == 0 {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return false;
            }
            let left = libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let word = self.node_is_ready.as_ptr();
            // SAFETY: the word lives as long as the mapping and `left` is a valid timespec.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, 0, &left) };
        }
        true
    }
}

/// A rank's live record, mapped for as long as the process lives: whoever writes to it does so until
/// the end.
#[derive(Clone, Copy)]
struct Mapping(NonNull<RankCell>);

// SAFETY: the mapping is never taken away, and every field of a RankCell is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// One process's end of the shared memory.
pub struct Spool {
    file: File,
    cell: Mapping,
}

impl Spool {
    /// New and empty, by the launcher.
    pub fn create() -> io::Result<Self> {
        // SAFETY: the name is a C string; the result is checked before it is used.
        let fd = unsafe { libc::memfd_create(c"pmmpi".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nothing else owns.
        let file = unsafe { File::from_raw_fd(fd) };
        within_file_limit(CELL_BYTES as u64)?;
        file.set_len(CELL_BYTES as u64)?;
        let spool = Self { cell: map(&file)?, file };
        spool.cell().layout.store(LAYOUT, Ordering::Release);
        Ok(spool)
    }

    /// The other end, by an agent or a runner; `path` is what [`Spool::path`] gave.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "not a spool of this version of pmmpi");
        if file.metadata()?.len() < CELL_BYTES as u64 {
            return Err(invalid());
        }
        let spool = Self { cell: map(&file)?, file };
        if spool.cell().layout.load(Ordering::Acquire) == LAYOUT { Ok(spool) } else { Err(invalid()) }
    }

    /// Where other processes of this user can open it while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Lets the descriptor survive the exec of a runner in this process's place; its path stays true.
    pub fn keep_across_exec(&self) -> io::Result<()> {
        // SAFETY: sets a flag of a descriptor that this process owns.
        let failed = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFD, 0) } < 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The rank's live record; it stays valid after the spool is dropped.
    pub fn cell(&self) -> &'static RankCell {
        // SAFETY: the mapping is never unmapped (see Mapping).
        unsafe { self.cell.0.as_ref() }
    }

    /// Stores a byte string for the other process.
    pub fn put(&self, blob: Blob, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > blob.limit_bytes() {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "more than its place in the spool holds",
            ));
        }
        within_file_limit(blob.place() + bytes.len() as u64)?;
        self.file.write_all_at(bytes, blob.place())?;
        self.cell().blob_bytes[blob as usize].store(bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    /// The byte string that the other process stored; empty where it stored none.
    pub fn take(&self, blob: Blob) -> io::Result<Vec<u8>> {
        let bytes = self.cell().blob_bytes[blob as usize].load(Ordering::Acquire);
        if bytes > blob.limit_bytes() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a length that the spool cannot have"));
        }
        let mut content = vec![0; bytes as usize];
        self.file.read_exact_at(&mut content, blob.place())?;
        Ok(content)
    }
}

/// An error where the limit on file sizes (ulimit -f, setrlimit(2)) is below `bytes`: a write beyond it
/// would send SIGXFSZ, in the agent to the workload.
fn within_file_limit(bytes: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is a live local.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if asked && limit.rlim_cur < bytes { Err(io::Error::from_raw_os_error(libc::EFBIG)) } else { Ok(()) }
}

fn map(file: &File) -> io::Result<Mapping> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // MAP_POPULATE: the first store at t1 must not fault.
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    // SAFETY: a new mapping of an open file, checked before it is used.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), CELL_BYTES, access, flags, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(at.cast()).map(Mapping).ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ends_share_the_record_and_the_byte_strings() {
        let here = Spool::create().unwrap();
        let there = Spool::open(Path::new(&here.path())).unwrap();
        assert_eq!(there.take(Blob::Plan).unwrap(), b"");
        here.put(Blob::Plan, b"do this").unwrap();
        there.put(Blob::Gathered, &[7; 100_000]).unwrap();
        assert_eq!(there.take(Blob::Plan).unwrap(), b"do this");
        assert_eq!(here.take(Blob::Gathered).unwrap(), [7; 100_000]);
        assert!(there.cell().claim());
        assert!(!here.cell().claim());
        there.cell().set_phase(Phase::Started);
        assert_eq!(here.cell().phase(), Phase::Started);
        assert!(std::mem::size_of::<RankCell>() <= CELL_BYTES);
    }

    #[test]
    fn the_agent_waits_for_the_node_but_not_for_ever() {
        let spool = Spool::create().unwrap();
        let cell = spool.cell();
        assert!(!cell.wait_for_node(std::time::Duration::from_millis(5)));
        let waiter = std::thread::spawn(move || cell.wait_for_node(std::time::Duration::from_secs(60)));
        cell.announce_node();
        assert!(waiter.join().unwrap());
    }

    #[test]
    fn a_file_that_is_no_spool_is_refused() {
        assert!(Spool::open(Path::new("/dev/null")).is_err());
        assert!(Spool::open(Path::new("/nonexistent")).is_err());
    }
}
