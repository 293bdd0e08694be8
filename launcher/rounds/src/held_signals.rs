//! Signals that wait while a child is started.

use std::mem::zeroed;
use std::ptr;

/// All signals held back while a child is started.
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

    /// The mask from before: the child's.
    pub(crate) fn mask(&self) -> &libc::sigset_t {
        &self.before
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: `before` is what the kernel stored.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}
