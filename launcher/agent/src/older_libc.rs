//! Functions that Rust's standard library and the stack unwinder need, but that libc.so.6 of glibc 2.17 (2012) does not
//! have.
//!
//! The names are hidden, so the program's calls never come here. The linker leaves out unused functions.

use std::arch::global_asm;
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

macro_rules! stand_in {
    ($($name:literal => $function:path;)*) => {$(
        global_asm!(
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!(".type ", $name, ", %function"),
            concat!($name, ":"),
            concat!(jump!(), " {function}"),
            concat!(".size ", $name, ", . - ", $name),
            function = sym $function,
        );
    )*};
}

#[cfg(target_arch = "x86_64")]
macro_rules! jump {
    () => {
        "jmp"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! jump {
    () => {
        "b"
    };
}

stand_in! {
    "fstat64" => fstat; // 2.33
    "stat64" => stat; // 2.33
    "lstat64" => lstat; // 2.33
    "getrandom" => getrandom; // 2.25
    "pthread_key_create" => key_create; // before 2.34 in libpthread.so.0
    "pthread_key_delete" => key_delete;
    "pthread_setspecific" => key_set;
    "_dl_find_object" => find_object; // 2.35
}

unsafe extern "C" fn fstat(file: c_int, to: *mut libc::stat64) -> c_int {
    // SAFETY: the caller gives valid pointers; on 64-bit machines, the kernel and the C library use the same structure.
    unsafe { libc::syscall(libc::SYS_fstat, file, to) as c_int }
}

unsafe extern "C" fn stat(path: *const c_char, to: *mut libc::stat64) -> c_int {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, to, 0) as c_int }
}

unsafe extern "C" fn lstat(path: *const c_char, to: *mut libc::stat64) -> c_int {
    // SAFETY: as above.
    unsafe {
        libc::syscall(libc::SYS_newfstatat, libc::AT_FDCWD, path, to, libc::AT_SYMLINK_NOFOLLOW) as c_int
    }
}

unsafe extern "C" fn getrandom(to: *mut c_void, bytes: usize, flags: c_uint) -> isize {
    // SAFETY: the caller gives a valid buffer.
    unsafe { libc::syscall(libc::SYS_getrandom, to, bytes, flags) as isize }
}

/// The standard library makes one key, for destructors at a thread's end, and only if the C library has no
/// __cxa_thread_atexit_impl (before glibc 2.18). The agent's thread-local values need no destructor.
extern "C" fn key_create(key: *mut c_uint, _: *const c_void) -> c_int {
    // SAFETY: the caller gives a valid place for the key.
    unsafe { *key = 1 };
    0
}

extern "C" fn key_delete(_: c_uint) -> c_int {
    0
}

extern "C" fn key_set(_: c_uint, _: *const c_void) -> c_int {
    0
}

/// struct dl_find_object of glibc's dlfcn.h.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    link_map: usize,
    eh_frame: usize,
    reserved: [u64; 7],
}

/// Tells the unwinder where to find the unwinding information for the code at an address.
unsafe extern "C" fn find_object(code: usize, found: *mut Found) -> c_int {
    let mut wanted = (code, found);
    // SAFETY: the callback gets the address of `wanted` and runs only during this call.
    let found = unsafe { libc::dl_iterate_phdr(Some(look_into), (&raw mut wanted).cast()) };
    if found == 1 { 0 } else { -1 }
}

/// Returns 1 if the code is in this object.
unsafe extern "C" fn look_into(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info with `dlpi_phnum` headers, and `wanted` is that of `find_object`.
    let (base, headers, (code, found)) = unsafe {
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
        ((*info).dlpi_addr as usize, headers, &mut *wanted.cast::<(usize, *mut Found)>())
    };
    let place = |header: &libc::Elf64_Phdr| {
        let start = base + header.p_vaddr as usize;
        start..start + header.p_memsz as usize
    };
    let of_kind = |kind| headers.iter().filter(move |header| header.p_type == kind).map(place);
    let within = of_kind(libc::PT_LOAD).find(|segment| segment.contains(code));
    let (Some(within), Some(eh_frame)) = (within, of_kind(libc::PT_GNU_EH_FRAME).next()) else { return 0 };
    let (start, end) = (within.start, within.end);
    let answer = Found { flags: 0, start, end, link_map: 0, eh_frame: eh_frame.start, reserved: [0; 7] };
    // SAFETY: the unwinder gives a valid place for the answer.
    unsafe { **found = answer };
    1
}

const _: () = assert!(size_of::<c_ulong>() == 8 && size_of::<usize>() == 8);
