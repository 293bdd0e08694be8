//! The few MPI calls that a measurement needs, without any MPI's headers.
//!
//! A handle is passed in a whole register: Open MPI's are pointers, MPICH's are ints, and a callee that
//! wants an int reads the low half (System V x86-64 ABI, AAPCS64). A callee that stores an int handle
//! writes the low half of a zeroed word, on the little-endian machines that this is built for.

use crate::resolve;
use pmmpi::fabric::{Backoff, Broadcast, Fabric, FabricError, Wait};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::time::{Duration, Instant};

#[cfg(not(all(target_pointer_width = "64", target_endian = "little")))]
compile_error!("handles are passed as 64-bit little-endian words");

type Handle = usize;
/// Larger than any MPI's MPI_Status (Open MPI: 24 bytes, MPICH: 20; the MPI-5 ABI: 32).
type Status = [u64; 16];
/// MPICH allows the longest version string, 8192 bytes.
const VERSION_BYTES: usize = 8192;

type GetLibraryVersion = unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int;
type CommIdup = unsafe extern "C" fn(Handle, *mut Handle, *mut Handle) -> c_int;
type CommFree = unsafe extern "C" fn(*mut Handle) -> c_int;
type CommSetErrhandler = unsafe extern "C" fn(Handle, Handle) -> c_int;
type CommInt = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Ibarrier = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut Status) -> c_int;
type Gather =
    unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, c_int, Handle) -> c_int;
type Gatherv = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    *const c_int,
    *const c_int,
    Handle,
    c_int,
    Handle,
) -> c_int;

type Bcast = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, Handle) -> c_int;

/// An MPI library in this process: its functions and the handles of its family.
pub struct Library {
    /// First line of what MPI_Get_library_version says.
    pub version: String,
    handles: Handles,
    comm_idup: CommIdup,
    comm_free: CommFree,
    comm_set_errhandler: CommSetErrhandler,
    comm_rank: CommInt,
    comm_size: CommInt,
    ibarrier: Ibarrier,
    test: Test,
    gather: Gather,
    gatherv: Gatherv,
    bcast: Bcast,
}

struct Handles {
    comm_world: Handle,
    byte: Handle,
    errors_return: Handle,
}

impl Handles {
    /// By what the library says of itself; `None` for a family that is not known.
    fn of(version: &str) -> Option<Self> {
        if version.contains("Open MPI") {
            // Predefined handles are the addresses of these objects (Open MPI's mpi.h).
            return Some(Self {
                comm_world: resolve::object(c"ompi_mpi_comm_world")? as Handle,
                byte: resolve::object(c"ompi_mpi_byte")? as Handle,
                errors_return: resolve::object(c"ompi_mpi_errors_return")? as Handle,
            });
        }
        // MPICH and what is built from it share one ABI (MPICH ABI Compatibility Initiative) and these
        // constants of its mpi.h.
        let derived = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"];
        derived.iter().any(|name| version.contains(name)).then_some(Self {
            comm_world: 0x4400_0000,
            byte: 0x4c00_010d,
            errors_return: 0x5400_0001,
        })
    }
}

/// The PMPI_ function `$name`. Another tool's MPI_ functions are
/// passed by: the tool's own traffic is not the program's.
macro_rules! pmpi {
    ($name:literal as $type:ty) => {{
        let function = resolve::next($name)?;
        // SAFETY: a function of this name has this type in every MPI library.
        unsafe { transmute::<*mut c_void, $type>(function) }
    }};
}

impl Library {
    /// The library that the program uses, or `None` where its functions or its handles are unknown.
    pub fn find() -> Option<Self> {
        let version = version()?;
        Some(Self {
            handles: Handles::of(&version)?,
            version: version.lines().next().unwrap_or_default().trim().to_owned(),
            comm_idup: pmpi!(c"PMPI_Comm_idup" as CommIdup),
            comm_free: pmpi!(c"PMPI_Comm_free" as CommFree),
            comm_set_errhandler: pmpi!(c"PMPI_Comm_set_errhandler" as CommSetErrhandler),
            comm_rank: pmpi!(c"PMPI_Comm_rank" as CommInt),
            comm_size: pmpi!(c"PMPI_Comm_size" as CommInt),
            ibarrier: pmpi!(c"PMPI_Ibarrier" as Ibarrier),
            test: pmpi!(c"PMPI_Test" as Test),
            gather: pmpi!(c"PMPI_Gather" as Gather),
            gatherv: pmpi!(c"PMPI_Gatherv" as Gatherv),
            bcast: pmpi!(c"PMPI_Bcast" as Bcast),
        })
    }
}

impl Library {
    /// Waits for a request without blocking in MPI: `meanwhile` is called once if that takes long enough to
    /// give up the core, `look` between two looks.
    ///
    /// # Safety
    /// What the request was started with must be alive.
    unsafe fn complete(
        &self,
        request: &mut Handle,
        wait: Wait,
        meanwhile: &mut dyn FnMut(),
        mut look: impl FnMut(),
    ) -> Result<(), FabricError> {
        let mut backoff = Backoff::new(wait);
        loop {
            let mut done: c_int = 0;
            let mut status: Status = [0; 16];
            // SAFETY: as the caller says; the status is larger than any MPI's.
            check("MPI_Test", unsafe { (self.test)(request, &mut done, &mut status) })?;
            if done != 0 {
                return Ok(());
            }
            if backoff.begins_to_wait() {
                meanwhile();
            }
            look();
            backoff.pause();
        }
    }
}

fn version() -> Option<String> {
    let get = pmpi!(c"PMPI_Get_library_version" as GetLibraryVersion);
    let mut text = vec![0u8; VERSION_BYTES + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is as long as any MPI's MPI_MAX_LIBRARY_VERSION_STRING.
    let code = unsafe { get(text.as_mut_ptr(), &mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    (code == 0).then(|| text.to_string_lossy().into_owned())
}

/// A duplicate of MPI_COMM_WORLD for the tool's own traffic.
pub struct World {
    library: Library,
    comm: Handle,
    rank: u32,
    size: u32,
}

fn check(call: &'static str, code: c_int) -> Result<(), FabricError> {
    if code == 0 { Ok(()) } else { Err(FabricError { call, code }) }
}

impl World {
    /// Collective over all ranks. Where some are not there after `patience`, `complain` is called once.
    pub fn duplicate(
        library: Library,
        patience: Duration,
        mut complain: impl FnMut(),
    ) -> Result<Self, FabricError> {
        let (mut comm, mut request): (Handle, Handle) = (0, 0);
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: MPI is initialised, and every pointer is to a local that lives until the request is done.
        unsafe {
            let world = library.handles.comm_world;
            check("MPI_Comm_idup", (library.comm_idup)(world, &mut comm, &mut request))?;
            let deadline = Instant::now() + patience;
            let mut complained = false;
            library.complete(&mut request, Wait::Eager, &mut || (), || {
                if !complained && Instant::now() > deadline {
                    complained = true;
                    complain();
                }
            })?;
            // An error in the tool's own traffic is the tool's to report, not the job's to die of.
            check(
                "MPI_Comm_set_errhandler",
                (library.comm_set_errhandler)(comm, library.handles.errors_return),
            )?;
            check("MPI_Comm_rank", (library.comm_rank)(comm, &mut rank))?;
            check("MPI_Comm_size", (library.comm_size)(comm, &mut size))?;
        }
        Ok(Self { library, comm, rank: rank as u32, size: size as u32 })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: the communicator is this value's own, and MPI is not finalised yet. Nothing is left to
        // do about an error: MPI_Finalize comes next.
        unsafe { (self.library.comm_free)(&mut self.comm) };
    }
}

impl Fabric for World {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        let mut request: Handle = 0;
        // SAFETY: `request` lives until the test that completes it.
        unsafe {
            check("MPI_Ibarrier", (self.library.ibarrier)(self.comm, &mut request))?;
            self.library.complete(&mut request, wait, meanwhile, || ())
        }
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        let byte = self.library.handles.byte;
        let count = c_int::try_from(bytes.len()).map_err(|_| TOO_LARGE)?;
        let ranks = if self.rank == 0 { self.size as usize } else { 0 };
        let mut counts: Vec<c_int> = vec![0; ranks];
        let four = size_of::<c_int>() as c_int;
        // SAFETY: rank 0 receives one int from each rank into one int each.
        check("MPI_Gather", unsafe {
            let send = (&raw const count).cast();
            (self.library.gather)(send, four, byte, counts.as_mut_ptr().cast(), four, byte, 0, self.comm)
        })?;
        let mut starts: Vec<c_int> = Vec::with_capacity(ranks);
        let mut total: c_int = 0;
        for count in &counts {
            starts.push(total);
            total = total.checked_add(*count).ok_or(TOO_LARGE)?;
        }
        let mut all = vec![0u8; total as usize];
        // SAFETY: rank r's bytes go to starts[r] .. starts[r] + counts[r], within `all`.
        check("MPI_Gatherv", unsafe {
            let (send, receive) = (bytes.as_ptr().cast(), all.as_mut_ptr().cast());
            let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
            (self.library.gatherv)(send, count, byte, receive, counts, starts, byte, 0, self.comm)
        })?;
        let part = |(start, count): (&c_int, &c_int)| all[*start as usize..(start + count) as usize].to_vec();
        Ok((self.rank == 0).then(|| starts.iter().zip(&counts).map(part).collect()))
    }
}

impl Broadcast for World {
    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        let count = c_int::try_from(bytes.len()).map_err(|_| TOO_LARGE)?;
        let byte = self.library.handles.byte;
        // SAFETY: rank 0's bytes go into as many of this rank's.
        let code = unsafe { (self.library.bcast)(bytes.as_mut_ptr().cast(), count, byte, 0, self.comm) };
        check("MPI_Bcast", code)
    }
}

/// More than an int can count.
const TOO_LARGE: FabricError = FabricError { call: "MPI_Gatherv", code: -1 };
