//! Probes of the program, through the functions that pmmpi.h calls.
//!
//! They must take little time, so they do not pass through [`contained`]: [`live_probes::enter`] and
//! [`live_probes::leave`] cannot panic, and contain no point at which a thread can be cancelled.

use crate::{contained, resolve};
use pmmpi::counters::count_and_quality::{Gap, WhyUnavailable};
use pmmpi::counters::open_counters::Opened;
use pmmpi::session::live_probes::{self, Arming};
use std::ffi::c_char;

/// # Safety
/// `name` has so many bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmmpi_probe_enter(name: *const c_char, bytes: usize) {
    if name.is_null() {
        return;
    }
    // SAFETY: the caller gives so many bytes.
    let name = unsafe { std::slice::from_raw_parts(name.cast(), bytes) };
    if !live_probes::enter(name) {
        contained(live_probes::start_thread);
        live_probes::enter(name);
    }
}

/// # Safety
/// `name` has so many bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmmpi_probe_leave(name: *const c_char, bytes: usize) {
    if !name.is_null() {
        // SAFETY: the caller gives so many bytes.
        live_probes::leave(unsafe { std::slice::from_raw_parts(name.cast(), bytes) });
    }
}

/// From now on, probes are measured, with counters unless the user turned counters off.
pub fn arm(opened: &Opened) {
    let off = Some(Gap::Unavailable(WhyUnavailable::Off));
    let counters = opened.sets.iter().flat_map(|set| &set.events).any(|(_, gap)| *gap != off);
    live_probes::arm(Arming {
        counters,
        rseq_offset: rseq_offset(),
        calls: [pmmpi_probe_enter, pmmpi_probe_leave],
    });
}

/// Where glibc (from 2.35 on) has the kernel's structure of each thread; `None` if there is none.
fn rseq_offset() -> Option<isize> {
    let (size, offset) = (resolve::object(c"__rseq_size")?, resolve::object(c"__rseq_offset")?);
    // SAFETY: glibc's constants `unsigned int __rseq_size` and `ptrdiff_t __rseq_offset`.
    unsafe { (size.cast::<u32>().read() > 0).then(|| offset.cast::<isize>().read()) }
}
