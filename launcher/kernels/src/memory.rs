//! The memory of kernels, prepared before the measurement.

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
pub struct Prepared {
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
    pub fn prepare(self, trips: u64, cpus: [u32; 2]) -> io::Result<Prepared> {
        let trips = usize::try_from(trips).map_err(io::Error::other)?;
        let prepared = match self {
            Memory::None | Memory::Line | Memory::Time => Prepared::map(page_bytes(), 0)?,
            Memory::FreshPages => Prepared::map(trips.saturating_mul(page_bytes()).max(1), page_bytes())?,
            Memory::Chain => Prepared::map(CHAIN_LINES * LINE_BYTES, LINE_BYTES)?,
            Memory::Arrays => {
                let array = trips.saturating_mul(LINE_BYTES).max(1);
                Prepared::map(array.saturating_mul(3), array)?
            }
            Memory::Masks => Prepared::map(2 * MASK_BYTES, MASK_BYTES)?,
        };
        match self {
            Memory::None | Memory::FreshPages => {}
            Memory::Line => prepared.words::<u64>()[0] = 0,
            Memory::Chain => prepared.chain(),
            // Fill with normal numbers, and touch every page.
            Memory::Arrays => prepared.words::<f64>().fill(1.0),
            Memory::Time => prepared.words::<i64>()[..2].copy_from_slice(&[0, SLEEP_NS]),
            Memory::Masks => prepared.masks(cpus)?,
        }
        Ok(prepared)
    }
}

impl Prepared {
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

    /// Makes one ring through all lines with Sattolo's shuffle, which never makes smaller rings.
    fn chain(&self) {
        let mut next: Vec<u32> = (0..CHAIN_LINES as u32).collect();
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for at in (1..CHAIN_LINES).rev() {
            // xorshift64 (Marsaglia 2003)
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            next.swap(at, (random % at as u64) as usize);
        }
        let words = self.words::<u64>();
        for (line, next) in next.into_iter().enumerate() {
            words[line * LINE_BYTES / 8] = self.start as u64 + u64::from(next) * LINE_BYTES as u64;
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

impl Drop for Prepared {
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

fn page_bytes() -> usize {
    // SAFETY: reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}
