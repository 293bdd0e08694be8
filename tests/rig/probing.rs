//! Probes of this process, as a program has them through pmmpi.h.

use pmmpi::session::live_probes::{self, Arming};
use std::ffi::c_char;

/// As the agent exports it.
///
/// # Safety
/// `name` has so many bytes.
pub unsafe extern "C" fn enter(name: *const c_char, bytes: usize) {
    // SAFETY: the caller gives so many bytes.
    let name = unsafe { std::slice::from_raw_parts(name.cast(), bytes) };
    if !live_probes::enter(name) {
        live_probes::start_thread();
        live_probes::enter(name);
    }
}

/// As the agent exports it.
///
/// # Safety
/// `name` has so many bytes.
pub unsafe extern "C" fn leave(name: *const c_char, bytes: usize) {
    // SAFETY: the caller gives so many bytes.
    live_probes::leave(unsafe { std::slice::from_raw_parts(name.cast(), bytes) });
}

/// From now on, this process measures its probes.
pub fn arm() {
    live_probes::arm(Arming { counters: true, rseq_offset: None, calls: [enter, leave] });
}

/// Works in a probe of this name.
#[inline(never)]
pub fn inside(name: &str, work: impl FnOnce()) {
    // SAFETY: the name has these bytes.
    unsafe { enter(name.as_ptr().cast(), name.len()) };
    work();
    // SAFETY: as above.
    unsafe { leave(name.as_ptr().cast(), name.len()) };
}
