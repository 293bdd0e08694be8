//! MPI_Finalize and MPI_Abort: the measurement ends before them.

use crate::{agent_session, contained, pass_through, resolve};
use std::ffi::{c_int, c_void};

pass_through::pass_on! {
    MPI_Finalize => at_finalize;
    PMPI_Finalize => at_pmpi_finalize;
    MPI_Abort => at_abort;
    PMPI_Abort => at_pmpi_abort;
}

extern "C" fn at_finalize(_: usize, _: usize, _: *const c_void) -> *const c_void {
    contained(agent_session::end);
    resolve::function(c"MPI_Finalize")
}

extern "C" fn at_pmpi_finalize(_: usize, _: usize, _: *const c_void) -> *const c_void {
    contained(agent_session::end); // does nothing if a profiling library's MPI_Finalize calls this
    resolve::function(c"PMPI_Finalize")
}

extern "C" fn at_abort(_: usize, code: usize, _: *const c_void) -> *const c_void {
    contained(|| agent_session::note_abort(code as c_int));
    resolve::function(c"MPI_Abort")
}

extern "C" fn at_pmpi_abort(_: usize, code: usize, _: *const c_void) -> *const c_void {
    contained(|| agent_session::note_abort(code as c_int));
    resolve::function(c"PMPI_Abort")
}
