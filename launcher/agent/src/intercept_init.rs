//! MPI_Init and MPI_Init_thread: the measurement starts after them.

use crate::{agent_session, contained, environment, resolve};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicU32, Ordering};

type Init = unsafe extern "C-unwind" fn(*mut c_int, *mut *mut *mut c_char) -> c_int;
type InitThread = unsafe extern "C-unwind" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int;

const SUCCESS: c_int = 0;

/// The depth of nested calls: a profiling library's MPI_Init calls PMPI_Init, and only the outermost call is the
/// program's own. MPI allows only one thread here.
static DEPTH: AtomicU32 = AtomicU32::new(0);

/// The real function, and whether this is the program's own call.
fn enter(name: &CStr) -> (*const c_void, bool) {
    let outermost = DEPTH.fetch_add(1, Ordering::AcqRel) == 0;
    if outermost {
        contained(agent_session::note_init);
        contained(environment::leave);
    }
    (resolve::function(name), outermost)
}

fn leave(outermost: bool, code: c_int) {
    if outermost && code == SUCCESS {
        contained(agent_session::begin);
    }
    DEPTH.fetch_sub(1, Ordering::AcqRel);
}

/// The functions hold no values with destructors, so an exception out of MPI_Init can pass through them.
macro_rules! interpose {
    ($($name:ident as $type:ty => ($($arg:ident: $arg_type:ty),*);)*) => {$(
        /// # Safety
        /// The rules of the MPI standard apply: the agent passes the arguments on without reading them.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $arg_type),*) -> c_int {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            };
            let (function, outermost) = enter(NAME);
            // SAFETY: the function of this name in an MPI library has this type.
            let code = unsafe { transmute::<*const c_void, $type>(function)($($arg),*) };
            leave(outermost, code);
            code
        }
    )*};
}

interpose! {
    MPI_Init as Init => (argc: *mut c_int, argv: *mut *mut *mut c_char);
    PMPI_Init as Init => (argc: *mut c_int, argv: *mut *mut *mut c_char);
    MPI_Init_thread as InitThread =>
        (argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int);
    PMPI_Init_thread as InitThread =>
        (argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int);
}
