//! The dynamic loader's functions: in libc.so.6 from glibc 2.34 on, before that in libdl.so.2, which not every
//! process has.
//!
//! Weak references, so that the agent needs no other library than libc.so.6 and loads everywhere: where there is no
//! libdl, there is no MPI library either. build.rs has the linker answer every call of `dlsym` with `__wrap_dlsym`,
//! and call the loader's own `__real_dlsym`.

use std::arch::global_asm;

/// A jump, not a call: dlsym(RTLD_NEXT) looks at who called it. 0 where there is no such function.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_or_zero {
    ($name:literal) => {
        concat!(
            "mov rax, qword ptr [rip + __real_",
            $name,
            "@GOTPCREL]\n",
            "test rax, rax\njz 1f\njmp rax\n1: ret\n"
        )
    };
}

/// As above.
#[cfg(target_arch = "aarch64")]
macro_rules! jump_or_zero {
    ($name:literal) => {
        concat!(
            "adrp x16, :got:__real_",
            $name,
            "\nldr x16, [x16, :got_lo12:__real_",
            $name,
            "]\n",
            "cbz x16, 1f\nbr x16\n1: mov x0, xzr\nret\n"
        )
    };
}

macro_rules! weak {
    ($($name:literal)*) => {$(
        global_asm!(
            concat!(".weak __real_", $name),
            concat!(".globl __wrap_", $name),
            concat!(".hidden __wrap_", $name),
            concat!(".type __wrap_", $name, ", %function"),
            concat!("__wrap_", $name, ":"),
            jump_or_zero!($name),
            concat!(".size __wrap_", $name, ", . - __wrap_", $name),
        );
    )*};
}

weak!("dlsym" "dlopen" "dladdr");
