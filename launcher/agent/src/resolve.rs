//! Finding the real MPI functions at run time.

use pmmpi::mpi_library::is_mpi_library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
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
            None => Some(loaded_mpi_libraries().iter().find_map(|path| {
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
    symbol(libc::RTLD_DEFAULT, name).or_else(|| loaded_mpi_libraries().iter().find_map(in_library))
}

/// The name of the file that a function lies in, without its folder.
pub fn file_name_of(function: *mut c_void) -> Option<String> {
    // SAFETY: an all-zero Dl_info is valid, dladdr takes any address, and gives the loader's own name of the
    // object, a C string, where there is one.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let is_known = libc::dladdr(function, &mut info) != 0 && !info.dli_fname.is_null();
        is_known.then(|| file_name(CStr::from_ptr(info.dli_fname)))
    }
}

fn file_name(path: &CStr) -> String {
    let bytes = path.to_bytes();
    let name = bytes.rsplit(|b| *b == b'/').next().unwrap_or(bytes);
    String::from_utf8_lossy(name).into_owned()
}

/// True if an MPI library is among this process's objects.
pub fn mpi_is_loaded() -> bool {
    !loaded_mpi_libraries().is_empty()
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

fn loaded_mpi_libraries() -> Vec<CString> {
    let mut paths: Vec<CString> = Vec::new();
    // SAFETY: the callback gets the vector's address back and runs only during this call.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut paths).cast()) };
    paths
}

unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, paths: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid info, and `paths` is the vector of `loaded_mpi_libraries`.
    let (name, paths) = unsafe { ((*info).dlpi_name as *const c_char, &mut *paths.cast::<Vec<CString>>()) };
    if !name.is_null() {
        // SAFETY: a name that is not null is a C string.
        let path = unsafe { CStr::from_ptr(name) };
        if is_mpi_library(&file_name(path)) {
            paths.push(path.to_owned());
        }
    }
    0
}
