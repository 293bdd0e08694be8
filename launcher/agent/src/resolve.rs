//! Finding the real MPI functions at run time.

use crate::loaded_objects::{file_name, mpi_libraries};
use crate::{environment, pass_through};
use pmmpi::transport::mpi_family::is_mpi_library;
use std::ffi::{CStr, CString, c_void};
use std::sync::OnceLock;

/// The function `name` that would have been called without the agent: the next one in the search order, or
/// that of an MPI library that is not in it.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    let next = symbol(libc::RTLD_NEXT, name);
    let Some(library) = opened_locally() else { return next };
    // Another profiling tool's, which passes it on.
    let is_tools =
        |function: &*mut c_void| !file_name_of(*function).is_some_and(|file| is_mpi_library(&file));
    next.filter(is_tools).or_else(|| symbol(library, name))
}

/// What an interposer passes a call on to. Never null.
pub fn function(name: &CStr) -> *const c_void {
    next(name).map_or_else(|| missing(name), <*mut c_void>::cast_const)
}

#[cold]
fn missing(name: &CStr) -> *const c_void {
    environment::say(&format!("{} was called, but no MPI library is loaded", name.to_string_lossy()));
    pass_through::no_such_function as *const c_void
}

/// True in a process whose C library is the one that this is built for. musl loads the agent too.
pub fn is_glibc() -> bool {
    symbol(libc::RTLD_DEFAULT, c"gnu_get_libc_version").is_some()
}

/// True where `caller` lies in the tool whose MPI_Pcontrol passes a call on that has been seen already.
pub fn is_passed_on(caller: *const c_void) -> bool {
    let Some(first) = next(c"MPI_Pcontrol") else { return false };
    let (Some((base, file)), Some((callers, _))) = (object_of(first), object_of(caller)) else {
        return false;
    };
    base == callers && !is_mpi_library(&file)
}

/// The handle of the program's MPI library where it was opened with RTLD_LOCAL, as Python opens mpi4py's.
///
/// Asked before MPI_Init for the first time, and the same ever after: Open MPI's MPI_Init puts its library
/// into the search order, and the program may have called that of another family on top of it.
fn opened_locally() -> Option<*mut c_void> {
    const NAME: &CStr = c"PMPI_Get_library_version"; // no tool stands before this one
    static HANDLE: OnceLock<Option<usize>> = OnceLock::new();
    if HANDLE.get().is_none() {
        let handle = match symbol(libc::RTLD_NEXT, NAME) {
            Some(_) => None,
            None => Some(mpi_libraries().iter().find_map(|path| {
                let handle = handle_of(path)?;
                symbol(handle, NAME).map(|_| handle as usize)
            })?),
        };
        let _ = HANDLE.set(handle); // MPI is initialised by one thread
    }
    HANDLE.get().copied().flatten().map(|handle| handle as *mut c_void)
}

/// The data object `name` as the whole process sees it. Not the next one: a program that was not built
/// position-independent has its own copy of a library's object (a copy relocation), and the library
/// itself uses that copy.
pub fn object(name: &CStr) -> Option<*mut c_void> {
    let in_library = |path: &CString| symbol(handle_of(path)?, name);
    symbol(libc::RTLD_DEFAULT, name).or_else(|| mpi_libraries().iter().find_map(in_library))
}

/// The name of the file that a function lies in, without its folder.
pub fn file_name_of(function: *mut c_void) -> Option<String> {
    object_of(function).map(|(_, file)| file)
}

/// Where the object begins that an address lies in, and its file's name.
fn object_of(address: *const c_void) -> Option<(usize, String)> {
    // SAFETY: an all-zero Dl_info is valid, dladdr takes any address, and gives the loader's own name of the
    // object, a C string, where there is one.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(address, &mut info) != 0 && !info.dli_fname.is_null();
        is_known.then(|| (info.dli_fbase as usize, file_name(CStr::from_ptr(info.dli_fname))))
    }
}

/// What `name` is by a handle of dlopen, or one of dlsym's own.
fn symbol(handle: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym takes a C string and returns null where nothing has that name.
    let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}

/// Of an object that is there already. It is kept for good, which keeps the object loaded while functions of it
/// may be called.
fn handle_of(path: &CStr) -> Option<*mut c_void> {
    // SAFETY: RTLD_NOLOAD only looks.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    (!handle.is_null()).then_some(handle)
}
