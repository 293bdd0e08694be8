//! The test loops for x86_64 (System V: trips in rdi, memory in rsi, stride in rdx). The counts of each loop are next
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

// Each trip: 6 adds, dec, jnz.
pub const INSTRUCTIONS: Body = body(instructions, [0, 8], [1, 0, 0]);
kernel!(instructions:
    "2:",
    "add eax, 1", "add ecx, 1", "add r8d, 1", "add r9d, 1", "add r10d, 1", "add r11d, 1",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: 64 dependent adds of one cycle each; dec and jnz run in parallel.
pub const CYCLES: Body = body(cycles, [1, 66], [1, 0, 0]);
kernel!(cycles:
    "mov ecx, 1",
    "2:",
    ".rept 64", "add rax, rcx", ".endr",
    "dec rdi", "jnz 2b",
    "ret",
);

// Once: xor. Each trip: test, jnz (never taken), jz (always taken), dec, jnz (taken except the last time).
pub const BRANCHES: Body = body(branches, [1, 5], [3, 0, 0]);
kernel!(branches:
    "xor eax, eax",
    "2:",
    "test eax, eax",
    "jnz 3f",
    "jz 4f",
    "3:", "ud2",
    "4:",
    "dec rdi", "jnz 2b",
    "ret",
);

// xorshift64 (Marsaglia 2003). Once: mov. Each trip: 9 for the next number, test, jz, and on both paths add, dec, jnz.
pub const RANDOM: Body = body(random, [1, 14], [2, 0, 0]);
kernel!(random:
    "movabs rax, 0x9e3779b97f4a7c15",
    "2:",
    "mov rdx, rax", "shl rdx, 13", "xor rax, rdx",
    "mov rdx, rax", "shr rdx, 7", "xor rax, rdx",
    "mov rdx, rax", "shl rdx, 17", "xor rax, rdx",
    "test eax, 0x100000",
    "jz 3f",
    "add ecx, 1",
    "dec rdi", "jnz 2b",
    "ret",
    "3:",
    "add r8d, 1",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: 4 loads, dec, jnz.
pub const LOADS: Body = body(loads, [0, 6], [1, 4, 0]);
kernel!(loads:
    "2:",
    "mov rax, [rsi]", "mov rcx, [rsi + 8]", "mov r8, [rsi + 16]", "mov r9, [rsi + 24]",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: 4 stores, dec, jnz.
pub const STORES: Body = body(stores, [0, 6], [1, 0, 4]);
kernel!(stores:
    "2:",
    "mov [rsi], rdi", "mov [rsi + 8], rdi", "mov [rsi + 16], rdi", "mov [rsi + 24], rdi",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: a load of the next address, dec, jnz.
pub const CHASE: Body = body(chase, [0, 3], [1, 1, 0]);
kernel!(chase:
    "2:",
    "mov rsi, [rsi]",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: a load from the next line, add, dec, jnz.
pub const READ: Body = body(read, [0, 4], [1, 1, 0]);
kernel!(read:
    "2:",
    "mov rax, [rsi]",
    "add rsi, 64",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: 4 loads of 8 bytes, each from two lines; dec, jnz.
pub const SPLIT_LOADS: Body = body(split_loads, [0, 6], [1, 4, 0]);
kernel!(split_loads:
    "2:",
    "mov rax, [rsi + 60]", "mov rcx, [rsi + 124]", "mov r8, [rsi + 188]", "mov r9, [rsi + 252]",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: 4 loads of 8 bytes, misaligned within one line; dec, jnz.
pub const MISALIGNED_LOADS: Body = body(misaligned_loads, [0, 6], [1, 4, 0]);
kernel!(misaligned_loads:
    "2:",
    "mov rax, [rsi + 1]", "mov rcx, [rsi + 9]", "mov r8, [rsi + 17]", "mov r9, [rsi + 25]",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: call (which stores the return address), ret (which loads it), dec, jnz.
pub const CALLS: Body = body(calls, [0, 4], [3, 1, 1]);
kernel!(calls:
    "2:",
    "call 3f",
    "dec rdi", "jnz 2b",
    "ret",
    "3:",
    "ret",
);

// Once: 10 registers to zero, vzeroupper. Each trip: 8 multiply-adds, dec, jnz.
pub const FMA: Body =
    Body { runs_here: || std::is_x86_feature_detected!("fma"), ..body(fma, [11, 10], [1, 0, 0]) };
kernel!(fma:
    "vxorpd ymm0, ymm0, ymm0", "vxorpd ymm1, ymm1, ymm1", "vxorpd ymm2, ymm2, ymm2", "vxorpd ymm3, ymm3, ymm3",
    "vxorpd ymm4, ymm4, ymm4", "vxorpd ymm5, ymm5, ymm5", "vxorpd ymm6, ymm6, ymm6", "vxorpd ymm7, ymm7, ymm7",
    "vxorpd ymm8, ymm8, ymm8", "vxorpd ymm9, ymm9, ymm9",
    "2:",
    "vfmadd231pd ymm0, ymm8, ymm9", "vfmadd231pd ymm1, ymm8, ymm9",
    "vfmadd231pd ymm2, ymm8, ymm9", "vfmadd231pd ymm3, ymm8, ymm9",
    "vfmadd231pd ymm4, ymm8, ymm9", "vfmadd231pd ymm5, ymm8, ymm9",
    "vfmadd231pd ymm6, ymm8, ymm9", "vfmadd231pd ymm7, ymm8, ymm9",
    "dec rdi", "jnz 2b",
    "vzeroupper",
    "ret",
);

// Each trip: a store to a page, add, dec, jnz.
pub const TOUCH: Body = body(touch, [0, 4], [1, 0, 1]);
kernel!(touch:
    "2:",
    "mov byte ptr [rsi], 1",
    "add rsi, rdx",
    "dec rdi", "jnz 2b",
    "ret",
);

// Each trip: mov, syscall, dec, jnz.
pub const SYSTEM_CALLS: Body = body(system_calls, [0, 4], [1, 0, 0]);
kernel!(system_calls:
    "2:",
    "mov eax, 110", // getppid
    "syscall",
    "dec rdi", "jnz 2b",
    "ret",
);

// Once: 2 to save arguments. Each trip: 3 to set up the call, syscall, dec, jnz.
pub const SLEEPS: Body = body(sleeps, [2, 6], [1, 0, 0]);
kernel!(sleeps:
    "mov r8, rdi", "mov r9, rsi",
    "2:",
    "mov eax, 35", // nanosleep
    "mov rdi, r9", "xor esi, esi",
    "syscall",
    "dec r8", "jnz 2b",
    "ret",
);

// Once: 3 to save arguments. Each trip: twice 4 to set up the call and syscall, then dec and jnz.
pub const MIGRATIONS: Body = body(migrations, [3, 12], [1, 0, 0]);
kernel!(migrations:
    "mov r8, rdi", "mov r9, rsi", "mov r10, rdx",
    "2:",
    "xor edi, edi", "mov rsi, r10", "lea rdx, [r9 + r10]",
    "mov eax, 203", // sched_setaffinity
    "syscall",
    "xor edi, edi", "mov rsi, r10", "mov rdx, r9",
    "mov eax, 203",
    "syscall",
    "dec r8", "jnz 2b",
    "ret",
);

// STREAM (McCalpin). a is at rsi, b at rsi + rdx, c at rsi + 2 rdx. Each trip works on one line of 64 bytes per
// array and ends with add, dec, jnz. One sfence at the end waits for non-temporal stores.

// Each trip: 4 loads, 4 stores.
pub const COPY: Body = body(copy, [0, 11], [1, 4, 4]);
kernel!(copy:
    "2:",
    "movapd xmm0, [rsi]", "movapd xmm1, [rsi + 16]", "movapd xmm2, [rsi + 32]", "movapd xmm3, [rsi + 48]",
    "movapd [rsi + 2*rdx], xmm0", "movapd [rsi + 2*rdx + 16], xmm1",
    "movapd [rsi + 2*rdx + 32], xmm2", "movapd [rsi + 2*rdx + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "ret",
);

pub const COPY_NT: Body = body(copy_nt, [1, 11], [1, 4, 4]);
kernel!(copy_nt:
    "2:",
    "movapd xmm0, [rsi]", "movapd xmm1, [rsi + 16]", "movapd xmm2, [rsi + 32]", "movapd xmm3, [rsi + 48]",
    "movntpd [rsi + 2*rdx], xmm0", "movntpd [rsi + 2*rdx + 16], xmm1",
    "movntpd [rsi + 2*rdx + 32], xmm2", "movntpd [rsi + 2*rdx + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "sfence",
    "ret",
);

// Once: 3 to set both halves of xmm8 to s = 3. Each trip: 4 loads, 4 products, 4 stores.
pub const SCALE: Body = body(scale, [3, 15], [1, 4, 4]);
kernel!(scale:
    "movabs rax, 0x4008000000000000", "movq xmm8, rax", "unpcklpd xmm8, xmm8",
    "2:",
    "movapd xmm0, [rsi + 2*rdx]", "movapd xmm1, [rsi + 2*rdx + 16]",
    "movapd xmm2, [rsi + 2*rdx + 32]", "movapd xmm3, [rsi + 2*rdx + 48]",
    "mulpd xmm0, xmm8", "mulpd xmm1, xmm8", "mulpd xmm2, xmm8", "mulpd xmm3, xmm8",
    "movapd [rsi + rdx], xmm0", "movapd [rsi + rdx + 16], xmm1",
    "movapd [rsi + rdx + 32], xmm2", "movapd [rsi + rdx + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "ret",
);

pub const SCALE_NT: Body = body(scale_nt, [4, 15], [1, 4, 4]);
kernel!(scale_nt:
    "movabs rax, 0x4008000000000000", "movq xmm8, rax", "unpcklpd xmm8, xmm8",
    "2:",
    "movapd xmm0, [rsi + 2*rdx]", "movapd xmm1, [rsi + 2*rdx + 16]",
    "movapd xmm2, [rsi + 2*rdx + 32]", "movapd xmm3, [rsi + 2*rdx + 48]",
    "mulpd xmm0, xmm8", "mulpd xmm1, xmm8", "mulpd xmm2, xmm8", "mulpd xmm3, xmm8",
    "movntpd [rsi + rdx], xmm0", "movntpd [rsi + rdx + 16], xmm1",
    "movntpd [rsi + rdx + 32], xmm2", "movntpd [rsi + rdx + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "sfence",
    "ret",
);

// Each trip: 8 loads, 4 sums, 4 stores.
pub const ADD: Body = body(add, [0, 19], [1, 8, 4]);
kernel!(add:
    "2:",
    "movapd xmm0, [rsi]", "movapd xmm1, [rsi + 16]", "movapd xmm2, [rsi + 32]", "movapd xmm3, [rsi + 48]",
    "movapd xmm4, [rsi + rdx]", "movapd xmm5, [rsi + rdx + 16]",
    "movapd xmm6, [rsi + rdx + 32]", "movapd xmm7, [rsi + rdx + 48]",
    "addpd xmm0, xmm4", "addpd xmm1, xmm5", "addpd xmm2, xmm6", "addpd xmm3, xmm7",
    "movapd [rsi + 2*rdx], xmm0", "movapd [rsi + 2*rdx + 16], xmm1",
    "movapd [rsi + 2*rdx + 32], xmm2", "movapd [rsi + 2*rdx + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "ret",
);

pub const ADD_NT: Body = body(add_nt, [1, 19], [1, 8, 4]);
kernel!(add_nt:
    "2:",
    "movapd xmm0, [rsi]", "movapd xmm1, [rsi + 16]", "movapd xmm2, [rsi + 32]", "movapd xmm3, [rsi + 48]",
    "movapd xmm4, [rsi + rdx]", "movapd xmm5, [rsi + rdx + 16]",
    "movapd xmm6, [rsi + rdx + 32]", "movapd xmm7, [rsi + rdx + 48]",
    "addpd xmm0, xmm4", "addpd xmm1, xmm5", "addpd xmm2, xmm6", "addpd xmm3, xmm7",
    "movntpd [rsi + 2*rdx], xmm0", "movntpd [rsi + 2*rdx + 16], xmm1",
    "movntpd [rsi + 2*rdx + 32], xmm2", "movntpd [rsi + 2*rdx + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "sfence",
    "ret",
);

// Once: 3 to set s. Each trip: 8 loads, 4 products, 4 sums, 4 stores.
pub const TRIAD: Body = body(triad, [3, 23], [1, 8, 4]);
kernel!(triad:
    "movabs rax, 0x4008000000000000", "movq xmm8, rax", "unpcklpd xmm8, xmm8",
    "2:",
    "movapd xmm0, [rsi + 2*rdx]", "movapd xmm1, [rsi + 2*rdx + 16]",
    "movapd xmm2, [rsi + 2*rdx + 32]", "movapd xmm3, [rsi + 2*rdx + 48]",
    "movapd xmm4, [rsi + rdx]", "movapd xmm5, [rsi + rdx + 16]",
    "movapd xmm6, [rsi + rdx + 32]", "movapd xmm7, [rsi + rdx + 48]",
    "mulpd xmm0, xmm8", "mulpd xmm1, xmm8", "mulpd xmm2, xmm8", "mulpd xmm3, xmm8",
    "addpd xmm0, xmm4", "addpd xmm1, xmm5", "addpd xmm2, xmm6", "addpd xmm3, xmm7",
    "movapd [rsi], xmm0", "movapd [rsi + 16], xmm1", "movapd [rsi + 32], xmm2", "movapd [rsi + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "ret",
);

pub const TRIAD_NT: Body = body(triad_nt, [4, 23], [1, 8, 4]);
kernel!(triad_nt:
    "movabs rax, 0x4008000000000000", "movq xmm8, rax", "unpcklpd xmm8, xmm8",
    "2:",
    "movapd xmm0, [rsi + 2*rdx]", "movapd xmm1, [rsi + 2*rdx + 16]",
    "movapd xmm2, [rsi + 2*rdx + 32]", "movapd xmm3, [rsi + 2*rdx + 48]",
    "movapd xmm4, [rsi + rdx]", "movapd xmm5, [rsi + rdx + 16]",
    "movapd xmm6, [rsi + rdx + 32]", "movapd xmm7, [rsi + rdx + 48]",
    "mulpd xmm0, xmm8", "mulpd xmm1, xmm8", "mulpd xmm2, xmm8", "mulpd xmm3, xmm8",
    "addpd xmm0, xmm4", "addpd xmm1, xmm5", "addpd xmm2, xmm6", "addpd xmm3, xmm7",
    "movntpd [rsi], xmm0", "movntpd [rsi + 16], xmm1", "movntpd [rsi + 32], xmm2", "movntpd [rsi + 48], xmm3",
    "add rsi, 64", "dec rdi", "jnz 2b",
    "sfence",
    "ret",
);
