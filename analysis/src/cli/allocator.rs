//! The allocator mimalloc. A process that gets no memory ends at once. In a child process, the exit status tells
//! `supervise` the reason.

use crate::cli::restart_after_crash::{self, NO_MEMORY};
use libc::{c_int, c_long};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};

pub struct Allocator;

// SAFETY: each function returns what mimalloc returns, or ends the process.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        got(unsafe { MiMalloc.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        got(unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        got(unsafe { MiMalloc.realloc(old, layout, bytes) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { MiMalloc.dealloc(old, layout) }
    }
}

/// Sets up memory for reports. Call this before any thread starts.
///
/// A report decodes one run after another, and keeps little of each. Without huge pages and with an early return of free
/// memory to the kernel, a screen of 10,000 nodes needs 185 MB instead of 240 MB in the same time, and a table of two
/// million rows takes three quarters of the time, because the kernel clears fewer pages (bench/RESULTS.md).
pub fn prepare() {
    // SAFETY: both calls take only numbers.
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
        mi_option_set(PURGE_DELAY, PURGE_AFTER_MS);
    }
}

/// mi_option_purge_delay of mimalloc.h, versions 2 and 3.
const PURGE_DELAY: c_int = 15;
/// mimalloc returns free pages to the kernel after this time; its default is 1000.
const PURGE_AFTER_MS: c_long = 100;

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
}

/// Rust itself would print its own message and abort, perhaps with a core file.
#[cold]
fn none_left() -> ! {
    const MESSAGE: &str = "pmmpi: there is not enough memory\n";
    // SAFETY: any thread may end the process, and the bytes have the lifetime `'static`.
    unsafe {
        if restart_after_crash::is_child() {
            libc::_exit(NO_MEMORY.into())
        }
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1)
    }
}

#[inline]
fn got(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        none_left()
    }
    memory
}
