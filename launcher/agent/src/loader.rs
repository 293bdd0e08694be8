//! The dynamic loader's functions dlsym, dlopen and dladdr. From glibc 2.34 on they are in libc.so.6, before that in
//! libdl.so.2, which not every process has.
//!
//! The references are weak, so that the agent needs only libc.so.6 and loads everywhere. A process without libdl has no
//! MPI library either. With the options of build.rs, the linker replaces every call of `dlsym` by `__wrap_dlsym`; the
//! loader's own function has the name `__real_dlsym`.

use std::arch::global_asm;

/// Jumps, because dlsym(RTLD_NEXT) depends on its caller's address. Returns 0 if the function does not exist.
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
