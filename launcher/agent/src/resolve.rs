//! Finding the real MPI functions at run time.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// The function `name` that would have been called without the agent.
///
/// Normally the next one in the search order. A library that was opened with RTLD_LOCAL (Python's
/// mpi4py) is not in that order: it is found among the loaded objects and asked by its handle.
pub fn next(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: dlsym takes a C string and returns null where nothing has that name.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !function.is_null() {
        return Some(function);
    }
    loaded_mpi_libraries().iter().find_map(|path| in_library(path, name))
}

/// The data object `name` as the whole process sees it. Not the next one: a program that was not built
/// position-independent has its own copy of a library's object (a copy relocation), and the library
/// itself uses that copy.
pub fn object(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: as in `next`.
    let object = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if !object.is_null() {
        return Some(object);
    }
    loaded_mpi_libraries().iter().find_map(|path| in_library(path, name))
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

fn in_library(path: &CStr, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: RTLD_NOLOAD only looks for an object that is already there; its handle is kept for good,
    // which keeps the object loaded while functions of it may be called.
    let function = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if handle.is_null() { std::ptr::null_mut() } else { libc::dlsym(handle, name.as_ptr()) }
    };
    (!function.is_null()).then_some(function)
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
        if pmmpi::mpi_library::is_mpi_library(&file_name(path)) {
            paths.push(path.to_owned());
        }
    }
    0
}
