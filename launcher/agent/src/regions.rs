//! Regions that the program names: by number with MPI_Pcontrol, by name with what pmmpi.h calls.

use crate::measurement::{self, AgentSession};
use crate::resolve;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// That this thread is in an interposer already: a profiling library's MPI_Pcontrol calls PMPI_Pcontrol.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// MPI_Pcontrol takes any arguments behind its level. The integers and pointers among the first five are passed
/// on, as they come in registers; what is behind them, and floating-point numbers, are lost to another tool.
type Pcontrol = unsafe extern "C" fn(c_int, ...) -> c_int;

/// # Safety
/// As the MPI standard has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Pcontrol(
    level: c_int,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
) -> c_int {
    pcontrol(c"MPI_Pcontrol", level, [a, b, c, d, e])
}

/// # Safety
/// As for `MPI_Pcontrol`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Pcontrol(
    level: c_int,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
) -> c_int {
    pcontrol(c"PMPI_Pcontrol", level, [a, b, c, d, e])
}

fn pcontrol(name: &CStr, level: c_int, [a, b, c, d, e]: [usize; 5]) -> c_int {
    let outermost = !INSIDE.replace(true);
    if outermost {
        contained(|| control(level));
    }
    let code = match resolve::next(name) {
        // SAFETY: the function of this name in an MPI library has this type.
        Some(function) => unsafe {
            std::mem::transmute::<*mut libc::c_void, Pcontrol>(function)(level, a, b, c, d, e)
        },
        None => crate::NO_SUCH_FUNCTION,
    };
    if outermost {
        INSIDE.set(false);
    }
    code
}

/// 0 pauses and 1 resumes, on this rank alone; from 2 on, a region's number, entered by all ranks together in
/// place of the one before; its negative leaves it.
fn control(level: c_int) {
    let now_ns = pmmpi::clock::monotonic_ns();
    match (level, measurement::region_table()) {
        // Not waiting for another thread that is in a region's barrier.
        (0, Some(table)) => return table.pause(now_ns),
        (1, Some(table)) => return table.resume(now_ns),
        _ => {}
    }
    measurement::with_regions(|session, numbered| match level {
        2.. => {
            if let Some(left) = numbered.replace(level) {
                // The session notes a barrier that failed.
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
pub unsafe extern "C" fn pmmpi_region_begin(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let name = unsafe { CStr::from_ptr(name) };
    mark(|session| _ = session.enter_region(name.to_bytes()));
}

/// # Safety
/// `name` is a C string, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pmmpi_region_end(name: *const c_char) {
    if name.is_null() {
        return;
    }
    // SAFETY: as the caller says.
    let name = unsafe { CStr::from_ptr(name) };
    mark(|session| _ = session.leave_region(name.to_bytes()));
}

/// Nothing in a signal handler that came while this thread is in a mark.
fn mark(step: impl FnOnce(&mut AgentSession)) {
    if !INSIDE.replace(true) {
        contained(AssertUnwindSafe(|| measurement::with_regions(|session, _| step(session))));
        INSIDE.set(false);
    }
}

/// A panic of the tool ends here; the workload goes on.
fn contained(step: impl FnOnce() + std::panic::UnwindSafe) {
    if catch_unwind(step).is_err() {
        measurement::note_panic();
    }
}
