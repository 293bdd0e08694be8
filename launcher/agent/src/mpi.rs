//! The few MPI calls that a measurement needs, without any MPI's headers.

use crate::handles::{Handle, Handles};
use crate::resolve;
use pmmpi::fabric::{Backoff, Fabric, FabricError, Wait};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::time::{Duration, Instant};

/// Larger than any MPI's MPI_Status (Open MPI: 24 bytes, MPICH: 20, the standard ABI: 32).
type Status = [u64; 16];
/// MPICH allows the longest version string, 8192 bytes.
const VERSION_BYTES: usize = 8192;

type GetLibraryVersion = unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int;
type CommSplit = unsafe extern "C" fn(Handle, c_int, c_int, *mut Handle) -> c_int;
type CommFree = unsafe extern "C" fn(*mut Handle) -> c_int;
type CommSetErrhandler = unsafe extern "C" fn(Handle, Handle) -> c_int;
type CommInt = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Ibarrier = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut Status) -> c_int;
type Isend = unsafe extern "C" fn(*const c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Irecv = unsafe extern "C" fn(*mut c_void, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;

/// An MPI library in this process: its functions and the handles of its family.
pub struct Library {
    /// First line of what MPI_Get_library_version says.
    pub version: String,
    handles: Handles,
    comm_split: CommSplit,
    comm_free: CommFree,
    comm_set_errhandler: CommSetErrhandler,
    comm_rank: CommInt,
    comm_size: CommInt,
    ibarrier: Ibarrier,
    test: Test,
    isend: Isend,
    irecv: Irecv,
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
            comm_split: pmpi!(c"PMPI_Comm_split" as CommSplit),
            comm_free: pmpi!(c"PMPI_Comm_free" as CommFree),
            comm_set_errhandler: pmpi!(c"PMPI_Comm_set_errhandler" as CommSetErrhandler),
            comm_rank: pmpi!(c"PMPI_Comm_rank" as CommInt),
            comm_size: pmpi!(c"PMPI_Comm_size" as CommInt),
            ibarrier: pmpi!(c"PMPI_Ibarrier" as Ibarrier),
            test: pmpi!(c"PMPI_Test" as Test),
            isend: pmpi!(c"PMPI_Isend" as Isend),
            irecv: pmpi!(c"PMPI_Irecv" as Irecv),
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

/// All ranks.
///
/// Right after MPI_Init nothing of the program's is under way, and MPI_COMM_WORLD itself serves: one of the
/// tool's own costs more than all the rest (MPI agrees on its context in several rounds). Later there is one: in regions, and
/// after t3 for the gather, since a program may leave receives and messages open to its end and beyond.
pub struct World {
    library: Library,
    comm: Handle,
    rank: u32,
    size: u32,
    is_own: bool,
    late: Option<Late>,
}

/// What is said once, where a rank waits long for others.
struct Late {
    since: Duration,
    complain: Box<dyn FnMut() + Send>,
    said: bool,
}

fn check(call: &'static str, code: c_int) -> Result<(), FabricError> {
    if code == 0 { Ok(()) } else { Err(FabricError { call, code }) }
}

impl World {
    /// The ranks of `library`.
    pub fn new(library: Library) -> Result<Self, FabricError> {
        let comm = library.handles.comm_world;
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: MPI is initialised, and both pointers are to locals.
        unsafe {
            check("MPI_Comm_rank", (library.comm_rank)(comm, &mut rank))?;
            check("MPI_Comm_size", (library.comm_size)(comm, &mut size))?;
        }
        let (rank, size) = (rank as u32, size as u32);
        Ok(Self { library, comm, rank, size, is_own: false, late: None })
    }

    /// Calls `complain` once, where other ranks have not come for `since` to where this one waits eagerly.
    pub fn when_late(&mut self, since: Duration, complain: impl FnMut() + Send + 'static) {
        self.late = Some(Late { since, complain: Box::new(complain), said: false });
    }

    /// Not any more.
    pub fn never_mind(&mut self) {
        self.late = None;
    }

    /// Waits for a request that others have to come for.
    ///
    /// # Safety
    /// What the request was started with must be alive.
    unsafe fn meet(
        &mut self,
        request: &mut Handle,
        wait: Wait,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), FabricError> {
        let begin = Instant::now();
        let mut late = self.late.as_mut().filter(|late| wait == Wait::Eager && !late.said);
        let look = || {
            if let Some(late) = late.take_if(|late| begin.elapsed() > late.since) {
                late.said = true;
                (late.complain)();
            }
        };
        // SAFETY: as the caller says.
        unsafe { self.library.complete(request, wait, meanwhile, look) }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.is_own {
            // SAFETY: the communicator is this value's own, and MPI is not finalised yet. Nothing is left to
            // do about an error: MPI_Finalize comes next.
            unsafe { (self.library.comm_free)(&mut self.comm) };
        }
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
            self.meet(&mut request, wait, meanwhile)
        }
    }

    fn isolate(&mut self) -> Result<(), FabricError> {
        if self.is_own {
            return Ok(());
        }
        let mut comm: Handle = 0;
        // SAFETY: the pointer is to a local. A split, not a duplicate: that would call the program's own
        // functions for its attributes.
        unsafe {
            let code = (self.library.comm_split)(self.comm, 0, self.rank as c_int, &mut comm);
            check("MPI_Comm_split", code)?;
            // An error in the tool's own traffic is the tool's to report, not the job's to die of.
            let errors_return = self.library.handles.errors_return;
            check("MPI_Comm_set_errhandler", (self.library.comm_set_errhandler)(comm, errors_return))?;
        }
        (self.comm, self.is_own) = (comm, true);
        Ok(())
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        let count = c_int::try_from(message.len()).map_err(|_| TOO_LARGE)?;
        let (byte, to) = (self.library.handles.byte, to as c_int);
        let mut request: Handle = 0;
        // SAFETY: the message lives until the request is complete.
        unsafe {
            let message = message.as_ptr().cast();
            check("MPI_Isend", (self.library.isend)(message, count, byte, to, TAG, self.comm, &mut request))?;
            self.library.complete(&mut request, Wait::Eager, &mut || (), || ())
        }
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        let count = c_int::try_from(buffer.len()).map_err(|_| TOO_LARGE)?;
        let (byte, from) = (self.library.handles.byte, from as c_int);
        let mut request: Handle = 0;
        // SAFETY: the buffer lives until the request is complete.
        unsafe {
            let buffer = buffer.as_mut_ptr().cast();
            check(
                "MPI_Irecv",
                (self.library.irecv)(buffer, count, byte, from, TAG, self.comm, &mut request),
            )?;
            self.meet(&mut request, Wait::Eager, &mut || ())
        }
    }
}

/// Of all messages.
const TAG: c_int = 1;

/// More than an int can count.
const TOO_LARGE: FabricError = FabricError { call: "a message's length", code: -1 };
