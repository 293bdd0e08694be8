//! Finds the real MPI functions at run time.

use crate::loaded_objects::{file_name, mpi_libraries};
use crate::{environment, pass_through};
use pmmpi::transport::mpi_family::is_mpi_library;
use std::ffi::{CStr, CString, c_void};
use std::sync::OnceLock;

/// The function `name` that the program would call without the agent: the next function in the search order, or the
/// function of an MPI library outside the search order.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    let next = symbol(libc::RTLD_NEXT, name);
    let Some(library) = opened_locally() else { return next };
    // Another profiling tool's function: it passes the call on.
    let is_tools =
        |function: &*mut c_void| !file_name_of(*function).is_some_and(|file| is_mpi_library(&file));
    next.filter(is_tools).or_else(|| symbol(library, name))
}

/// The function to which an interposer passes a call on. Never null.
pub fn function(name: &CStr) -> *const c_void {
    next(name).map_or_else(|| missing(name), <*mut c_void>::cast_const)
}

#[cold]
fn missing(name: &CStr) -> *const c_void {
    environment::say(&format!("the program called {}, but no MPI library is loaded", name.to_string_lossy()));
    pass_through::no_such_function as *const c_void
}

/// True if the process uses glibc, for which the agent is built. musl's loader loads the agent, too.
pub fn is_glibc() -> bool {
    symbol(libc::RTLD_DEFAULT, c"gnu_get_libc_version").is_some()
}

/// True if `caller` is in another tool whose MPI_Pcontrol passes a call on: the agent has seen that call already.
pub fn is_passed_on(caller: *const c_void) -> bool {
    let Some(first) = next(c"MPI_Pcontrol") else { return false };
    let (Some((base, file)), Some((callers, _))) = (object_of(first), object_of(caller)) else {
        return false;
    };
    base == callers && !is_mpi_library(&file)
}

/// The handle of the program's MPI library, if the program opened it with RTLD_LOCAL. Python opens mpi4py's library
/// in this way.
///
/// The first call comes before MPI_Init, and its answer never changes. A later search could find the wrong library:
/// Open MPI's MPI_Init adds its library to the search order, even if the program called a library of another family
/// (such as the standard ABI) that uses Open MPI internally.
fn opened_locally() -> Option<*mut c_void> {
    const NAME: &CStr = c"PMPI_Get_library_version"; // no tool replaces this function
    static HANDLE: OnceLock<Option<usize>> = OnceLock::new();
    if HANDLE.get().is_none() {
        let handle = match symbol(libc::RTLD_NEXT, NAME) {
            Some(_) => None,
            None => Some(mpi_libraries().iter().find_map(|path| {
                let handle = handle_of(path)?;
                symbol(handle, NAME).map(|_| handle as usize)
            })?),
        };
        let _ = HANDLE.set(handle); // cannot fail: only one thread initialises MPI
    }
    HANDLE.get().copied().flatten().map(|handle| handle as *mut c_void)
}

/// The data object `name` as the whole process sees it, not the next one in the search order: a program without
/// position-independent code has its own copy of a library's object (a copy relocation), and the library itself uses
/// that copy.
pub fn object(name: &CStr) -> Option<*mut c_void> {
    let in_library = |path: &CString| symbol(handle_of(path)?, name);
    symbol(libc::RTLD_DEFAULT, name).or_else(|| mpi_libraries().iter().find_map(in_library))
}

/// The name, without its folder, of the file that contains a function.
pub fn file_name_of(function: *mut c_void) -> Option<String> {
    object_of(function).map(|(_, file)| file)
}

/// The start address and the file name of the object that contains an address.
fn object_of(address: *const c_void) -> Option<(usize, String)> {
    // SAFETY: an all-zero Dl_info is valid. dladdr accepts any address; the name that it gives is a C string of the
    // loader, or null.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null();
        is_known.then(|| (info.dli_fbase as usize, file_name(CStr::from_ptr(info.dli_fname))))
    }
}

/// The address of `name`, for a handle of dlopen or a special handle of dlsym.
fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string; dlsym returns null if the name does not exist.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}

/// A handle of a loaded object. It is never closed, so that the object stays loaded while its functions may be called.
fn handle_of(path: &CStr) -> Option<*mut c_void> {
    // SAFETY: RTLD_NOLOAD loads nothing.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    (!handle.is_null()).then_some(handle)
}
