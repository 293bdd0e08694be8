//! What a processor says of itself.

use std::arch::x86_64::{__cpuid, CpuidResult};

/// A leaf of CPUID, which every x86-64 processor has; zeros or another leaf where there is none of this number.
#[allow(unused_unsafe)] // safe from some Rust on, and not so in the oldest that builds this
pub(super) fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: x86-64 has the instruction, and it changes nothing.
    unsafe { __cpuid(leaf) }
}
