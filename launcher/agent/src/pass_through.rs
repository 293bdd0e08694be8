//! Interposers that work before the real function and then leave the stack.
//!
//! They jump to the real function with every argument in its original place: general registers, vector registers
//! (MPI_Pcontrol also takes floating-point numbers) and the stack. If the function ends without a return (a C++
//! exception of an error handler, longjmp, a cancelled thread), no frame of pmmpi is on the stack.

use std::ffi::{c_int, c_void};

/// A hook gets the first two arguments in general registers and the caller's address. It gives the function to jump to.
pub type Hook = extern "C" fn(first: usize, second: usize, caller: *const c_void) -> *const c_void;

/// Replaces an MPI function that does not exist; returns MPI_ERR_OTHER.
pub extern "C-unwind" fn no_such_function() -> c_int {
    15
}

/// Exports `$name`, which calls `$hook` and jumps to the function that it gives.
macro_rules! pass_on {
    ($($name:ident => $hook:path;)*) => {$(
        const _: $crate::pass_through::Hook = $hook;

        /// # Safety
        /// The rules of the MPI standard apply: the interposer passes the arguments on unchanged.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() -> std::ffi::c_int {
            $crate::pass_through::jump_behind!($hook)
        }
    )*};
}

/// System V ABI, AMD64: six general registers and eight vector registers; al has the number of vector registers in
/// use. DWARF's registers 6 and 7 are rbp and rsp.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_behind {
    ($hook:path) => {
        std::arch::naked_asm!(
            ".cfi_startproc",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset 6, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register 6",
            "sub rsp, 192",
            "mov [rsp], rdi",
            "mov [rsp + 8], rsi",
            "mov [rsp + 16], rdx",
            "mov [rsp + 24], rcx",
            "mov [rsp + 32], r8",
            "mov [rsp + 40], r9",
            "mov [rsp + 48], rax",
            "movaps [rsp + 64], xmm0",
            "movaps [rsp + 80], xmm1",
            "movaps [rsp + 96], xmm2",
            "movaps [rsp + 112], xmm3",
            "movaps [rsp + 128], xmm4",
            "movaps [rsp + 144], xmm5",
            "movaps [rsp + 160], xmm6",
            "movaps [rsp + 176], xmm7",
            "mov rdx, [rbp + 8]",
            "call {hook}",
            "mov r11, rax",
            "mov rdi, [rsp]",
            "mov rsi, [rsp + 8]",
            "mov rdx, [rsp + 16]",
            "mov rcx, [rsp + 24]",
            "mov r8, [rsp + 32]",
            "mov r9, [rsp + 40]",
            "mov rax, [rsp + 48]",
            "movaps xmm0, [rsp + 64]",
            "movaps xmm1, [rsp + 80]",
            "movaps xmm2, [rsp + 96]",
            "movaps xmm3, [rsp + 112]",
            "movaps xmm4, [rsp + 128]",
            "movaps xmm5, [rsp + 144]",
            "movaps xmm6, [rsp + 160]",
            "movaps xmm7, [rsp + 176]",
            "leave",
            ".cfi_def_cfa 7, 8",
            ".cfi_restore 6",
            "jmp r11",
            ".cfi_endproc",
            hook = sym $hook,
        )
    };
}

/// AAPCS64: eight general registers, x8, eight vector registers.
#[cfg(target_arch = "aarch64")]
macro_rules! jump_behind {
    ($hook:path) => {
        std::arch::naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, -16]!",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset 29, -16",
            ".cfi_offset 30, -8",
            "mov x29, sp",
            ".cfi_def_cfa 29, 16",
            "sub sp, sp, 208",
            "stp x0, x1, [sp]",
            "stp x2, x3, [sp, 16]",
            "stp x4, x5, [sp, 32]",
            "stp x6, x7, [sp, 48]",
            "str x8, [sp, 64]",
            "stp q0, q1, [sp, 80]",
            "stp q2, q3, [sp, 112]",
            "stp q4, q5, [sp, 144]",
            "stp q6, q7, [sp, 176]",
            "mov x2, x30",
            "bl {hook}",
            "mov x16, x0",
            "ldp x0, x1, [sp]",
            "ldp x2, x3, [sp, 16]",
            "ldp x4, x5, [sp, 32]",
            "ldp x6, x7, [sp, 48]",
            "ldr x8, [sp, 64]",
            "ldp q0, q1, [sp, 80]",
            "ldp q2, q3, [sp, 112]",
            "ldp q4, q5, [sp, 144]",
            "ldp q6, q7, [sp, 176]",
            "mov sp, x29",
            ".cfi_def_cfa 31, 16",
            "ldp x29, x30, [sp], 16",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore 29",
            ".cfi_restore 30",
            "br x16",
            ".cfi_endproc",
            hook = sym $hook,
        )
    };
}

pub(crate) use {jump_behind, pass_on};
