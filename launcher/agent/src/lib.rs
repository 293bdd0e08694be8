//! The agent: preloaded into an MPI program, it stamps the program's start and end.
//!
//! It exports MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort and MPI_Pcontrol under their MPI_ and PMPI_
//! names, which catches every language binding of Open MPI and MPICH, and libraries of the standard ABI, and
//! passes each call on to the real function. What pmmpi.h calls is here, too. It links no MPI library:
//! everything is looked up in the process that it finds itself in, when it is needed.
//! In a process that never calls MPI (a shell, numactl) it does nothing.
//!
//! No panic crosses an interposer. A rank that lacks something of its own (a spool, its node's record), or
//! whose barrier failed, still enters every barrier and goes on to the gather, so that the others do not wait in
//! vain. They would for a rank whose MPI library is of another, unknown family than theirs.

mod environment;
mod handles;
mod measurement;
mod mpi;
mod regions;
mod resolve;
mod tree;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};

type Init = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
type InitThread = unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;
type Finalize = unsafe extern "C" fn() -> c_int;

/// MPI_SUCCESS and MPI_ERR_OTHER as a caller tests them: zero, or not.
const SUCCESS: c_int = 0;
const NO_SUCH_FUNCTION: c_int = 15;

/// How many interposers the process is in: a profiling library's MPI_Init calls PMPI_Init, and only the
/// outermost one is the program's own call. MPI allows one thread to be here.
static DEPTH: AtomicU32 = AtomicU32::new(0);

fn around(name: &CStr, before: fn(), after: fn(), call: impl FnOnce(*mut libc::c_void) -> c_int) -> c_int {
    let outermost = DEPTH.fetch_add(1, Ordering::AcqRel) == 0;
    if outermost {
        contained(before);
    }
    let code = match resolve::next(name) {
        Some(function) => call(function),
        None => {
            environment::say(&format!("{} was called, but no MPI library is loaded", name.to_string_lossy()));
            NO_SUCH_FUNCTION
        }
    };
    if outermost && code == SUCCESS {
        contained(after);
    }
    DEPTH.fetch_sub(1, Ordering::AcqRel);
    code
}

/// A panic of the tool ends here; the workload goes on.
fn contained(step: fn()) {
    if std::panic::catch_unwind(step).is_err() {
        measurement::note_panic();
    }
}

fn nothing() {}

macro_rules! interpose {
    ($($name:ident as $type:ty => ($($arg:ident: $arg_type:ty),*), $before:path, $after:path;)*) => {$(
        /// # Safety
        /// As the MPI standard has it: the arguments are passed on unread.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $arg_type),*) -> c_int {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            };
            around(NAME, $before, $after, |function| {
                // SAFETY: the function of this name in an MPI library has this type.
                unsafe { std::mem::transmute::<*mut libc::c_void, $type>(function)($($arg),*) }
            })
        }
    )*};
}

interpose! {
    MPI_Init as Init => (argc: *mut c_int, argv: *mut *mut *mut c_char), nothing, measurement::begin;
    PMPI_Init as Init => (argc: *mut c_int, argv: *mut *mut *mut c_char), nothing, measurement::begin;
    MPI_Init_thread as InitThread =>
        (argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int),
        nothing, measurement::begin;
    PMPI_Init_thread as InitThread =>
        (argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int),
        nothing, measurement::begin;
    MPI_Finalize as Finalize => (), measurement::end, nothing;
    PMPI_Finalize as Finalize => (), measurement::end, nothing;
}

type Abort = unsafe extern "C" fn(usize, c_int) -> c_int;

/// # Safety
/// As the MPI standard has it. The communicator is a handle of any family, in a whole register.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Abort(comm: usize, code: c_int) -> c_int {
    abort(c"MPI_Abort", comm, code)
}

/// # Safety
/// As for `MPI_Abort`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PMPI_Abort(comm: usize, code: c_int) -> c_int {
    abort(c"PMPI_Abort", comm, code)
}

fn abort(name: &CStr, comm: usize, code: c_int) -> c_int {
    let _ = std::panic::catch_unwind(|| measurement::note_abort(code)); // the job ends anyway
    match resolve::next(name) {
        // SAFETY: the function of this name in an MPI library has this type.
        Some(function) => unsafe { std::mem::transmute::<*mut libc::c_void, Abort>(function)(comm, code) },
        None => NO_SUCH_FUNCTION,
    }
}

/// Runs when the library is loaded, before the program's main.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    contained(environment::take);
}
