//! The memory of test loops, prepared before the measurement.

use crate::rings::{Caches, Ring};
use std::io;
use std::ptr;

/// The kind of memory that a kernel works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// No memory.
    None,
    /// One line, which stays in the first-level cache.
    Line,
    /// Pointers from line to line, in an order that no prefetcher can predict.
    Chain,
    /// Pointers from entry to entry, in an order that no prefetcher can predict.
    Ring(Ring),
    /// One array, a line for each trip.
    Lines,
    /// Untouched pages, one per trip.
    FreshPages,
    /// Three arrays of doubles: STREAM's a, b and c.
    Arrays,
    /// A struct timespec.
    Time,
    /// Two CPU masks (sched_setaffinity(2)): the CPU to which the thread is pinned, and another one.
    Masks,
}

/// The prepared memory of a kernel.
#[derive(Debug)]
pub struct PreparedMemory {
    start: *mut u8,
    bytes: usize,
    stride: u64,
}

const LINE_BYTES: usize = 64;
/// Much more than the private caches of a core.
const CHAIN_LINES: usize = 1 << 18;
/// Long enough that the thread certainly leaves its core.
const SLEEP_NS: i64 = 50_000;
const MASK_BYTES: usize = 8192; // 65,536 hardware threads

impl Memory {
    /// Lines of each array: 64 MiB, more than all but the largest last-level caches hold.
    pub const ARRAY_LINES: u64 = 1 << 20;

    /// Prepares the memory for this number of trips. The thread must run on the first CPU; the second is for
    /// [`Memory::Masks`].
    /// `caches` are those of the first CPU; they make the size of [`Memory::Ring`].
    pub fn prepare(self, trips: u64, cpus: [u32; 2], caches: &Caches) -> io::Result<PreparedMemory> {
        let trips = usize::try_from(trips).map_err(io::Error::other)?;
        let prepared = match self {
            Memory::None | Memory::Line | Memory::Time => PreparedMemory::map(page_size(), 0)?,
            Memory::FreshPages => PreparedMemory::map(trips.saturating_mul(page_size()).max(1), page_size())?,
            Memory::Chain => PreparedMemory::map(CHAIN_LINES * LINE_BYTES, LINE_BYTES)?,
            Memory::Ring(ring) => {
                let [entries, spacing] = ring.shape(caches, page_bytes()).map(|count| count as usize);
                PreparedMemory::map(entries.saturating_mul(spacing), spacing)?
            }
            Memory::Lines => PreparedMemory::map(trips.saturating_mul(LINE_BYTES).max(1), LINE_BYTES)?,
            Memory::Arrays => {
                let array = trips.saturating_mul(LINE_BYTES).max(1);
                PreparedMemory::map(array.saturating_mul(3), array)?
            }
            Memory::Masks => PreparedMemory::map(2 * MASK_BYTES, MASK_BYTES)?,
        };
        match self {
            Memory::None | Memory::FreshPages => {}
            Memory::Line => prepared.words::<u64>()[0] = 0,
            Memory::Chain => prepared.ring(CHAIN_LINES, LINE_BYTES),
            Memory::Ring(ring) => {
                let [entries, spacing] = ring.shape(caches, page_bytes()).map(|count| count as usize);
                prepared.ring(entries, spacing);
            }
            // Untouched pages would all be the one page of zeros.
            Memory::Lines => prepared.words::<u64>().fill(1),
            // Fill with normal numbers, and touch every page.
            Memory::Arrays => prepared.words::<f64>().fill(1.0),
            Memory::Time => prepared.words::<i64>()[..2].copy_from_slice(&[0, SLEEP_NS]),
            Memory::Masks => prepared.masks(cpus)?,
        }
        Ok(prepared)
    }
}

impl PreparedMemory {
    fn map(bytes: usize, stride: usize) -> io::Result<Self> {
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory; drop unmaps it.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // With huge pages, one fault would serve many pages. A Linux kernel without huge pages refuses the call,
        // which does not matter.
        // SAFETY: the arguments are those of the new mapping.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Self { start: start.cast(), bytes, stride: stride as u64 })
    }

    /// The start address.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// The distance between pages, lines, arrays or masks; the kernel gets it as an argument.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    #[allow(clippy::mut_from_ref)] // no other code uses the memory during the call
    fn words<T: Word>(&self) -> &mut [T] {
        // SAFETY: the memory is mapped, aligned to a page, and zeroed or written as such words.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<T>()) }
    }

    /// Makes one ring through all entries with Sattolo's shuffle, which never makes smaller rings.
    fn ring(&self, entries: usize, spacing: usize) {
        let mut next: Vec<u32> = (0..entries as u32).collect();
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for at in (1..entries).rev() {
            // xorshift64 (Marsaglia 2003)
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            next.swap(at, (random % at as u64) as usize);
        }
        // Entries on pages lie in different lines of their pages, so that they do not meet in a few sets of the caches.
        let lines = spacing / LINE_BYTES;
        let place = |entry: usize| match spacing > page_size() / 2 {
            true => entry * spacing + entry % lines * LINE_BYTES,
            false => entry * spacing,
        };
        let words = self.words::<u64>();
        // In the order of the ring: then neighbours in the address space are no neighbours in physical memory, and a TLB
        // cannot join their entries (AMD's Zen joins four).
        let mut entry = 0;
        for _ in 0..entries {
            let after = next[entry] as usize;
            words[place(entry) / 8] = self.start as u64 + place(after) as u64;
            entry = after;
        }
    }

    fn masks(&self, cpus: [u32; 2]) -> io::Result<()> {
        let words = self.words::<u64>();
        for (mask, cpu) in cpus.into_iter().enumerate() {
            let (word, bit) = (cpu as usize / 64, cpu % 64);
            let bytes = word.checked_mul(8).filter(|byte| *byte < MASK_BYTES);
            let byte =
                bytes.ok_or_else(|| io::Error::other("this machine has more than 65536 hardware threads"))?;
            words[(mask * MASK_BYTES + byte) / 8] |= 1 << bit;
        }
        Ok(())
    }
}

impl Drop for PreparedMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference to it is left.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

/// A type for which every bit pattern is valid.
trait Word {}
impl Word for u64 {}
impl Word for i64 {}
impl Word for f64 {}

fn page_size() -> usize {
    // SAFETY: reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The size of this system's pages.
pub fn page_bytes() -> u64 {
    page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses in the order of the loads, until the first one comes again.
    fn followed(prepared: &PreparedMemory) -> Vec<u64> {
        let start = prepared.start as u64;
        let words = prepared.words::<u64>();
        let mut order = vec![start];
        loop {
            let next = words[(order[order.len() - 1] - start) as usize / 8];
            if next == start {
                return order;
            }
            order.push(next);
        }
    }

    #[test]
    fn a_ring_meets_each_entry_once_and_no_neighbour_of_it() {
        let caches = Caches { l1_bytes: 32 << 10, l2_bytes: 512 << 10, l3_bytes: 8 << 20 };
        for ring in [Ring::BeyondL1, Ring::BeyondL2, Ring::BeyondTlb] {
            let [entries, spacing] = ring.shape(&caches, page_bytes());
            let order = followed(&Memory::Ring(ring).prepare(1, [0, 0], &caches).unwrap());
            assert_eq!(order.len() as u64, entries, "{ring:?}");
            let mut places: Vec<u64> = order.iter().map(|address| (address - order[0]) / spacing).collect();
            places.sort_unstable();
            assert_eq!(places, (0..entries).collect::<Vec<u64>>(), "{ring:?}");
            // Line numbers: no entry lies in a line beside another entry's.
            let mut lines: Vec<u64> = order.iter().map(|address| address / 64).collect();
            lines.sort_unstable();
            assert!(
                ring == Ring::BeyondTlb || lines.windows(2).all(|pair| pair[1] - pair[0] >= 4),
                "{ring:?}"
            );
        }
        // Entries on pages use all lines of a page alike.
        let order = followed(&Memory::Ring(Ring::BeyondTlb).prepare(1, [0, 0], &caches).unwrap());
        let in_first_line = order.iter().filter(|address| *address % page_bytes() < 64).count() as u64;
        assert_eq!(in_first_line, order.len() as u64 / (page_bytes() / 64));
    }
}
