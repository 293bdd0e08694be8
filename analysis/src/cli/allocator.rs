//! The allocator mimalloc. A process that gets no memory ends at once. A child ends with the exit status from which
//! `supervise` knows the reason.

use crate::cli::supervise::{self, NO_MEMORY};
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

/// Rust itself would print its own message and abort, perhaps with a core file.
#[cold]
fn none_left() -> ! {
    const MESSAGE: &str = "pmmpi: there is not enough memory\n";
    // SAFETY: any thread may end the process, and the bytes have the lifetime `'static`.
    unsafe {
        if supervise::is_child() {
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
