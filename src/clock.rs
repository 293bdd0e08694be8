//! The clocks that a rank reads, each with its unit and its zero.
//!
//! This module reads times from the Linux kernel and the processor. [`crate::bounds`] derives what times of several
//! nodes prove.
//!
//! - [`monotonic_ns`]: `CLOCK_MONOTONIC`, nanoseconds since an instant fixed for one boot of one time
//!   namespace (clock_gettime(2), time_namespaces(7)). Read through the vDSO: no system call.
//! - [`raw_ns`]: `CLOCK_MONOTONIC_RAW`, the same without a time service's slew. Before Linux 5.3 this is a system
//!   call, so pmmpi never reads it between t1 and t2.
//! - [`realtime_ns`]: `CLOCK_REALTIME`, nanoseconds since 1970. It steps and skews, so pmmpi takes dates from it,
//!   never durations.
//! - [`tsc`]: the time stamp counter in its own ticks, where it is invariant (constant rate in every
//!   P-, C- and T-state: CPUID 8000_0007h EDX bit 8, Intel SDM vol. 3 "Invariant TSC"). On Arm, the generic timer.

#[cfg(target_arch = "x86_64")]
mod cpuid;
mod crystal;

pub use crystal::Crystal;
use std::sync::OnceLock;

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn monotonic_ns() -> i64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds.
pub fn raw_ns() -> i64 {
    read_ns(libc::CLOCK_MONOTONIC_RAW)
}

/// `CLOCK_REALTIME` in nanoseconds since 1970-01-01 UTC.
pub fn realtime_ns() -> i64 {
    read_ns(libc::CLOCK_REALTIME)
}

fn read_ns(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec; these clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The time stamp counter, or `None` if its rate changes with the core's. Call it once before the measurement: the
/// first call executes CPUID, which traps in a virtual machine.
pub fn tsc() -> Option<u64> {
    static INVARIANT: OnceLock<bool> = OnceLock::new();
    INVARIANT.get_or_init(tsc_is_invariant).then(read_tsc)
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_invariant() -> bool {
    use cpuid::cpuid;
    cpuid(0x8000_0000).eax >= 0x8000_0007 && cpuid(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(target_arch = "x86_64")]
fn read_tsc() -> u64 {
    // SAFETY: RDTSC only reads. It is not ordered against earlier loads; the clock_gettime beside it is.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
fn tsc_is_invariant() -> bool {
    true // The generic timer's rate is fixed by the architecture (Arm ARM, D12).
}

#[cfg(target_arch = "aarch64")]
fn read_tsc() -> u64 {
    let ticks: u64;
    // SAFETY: CNTVCT_EL0 is readable in user mode under Linux.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn tsc_is_invariant() -> bool {
    false
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read_tsc() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward() {
        let (mono, tsc_before) = (monotonic_ns(), tsc());
        assert!(monotonic_ns() >= mono);
        assert!(tsc() >= tsc_before);
        assert!(realtime_ns() > 1_700_000_000_000_000_000);
    }
}
