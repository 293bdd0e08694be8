//! The agent: a library that pmmpi preloads into an MPI program to take stamps at the program's start and end.
//!
//! It exports MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort and MPI_Pcontrol under their MPI_ and PMPI_ names,
//! and passes each call on to the real function. This catches every language binding of Open MPI and MPICH, and
//! libraries of the standard ABI. The agent also exports the functions that pmmpi.h calls. It links no MPI library:
//! it looks up every function in its process when it needs it. In a process that never calls MPI (a shell,
//! numactl), it does nothing.
//!
//! No panic crosses an interposer. A C++ exception, longjmp or cancelled thread out of MPI passes through
//! unhindered. A rank without its shared memory or its node's record, or with a failed barrier, still enters every
//! barrier and the gather, because the other ranks would wait for it. The exceptions are a rank whose MPI library is
//! of an unknown family, and a rank with a C library other than glibc: such a rank does not measure, and ranks of the
//! same job that do measure wait for it forever.

mod agent_session;
mod environment;
mod intercept_finalize;
mod intercept_init;
mod loaded_objects;
mod loader;
mod mpi_calls;
mod mpi_handles;
mod older_libc;
mod once_per_node;
mod pass_through;
mod probe_functions;
mod rank_tree;
mod ranks_of_node;
mod region_functions;
mod resolve;

use std::ffi::c_int;
use std::panic::{UnwindSafe, catch_unwind};

/// Runs pmmpi's own work in a thread of the program. A panic ends here and the program continues. If another thread
/// cancels this one, it ends only after the work.
fn contained(step: impl FnOnce() + UnwindSafe) {
    const DISABLED: c_int = 1; // PTHREAD_CANCEL_DISABLE of glibc and musl
    let mut before = 0;
    // SAFETY: a function of POSIX that writes to a local.
    let was_set = unsafe { pthread_setcancelstate(DISABLED, &mut before) } == 0;
    if catch_unwind(step).is_err() {
        agent_session::note_panic();
    }
    if was_set {
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(before, &mut before) };
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// The loader calls this when it loads the library, before the program's main.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    contained(environment::take);
}
