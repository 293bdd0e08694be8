//! mimalloc. A process that gets no memory ends at once with its own exit status, and `supervise` reports the reason.

use crate::supervise::NO_MEMORY;
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

/// Rust would print its own message and abort, perhaps with a core file.
#[inline]
fn got(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        // SAFETY: any thread may end the process.
        unsafe { libc::_exit(NO_MEMORY.into()) }
    }
    memory
}
