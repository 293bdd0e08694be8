//! A process's probes during the measurement.
//!
//! A thread enters and leaves a probe on its own: no barrier, no system call, no lock. There are two exceptions: a name
//! that is new to the thread takes memory, and the first probe of a thread also opens counters and takes a lock. Each
//! thread has accounts of its own; rank 0 gets the sums at the end. So the probes of a rank that ends badly are lost.

mod count_or_discard;
mod registry;
mod thread;
mod ticks;

use crate::clock;
use crate::ids::RankId;
use crate::probes::Probes;
use registry::REGISTRY;
use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::sync::{OnceLock, PoisonError};
use ticks::{Tick, UNKNOWN};

/// A function that the program calls with a name and its length: it calls [`enter`] or [`leave`].
pub type Mark = unsafe extern "C" fn(name: *const c_char, bytes: usize);

/// How probes measure.
#[derive(Clone, Copy, Debug)]
pub struct Arming {
    /// Whether threads may open counters.
    pub counters: bool,
    /// Where the C library has the number of the hardware thread, from the thread pointer (glibc's `__rseq_offset`).
    /// Only Arm needs it.
    pub rseq_offset: Option<isize>,
    /// The functions that the program calls to enter and to leave. Each thread measures what they take.
    pub calls: [Mark; 2],
}

/// Whether and how to measure; null before the first [`arm`]. The word is on a page that a forked child sees as zeros,
/// because the kernel does not give a child the pages of the counters.
static GATE: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());
const ON: u32 = 1;
/// The clock is the processor's.
const HAS_TICKS: u32 = 2;
const MAY_COUNT: u32 = 4;

static BEGAN: OnceLock<Began> = OnceLock::new();

/// When probes began to measure.
struct Began {
    ns: i64,
    ticks: u64,
    /// Roughly.
    ticks_per_ms: u64,
    calls: [Mark; 2],
}

/// From now on, probes are measured. Only the first call of a process counts.
pub fn arm(arming: Arming) {
    #[cfg(target_arch = "aarch64")]
    ticks::rseq::OFFSET.store(arming.rseq_offset.unwrap_or(0), Relaxed);
    let Some((gate, is_wiped)) = gate_page() else { return };
    let mut how = ON;
    if ticks::exists() {
        how |= HAS_TICKS;
    }
    if arming.counters && is_wiped {
        how |= MAY_COUNT;
    }
    let (ns, ticks) = (clock::monotonic_ns(), now(how).ticks);
    let ticks_per_ms = loop {
        const LONG_ENOUGH_NS: i64 = 20_000;
        let passed_ns = clock::monotonic_ns() - ns;
        if passed_ns >= LONG_ENOUGH_NS {
            break now(how).ticks.wrapping_sub(ticks).saturating_mul(1_000_000) / passed_ns as u64;
        }
    };
    if BEGAN.set(Began { ns, ticks, ticks_per_ms, calls: arming.calls }).is_ok() {
        // SAFETY: the page is never unmapped.
        unsafe { (*gate).store(how, Relaxed) };
        GATE.store(gate, Release);
    }
}

/// From now on, calls of probes do nothing.
pub fn disarm() {
    // SAFETY: the page is never unmapped.
    if let Some(gate) = unsafe { GATE.load(Acquire).as_ref() } {
        gate.store(0, Relaxed);
    }
}

/// A page for the gate, and whether a forked child sees zeros there.
fn gate_page() -> Option<(*mut AtomicU32, bool)> {
    const BYTES: usize = 4096;
    const MADV_WIPEONFORK: libc::c_int = 18;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, checked before it is used.
    let page = unsafe { libc::mmap(null_mut(), BYTES, access, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page is this function's own. Kernels before 4.14 refuse the request.
    let is_wiped = unsafe { libc::madvise(page, BYTES, MADV_WIPEONFORK) } == 0;
    Some((page.cast(), is_wiped))
}

#[inline(always)]
fn gate() -> u32 {
    // SAFETY: null, or a page that is never unmapped.
    unsafe { GATE.load(Relaxed).as_ref() }.map_or(0, |gate| gate.load(Relaxed))
}

#[inline(always)]
fn now(gate: u32) -> Tick {
    if gate & HAS_TICKS != 0 {
        ticks::read()
    } else {
        Tick { ticks: clock::monotonic_ns() as u64, thread: UNKNOWN }
    }
}

/// Bytes of a probe's name that distinguish it.
const NAME_BYTES: usize = 63;

fn cut(name: &[u8]) -> &[u8] {
    name.get(..NAME_BYTES).unwrap_or(name)
}

/// This thread enters a probe. False if the thread needs [`start_thread`] first.
#[inline]
pub fn enter(name: &[u8]) -> bool {
    let gate = gate();
    gate & ON == 0 || thread::with(|local| local.enter(cut(name), gate))
}

/// This thread leaves the innermost probe of this name. Does nothing if it is in none.
#[inline]
pub fn leave(name: &[u8]) {
    let gate = gate();
    if gate & ON != 0 {
        let tick = now(gate);
        thread::with(|local| local.leave(cut(name), tick));
    }
}

/// Makes this thread's accounts, opens its counters, and measures what pmmpi itself takes of each entry.
#[cold]
pub fn start_thread() {
    let Some(began) = BEGAN.get() else { return };
    let gate = gate();
    if gate & ON != 0 {
        thread::start(gate & MAY_COUNT != 0, began.ticks_per_ms, || calibrate(began.calls, gate));
    }
}

/// The name of the entries without content. Their account is not part of the result.
const CALIBRATION: &[u8] = b"\x01pmmpi";

/// Enters and leaves a probe without content. Returns the time of a pair of calls, in ticks. The least values of the
/// account [`CALIBRATION`] are pmmpi's own part.
fn calibrate(calls: [Mark; 2], gate: u32) -> u64 {
    const TURNS: u64 = 64;
    let [enter, leave] = std::hint::black_box(calls);
    let turn = || {
        let name = std::hint::black_box(CALIBRATION);
        // SAFETY: the name has these bytes.
        unsafe {
            enter(name.as_ptr().cast(), name.len());
            leave(name.as_ptr().cast(), name.len());
        }
    };
    turn(); // makes the account
    let began = now(gate);
    (0..TURNS).for_each(|_| turn());
    now(gate).ticks.wrapping_sub(began.ticks) / TURNS
}

/// What the probes of this process recorded, as those of the rank `rank`.
pub fn collect(rank: RankId) -> Probes {
    let Some(began) = BEGAN.get() else { return Probes::default() };
    let how = if ticks::exists() { HAS_TICKS } else { 0 };
    let (passed_ns, ticks) = (clock::monotonic_ns() - began.ns, now(how).ticks.wrapping_sub(began.ticks));
    let ps_per_tick = if ticks > 0 { passed_ns as f64 * 1e3 / ticks as f64 } else { 1e3 };
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner).probes(rank, ps_per_tick)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::MOST;

    unsafe extern "C" fn enter_at(name: *const c_char, bytes: usize) {
        // SAFETY: the caller gives so many bytes.
        let name = unsafe { std::slice::from_raw_parts(name.cast(), bytes) };
        if !enter(name) {
            start_thread();
            assert!(enter(name));
        }
    }

    unsafe extern "C" fn leave_at(name: *const c_char, bytes: usize) {
        // SAFETY: the caller gives so many bytes.
        leave(unsafe { std::slice::from_raw_parts(name.cast(), bytes) });
    }

    fn inside(name: &str, work: impl FnOnce()) {
        // SAFETY: the name has these bytes.
        unsafe { enter_at(name.as_ptr().cast(), name.len()) };
        work();
        // SAFETY: as above.
        unsafe { leave_at(name.as_ptr().cast(), name.len()) };
    }

    /// One test, because a process has one gate.
    #[test]
    fn threads_record_their_entries_and_a_forked_child_none() {
        inside("before", || ());
        assert_eq!(collect(RankId(0)), Probes::default());
        arm(Arming { counters: true, rseq_offset: None, calls: [enter_at, leave_at] });
        std::thread::scope(|scope| {
            for thread in 1..=3u64 {
                scope.spawn(move || {
                    for _ in 0..thread * 1000 {
                        inside("outer", || inside("inner", || ()));
                    }
                    inside("slow", || std::thread::sleep(std::time::Duration::from_millis(5)));
                    inside("only one", || ());
                    inside(&"x".repeat(100), || leave(b"never entered"));
                    enter(b"never left");
                });
            }
        });
        // This thread still runs, and has used up its names; the other ones have ended.
        (0..MOST + 3).for_each(|number| inside(&format!("{number}"), || ()));
        // SAFETY: the child only enters a probe and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::_exit(if enter(b"0") && gate() == 0 { 0 } else { 1 });
            }
            let mut status = 0;
            libc::waitpid(child, &mut status, 0);
            assert_eq!(status, 0);
        }
        disarm();
        inside("after", || ());

        let probes = collect(RankId(7));
        assert!(probes.is_sound(8));
        let all: Vec<_> = probes.over_ranks().collect();
        let of =
            |name: &str| all.iter().find(|(known, ..)| *known == name).unwrap_or_else(|| panic!("{name}"));
        for (name, entries) in [("outer", 6000), ("inner", 6000), ("slow", 3), ("only one", 3)] {
            let (_, totals, times) = of(name);
            assert_eq!((totals.threads, totals.entries + totals.discarded.all()), (3, entries), "{name}");
            assert!(totals.time_ps.least <= totals.time_ps.most);
            assert_eq!(times.median_ps().is_some(), totals.entries > 0);
        }
        let (_, slow, times) = of("slow");
        assert!(slow.time_ps.least > 4_900_000_000 || slow.entries == 0, "{slow:?}");
        assert!(times.median_ps().is_none_or(|ps| ps > 4.6e9));
        assert!(all.iter().any(|(name, ..)| *name == "x".repeat(NAME_BYTES)));
        assert!(
            !all.iter().any(|(name, ..)| ["before", "after", "never left", "never entered"].contains(name))
        );
        // The account of the calibration takes one place.
        assert_eq!(probes.unrecorded, 4);
        assert!(probes.cost_ps > 0 && probes.tick_ps > 0);
        let is_counted = all.iter().any(|(_, totals, _)| totals.counted > 0);
        assert_ne!(is_counted, probes.uncounted.is_some());
    }
}
