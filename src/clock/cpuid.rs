//! The CPUID instruction.

use std::arch::x86_64::{__cpuid, CpuidResult};

/// Reads a leaf. If the processor lacks this leaf, the result is zeros or another leaf.
#[allow(unused_unsafe)] // safe in newer Rust versions, unsafe in the oldest supported one
pub(super) fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: x86-64 has the instruction, and it changes nothing.
    unsafe { __cpuid(leaf) }
}
