//! Work with known counts.

use pmmpi::counters::event::{Encoding, Modes, kind};
use std::arch::asm;
use std::cell::UnsafeCell;
use std::io;

/// Instructions per iteration of [`turns`].
pub const TURN_INSTRUCTIONS: u64 = 2;

/// Runs a loop of two instructions `count` times.
pub fn turns(count: u64) {
    if count == 0 {
        return;
    }
    // SAFETY: it counts a register down to 0 and changes nothing else.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("2: dec {0}", "jnz 2b", inout(reg) count => _, options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("2: subs {0}, {0}, #1", "b.ne 2b", inout(reg) count => _, options(nostack));
    }
}

/// Pages that the program has not touched yet.
#[derive(Debug)]
pub struct Pages(*mut u8);

impl Pages {
    pub const COUNT: usize = 16;
    const BYTES: usize = 4096;

    pub fn new() -> io::Result<Self> {
        let (access, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = Self::COUNT * Self::BYTES;
        // SAFETY: a new mapping; advice on it cannot do harm.
        unsafe {
            let pages = libc::mmap(std::ptr::null_mut(), bytes, access, private, -1, 0);
            if pages == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(pages, bytes, libc::MADV_NOHUGEPAGE);
            Ok(Self(pages.cast()))
        }
    }

    /// Writes to each page.
    pub fn touch(&self) {
        // SAFETY: the address is within the mapping.
        (0..Self::COUNT).for_each(|page| unsafe { self.0.add(page * Self::BYTES).write_volatile(1) });
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this object created the mapping, and it is unmapped only once.
        unsafe { libc::munmap(self.0.cast(), Self::COUNT * Self::BYTES) };
    }
}

/// Memory with watched writes: the kernel's breakpoints count each write.
#[derive(Debug)]
pub struct Watched(UnsafeCell<u64>);

// SAFETY: any thread may write it, and no thread reads it.
unsafe impl Sync for Watched {}

impl Watched {
    #[expect(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// The event that counts writes.
    pub fn event(&self) -> Encoding {
        const HW_BREAKPOINT_W: u64 = 2; // linux/hw_breakpoint.h
        let place = self.0.get() as u64;
        Encoding { kind: kind::BREAKPOINT, config: [HW_BREAKPOINT_W, place, 8], modes: Modes::User }
    }

    /// Writes `count` times.
    pub fn write(&self, count: u64) {
        // SAFETY: the memory is live, and no thread reads it.
        (0..count).for_each(|n| unsafe { self.0.get().write_volatile(n) });
    }
}
