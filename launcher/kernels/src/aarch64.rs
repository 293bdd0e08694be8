//! The test loops for aarch64 (AAPCS64: trips in x0, memory in x1, stride in x2). The counts of each loop are next
//! to its code: instructions (once, per trip), then branches, loads and stores per trip.

use crate::{Body, Count};
use std::arch::naked_asm;

macro_rules! kernel {
    ($name:ident: $($line:literal),+ $(,)?) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(_trips: u64, _memory: *mut u8, _stride: u64) {
            naked_asm!($($line),+)
        }
    };
}

/// `instructions` are once and per trip; `per_trip` are branches, loads and stores per trip.
const fn body(run: crate::Function, instructions: [u8; 2], per_trip: [u8; 3]) -> Body {
    let [once, each] = instructions;
    let [branches, loads, stores] = per_trip;
    Body {
        run,
        runs_here: || true,
        instructions: Count::new(once as f64, each as f64),
        branches: Count::new(0.0, branches as f64),
        loads: Count::new(0.0, loads as f64),
        stores: Count::new(0.0, stores as f64),
    }
}

#[unsafe(naked)]
pub unsafe extern "C" fn empty(_trips: u64, _memory: *mut u8, _stride: u64) {
    naked_asm!("ret")
}

// Each trip: 6 adds, subs, b.ne.
pub const INSTRUCTIONS: Body = body(instructions, [0, 8], [1, 0, 0]);
kernel!(instructions:
    "2:",
    "add x3, x3, #1", "add x4, x4, #1", "add x5, x5, #1", "add x6, x6, #1", "add x7, x7, #1", "add x8, x8, #1",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: 64 dependent adds of one cycle each; subs and b.ne run in parallel.
pub const CYCLES: Body = body(cycles, [1, 66], [1, 0, 0]);
kernel!(cycles:
    "mov x4, #1",
    "2:",
    ".rept 64", "add x3, x3, x4", ".endr",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: mov. Each trip: cbnz (never taken), cbz (always taken), subs, b.ne (taken except the last time).
pub const BRANCHES: Body = body(branches, [1, 4], [3, 0, 0]);
kernel!(branches:
    "mov x3, #0",
    "2:",
    "cbnz x3, 3f",
    "cbz x3, 4f",
    "3:", "udf #0",
    "4:",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// xorshift64 (Marsaglia 2003). Once: mov. Each trip: 3 for the next number, tbz, and on both paths add, subs, b.ne.
pub const RANDOM: Body = body(random, [1, 7], [2, 0, 0]);
kernel!(random:
    "mov x3, #0x7c15",
    "2:",
    "eor x3, x3, x3, lsl #13", "eor x3, x3, x3, lsr #7", "eor x3, x3, x3, lsl #17",
    "tbz x3, #20, 3f",
    "add x4, x4, #1",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
    "3:",
    "add x5, x5, #1",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: 4 loads, subs, b.ne.
pub const LOADS: Body = body(loads, [0, 6], [1, 4, 0]);
kernel!(loads:
    "2:",
    "ldr x3, [x1]", "ldr x4, [x1, #8]", "ldr x5, [x1, #16]", "ldr x6, [x1, #24]",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: 4 stores, subs, b.ne.
pub const STORES: Body = body(stores, [0, 6], [1, 0, 4]);
kernel!(stores:
    "2:",
    "str x0, [x1]", "str x0, [x1, #8]", "str x0, [x1, #16]", "str x0, [x1, #24]",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: a load of the next address, subs, b.ne.
pub const CHASE: Body = body(chase, [0, 3], [1, 1, 0]);
kernel!(chase:
    "2:",
    "ldr x1, [x1]",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: a load from the next line, add, subs, b.ne.
pub const READ: Body = body(read, [0, 4], [1, 1, 0]);
kernel!(read:
    "2:",
    "ldr x3, [x1]",
    "add x1, x1, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: 4 loads of 8 bytes, each from two lines; subs, b.ne.
pub const SPLIT_LOADS: Body = body(split_loads, [0, 6], [1, 4, 0]);
kernel!(split_loads:
    "2:",
    "ldur x3, [x1, #60]", "ldur x4, [x1, #124]", "ldur x5, [x1, #188]", "ldur x6, [x1, #252]",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Each trip: 4 loads of 8 bytes, misaligned within one line; subs, b.ne.
pub const MISALIGNED_LOADS: Body = body(misaligned_loads, [0, 6], [1, 4, 0]);
kernel!(misaligned_loads:
    "2:",
    "ldur x3, [x1, #1]", "ldur x4, [x1, #9]", "ldur x5, [x1, #17]", "ldur x6, [x1, #25]",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: 2 to keep the return address. Each trip: bl, ret, subs, b.ne.
pub const CALLS: Body = body(calls, [2, 4], [3, 0, 0]);
kernel!(calls:
    "mov x9, x30",
    "2:",
    "bl 3f",
    "subs x0, x0, #1", "b.ne 2b",
    "mov x30, x9",
    "ret",
    "3:",
    "ret",
);

// Once: 10 registers to zero. Each trip: 8 multiply-adds, subs, b.ne.
pub const FMA: Body = body(fma, [10, 10], [1, 0, 0]);
kernel!(fma:
    "movi v0.2d, #0", "movi v1.2d, #0", "movi v2.2d, #0", "movi v3.2d, #0",
    "movi v4.2d, #0", "movi v5.2d, #0", "movi v6.2d, #0", "movi v7.2d, #0",
    "movi v16.2d, #0", "movi v17.2d, #0",
    "2:",
    "fmla v0.2d, v16.2d, v17.2d", "fmla v1.2d, v16.2d, v17.2d",
    "fmla v2.2d, v16.2d, v17.2d", "fmla v3.2d, v16.2d, v17.2d",
    "fmla v4.2d, v16.2d, v17.2d", "fmla v5.2d, v16.2d, v17.2d",
    "fmla v6.2d, v16.2d, v17.2d", "fmla v7.2d, v16.2d, v17.2d",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: mov. Each trip: a store to a page, add, subs, b.ne.
pub const TOUCH: Body = body(touch, [1, 4], [1, 0, 1]);
kernel!(touch:
    "mov w3, #1",
    "2:",
    "strb w3, [x1]",
    "add x1, x1, x2",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: 2. Each trip: svc, subs, b.ne.
pub const SYSTEM_CALLS: Body = body(system_calls, [2, 3], [1, 0, 0]);
kernel!(system_calls:
    "mov x3, x0",
    "mov x8, #173", // getppid
    "2:",
    "svc #0",
    "subs x3, x3, #1", "b.ne 2b",
    "ret",
);

// Once: 3. Each trip: 2 arguments, svc, subs, b.ne.
pub const SLEEPS: Body = body(sleeps, [3, 5], [1, 0, 0]);
kernel!(sleeps:
    "mov x3, x0", "mov x4, x1",
    "mov x8, #101", // nanosleep
    "2:",
    "mov x0, x4", "mov x1, #0",
    "svc #0",
    "subs x3, x3, #1", "b.ne 2b",
    "ret",
);

// Once: 4. Each trip: twice 3 arguments and svc, then subs and b.ne.
pub const MIGRATIONS: Body = body(migrations, [4, 10], [1, 0, 0]);
kernel!(migrations:
    "mov x3, x0", "mov x4, x1", "mov x5, x2",
    "mov x8, #122", // sched_setaffinity
    "2:",
    "mov x0, #0", "mov x1, x5", "add x2, x4, x5",
    "svc #0",
    "mov x0, #0", "mov x1, x5", "mov x2, x4",
    "svc #0",
    "subs x3, x3, #1", "b.ne 2b",
    "ret",
);

// STREAM (McCalpin). a is at x1, b at x3 = x1 + x2, c at x4 = x1 + 2 x2. Each trip works on one line of 64 bytes
// per array and ends with one add per pointer, subs, b.ne. STNP stores two registers with the hint that they are
// not used soon.

// Once: the address of c. Each trip: 4 loads, 4 stores.
pub const COPY: Body = body(copy, [1, 12], [1, 4, 4]);
kernel!(copy:
    "add x4, x1, x2, lsl #1",
    "2:",
    "ldr q0, [x1]", "ldr q1, [x1, #16]", "ldr q2, [x1, #32]", "ldr q3, [x1, #48]",
    "str q0, [x4]", "str q1, [x4, #16]", "str q2, [x4, #32]", "str q3, [x4, #48]",
    "add x1, x1, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

pub const COPY_NT: Body = body(copy_nt, [1, 10], [1, 4, 2]);
kernel!(copy_nt:
    "add x4, x1, x2, lsl #1",
    "2:",
    "ldr q0, [x1]", "ldr q1, [x1, #16]", "ldr q2, [x1, #32]", "ldr q3, [x1, #48]",
    "stnp q0, q1, [x4]", "stnp q2, q3, [x4, #32]",
    "add x1, x1, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: the addresses of b and c, and s = 3. Each trip: 4 loads, 4 products, 4 stores.
pub const SCALE: Body = body(scale, [3, 16], [1, 4, 4]);
kernel!(scale:
    "add x3, x1, x2", "add x4, x1, x2, lsl #1", "fmov v16.2d, #3.0",
    "2:",
    "ldr q0, [x4]", "ldr q1, [x4, #16]", "ldr q2, [x4, #32]", "ldr q3, [x4, #48]",
    "fmul v0.2d, v0.2d, v16.2d", "fmul v1.2d, v1.2d, v16.2d",
    "fmul v2.2d, v2.2d, v16.2d", "fmul v3.2d, v3.2d, v16.2d",
    "str q0, [x3]", "str q1, [x3, #16]", "str q2, [x3, #32]", "str q3, [x3, #48]",
    "add x3, x3, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

pub const SCALE_NT: Body = body(scale_nt, [3, 14], [1, 4, 2]);
kernel!(scale_nt:
    "add x3, x1, x2", "add x4, x1, x2, lsl #1", "fmov v16.2d, #3.0",
    "2:",
    "ldr q0, [x4]", "ldr q1, [x4, #16]", "ldr q2, [x4, #32]", "ldr q3, [x4, #48]",
    "fmul v0.2d, v0.2d, v16.2d", "fmul v1.2d, v1.2d, v16.2d",
    "fmul v2.2d, v2.2d, v16.2d", "fmul v3.2d, v3.2d, v16.2d",
    "stnp q0, q1, [x3]", "stnp q2, q3, [x3, #32]",
    "add x3, x3, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: the addresses of b and c. Each trip: 8 loads, 4 sums, 4 stores.
pub const ADD: Body = body(add, [2, 21], [1, 8, 4]);
kernel!(add:
    "add x3, x1, x2", "add x4, x1, x2, lsl #1",
    "2:",
    "ldr q0, [x1]", "ldr q1, [x1, #16]", "ldr q2, [x1, #32]", "ldr q3, [x1, #48]",
    "ldr q4, [x3]", "ldr q5, [x3, #16]", "ldr q6, [x3, #32]", "ldr q7, [x3, #48]",
    "fadd v0.2d, v0.2d, v4.2d", "fadd v1.2d, v1.2d, v5.2d",
    "fadd v2.2d, v2.2d, v6.2d", "fadd v3.2d, v3.2d, v7.2d",
    "str q0, [x4]", "str q1, [x4, #16]", "str q2, [x4, #32]", "str q3, [x4, #48]",
    "add x1, x1, #64", "add x3, x3, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

pub const ADD_NT: Body = body(add_nt, [2, 19], [1, 8, 2]);
kernel!(add_nt:
    "add x3, x1, x2", "add x4, x1, x2, lsl #1",
    "2:",
    "ldr q0, [x1]", "ldr q1, [x1, #16]", "ldr q2, [x1, #32]", "ldr q3, [x1, #48]",
    "ldr q4, [x3]", "ldr q5, [x3, #16]", "ldr q6, [x3, #32]", "ldr q7, [x3, #48]",
    "fadd v0.2d, v0.2d, v4.2d", "fadd v1.2d, v1.2d, v5.2d",
    "fadd v2.2d, v2.2d, v6.2d", "fadd v3.2d, v3.2d, v7.2d",
    "stnp q0, q1, [x4]", "stnp q2, q3, [x4, #32]",
    "add x1, x1, #64", "add x3, x3, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

// Once: the addresses of b and c, and s. Each trip: 8 loads, 4 products, 4 sums, 4 stores.
pub const TRIAD: Body = body(triad, [3, 25], [1, 8, 4]);
kernel!(triad:
    "add x3, x1, x2", "add x4, x1, x2, lsl #1", "fmov v16.2d, #3.0",
    "2:",
    "ldr q0, [x4]", "ldr q1, [x4, #16]", "ldr q2, [x4, #32]", "ldr q3, [x4, #48]",
    "ldr q4, [x3]", "ldr q5, [x3, #16]", "ldr q6, [x3, #32]", "ldr q7, [x3, #48]",
    "fmul v0.2d, v0.2d, v16.2d", "fmul v1.2d, v1.2d, v16.2d",
    "fmul v2.2d, v2.2d, v16.2d", "fmul v3.2d, v3.2d, v16.2d",
    "fadd v0.2d, v0.2d, v4.2d", "fadd v1.2d, v1.2d, v5.2d",
    "fadd v2.2d, v2.2d, v6.2d", "fadd v3.2d, v3.2d, v7.2d",
    "str q0, [x1]", "str q1, [x1, #16]", "str q2, [x1, #32]", "str q3, [x1, #48]",
    "add x1, x1, #64", "add x3, x3, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);

pub const TRIAD_NT: Body = body(triad_nt, [3, 23], [1, 8, 2]);
kernel!(triad_nt:
    "add x3, x1, x2", "add x4, x1, x2, lsl #1", "fmov v16.2d, #3.0",
    "2:",
    "ldr q0, [x4]", "ldr q1, [x4, #16]", "ldr q2, [x4, #32]", "ldr q3, [x4, #48]",
    "ldr q4, [x3]", "ldr q5, [x3, #16]", "ldr q6, [x3, #32]", "ldr q7, [x3, #48]",
    "fmul v0.2d, v0.2d, v16.2d", "fmul v1.2d, v1.2d, v16.2d",
    "fmul v2.2d, v2.2d, v16.2d", "fmul v3.2d, v3.2d, v16.2d",
    "fadd v0.2d, v0.2d, v4.2d", "fadd v1.2d, v1.2d, v5.2d",
    "fadd v2.2d, v2.2d, v6.2d", "fadd v3.2d, v3.2d, v7.2d",
    "stnp q0, q1, [x1]", "stnp q2, q3, [x1, #32]",
    "add x1, x1, #64", "add x3, x3, #64", "add x4, x4, #64",
    "subs x0, x0, #1", "b.ne 2b",
    "ret",
);
