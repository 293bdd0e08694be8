//! Chains of multiply-adds for x86_64 (System V: steps in rdi, constants in rsi, ends in rdx). A chain is a register;
//! the last register holds the addends.

use super::{Chains, Rounding};
use std::arch::{is_x86_feature_detected, naked_asm};

macro_rules! chains {
    ($name:ident, $chains:literal, $load:literal, $register:literal, $bytes:literal, $last:literal, $($step:literal),+) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_steps: u64, _constants: *const f64, _ends: *mut f64) {
            naked_asm!(
                concat!(".irp k,", $chains), concat!($load, " ", $register, "\\k, [rsi]"), ".endr",
                concat!($load, " ", $register, $last, ", [rsi + 64]"),
                ".p2align 6",
                "2:",
                ".rept 4", concat!(".irp k,", $chains), $($step,)+ ".endr", ".endr",
                "sub rdi, 4", "jnz 2b",
                concat!(".irp k,", $chains),
                concat!($load, " [rdx + ", $bytes, "*\\k], ", $register, "\\k"),
                ".endr",
                "ret",
            )
        }
    };
}

// Two multiply-adds per cycle with a latency of 4 or 5 cycles need 8 or 10 chains.
chains!(
    chains_512,
    "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vmovupd",
    "zmm",
    64,
    "31",
    "vfmadd213pd zmm\\k, zmm\\k, zmm31"
);
chains!(
    chains_256,
    "0,1,2,3,4,5,6,7,8,9,10,11",
    "vmovupd",
    "ymm",
    32,
    "15",
    "vfmadd213pd ymm\\k, ymm\\k, ymm15"
);
chains!(
    chains_128,
    "0,1,2,3,4,5,6,7,8,9,10,11",
    "movupd",
    "xmm",
    16,
    "15",
    "mulpd xmm\\k, xmm\\k",
    "addpd xmm\\k, xmm15"
);

/// The chains that this processor can run, widest vectors first.
pub(super) fn all_here() -> Vec<Chains> {
    let mut found = Vec::new();
    let fused = Rounding::Fused;
    if is_x86_feature_detected!("avx512f") {
        found.push(Chains {
            instructions: "AVX-512",
            run: chains_512,
            chains: 16,
            lanes: 8,
            step_instructions: 1,
            rounding: fused,
        });
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        found.push(Chains {
            instructions: "AVX2",
            run: chains_256,
            chains: 12,
            lanes: 4,
            step_instructions: 1,
            rounding: fused,
        });
    }
    let split = Rounding::Split;
    found.push(Chains {
        instructions: "SSE2",
        run: chains_128,
        chains: 12,
        lanes: 2,
        step_instructions: 2,
        rounding: split,
    });
    found
}
