//! The agent: preloaded into an MPI program, it stamps the program's start and end.
//!
//! It exports MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort and MPI_Pcontrol under their MPI_ and PMPI_
//! names, which catches every language binding of Open MPI and MPICH, and libraries of the standard ABI, and
//! passes each call on to the real function. What pmmpi.h calls is here, too. It links no MPI library:
//! everything is looked up in the process that it finds itself in, when it is needed.
//! In a process that never calls MPI (a shell, numactl) it does nothing.
//!
//! No panic crosses an interposer, and nothing that crosses one on its way out of MPI (a C++ exception, longjmp, a
//! cancelled thread) is stopped there. A rank that lacks something of its own (shared memory, its node's record), or
//! whose barrier failed, still enters every barrier and goes on to the gather, so that the others do not wait in
//! vain. They would for a rank whose MPI library is of another, unknown family than theirs.

mod environment;
mod init;
mod loaded_objects;
mod loader;
mod measurement;
mod mpi;
mod mpi_handles;
mod node_speaker;
mod older_libc;
mod pass_through;
mod rank_tree;
mod ranks_of_node;
mod regions;
mod resolve;

use std::ffi::{c_int, c_void};
use std::panic::{UnwindSafe, catch_unwind};

pass_through::pass_on! {
    MPI_Finalize => at_finalize;
    PMPI_Finalize => at_pmpi_finalize;
    MPI_Abort => at_abort;
    PMPI_Abort => at_pmpi_abort;
}

extern "C" fn at_finalize(_: usize, _: usize, _: *const c_void) -> *const c_void {
    contained(measurement::end);
    resolve::function(c"MPI_Finalize")
}

extern "C" fn at_pmpi_finalize(_: usize, _: usize, _: *const c_void) -> *const c_void {
    contained(measurement::end); // nothing, where a profiling library's MPI_Finalize calls it
    resolve::function(c"PMPI_Finalize")
}

extern "C" fn at_abort(_: usize, code: usize, _: *const c_void) -> *const c_void {
    contained(|| measurement::note_abort(code as c_int));
    resolve::function(c"MPI_Abort")
}

extern "C" fn at_pmpi_abort(_: usize, code: usize, _: *const c_void) -> *const c_void {
    contained(|| measurement::note_abort(code as c_int));
    resolve::function(c"PMPI_Abort")
}

/// The tool's own work in the workload's thread. A panic ends here, and the workload goes on; where another thread
/// cancels this one, it ends when the tool is done.
fn contained(step: impl FnOnce() + UnwindSafe) {
    const DISABLED: c_int = 1; // PTHREAD_CANCEL_DISABLE of glibc and musl
    let mut before = 0;
    // SAFETY: a function of POSIX; the place is a local.
    let was_set = unsafe { pthread_setcancelstate(DISABLED, &mut before) } == 0;
    if catch_unwind(step).is_err() {
        measurement::note_panic();
    }
    if was_set {
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(before, &mut before) };
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// Runs when the library is loaded, before the program's main.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    contained(environment::take);
}
