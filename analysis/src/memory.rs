//! Unused memory goes back to the Linux kernel.

use mimalloc as _;

unsafe extern "C" {
    fn mi_collect(force: bool);
}

/// Returns the memory that no thread uses. Reading and judging need large buffers for a short time, and the allocator
/// (mimalloc) keeps them for each thread.
pub(crate) fn return_unused() {
    // SAFETY: any thread may call this function of mimalloc, also if the program has another allocator.
    let collect = || unsafe { mi_collect(true) };
    collect();
    rayon::broadcast(|_| collect());
}
