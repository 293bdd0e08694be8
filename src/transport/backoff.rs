//! How a process waits for other processes.

use crate::clock;
use crate::transport::fabric::Wait;
use std::time::Duration;

/// Pauses between two checks of something that other processes cause.
pub struct Backoff {
    wait: Wait,
    begin_ns: i64,
    looks: u32,
    pause_ns: i64,
}

impl Backoff {
    /// How long the process keeps its core.
    const SPIN_NS: i64 = 30_000;
    /// After that, this is the number of checks between two yields of the core. (An MPI that knows that it shares its
    /// cores yields in each check itself.)
    const LOOKS: u32 = 8;
    /// How long a patient rank only yields. Then it sleeps; if ranks share cores, a sleeping rank is late.
    const YIELD_NS: i64 = 100_000_000;
    const FIRST_PAUSE_NS: i64 = 100_000;
    /// Longest pause: how late a rank may leave the end barrier, however long the work takes.
    const LAST_PAUSE_NS: i64 = 1_000_000;

    /// Starts to wait.
    pub fn new(wait: Wait) -> Self {
        Self { wait, begin_ns: clock::monotonic_ns(), looks: 0, pause_ns: 0 }
    }

    /// Time since the start.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited_ns().unsigned_abs())
    }

    fn waited_ns(&self) -> i64 {
        clock::monotonic_ns() - self.begin_ns
    }

    /// Pauses between two checks. True once: just before the process gives up its core for the first time, because
    /// other ranks still work.
    pub fn pause(&mut self) -> bool {
        let waited_ns = self.waited_ns();
        self.looks = self.looks.wrapping_add(1);
        if self.wait == Wait::Patient && waited_ns > Self::YIELD_NS {
            return self.sleep();
        }
        if waited_ns > Self::SPIN_NS && self.looks.is_multiple_of(Self::LOOKS) {
            // SAFETY: no arguments, no memory.
            unsafe { libc::sched_yield() };
        } else {
            std::hint::spin_loop();
        }
        false
    }

    fn sleep(&mut self) -> bool {
        if self.pause_ns == 0 {
            self.pause_ns = Self::FIRST_PAUSE_NS;
            return true;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: self.pause_ns };
        // SAFETY: `pause` is valid; an interrupted sleep is only a shorter one.
        unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
        self.pause_ns = (self.pause_ns + self.pause_ns / 8).min(Self::LAST_PAUSE_NS);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_patient_rank_gives_up_its_core_and_says_so_once() {
        for (wait, times) in [(Wait::Eager, 0), (Wait::Patient, 1)] {
            let mut backoff = Backoff::new(wait);
            let mut said = 0;
            while backoff.waited() < Duration::from_nanos(Backoff::YIELD_NS as u64) * 2 {
                said += u32::from(backoff.pause());
            }
            assert_eq!((said, backoff.pause_ns > 0), (times, times == 1));
        }
    }
}
