//! The few predefined handles that a measurement needs, in each family of MPI libraries.
//!
//! A handle is passed in a whole register: Open MPI's and the standard ABI's are pointers, MPICH's are ints,
//! and a callee that wants an int reads the low half (System V x86-64 ABI, AAPCS64). A callee that stores an
//! int handle writes the low half of a zeroed word, on the little-endian machines that this is built for.

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
    /// Of the library that says `version` of itself; `None` where its family is not known.
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
            // MPICH's mpi.h.
            MpiFamily::Mpich => Some(Self {
                comm_world: 0x4400_0000,
                byte: 0x4c00_010d,
                errors_return: 0x5400_0001,
                thread_multiple: 3,
            }),
            // MPI 5.0, "Defined Constants" in the annex; mpi.h of the MPI Forum's mpi-abi-stubs 1.0.0.
            MpiFamily::StandardAbi => {
                Some(Self { comm_world: 0x101, byte: 0x247, errors_return: 0x143, thread_multiple: 4096 })
            }
        }
    }
}

/// True where the library that `function` lies in, or one that it needs, defines this name. Another MPI library may be
/// in the process.
fn is_defined_beside(function: *mut c_void, name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: an all-zero Dl_info is valid, dladdr takes any address, and gives the loader's own name of the object, a C
    // string, where there is one. RTLD_NOLOAD only looks; the handle is kept for good, as the object is.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function, &mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        let library = libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        // The program itself, which the loader may know by another name.
        let library = if library.is_null() { libc::RTLD_DEFAULT } else { library };
        !libc::dlsym(library, name.as_ptr()).is_null()
    }
}

type AbiGetVersion = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

/// The major version that MPI_Abi_get_version gives; `None` where there is no such function (before MPI 5.0).
fn abi_major() -> Option<i32> {
    let function = resolve::next(c"PMPI_Abi_get_version")?;
    // SAFETY: a function of this name has this type in every MPI library, and may be called at any time.
    let get = unsafe { transmute::<*mut c_void, AbiGetVersion>(function) };
    let (mut major, mut minor): (c_int, c_int) = (-1, -1);
    // SAFETY: both pointers are to locals.
    let code = unsafe { get(&mut major, &mut minor) };
    (code == 0).then_some(major)
}
