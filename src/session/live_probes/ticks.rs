//! The clock of probes: the processor's own, with barriers so that no instruction moves across a reading.
//!
//! McCalpin, "Comments on timing short code sections on Intel processors" (2018-07-23): RDTSCP waits until all earlier
//! instructions have executed; LFENCE keeps later ones from beginning. RDTSCP also gives the hardware thread.

/// A reading of the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tick {
    /// Since an unknown instant, in ticks.
    pub ticks: u64,
    /// The hardware thread, in a form of its own; [`UNKNOWN`] if it is not known.
    pub thread: u32,
}

/// See [`Tick::thread`].
pub(super) const UNKNOWN: u32 = u32::MAX;

/// Reads the processor's clock, after all earlier instructions and before all later ones.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn read() -> Tick {
    let (low, high, thread): (u32, u32, u32);
    // SAFETY: these instructions change no memory. Without `nomem`, the compiler moves no access across them.
    unsafe {
        std::arch::asm!(
            "lfence",
            "rdtscp",
            "lfence",
            out("eax") low,
            out("edx") high,
            out("ecx") thread,
            options(nostack, preserves_flags),
        );
    }
    Tick { ticks: u64::from(high) << 32 | u64::from(low), thread }
}

/// Lets all earlier instructions complete, so that a counter that is read next has counted them. (RDPMC does not wait for
/// them: Intel SDM volume 2B. On Arm, the read of a register has a barrier of its own.)
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn fence() {
    // SAFETY: LFENCE is part of SSE2, which x86-64 has.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

/// See the one for x86-64.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn fence() {}

/// True if the processor has RDTSCP (CPUID 8000_0001h, EDX bit 27).
#[cfg(target_arch = "x86_64")]
pub(super) fn exists() -> bool {
    use std::arch::x86_64::__cpuid;
    crate::clock::tsc().is_some() && __cpuid(0x8000_0001).edx & (1 << 27) != 0
}

/// The generic timer (Arm ARM, D12). ISB lets all earlier instructions complete first.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn read() -> Tick {
    let ticks: u64;
    // SAFETY: Linux lets user mode read this register. Without `nomem`, the compiler moves no access across it.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags));
    }
    Tick { ticks, thread: rseq::hardware_thread() }
}

#[cfg(target_arch = "aarch64")]
pub(super) fn exists() -> bool {
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn read() -> Tick {
    Tick { ticks: 0, thread: UNKNOWN }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn exists() -> bool {
    false
}

/// Where the kernel keeps the number of the hardware thread for each thread (rseq(2)), if the C library asked for it.
#[cfg(target_arch = "aarch64")]
pub(super) mod rseq {
    use super::UNKNOWN;
    use std::sync::atomic::AtomicIsize;
    use std::sync::atomic::Ordering::Relaxed;

    /// Of the structure from the thread pointer (glibc's `__rseq_offset`); 0: there is none.
    pub static OFFSET: AtomicIsize = AtomicIsize::new(0);
    /// Of `cpu_id` in struct rseq (linux/rseq.h).
    const CPU_ID: isize = 4;

    #[inline(always)]
    pub fn hardware_thread() -> u32 {
        let offset = OFFSET.load(Relaxed);
        if offset == 0 {
            return UNKNOWN;
        }
        let pointer: *const u8;
        // SAFETY: reads the thread pointer. The C library keeps the structure at this offset in every thread.
        unsafe {
            std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nomem, nostack, preserves_flags));
            pointer.offset(offset + CPU_ID).cast::<u32>().read_volatile()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_goes_forward() {
        if exists() {
            let first = read();
            assert!(read().ticks >= first.ticks);
        }
    }
}
