//! Blocks all signals while a child or a thread starts.

use std::mem::zeroed;
use std::ptr;

/// Blocks all signals until this value is dropped.
pub(crate) struct HeldSignals {
    before: libc::sigset_t,
}

impl HeldSignals {
    pub(crate) fn back() -> Self {
        // SAFETY: both sets are initialised before they are used.
        unsafe {
            let mut all: libc::sigset_t = zeroed();
            let mut before: libc::sigset_t = zeroed();
            libc::sigfillset(&mut all);
            libc::sigprocmask(libc::SIG_BLOCK, &all, &mut before);
            Self { before }
        }
    }

    /// The signal mask from before, which the child gets.
    pub(crate) fn mask(&self) -> &libc::sigset_t {
        &self.before
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the kernel stored `before`.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}
