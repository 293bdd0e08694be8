//! Chains of multiply-adds for aarch64 (AAPCS64: steps in x0, constants in x1, ends in x2).

use super::{Chains, Rounding};
use std::arch::naked_asm;

/// `fmla` adds to its first register, so a step needs a copy of the addends. Processors make this copy while they
/// rename registers. The values of 15 chains move between v0 to v14 and v15 to v29; v31 holds the addends.
#[unsafe(naked)]
unsafe extern "C" fn chains_128(_steps: u64, _constants: *const f64, _ends: *mut f64) {
    naked_asm!(
        "stp d8, d9, [sp, #-64]!",
        "stp d10, d11, [sp, #16]",
        "stp d12, d13, [sp, #32]",
        "stp d14, d15, [sp, #48]",
        ".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14",
        "ldr q\\k, [x1]",
        ".endr",
        "ldr q31, [x1, #64]",
        ".p2align 6",
        "2:",
        ".macro pmmpi_screen_step from, to",
        "mov v\\to\\().16b, v31.16b",
        "fmla v\\to\\().2d, v\\from\\().2d, v\\from\\().2d",
        ".endm",
        ".rept 2",
        "pmmpi_screen_step 0, 15",
        "pmmpi_screen_step 1, 16",
        "pmmpi_screen_step 2, 17",
        "pmmpi_screen_step 3, 18",
        "pmmpi_screen_step 4, 19",
        "pmmpi_screen_step 5, 20",
        "pmmpi_screen_step 6, 21",
        "pmmpi_screen_step 7, 22",
        "pmmpi_screen_step 8, 23",
        "pmmpi_screen_step 9, 24",
        "pmmpi_screen_step 10, 25",
        "pmmpi_screen_step 11, 26",
        "pmmpi_screen_step 12, 27",
        "pmmpi_screen_step 13, 28",
        "pmmpi_screen_step 14, 29",
        "pmmpi_screen_step 15, 0",
        "pmmpi_screen_step 16, 1",
        "pmmpi_screen_step 17, 2",
        "pmmpi_screen_step 18, 3",
        "pmmpi_screen_step 19, 4",
        "pmmpi_screen_step 20, 5",
        "pmmpi_screen_step 21, 6",
        "pmmpi_screen_step 22, 7",
        "pmmpi_screen_step 23, 8",
        "pmmpi_screen_step 24, 9",
        "pmmpi_screen_step 25, 10",
        "pmmpi_screen_step 26, 11",
        "pmmpi_screen_step 27, 12",
        "pmmpi_screen_step 28, 13",
        "pmmpi_screen_step 29, 14",
        ".endr",
        ".purgem pmmpi_screen_step",
        "subs x0, x0, #4",
        "b.ne 2b",
        ".irp k,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14",
        "str q\\k, [x2, #16*\\k]",
        ".endr",
        "ldp d14, d15, [sp, #48]",
        "ldp d12, d13, [sp, #32]",
        "ldp d10, d11, [sp, #16]",
        "ldp d8, d9, [sp], #64",
        "ret",
    )
}

/// The chains that this processor can run.
pub(super) fn all_here() -> Vec<Chains> {
    let rounding = Rounding::Fused;
    let instructions = "NEON";
    vec![Chains { instructions, run: chains_128, chains: 15, lanes: 2, step_instructions: 2, rounding }]
}
