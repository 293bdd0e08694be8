//! A barrier in which threads spin.
//!
//! Threads that sleep in a barrier of the standard library wake one after another (futex(2)), and on many cores the
//! last one starts a repetition tens of microseconds after the first one. Threads that spin start when they see one
//! store, so their starts differ only by the time of one cache miss.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A thread spins this often (about 0.1 ms) before it yields its hardware thread. This matters only if another
/// program uses the hardware thread of a thread of the team.
const SPINS: u32 = 4096;

/// A barrier for a fixed number of threads; threads can use it again at once.
pub(crate) struct SpinBarrier {
    members: usize,
    arrived: Line,
    /// Grows by 1 when all threads have arrived. Threads that wait read this cache line, and threads that arrive
    /// write the other one.
    round: Line,
}

#[repr(align(128))]
struct Line(AtomicUsize);

impl SpinBarrier {
    pub(crate) fn new(members: usize) -> Self {
        Self { members, arrived: Line(AtomicUsize::new(0)), round: Line(AtomicUsize::new(0)) }
    }

    pub(crate) fn wait(&self) {
        let round = self.round.0.load(Ordering::Acquire);
        if self.arrived.0.fetch_add(1, Ordering::AcqRel) + 1 == self.members {
            // No thread of the next round arrives before the round grows.
            self.arrived.0.store(0, Ordering::Relaxed);
            self.round.0.store(round.wrapping_add(1), Ordering::Release);
            return;
        }
        let mut spins = 0;
        while self.round.0.load(Ordering::Acquire) == round {
            if spins < SPINS {
                spins += 1;
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_leaves_before_all_have_arrived() {
        const MEMBERS: usize = 3;
        const ROUNDS: usize = 2000;
        let (barrier, count) = (SpinBarrier::new(MEMBERS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..MEMBERS {
                scope.spawn(|| {
                    for round in 1..=ROUNDS {
                        count.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(count.load(Ordering::Relaxed), round * MEMBERS);
                        barrier.wait();
                    }
                });
            }
        });
    }
}
