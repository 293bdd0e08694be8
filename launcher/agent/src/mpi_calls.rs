//! The few MPI calls that a measurement needs, without the headers of an MPI library.

use crate::mpi_handles::{Handles, MpiHandle};
use crate::rank_tree;
use crate::resolve;
use pmmpi::transport::backoff::Backoff;
use pmmpi::transport::end_barrier::{self, Exchange};
use pmmpi::transport::fabric::{Fabric, FabricError, Wait, mpi_counts};
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::time::Duration;

/// Larger than any MPI's MPI_Status (Open MPI: 24 bytes, MPICH: 20, the standard ABI: 32).
type Status = [u64; 16];
/// MPICH allows the longest version string, 8192 bytes.
const VERSION_BYTES: usize = 8192;

type GetLibraryVersion = unsafe extern "C" fn(*mut u8, *mut c_int) -> c_int;
type CommSplit = unsafe extern "C" fn(MpiHandle, c_int, c_int, *mut MpiHandle) -> c_int;
type CommDup = unsafe extern "C" fn(MpiHandle, *mut MpiHandle) -> c_int;
type CommFree = unsafe extern "C" fn(*mut MpiHandle) -> c_int;
type CommSetErrhandler = unsafe extern "C" fn(MpiHandle, MpiHandle) -> c_int;
type CommInt = unsafe extern "C" fn(MpiHandle, *mut c_int) -> c_int;
type QueryThread = unsafe extern "C" fn(*mut c_int) -> c_int;
type Ibarrier = unsafe extern "C" fn(MpiHandle, *mut MpiHandle) -> c_int;
type Gather = unsafe extern "C" fn(
    *const c_void,
    c_int,
    MpiHandle,
    *mut c_void,
    c_int,
    MpiHandle,
    c_int,
    MpiHandle,
) -> c_int;
type Gatherv = unsafe extern "C" fn(
    *const c_void,
    c_int,
    MpiHandle,
    *mut c_void,
    *const c_int,
    *const c_int,
    MpiHandle,
    c_int,
    MpiHandle,
) -> c_int;
type Barrier = unsafe extern "C" fn(MpiHandle) -> c_int;
type Bcast = unsafe extern "C" fn(*mut c_void, c_int, MpiHandle, c_int, MpiHandle) -> c_int;
type Test = unsafe extern "C" fn(*mut MpiHandle, *mut c_int, *mut Status) -> c_int;
type Isend =
    unsafe extern "C" fn(*const c_void, c_int, MpiHandle, c_int, c_int, MpiHandle, *mut MpiHandle) -> c_int;
type Irecv =
    unsafe extern "C" fn(*mut c_void, c_int, MpiHandle, c_int, c_int, MpiHandle, *mut MpiHandle) -> c_int;

/// An MPI library in this process: its functions and the handles of its family.
pub struct MpiLibrary {
    /// First line of MPI_Get_library_version's text.
    pub version: String,
    handles: Handles,
    comm_split: CommSplit,
    comm_dup: CommDup,
    comm_free: CommFree,
    comm_set_errhandler: CommSetErrhandler,
    comm_rank: CommInt,
    comm_size: CommInt,
    query_thread: QueryThread,
    barrier: Barrier,
    bcast: Bcast,
    gather: Gather,
    gatherv: Gatherv,
    ibarrier: Ibarrier,
    test: Test,
    isend: Isend,
    irecv: Irecv,
}

/// The PMPI_ function `$name`. pmmpi does not call MPI_ functions, because another tool would count pmmpi's messages as
/// the program's.
macro_rules! pmpi {
    ($name:literal as $type:ty) => {{
        let function = resolve::next($name)?;
        // SAFETY: the function of this name has this type in every MPI library.
        unsafe { transmute::<*mut c_void, $type>(function) }
    }};
}

impl MpiLibrary {
    /// The library that the program uses; `None` if its functions or its handles are unknown.
    pub fn find() -> Option<Self> {
        let version = version()?;
        Some(Self {
            handles: Handles::of(&version)?,
            version: version.lines().next().unwrap_or_default().trim().to_owned(),
            comm_split: pmpi!(c"PMPI_Comm_split" as CommSplit),
            comm_dup: pmpi!(c"PMPI_Comm_dup" as CommDup),
            comm_free: pmpi!(c"PMPI_Comm_free" as CommFree),
            comm_set_errhandler: pmpi!(c"PMPI_Comm_set_errhandler" as CommSetErrhandler),
            comm_rank: pmpi!(c"PMPI_Comm_rank" as CommInt),
            comm_size: pmpi!(c"PMPI_Comm_size" as CommInt),
            query_thread: pmpi!(c"PMPI_Query_thread" as QueryThread),
            barrier: pmpi!(c"PMPI_Barrier" as Barrier),
            bcast: pmpi!(c"PMPI_Bcast" as Bcast),
            gather: pmpi!(c"PMPI_Gather" as Gather),
            gatherv: pmpi!(c"PMPI_Gatherv" as Gatherv),
            ibarrier: pmpi!(c"PMPI_Ibarrier" as Ibarrier),
            test: pmpi!(c"PMPI_Test" as Test),
            isend: pmpi!(c"PMPI_Isend" as Isend),
            irecv: pmpi!(c"PMPI_Irecv" as Irecv),
        })
    }
}

fn version() -> Option<String> {
    let get = pmpi!(c"PMPI_Get_library_version" as GetLibraryVersion);
    let mut text = vec![0u8; VERSION_BYTES + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is at least as long as every MPI library's MPI_MAX_LIBRARY_VERSION_STRING.
    let code = unsafe { get(text.as_mut_ptr(), &mut length) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    (code == 0).then(|| text.to_string_lossy().into_owned())
}

/// All ranks of MPI_COMM_WORLD.
pub struct AgentWorld {
    library: MpiLibrary,
    comm: MpiHandle,
    rank: u32,
    size: u32,
    way: Way,
    /// Communicator for the end barrier, if MPI's own barrier is not tight.
    apart: Option<MpiHandle>,
    /// Requests of the end barrier's messages that may be incomplete.
    sent: Vec<MpiHandle>,
    late: Option<Late>,
}

/// How ranks communicate. A communicator of pmmpi's own costs more than everything else, because MPI agrees on its
/// context in several rounds. So pmmpi makes one only if it is necessary: for pings after the work, and for the end
/// barrier if MPI's own barrier is not tight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Messages on MPI_COMM_WORLD itself, along one tree. This is safe up to the first barrier, because the program has
    /// no open messages yet, unless other threads may call MPI. With a tree, P ranks pay the cost of a first message
    /// between two ranks P - 1 times, not P log P times.
    Fresh,
    /// MPI's collective functions on MPI_COMM_WORLD, but no messages between two ranks: a program may leave receives
    /// and messages open up to its end and longer, but no collective function.
    Shared,
    /// Collective functions and messages on a communicator of pmmpi's own.
    Own,
}

/// The complaint of a rank that waits long for others; it comes once.
struct Late {
    since: Duration,
    complain: Box<dyn FnMut() + Send>,
    said: bool,
}

fn check(call: &'static str, code: c_int) -> Result<(), FabricError> {
    if code == 0 { Ok(()) } else { Err(FabricError { call, code }) }
}

impl AgentWorld {
    /// The ranks of MPI_COMM_WORLD in `library`.
    pub fn new(library: MpiLibrary) -> Result<Self, FabricError> {
        let comm = library.handles.comm_world;
        let (mut rank, mut size): (c_int, c_int) = (0, 0);
        // SAFETY: MPI is initialised, and the pointers are to locals.
        unsafe {
            check("MPI_Comm_rank", (library.comm_rank)(comm, &mut rank))?;
            check("MPI_Comm_size", (library.comm_size)(comm, &mut size))?;
        }
        let (rank, size) = (rank as u32, size as u32);
        let mut level: c_int = 0;
        // SAFETY: as above.
        check("MPI_Query_thread", unsafe { (library.query_thread)(&mut level) })?;
        // With MPI_THREAD_MULTIPLE, another thread may already have open receives.
        let way = if level == library.handles.thread_multiple { Way::Shared } else { Way::Fresh };
        Ok(Self { library, comm, rank, size, way, apart: None, sent: Vec::new(), late: None })
    }

    /// Waits for every rank, if the next step would wait without a complaint.
    pub fn await_all(&mut self) -> Result<(), FabricError> {
        match self.way {
            Way::Fresh => Ok(()),
            Way::Shared | Way::Own => self.barrier(Wait::Eager, &mut || ()),
        }
    }

    /// Calls `complain` once when this rank has waited for others for the time `since`.
    pub fn when_late(&mut self, since: Duration, complain: impl FnMut() + Send + 'static) {
        self.late = Some(Late { since, complain: Box::new(complain), said: false });
    }

    /// Cancels [`AgentWorld::when_late`].
    pub fn never_mind(&mut self) {
        self.late = None;
    }

    /// Waits for a request without blocking in MPI. Calls `meanwhile` once if that takes long.
    ///
    /// # Safety
    /// The buffer of the request must be alive.
    unsafe fn complete(
        &mut self,
        request: &mut MpiHandle,
        backoff: &mut Backoff,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), FabricError> {
        let mut late = self.late.as_mut().filter(|late| !late.said);
        loop {
            let mut done: c_int = 0;
            let mut status: Status = [0; 16];
            // SAFETY: the caller keeps the buffer alive; the status is larger than that of any MPI library.
            check("MPI_Test", unsafe { (self.library.test)(request, &mut done, &mut status) })?;
            if done != 0 {
                return Ok(());
            }
            if let Some(late) = late.take_if(|late| backoff.waited() > late.since) {
                late.said = true;
                (late.complain)();
            }
            if backoff.pause() {
                meanwhile();
            }
        }
    }

    /// The message must live until the request is complete. (After an MPI error it may not, but then the job ends, or
    /// pmmpi stops its work in it.)
    fn begin_send(&mut self, to: u32, message: &[u8]) -> Result<MpiHandle, FabricError> {
        let (count, byte, to) = (int(message.len())?, self.library.handles.byte, to as c_int);
        let mut request: MpiHandle = 0;
        // SAFETY: the count is the length of the message.
        let code = unsafe {
            (self.library.isend)(message.as_ptr().cast(), count, byte, to, TAG, self.comm, &mut request)
        };
        check("MPI_Isend", code).map(|()| request)
    }

    /// Lets pmmpi report errors of its own messages; otherwise MPI would end the job.
    fn return_errors(&self, comm: MpiHandle) -> Result<(), FabricError> {
        let errors_return = self.library.handles.errors_return;
        // SAFETY: both handles belong to this library.
        let code = unsafe { (self.library.comm_set_errhandler)(comm, errors_return) };
        check("MPI_Comm_set_errhandler", code)
    }

    /// Sends rank 0's bytes down the tree.
    fn down(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        if let Some(parent) = rank_tree::parent(self.rank) {
            self.receive(parent, bytes)?;
        }
        // Start all sends before the first wait, so that the costs of first messages overlap.
        let children = rank_tree::children(self.rank, self.size).rev();
        let requests = children.map(|child| self.begin_send(child, bytes)).collect::<Result<Vec<_>, _>>()?;
        requests.into_iter().try_for_each(|mut request| {
            // SAFETY: the bytes live until all requests are complete.
            unsafe { self.complete(&mut request, &mut Backoff::new(Wait::Eager), &mut || ()) }
        })
    }

    /// Sends messages up the same tree: rank 0 returns after all ranks have called this.
    fn up(&mut self) -> Result<(), FabricError> {
        rank_tree::children(self.rank, self.size).try_for_each(|child| self.receive(child, &mut [0]))?;
        rank_tree::parent(self.rank).map_or(Ok(()), |parent| self.send(parent, &[0]))
    }
}

impl AgentWorld {
    /// MPI's own barrier.
    fn ibarrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        let mut request: MpiHandle = 0;
        // SAFETY: `request` lives until the test that completes it.
        unsafe {
            check("MPI_Ibarrier", (self.library.ibarrier)(self.comm, &mut request))?;
            self.complete(&mut request, &mut Backoff::new(wait), meanwhile)
        }
    }

    /// The barrier of [`end_barrier`], on the communicator `comm`.
    fn end_barrier(
        &mut self,
        comm: MpiHandle,
        wait: Wait,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<(), FabricError> {
        let levels: Vec<Exchange> = end_barrier::levels(self.rank, self.size).collect();
        let rest: Vec<Exchange> = end_barrier::rest(self.rank, self.size).collect();
        let mut heard = self.hear(comm, LEVEL, &levels)?;
        let mut rest_heard = self.hear(comm, REST, &rest)?;
        let mut backoff = Backoff::new(wait);
        for (level, request) in levels.iter().zip(&mut heard) {
            self.say(comm, LEVEL, level)?;
            if let Some(also) = rest.iter().find(|also| also.level == level.level) {
                self.say(comm, REST, also)?;
            }
            // SAFETY: the message has no bytes.
            unsafe { self.complete(request, &mut backoff, meanwhile)? };
        }
        // SAFETY: as above.
        rest_heard
            .iter_mut()
            .try_for_each(|request| unsafe { self.complete(request, &mut backoff, meanwhile) })
    }

    /// Starts receives of messages without bytes, one per exchange.
    fn hear(
        &self,
        comm: MpiHandle,
        kind: c_int,
        exchanges: &[Exchange],
    ) -> Result<Vec<MpiHandle>, FabricError> {
        let byte = self.library.handles.byte;
        let receive = |exchange: &Exchange| {
            let (from, tag) = (exchange.from as c_int, tag(kind, exchange));
            let mut request: MpiHandle = 0;
            // SAFETY: the message has no bytes; the caller completes the request.
            let code =
                unsafe { (self.library.irecv)(std::ptr::null_mut(), 0, byte, from, tag, comm, &mut request) };
            check("MPI_Irecv", code).map(|()| request)
        };
        exchanges.iter().map(receive).collect()
    }

    /// Sends a message without bytes. Drop completes its request, so that this rank does not wait here.
    fn say(&mut self, comm: MpiHandle, kind: c_int, exchange: &Exchange) -> Result<(), FabricError> {
        let (to, tag) = (exchange.to as c_int, tag(kind, exchange));
        let mut request: MpiHandle = 0;
        // SAFETY: the message has no bytes.
        let code = unsafe {
            (self.library.isend)(std::ptr::null(), 0, self.library.handles.byte, to, tag, comm, &mut request)
        };
        check("MPI_Isend", code).map(|()| self.sent.push(request))
    }
}

/// Lowest tags of the end barrier's messages: for a level and for the rest. [`TAG`] is below both.
const LEVEL: c_int = 2;
const REST: c_int = 3;

fn tag(kind: c_int, exchange: &Exchange) -> c_int {
    kind + 2 * exchange.level as c_int
}

impl Drop for AgentWorld {
    fn drop(&mut self) {
        for mut request in std::mem::take(&mut self.sent) {
            // SAFETY: the message has no bytes. All ranks have left its barrier, or MPI failed.
            let _ = unsafe { self.complete(&mut request, &mut Backoff::new(Wait::Eager), &mut || ()) };
        }
        let own = (self.way == Way::Own).then_some(self.comm);
        for mut comm in own.into_iter().chain(self.apart.take()) {
            // SAFETY: this value owns the communicator, and MPI is not finalised yet. Ignore an error, because
            // MPI_Finalize comes next.
            unsafe { (self.library.comm_free)(&mut comm) };
        }
    }
}

impl Fabric for AgentWorld {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        if self.way == Way::Fresh {
            let passed = self.up().and_then(|()| self.down(&mut [0]));
            self.way = Way::Shared; // the program begins, even after an error
            return passed;
        }
        if let (Wait::Patient, Some(comm)) = (wait, self.apart) {
            return self.end_barrier(comm, wait, meanwhile);
        }
        self.ibarrier(wait, meanwhile)
    }

    fn meet(&mut self) -> Result<(), FabricError> {
        // SAFETY: the communicator is alive.
        check("MPI_Barrier", unsafe { (self.library.barrier)(self.comm) })
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        if self.way == Way::Fresh {
            return self.down(bytes);
        }
        let (count, byte) = (int(bytes.len())?, self.library.handles.byte);
        // SAFETY: the count is the length of the buffer.
        let code = unsafe { (self.library.bcast)(bytes.as_mut_ptr().cast(), count, byte, 0, self.comm) };
        check("MPI_Bcast", code)
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
        if self.way == Way::Fresh {
            // This step can complain about missing ranks; MPI_Gather cannot.
            self.up()?;
        }
        let (count, byte) = (int(own.len())?, self.library.handles.byte);
        let ranks = if self.rank == 0 { self.size as usize } else { 0 };
        let mut all = vec![0u8; ranks * own.len()];
        let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: the counts are the lengths of the buffers; on rank 0, one length per rank.
        let code = unsafe { (self.library.gather)(from, count, byte, to, count, byte, 0, self.comm) };
        check("MPI_Gather", code).map(|()| all)
    }

    fn gather_varying(&mut self, own: &[u8], counts: &[usize]) -> Result<Vec<u8>, FabricError> {
        let (count, byte) = (int(own.len())?, self.library.handles.byte);
        let (counts, starts, total) = mpi_counts(counts)?;
        let mut all = vec![0u8; total];
        let (from, to) = (own.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: the counts are the lengths of the buffers. Only rank 0 reads counts and starts; there they have an
        // element per rank.
        let code = unsafe {
            let (counts, starts) = (counts.as_ptr(), starts.as_ptr());
            (self.library.gatherv)(from, count, byte, to, counts, starts, byte, 0, self.comm)
        };
        check("MPI_Gatherv", code).map(|()| all)
    }

    fn isolate(&mut self) -> Result<(), FabricError> {
        if self.way == Way::Own {
            return Ok(());
        }
        let comm = match self.apart.take() {
            Some(comm) => comm,
            None => {
                let mut comm: MpiHandle = 0;
                // SAFETY: the pointer is to a local. This is a split because a duplicate would call the program's
                // copy functions of its attributes.
                let code = unsafe { (self.library.comm_split)(self.comm, 0, self.rank as c_int, &mut comm) };
                check("MPI_Comm_split", code)?;
                self.return_errors(comm)?;
                comm
            }
        };
        (self.comm, self.way) = (comm, Way::Own);
        Ok(())
    }

    fn prepare_end(&mut self) -> Result<(), FabricError> {
        // MPI's own functions would wait without a message for missing ranks, and could match another call of theirs.
        if self.way == Way::Fresh {
            self.up()?;
            self.down(&mut [0])?;
        }
        // A first message between two ranks waits until both have set up their connection. At the end, one of them
        // sleeps. So pass the end barrier once now.
        if end_barrier::is_tight_already(self.size) {
            return self.ibarrier(Wait::Eager, &mut || ());
        }
        let mut comm: MpiHandle = 0;
        // SAFETY: the pointer is to a local. A duplicate is cheaper than a split; the program has no attributes yet.
        check("MPI_Comm_dup", unsafe { (self.library.comm_dup)(self.comm, &mut comm) })?;
        self.apart = Some(comm);
        self.return_errors(comm)?;
        self.end_barrier(comm, Wait::Eager, &mut || ())
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        let mut request = self.begin_send(to, message)?;
        // SAFETY: the message lives until the request is complete.
        unsafe { self.complete(&mut request, &mut Backoff::new(Wait::Eager), &mut || ()) }
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        let count = int(buffer.len())?;
        let (byte, from) = (self.library.handles.byte, from as c_int);
        let mut request: MpiHandle = 0;
        // SAFETY: the buffer lives until the request is complete.
        unsafe {
            let buffer = buffer.as_mut_ptr().cast();
            check(
                "MPI_Irecv",
                (self.library.irecv)(buffer, count, byte, from, TAG, self.comm, &mut request),
            )?;
            self.complete(&mut request, &mut Backoff::new(Wait::Eager), &mut || ())
        }
    }
}

/// The tag of all messages except those of the end barrier.
const TAG: c_int = 1;

fn int(count: usize) -> Result<c_int, FabricError> {
    c_int::try_from(count).map_err(|_| FabricError { call: "the conversion of a message length", code: -1 })
}
