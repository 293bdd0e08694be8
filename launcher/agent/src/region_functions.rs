//! Regions of the program: by number from MPI_Pcontrol, by name from the functions that pmmpi.h calls.

use crate::agent_session::{self, AgentSession};
use crate::{contained, pass_through, resolve};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, UnwindSafe};

thread_local! {
    /// True while this thread is in a mark.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

pass_through::pass_on! {
    MPI_Pcontrol => at_pcontrol;
    PMPI_Pcontrol => at_pmpi_pcontrol;
}

extern "C" fn at_pcontrol(level: usize, _: usize, _: *const c_void) -> *const c_void {
    if agent_session::numbers_are_regions() {
        alone(|| control(level as c_int));
    }
    resolve::function(c"MPI_Pcontrol")
}

/// Open MPI's Fortran MPI_Pcontrol calls this. Another tool's MPI_Pcontrol may call it, too; the agent has already
/// handled that call.
extern "C" fn at_pmpi_pcontrol(level: usize, _: usize, caller: *const c_void) -> *const c_void {
    if agent_session::numbers_are_regions() && !resolve::is_passed_on(caller) {
        alone(|| control(level as c_int));
    }
    resolve::function(c"PMPI_Pcontrol")
}

/// Level 0 pauses and 1 resumes, on this rank only. A level from 2 on is a region's number: all ranks together
/// leave the region before it and enter this one. The negative number leaves the region.
fn control(level: c_int) {
    let now_ns = pmmpi::clock::monotonic_ns();
    match (level, agent_session::region_table()) {
        // These do not wait for the lock, which another thread may hold in a region's barrier.
        (0, Some(table)) => return table.pause(now_ns),
        (1, Some(table)) => return table.resume(now_ns),
        _ => {}
    }
    agent_session::with_regions(|session, numbered| match level {
        2.. => {
            if let Some(left) = numbered.replace(level) {
                // The session itself notes a failed barrier.
                let _ = session.leave_region(name_of(left).as_bytes());
            }
            let _ = session.enter_region(name_of(level).as_bytes());
        }
        _ => {
            if let Some(left) = numbered.take_if(|number| Some(*number) == level.checked_neg()) {
                let _ = session.leave_region(name_of(left).as_bytes());
            }
        }
    });
}

fn name_of(number: c_int) -> String {
    format!("MPI_Pcontrol({number})")
}

/// # Safety
/// `name` is a C string, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pmmpi_region_begin(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: the caller gives a C string.
    let name = unsafe { CStr::from_ptr(name) };
    mark(|session| _ = session.enter_region(name.to_bytes()));
}

/// # Safety
/// `name` is a C string, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pmmpi_region_end(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: the caller gives a C string.
    let name = unsafe { CStr::from_ptr(name) };
    mark(|session| {
        agent_session::warn_of_stray_end(session, name.to_bytes());
        _ = session.leave_region(name.to_bytes());
    });
}

fn mark(step: impl FnOnce(&mut AgentSession)) {
    alone(AssertUnwindSafe(|| agent_session::with_regions(|session, _| step(session))));
}

/// Runs `step`, but not in a signal handler that interrupts a mark of this thread.
fn alone(step: impl FnOnce() + UnwindSafe) {
    if !INSIDE.replace(true) {
        contained(step);
        INSIDE.set(false);
    }
}
