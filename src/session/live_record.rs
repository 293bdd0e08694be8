//! A rank's live record: its values during the measurement.

use crate::bounds::{RawClock, Stamps};
use crate::ids::{NodeId, RankId};
use crate::record::{End, LostRank, RankRecord};
use std::mem::size_of;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How far a rank has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// No process measures yet.
    Fresh = 0,
    /// A process has taken the shared memory for itself.
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

/// The values of one rank during the measurement, in memory that two processes share. Every field is atomic. A
/// reader that sees a phase also sees everything that was stored before it.
#[derive(Debug, Default)]
#[repr(C)]
pub struct LiveRecord {
    pub(crate) layout: AtomicU64,
    phase: AtomicU32,
    node_is_ready: AtomicU32,
    /// 0, or the number of the process that asks.
    health_is_asked_for: AtomicU32,
    health_is_ready: AtomicU32,
    /// Rank in MPI_COMM_WORLD and its size.
    pub rank: AtomicU32,
    /// See `rank`.
    pub size: AtomicU32,
    /// The signal that asked its launcher to end, if one did; else 0.
    pub asked_to_end: AtomicI32,
    settled: AtomicU32,
    /// t0..t3, ns of CLOCK_MONOTONIC.
    pub t_ns: [AtomicI64; 4],
    /// CLOCK_MONOTONIC_RAW right before t0 and right after t3, ns.
    pub raw_ns: [AtomicI64; 2],
    /// How long those two readings took (CLOCK_MONOTONIC, ns).
    pub raw_slack_ns: AtomicI64,
    /// CLOCK_REALTIME at t1 and t2, ns.
    pub real_ns: [AtomicI64; 2],
    /// Time stamp counter at t1 and t2; 0 if it is not invariant.
    pub tsc: [AtomicU64; 2],
    /// User CPU time of the process at t1 and t2, ns.
    pub cpu_user_ns: [AtomicI64; 2],
    /// The same in the kernel.
    pub cpu_system_ns: [AtomicI64; 2],
    /// Hardware thread at t1 and t2; negative if the kernel does not report it.
    pub ran_on: [AtomicI32; 2],
    /// Time for opening the rank's counters, ns.
    pub opening_ns: AtomicI64,
    /// Time for the snapshots after t1 and before t2, ns.
    pub snapshot_ns: [AtomicI64; 2],
    /// Tool's time before t0, ns.
    pub setup_ns: AtomicI64,
    /// From t3 until the gather was complete, ns.
    pub gather_ns: AtomicI64,
    /// What went wrong in the tool, as a bit set of [`Fault`].
    faults: AtomicU64,
    /// CLOCK_MONOTONIC when its launcher saw it end, ns.
    pub ended_ns: AtomicI64,
    end: EndWord,
    /// Set if the program called MPI_Abort.
    abort: EndWord,
    pub(crate) blob_bytes: [AtomicU64; 9],
}

/// An [`End`], or none.
#[derive(Debug, Default)]
#[repr(C)]
struct EndWord(AtomicU64);

impl EndWord {
    fn store(&self, end: End) {
        let (kind, value) = match end {
            End::Finalized => (1, 0),
            End::Exited(code) => (2, code),
            End::Signaled(signal) => (3, signal),
            End::NotStarted(errno) => (4, errno),
            End::Interrupted(signal) => (5, signal),
            End::Aborted(code) => (6, code),
            End::TimedOut => (7, 0),
            End::Lost => (8, 0),
        };
        self.0.store(kind << 32 | u64::from(value as u32), Relaxed);
    }

    fn load(&self) -> Option<End> {
        let word = self.0.load(Relaxed);
        let value = word as u32 as i32;
        Some(match word >> 32 {
            1 => End::Finalized,
            2 => End::Exited(value),
            3 => End::Signaled(value),
            4 => End::NotStarted(value),
            5 => End::Interrupted(value),
            6 => End::Aborted(value),
            7 => End::TimedOut,
            8 => End::Lost,
            _ => return None,
        })
    }
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
    /// Another MPI program of the same launch was measured before, or at the same time.
    SecondProgram = 32,
    /// The run is not kept while it runs.
    NoPartial = 64,
    /// MPI's world is not the launched job, and the tool ended the job.
    Mismatch = 128,
    /// The program itself started an MPI job with another launcher; the agent did not measure it.
    OtherLaunch = 256,
    /// The program's C library is not glibc; the agent did not measure the program.
    OtherLibc = 512,
    /// MPI_Init was called; it may never have returned.
    InInit = 1024,
}

/// The layout that `word` names, if it names one.
pub(crate) fn layout_of(word: [u8; 8]) -> Option<u64> {
    word.starts_with(b"PMMPI\0\0").then(|| u64::from_le_bytes(word))
}

const WORDS: usize = size_of::<LiveRecord>() / size_of::<u64>();
/// The word that `phase` is in.
const PHASE_WORD: usize = 1;

impl LiveRecord {
    /// "PMMPI" and the layout's number: an agent of another version must not write here, and a report of another
    /// version must not read.
    pub(crate) const LAYOUT: u64 = u64::from_le_bytes(*b"PMMPI\0\0\x09");

    /// Its memory. Every field is an atomic of 4 or 8 bytes, in an order that leaves no gaps.
    fn words(&self) -> &[AtomicU64; WORDS] {
        // SAFETY: as above; the size is a multiple of 8, and so is the alignment.
        unsafe { &*std::ptr::from_ref(self).cast() }
    }

    /// Copies everything to `other` by plain stores. A reader that sees the new phase there also sees the rest.
    pub fn copy_to(&self, other: &LiveRecord) {
        let phase = self.words()[PHASE_WORD].load(Ordering::Acquire);
        for (at, (from, to)) in self.words().iter().zip(other.words()).enumerate() {
            if at != PHASE_WORD {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
        other.words()[PHASE_WORD].store(phase, Ordering::Release);
    }

    /// From a copy in a file; `None` if the bytes are not such a copy.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let live = Self::default();
        for (word, bytes) in live.words().iter().zip(bytes.get(..size_of::<Self>())?.chunks_exact(8)) {
            word.store(u64::from_le_bytes(bytes.try_into().ok()?), Relaxed);
        }
        (live.layout.load(Relaxed) == Self::LAYOUT).then_some(live)
    }

    /// The bytes for a copy in a file.
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.words()) {
            to.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        bytes
    }

    /// Stores how the rank ended. The launcher calls this.
    pub fn set_end(&self, end: End, ended_ns: i64) {
        self.ended_ns.store(ended_ns, Relaxed);
        self.end.store(end);
    }

    /// Marks that the launcher has handled this record: no other process needs to carry it to the disk.
    pub fn settle(&self) {
        self.settled.store(1, Ordering::Release);
    }

    /// True after [`Self::settle`].
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire) != 0
    }

    /// Notes that the program called MPI_Abort with this code.
    pub fn note_abort(&self, code: i32) {
        self.abort.store(End::Aborted(code));
    }

    /// The end by MPI_Abort, if the program called it.
    pub fn aborted(&self) -> Option<End> {
        self.abort.load()
    }

    /// Its end, once that is known.
    pub fn end(&self) -> Option<End> {
        self.abort.load().or(self.end.load())
    }

    /// The rank's record. What the live record does not hold comes from `template`.
    pub fn record(&self, template: &RankRecord) -> RankRecord {
        let pair = |pair: &[AtomicI64; 2]| [pair[0].load(Relaxed), pair[1].load(Relaxed)];
        let between = |[from, to]: [i64; 2]| to.wrapping_sub(from);
        let tsc = [self.tsc[0].load(Relaxed), self.tsc[1].load(Relaxed)];
        RankRecord {
            rank: self.rank(),
            // CLOCK_MONOTONIC begins near 0 at boot or at a namespace's offset, so it is always in range;
            // zeros would show as a rank whose clock stood still.
            stamps: Stamps::try_from(self.stamps()).unwrap_or_default(),
            raw: RawClock {
                elapsed_ns: between(pair(&self.raw_ns)),
                slack_ns: self.raw_slack_ns.load(Relaxed),
            },
            real_ns: pair(&self.real_ns),
            tsc: (tsc[0] != 0 && tsc[1] != 0).then_some(tsc),
            cpu_user_ns: between(pair(&self.cpu_user_ns)),
            cpu_system_ns: between(pair(&self.cpu_system_ns)),
            ran_on: std::array::from_fn(|i| u32::try_from(self.ran_on[i].load(Relaxed)).ok()),
            setup_ns: self.setup_ns.load(Relaxed),
            ..template.clone()
        }
    }

    /// The data of a rank that reached t1 but not t3; `None` for any other rank.
    pub fn lost(&self, node: NodeId) -> Option<LostRank> {
        let taken = match self.phase() {
            Phase::Started => 2,
            Phase::Stopped => 3,
            _ => return None,
        };
        let ended_ns = self.ended_ns.load(Relaxed);
        Some(LostRank {
            rank: self.rank(),
            node,
            t_ns: self.stamps()[..taken].to_vec(),
            end: self.end().unwrap_or(End::Lost),
            ended_ns: (ended_ns != 0).then_some(ended_ns),
            whereabouts: None, // the region table has it
        })
    }

    /// The field `rank`.
    pub fn rank(&self) -> RankId {
        RankId(self.rank.load(Relaxed))
    }

    fn stamps(&self) -> [i64; 4] {
        std::array::from_fn(|i| self.t_ns[i].load(Relaxed))
    }

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

    /// A reader that sees this phase also sees everything that was stored before.
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
        self.faults.fetch_or(fault as u64, Ordering::Relaxed);
    }

    /// True if `fault` was noted.
    pub fn has(&self, fault: Fault) -> bool {
        self.faults.load(Ordering::Relaxed) & fault as u64 != 0
    }

    /// Announces that the launcher has stored the node's record, or has none.
    pub fn announce_node(&self) {
        raise(&self.node_is_ready);
    }

    /// Waits until the launcher has announced the node's record; false after `timeout`.
    pub fn wait_for_node(&self, timeout: Duration) -> bool {
        wait_for(&self.node_is_ready, timeout)
    }

    /// Asks the launcher to read the node's health counts again, because the work is over. Waits until it has stored
    /// them; false after `timeout`.
    pub fn ask_for_health(&self, timeout: Duration) -> bool {
        raise_to(&self.health_is_asked_for, std::process::id());
        wait_for(&self.health_is_ready, timeout)
    }

    /// Waits until the agent asks for the health counts. Gives the number of the agent's process. In a container,
    /// this number may be that of another process outside.
    pub fn wait_for_health_request(&self) -> u32 {
        while !wait_for(&self.health_is_asked_for, Duration::from_secs(1 << 30)) {}
        self.health_is_asked_for.load(Relaxed)
    }

    /// Announces that the launcher has stored the health counts, or cannot.
    pub fn announce_health(&self) {
        raise(&self.health_is_ready);
    }
}

/// Sets a word that another process may wait for.
fn raise(word: &AtomicU32) {
    raise_to(word, 1);
}

/// The same with a value that is not 0.
fn raise_to(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    // SAFETY: FUTEX_WAKE only takes the address of a live word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Waits until the word is set; false after `timeout`.
fn wait_for(word: &AtomicU32, timeout: Duration) -> bool {
    let deadline = Instant::now() + timeout;
    while word.load(Ordering::Acquire) == 0 {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let left = libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        // SAFETY: the word lives as long as the mapping and `left` is a valid timespec.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 0, &left) };
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_whole() {
        let (live, copy) = (LiveRecord::default(), LiveRecord::default());
        live.layout.store(LiveRecord::LAYOUT, Relaxed);
        live.rank.store(7, Relaxed);
        for (number, t) in live.t_ns.iter().enumerate() {
            t.store(10 + number as i64, Relaxed);
        }
        live.blob_bytes[5].store(99, Relaxed);
        live.set_phase(Phase::Stopped);
        live.copy_to(&copy);
        assert_eq!(live.to_bytes(), copy.to_bytes());
        let read = LiveRecord::from_bytes(&copy.to_bytes()).unwrap();
        assert_eq!(read.to_bytes(), live.to_bytes());
        let lost = read.lost(NodeId(3)).unwrap();
        assert_eq!((lost.rank, lost.node, lost.end, lost.ended_ns), (RankId(7), NodeId(3), End::Lost, None));
        assert_eq!(lost.t_ns, [10, 11, 12]);
        assert!(LiveRecord::from_bytes(&copy.to_bytes()[1..]).is_none());
        assert!(LiveRecord::from_bytes(&[0; 1000]).is_none());
    }

    #[test]
    fn each_end_is_stored_as_it_was() {
        let ends = [
            End::Finalized,
            End::Exited(255),
            End::Signaled(9),
            End::NotStarted(2),
            End::Interrupted(15),
            End::TimedOut,
            End::Lost,
        ];
        let live = LiveRecord::default();
        assert_eq!(live.end(), None);
        for end in ends {
            live.set_end(end, 5);
            assert_eq!(live.end(), Some(end));
        }
        live.note_abort(-3);
        assert_eq!(live.end(), Some(End::Aborted(-3)));
    }
}
