//! A counter that its own thread reads without a system call, where processor and kernel let it.
//!
//! A page of the kernel's says in which register an event is counted; the program reads the register, and
//! looks whether the page has changed meanwhile (perf_event_open(2), "MMAP layout"). perf-event2 does so with
//! x86's registers alone: elsewhere its Sampler::read_user has no value. On Arm kernel.perf_user_access must
//! be 1.
//!
//! Such a counter does not follow threads and children: the kernel has no page for what is inherited.

use super::arm;
use super::event::Encoding;
use super::perf_event_open::{builder, gap_of};
use super::reading::Gap;
use perf_event::Counter;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, compiler_fence};

/// Counts the thread that opened it. Another one must not read it, and cannot: it is neither Send nor Sync. A
/// forked child must not, either.
#[derive(Debug)]
pub struct ThreadCounter {
    counter: Counter,
    page: NonNull<Page>,
}

/// A register of the processor's, by the number that its instruction has.
#[derive(Clone, Copy, Debug)]
pub struct Register(u32);

impl Register {
    /// As the kernel's page has it.
    #[inline]
    fn of_index(index: u32) -> Option<Self> {
        index.checked_sub(1).map(Self)
    }

    /// What it holds: a count since nobody knows when. `None` where no instruction is known.
    ///
    /// # Safety
    /// The kernel lets this thread read it: a [`ThreadCounter`] of this thread's is in it.
    #[inline]
    pub unsafe fn read(self) -> Option<u64> {
        // SAFETY: the caller's.
        unsafe { registers::read(self.0) }
    }
}

/// The head of perf_event_mmap_page, linux/perf_event.h.
#[repr(C)]
#[derive(Debug)]
struct Page {
    versions: [u32; 2],
    lock: AtomicU32,
    /// The register's number and 1; 0 where the event is in no register that may be read.
    index: AtomicU32,
    /// What is to be added to the register.
    offset: AtomicI64,
    times_ns: [u64; 2],
    capabilities: AtomicU64,
    /// Bits of the register.
    pmc_width: AtomicU16,
}

const CAP_USER_RDPMC: u64 = 1 << 2;
/// config1 of Arm's PMUs: the program wants to read the register itself (arm64/perf.rst).
const USER_ACCESS: u64 = if cfg!(target_arch = "aarch64") { 1 << 1 } else { 0 };
const PAGE_BYTES: usize = 4096;

impl ThreadCounter {
    /// Counts the calling thread from now on.
    pub fn open(mut encoding: Encoding) -> Result<Self, Gap> {
        if arm::lacks(encoding) {
            return Err(Gap::Unsupported(libc::ENOENT));
        }
        encoding.config[1] |= USER_ACCESS;
        let mut builder = builder(encoding);
        builder.observe_self().any_cpu().enabled(true);
        let counter = builder.build().map_err(|e| gap_of(&e))?;
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        // SAFETY: a new mapping of the kernel's; what is larger than a page of 4 KiB is mapped whole.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), PAGE_BYTES, read, shared, counter.as_raw_fd(), 0) };
        match NonNull::new(page.cast()).filter(|_| page != libc::MAP_FAILED) {
            Some(page) => Ok(Self { counter, page }),
            None => Err(gap_of(&io::Error::last_os_error())),
        }
    }

    /// The register that the event is in now; `None` where it is in none, or may not be read.
    pub fn register(&self) -> Option<Register> {
        // SAFETY: as below.
        let page = unsafe { self.page.as_ref() };
        let may = page.capabilities.load(Relaxed) & CAP_USER_RDPMC != 0;
        Register::of_index(page.index.load(Relaxed)).filter(|_| may)
    }

    /// The count so far, from the register; `None` where the event is in none, or may not be read so.
    #[inline]
    pub fn read_register(&self) -> Option<u64> {
        // SAFETY: mapped as long as this value lives; the kernel writes to it, hence the atomics.
        let page = unsafe { self.page.as_ref() };
        loop {
            // The kernel writes to the page while this thread is off its processor, or interrupted on it: the compiler
            // must keep this order, the processor keeps it for its own interrupts.
            let lock = page.lock.load(Relaxed);
            compiler_fence(SeqCst);
            let (index, offset) = (page.index.load(Relaxed), page.offset.load(Relaxed));
            // 64 less so many bits: what is shifted by is taken modulo 64.
            let unused_bits = 0u32.wrapping_sub(page.pmc_width.load(Relaxed).into());
            if page.capabilities.load(Relaxed) & CAP_USER_RDPMC == 0 {
                return None;
            }
            // SAFETY: the kernel has just said that this thread may; only an administrator's change of that
            // setting at this very instant would end the program.
            let count = unsafe { Register::of_index(index)?.read() }? as i64;
            compiler_fence(SeqCst);
            if page.lock.load(Relaxed) == lock {
                let count = count.wrapping_shl(unused_bits).wrapping_shr(unused_bits);
                return Some(offset.wrapping_add(count) as u64);
            }
        }
    }

    /// The count so far, from the kernel.
    pub fn read(&mut self) -> io::Result<u64> {
        self.counter.read()
    }
}

impl Drop for ThreadCounter {
    fn drop(&mut self) {
        // SAFETY: what open has mapped, once.
        unsafe { libc::munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(target_arch = "x86_64")]
mod registers {
    use std::arch::asm;

    /// RDPMC (Intel SDM volume 2B, AMD APM volume 3).
    #[inline]
    pub unsafe fn read(register: u32) -> Option<u64> {
        let (low, high): (u32, u32);
        // SAFETY: the caller knows that the kernel allows it.
        unsafe {
            asm!("rdpmc", in("ecx") register, out("eax") low, out("edx") high, options(nomem, nostack));
        }
        Some(u64::from(high) << 32 | u64::from(low))
    }
}

#[cfg(target_arch = "aarch64")]
mod registers {
    use std::arch::asm;

    /// PMCCNTR_EL0's number; PMEVCNTR<n>_EL0 has n.
    const CYCLES: u32 = 31;

    /// A register's number is a part of the instruction (MRS), so there is one for each, and a jump to it.
    #[inline]
    pub unsafe fn read(register: u32) -> Option<u64> {
        if register > CYCLES {
            return None;
        }
        let count: u64;
        // SAFETY: the caller knows that the kernel allows it; the jump ends at one of the 32 pairs of instructions, which
        // take 8 bytes each. What came before the barrier is counted.
        unsafe {
            asm!(
                "isb",
                "adr {place}, 2f",
                "add {place}, {place}, {register}, lsl #3",
                "br {place}",
                "2:",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, \
                 27, 28, 29, 30",
                "mrs {count}, pmevcntr\\n\\()_el0",
                "b 3f",
                ".endr",
                "mrs {count}, pmccntr_el0",
                "3:",
                register = in(reg) u64::from(register),
                place = out(reg) _,
                count = lateout(reg) count,
                options(nostack),
            );
        }
        Some(count)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod registers {
    /// No instruction is known.
    pub unsafe fn read(_register: u32) -> Option<u64> {
        None
    }
}
