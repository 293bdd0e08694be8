//! What a measurement asks of the ranks' interconnect, and the two fabrics that need no MPI.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex};

/// How a rank waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Leave at once when the last rank enters: before the work, where a late exit is skew. The core
    /// is offered to others (sched_yield) but never given up for a fixed time.
    Eager,
    /// Leave the cores to ranks that still work: after the work. This costs the upper bound nothing,
    /// since it is a minimum over nodes and the last rank to arrive does not wait.
    Patient,
}

/// Ranks that can wait for one another and send bytes to rank 0. Dropped before MPI is finalised.
pub trait Fabric {
    /// This process, 0 to `size() - 1`.
    fn rank(&self) -> u32;
    /// Processes in the job.
    fn size(&self) -> u32;
    /// Returns after every rank has called it: every entry precedes every exit. `meanwhile` is called at
    /// most once, after this rank has entered and only if it must wait: what it takes keeps nobody waiting.
    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError>;
    /// Every rank's bytes, in rank order, on rank 0; `None` elsewhere. Lengths may differ.
    fn gather(&mut self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, FabricError>;
}

/// A fabric on which rank 0 can also tell the others something.
pub trait Broadcast: Fabric {
    /// Rank 0's `bytes`, on every rank; as many everywhere.
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError>;

    /// Rank 0's `bytes`, of whatever length, on every rank.
    fn tell(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, FabricError> {
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.broadcast(&mut length)?;
        let mut told = bytes;
        told.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast(&mut told)?;
        Ok(told)
    }
}

impl<F: Fabric> Fabric for &mut F {
    fn rank(&self) -> u32 {
        (**self).rank()
    }

    fn size(&self) -> u32 {
        (**self).size()
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        (**self).barrier(wait, meanwhile)
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        (**self).gather(bytes)
    }
}

/// A call to the interconnect that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricError {
    /// The function, as its library names it.
    pub call: &'static str,
    /// Its error code, in the library's own numbering.
    pub code: i32,
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed with code {}", self.call, self.code)
    }
}

impl std::error::Error for FabricError {}

/// Waits between two looks at something that other processes will bring about.
pub struct Backoff {
    wait: Wait,
    looks: u32,
    pause_ns: u32,
}

impl Backoff {
    const SPINS: u32 = 200;
    const YIELDS: u32 = 50;
    const FIRST_PAUSE_NS: u32 = 20_000;
    /// Longest pause: what a rank may come late out of the end barrier, beside work of any length.
    const LAST_PAUSE_NS: u32 = 1_000_000;

    /// From the first look on.
    pub fn new(wait: Wait) -> Self {
        Self { wait, looks: 0, pause_ns: Self::FIRST_PAUSE_NS }
    }

    /// True once: before the first pause in which the core is given up.
    pub fn begins_to_wait(&self) -> bool {
        self.looks.saturating_add(1) == Self::SPINS + Self::YIELDS
    }

    /// Between two looks.
    pub fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks < Self::SPINS {
            std::hint::spin_loop();
        } else if self.wait == Wait::Eager || self.looks < Self::SPINS + Self::YIELDS {
            // SAFETY: no arguments, no memory.
            unsafe { libc::sched_yield() };
        } else {
            let pause = libc::timespec { tv_sec: 0, tv_nsec: self.pause_ns.into() };
            // SAFETY: `pause` is valid; an interrupted sleep is only a shorter one.
            unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
            self.pause_ns = (self.pause_ns + self.pause_ns / 8).min(Self::LAST_PAUSE_NS);
        }
    }
}

/// One process alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Solo;

impl Fabric for Solo {
    fn rank(&self) -> u32 {
        0
    }

    fn size(&self) -> u32 {
        1
    }

    fn barrier(&mut self, _: Wait, _: &mut dyn FnMut()) -> Result<(), FabricError> {
        Ok(())
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        Ok(Some(vec![bytes.to_vec()]))
    }
}

impl Broadcast for Solo {
    fn broadcast(&mut self, _: &mut [u8]) -> Result<(), FabricError> {
        Ok(())
    }
}

/// Threads of one process as ranks: what tests of the session run on.
pub struct Threads {
    rank: u32,
    shared: Arc<(Mutex<Meeting>, Condvar)>,
}

struct Meeting {
    size: u32,
    arrived: u32,
    generation: u64,
    parts: Vec<Vec<u8>>,
}

impl Threads {
    /// One fabric for each of `size` threads.
    pub fn new(size: u32) -> Vec<Self> {
        let parts = vec![Vec::new(); size as usize];
        let shared =
            Arc::new((Mutex::new(Meeting { size, arrived: 0, generation: 0, parts }), Condvar::new()));
        (0..size).map(|rank| Self { rank, shared: Arc::clone(&shared) }).collect()
    }

    fn meeting(&self) -> std::sync::MutexGuard<'_, Meeting> {
        self.shared.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Fabric for Threads {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.meeting().size
    }

    fn barrier(&mut self, _: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        let mut meeting = self.meeting();
        let generation = meeting.generation;
        meeting.arrived += 1;
        if meeting.arrived == meeting.size {
            meeting.arrived = 0;
            meeting.generation += 1;
            self.shared.1.notify_all();
        } else {
            drop(meeting);
            meanwhile();
            meeting = self.meeting();
        }
        while meeting.generation == generation {
            meeting = self.shared.1.wait(meeting).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        Ok(())
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        let rank = self.rank as usize;
        self.meeting().parts[rank] = bytes.to_vec();
        self.barrier(Wait::Eager, &mut || ())?;
        let parts = (rank == 0).then(|| self.meeting().parts.clone());
        self.barrier(Wait::Eager, &mut || ())?;
        Ok(parts)
    }
}

impl Broadcast for Threads {
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        let rank = self.rank;
        if rank == 0 {
            self.meeting().parts[0] = bytes.to_vec();
        }
        self.barrier(Wait::Eager, &mut || ())?;
        bytes.copy_from_slice(&self.meeting().parts[0]);
        self.barrier(Wait::Eager, &mut || ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// What a rank does meanwhile may take for ever: the other leaves the barrier all the same.
    #[test]
    fn a_barrier_is_entered_before_anything_else_is_done() {
        let mut ranks = Threads::new(2);
        let (mut second, mut first) = (ranks.remove(1), ranks.remove(0));
        let ((waits, is_waiting), (left, has_left)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut meanwhile = || {
                    waits.send(()).unwrap();
                    has_left.recv_timeout(Duration::from_secs(60)).unwrap();
                };
                first.barrier(Wait::Patient, &mut meanwhile).unwrap();
            });
            is_waiting.recv().unwrap();
            second.barrier(Wait::Patient, &mut || panic!("the last one to arrive does not wait")).unwrap();
            left.send(()).unwrap();
        });
    }
}
