//! A counter that its own thread reads without a system call, if the processor and the Linux kernel allow it.
//!
//! A page of the Linux kernel names the register in which an event is counted. The program reads the register, then
//! checks that the page has not changed meanwhile (perf_event_open(2), "MMAP layout"). The crate perf-event2 does this
//! only with x86's registers: elsewhere its Sampler::read_user has no value. On Arm, the setting
//! kernel.perf_user_access must be 1.
//!
//! Such a counter does not follow new threads and children: the Linux kernel has no page for inherited counters.

use super::arm;
use super::count_and_quality::Gap;
use super::event::Encoding;
use super::perf_event_open::{builder, gap_of};
use perf_event::Counter;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, compiler_fence};

/// Counts the thread that opened it. Only one thread may read it. The type enforces this: it is neither Send nor
/// Sync. A forked child must not read it either.
#[derive(Debug)]
pub struct ThreadCounter {
    counter: Counter,
    page: CounterPage,
}

/// The same counter, without its descriptor: only the registers can be read. The kernel counts as long as the page is
/// mapped.
#[derive(Debug)]
pub struct CounterPage(NonNull<Page>);

/// A register of the processor, by its number in the read instruction.
#[derive(Clone, Copy, Debug)]
pub struct Register(u32);

impl Register {
    /// From the index in the kernel's page.
    #[inline]
    fn of_index(index: u32) -> Option<Self> {
        index.checked_sub(1).map(Self)
    }

    /// The register's count, since an unknown instant. `None` if no instruction is known.
    ///
    /// # Safety
    /// The kernel must allow this thread to read the register: a [`ThreadCounter`] of this thread uses it.
    #[inline]
    pub unsafe fn read(self) -> Option<u64> {
        // SAFETY: the caller guarantees it.
        unsafe { registers::read(self.0) }
    }
}

/// The head of perf_event_mmap_page, linux/perf_event.h.
#[repr(C)]
#[derive(Debug)]
struct Page {
    versions: [u32; 2],
    lock: AtomicU32,
    /// The register's number plus 1; 0 if the event is in no readable register.
    index: AtomicU32,
    /// The value to add to the register's count.
    offset: AtomicI64,
    times_ns: [u64; 2],
    capabilities: AtomicU64,
    /// Width of the register (bits).
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
        // SAFETY: creates a new mapping. If a page is larger than 4 KiB, the kernel maps all of it.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), PAGE_BYTES, read, shared, counter.as_raw_fd(), 0) };
        match NonNull::new(page.cast()).filter(|_| page != libc::MAP_FAILED) {
            Some(page) => Ok(Self { counter, page: CounterPage(page) }),
            None => Err(gap_of(&io::Error::last_os_error())),
        }
    }

    /// See [`CounterPage::register`].
    pub fn register(&self) -> Option<Register> {
        self.page.register()
    }

    /// See [`CounterPage::read`].
    #[inline]
    pub fn read_register(&self) -> Option<u64> {
        self.page.read()
    }

    /// The count so far, by a system call.
    pub fn read(&mut self) -> io::Result<u64> {
        self.counter.read()
    }

    /// Closes the descriptor.
    pub fn into_page(self) -> CounterPage {
        self.page
    }
}

impl CounterPage {
    /// The register that counts the event now; `None` if there is none, or this thread may not read it.
    pub fn register(&self) -> Option<Register> {
        // SAFETY: see `read`.
        let page = unsafe { self.0.as_ref() };
        let may = page.capabilities.load(Relaxed) & CAP_USER_RDPMC != 0;
        Register::of_index(page.index.load(Relaxed)).filter(|_| may)
    }

    /// The count so far, from the register; `None` if the event is in none, or this thread may not read it.
    #[inline]
    pub fn read(&self) -> Option<u64> {
        // SAFETY: mapped as long as this value lives; the kernel writes to it, hence the atomics.
        let page = unsafe { self.0.as_ref() };
        loop {
            // The kernel writes to the page only while this thread is off its processor or interrupted. So the
            // compiler must keep this order of reads; the processor keeps it across its own interrupts.
            let lock = page.lock.load(Relaxed);
            compiler_fence(SeqCst);
            let (index, offset) = (page.index.load(Relaxed), page.offset.load(Relaxed));
            // 64 minus the width: wrapping shifts take the amount modulo 64.
            let unused_bits = 0u32.wrapping_sub(page.pmc_width.load(Relaxed).into());
            if page.capabilities.load(Relaxed) & CAP_USER_RDPMC == 0 {
                return None;
            }
            // SAFETY: the page has just allowed the read. Only if an administrator changes that setting at this
            // very instant, the read ends the program.
            let count = unsafe { Register::of_index(index)?.read() }? as i64;
            compiler_fence(SeqCst);
            if page.lock.load(Relaxed) == lock {
                let count = count.wrapping_shl(unused_bits).wrapping_shr(unused_bits);
                return Some(offset.wrapping_add(count) as u64);
            }
        }
    }
}

impl Drop for CounterPage {
    fn drop(&mut self) {
        // SAFETY: unmaps once what `open` mapped.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
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

    /// The MRS instruction contains the register's number. So there is one instruction per register, and a jump to
    /// it.
    #[inline]
    pub unsafe fn read(register: u32) -> Option<u64> {
        if register > CYCLES {
            return None;
        }
        let count: u64;
        // SAFETY: the caller knows that the kernel allows it. The jump ends at one of the 32 pairs of instructions,
        // which take 8 bytes each. The barrier (isb) lets earlier instructions count first.
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
    /// No instruction is known on this architecture.
    pub unsafe fn read(_register: u32) -> Option<u64> {
        None
    }
}
