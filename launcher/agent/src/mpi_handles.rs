//! The few predefined handles that a measurement needs, for each family of MPI libraries.
//!
//! The agent passes a handle in a whole register. Handles of Open MPI and of the standard ABI are pointers; handles
//! of MPICH are ints. A function that expects an int reads the low half (System V x86-64 ABI, AAPCS64). A function
//! that stores an int handle writes the low half of a zeroed word, because this code builds for little-endian
//! machines only.

use crate::resolve;
use pmmpi::transport::mpi_family::MpiFamily;
use std::ffi::{CString, c_int, c_void};
use std::mem::transmute;

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("handles are passed as 64-bit little-endian words");

pub type MpiHandle = usize;

pub struct Handles {
    pub comm_world: MpiHandle,
    pub byte: MpiHandle,
    pub errors_return: MpiHandle,
    pub thread_multiple: c_int,
}

impl Handles {
    /// For the library with this version text; `None` if its family is unknown.
    pub fn of(version: &str) -> Option<Self> {
        let function = resolve::next(c"PMPI_Get_library_version")?;
        let file = resolve::file_name_of(function).unwrap_or_default();
        match MpiFamily::of(|name| is_defined_beside(function, name), version, abi_major(), &file)? {
            // Predefined handles are the addresses of these objects (Open MPI's mpi.h).
            MpiFamily::OpenMpi => Some(Self {
                comm_world: resolve::object(c"ompi_mpi_comm_world")? as MpiHandle,
                byte: resolve::object(c"ompi_mpi_byte")? as MpiHandle,
                errors_return: resolve::object(c"ompi_mpi_errors_return")? as MpiHandle,
                thread_multiple: 3,
            }),
            // From MPICH's mpi.h.
            MpiFamily::Mpich => Some(Self {
                comm_world: 0x4400_0000,
                byte: 0x4c00_010d,
                errors_return: 0x5400_0001,
                thread_multiple: 3,
            }),
            // From MPI 5.0, annex "Defined Constants", and mpi.h of the MPI Forum's mpi-abi-stubs 1.0.0.
            MpiFamily::StandardAbi => {
                Some(Self { comm_world: 0x101, byte: 0x247, errors_return: 0x143, thread_multiple: 4096 })
            }
        }
    }
}

/// True if the library that contains `function`, or a library that it needs, defines this name. The process may also
/// have another MPI library.
fn is_defined_beside(function: *mut c_void, name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: an all-zero Dl_info is valid. dladdr accepts any address; the name that it gives is a C string of the
    // loader, or null. RTLD_NOLOAD loads nothing; the handle is never closed, so the object stays loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function, &mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        let library = libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        // No handle means the program itself: the loader may know it by another name.
        let library = if library.is_null() { libc::RTLD_DEFAULT } else { library };
        !libc::dlsym(library, name.as_ptr()).is_null()
    }
}

type AbiGetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

/// The major version from MPI_Abi_get_version; `None` if the function does not exist (before MPI 5.0).
fn abi_major() -> Option<i32> {
    let function = resolve::next(c"PMPI_Abi_get_version")?;
    // SAFETY: the function of this name has this type in every MPI library; MPI allows the call at any time.
    let get = unsafe { transmute::<*mut c_void, AbiGetVersion>(function) };
    let (mut major, mut minor): (c_int, c_int) = (-1, -1);
    // SAFETY: both pointers are to locals.
    let code = unsafe { get(&mut major, &mut minor) };
    (code == 0).then_some(major)
}
