//! Measures an rsmpi program from its own code (feature `mpi`).
//!
//! An MPI error ends the whole job (MPI_ERRORS_ARE_FATAL).

use crate::clock;
use crate::counters::core_pmus::default_groups;
use crate::counters::counter_table::CounterTable;
use crate::counters::open_counters::OpenCounters;
use crate::counters::perf_event_open::{Counters, Target};
use crate::node::{HealthReading, NodeFacts, NodeKey, Watched};
use crate::record::wire::{self, WireError};
use crate::record::{End, HostPart, Mode, Run, RunHeader};
use crate::session::launcher_request::SharedRequest;
use crate::session::live_record::LiveRecord;
use crate::session::live_regions::RegionTable;
use crate::session::{self, Beginning, OfNode, RankMemory, Work};
use crate::transport::backoff::Backoff;
use crate::transport::end_barrier::{self, Exchange};
use crate::transport::fabric::{Channel, Divisible, Fabric, FabricError, Pairwise, Wait, mpi_counts};
use crate::transport::node_meeting::Meeting;
use crate::transport::ping_exchange::Leaders;
use mpi::datatype::PartitionMut;
use mpi::request::{Request, StaticScope};
use mpi::topology::{Color, SimpleCommunicator};
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Root, Source};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A message that may still be under way.
type Pending = Request<'static, [u8], StaticScope>;

/// A duplicate of a communicator.
pub struct World {
    /// True after the end barrier was passed once.
    prepared: bool,
    /// Messages of the end barrier that may still be under way.
    sent: Vec<Pending>,
    comm: SimpleCommunicator,
}

impl World {
    /// Collective over the communicator's ranks.
    pub fn duplicate(comm: &impl Communicator) -> Self {
        Self { prepared: false, sent: Vec::new(), comm: comm.duplicate() }
    }
}

/// A measurement that a program starts itself: `t0, barrier, t1, WORK, t2, barrier, t3` on a communicator's ranks.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let universe = mpi::initialize().ok_or("MPI is initialised already")?;
/// let mut session = pmmpi::Session::begin(&universe.world())?;
/// let sum = session.region("sum", || (0..1_000_000u64).sum::<u64>())?;
/// if let Some(run) = session.end()? {
///     println!("{sum} after {:?}", run.elapsed());
///     pmmpi::record::run_file::write(std::path::Path::new("."), &run)?; // `pmmpi report .` reads it
/// }
/// # Ok(())
/// # }
/// ```
pub struct Session {
    inner: session::RankSession<'static, World, Counters>,
    live: &'static LiveRecord,
    /// What the node was, and what its kernel had counted, before the work; on the rank that describes its node.
    before: Option<(NodeFacts, HealthReading)>,
    started_unix_ns: i64,
    /// CLOCK_MONOTONIC (ns).
    work_began_ns: i64,
}

impl Session {
    /// Collective over the communicator's ranks. The work begins when this returns.
    pub fn begin(comm: &impl Communicator) -> Result<Self, FabricError> {
        let (began_ns, started_unix_ns) = (clock::monotonic_ns(), clock::realtime_ns());
        let mut world = World::duplicate(comm);
        let told = SharedRequest::share(&mut world, || SharedRequest {
            meeting: Meeting::arrange(),
            ..SharedRequest::default()
        })?;
        let leads_node = Leaders::find(&mut world, NodeKey::own())?.contain(world.rank());
        let root = Path::new("/");
        let before = leads_node.then(|| (NodeFacts::read(root), HealthReading::read(root)));
        let opening_ns = clock::monotonic_ns();
        // Threads that exist already are not counted: a counter follows only what its own thread starts.
        let counters = Counters::open(&default_groups(Path::new("/")), Target::ThisThread).out_of_the_way();
        // Leak these small tables: they must live as long as the process.
        let (live, regions): (&LiveRecord, _) =
            (Box::leak(Box::default()), &*Box::leak(RegionTable::boxed()));
        live.opening_ns.store(clock::monotonic_ns() - opening_ns, Relaxed);
        let words = CounterTable::words(counters.opened());
        let words = std::iter::repeat_with(AtomicU64::default).take(words).collect::<Vec<_>>().leak();
        let memory = RankMemory { live, regions, snapshots: CounterTable::new(words, counters.opened()) };
        let beginning = Beginning { began_ns, pings: false, tight_end: true, meeting: told.meeting };
        let mut inner = session::RankSession::open(memory, counters, world, beginning);
        inner.measure_empty_entry();
        inner.start()?;
        Ok(Self { inner, live, before, started_unix_ns, work_began_ns: clock::monotonic_ns() })
    }

    /// Does `work` as an entry of the region `name`. Collective; see [`crate::regions`].
    pub fn region<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> Result<T, FabricError> {
        self.inner.enter_region(name.as_bytes())?;
        let result = work();
        self.inner.leave_region(name.as_bytes())?;
        Ok(result)
    }

    /// Ends the work. Collective. Returns the whole run on the communicator's rank 0, `None` elsewhere.
    pub fn end(mut self) -> Result<Option<Run>, SessionError> {
        self.inner.stop().map_err(SessionError::Fabric)?;
        let library = mpi::environment::library_version().ok();
        let library = library.and_then(|text| text.lines().next().map(|line| line.trim().to_owned()));
        let took = Duration::from_nanos((clock::monotonic_ns() - self.work_began_ns).max(0).unsigned_abs());
        let of_node = |(facts, before): (NodeFacts, HealthReading)| {
            let root = Path::new("/");
            let counts = before.until(Some(&HealthReading::read(root)));
            let mut watched = Watched { counts, ..Watched::default() };
            if let Some(changed) = facts.changed_during(took, root) {
                watched.inventory.set_changed(changed);
            }
            OfNode { host: host(facts), watched }
        };
        let of_node = self.before.take().map(of_node).unwrap_or_default();
        let work = Work { end: End::Finalized, child_cpu_ns: None, kernel: None };
        let parts = self.inner.gather(work, library.as_deref(), of_node).map_err(SessionError::Fabric)?;
        let (size, gather_ns) = (self.live.size.load(Relaxed), self.live.gather_ns.load(Relaxed));
        let run = parts.map(|parts| Run::assemble(header(self.started_unix_ns), size, &parts, gather_ns));
        run.transpose().map_err(SessionError::Wire)
    }
}

/// Lacks the topology: reading it needs a library.
fn host(facts: NodeFacts) -> Vec<u8> {
    wire::encode(&HostPart::new(facts, None)).unwrap_or_default()
}

fn header(started_unix_ns: i64) -> RunHeader {
    RunHeader::new(
        crate::record::new_run_id(started_unix_ns),
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        Mode::Mpi,
        started_unix_ns,
    )
}

/// Why a measurement gave no run.
#[derive(Debug)]
pub enum SessionError {
    /// An MPI call failed.
    Fabric(FabricError),
    /// A rank's record cannot be understood.
    Wire(WireError),
}

impl std::fmt::Display for SessionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fabric(e) => e.fmt(f),
            Self::Wire(e) => write!(f, "pmmpi cannot decode the record of a rank: {e}"),
        }
    }
}

impl std::error::Error for SessionError {}

impl World {
    /// A barrier. With `at_end`, its last rank leaves at once.
    fn wait_for_all(&mut self, backoff: &mut Backoff, at_end: bool, meanwhile: &mut dyn FnMut()) {
        if at_end && !end_barrier::is_tight_already(self.size()) {
            return self.end_barrier(backoff, meanwhile);
        }
        let mut request = self.comm.immediate_barrier();
        while let Err(pending) = request.test() {
            request = pending;
            if backoff.pause() {
                meanwhile();
            }
        }
    }

    /// The barrier of [`end_barrier`].
    fn end_barrier(&mut self, backoff: &mut Backoff, meanwhile: &mut dyn FnMut()) {
        self.settle();
        let (rank, size) = (self.rank(), self.size());
        let rest: Vec<Exchange> = end_barrier::rest(rank, size).collect();
        for level in end_barrier::levels(rank, size) {
            self.say(LEVEL, &level);
            if let Some(also) = rest.iter().find(|also| also.level == level.level) {
                self.say(REST, also);
            }
            self.hear(LEVEL, &level, backoff, meanwhile);
        }
        rest.iter().for_each(|exchange| self.hear(REST, exchange, backoff, meanwhile));
    }

    /// Completes the messages of the previous end barrier: all ranks have left it.
    fn settle(&mut self) {
        self.sent.drain(..).for_each(|request| _ = request.wait());
    }

    /// Waits for a message without bytes.
    fn hear(&self, kind: i32, exchange: &Exchange, backoff: &mut Backoff, meanwhile: &mut dyn FnMut()) {
        let from = self.comm.process_at_rank(exchange.from as i32);
        while from.immediate_probe_with_tag(tag(kind, exchange)).is_none() {
            if backoff.pause() {
                meanwhile();
            }
        }
        from.receive_into_with_tag::<[u8]>(&mut [], tag(kind, exchange));
    }

    /// Sends a message without bytes. Returns at once.
    fn say(&mut self, kind: i32, exchange: &Exchange) {
        const NOTHING: &[u8] = &[];
        let to = self.comm.process_at_rank(exchange.to as i32);
        self.sent.push(to.immediate_send_with_tag(StaticScope, NOTHING, tag(kind, exchange)));
    }
}

/// Tags of the end barrier's messages: for a level, and for the rest. Messages of channels have tags of their own; all
/// other messages have the tag 0.
const LEVEL: i32 = 2;
const REST: i32 = 3;

fn tag(kind: i32, exchange: &Exchange) -> i32 {
    kind + 2 * exchange.level as i32
}

impl Drop for World {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Fabric for World {
    fn rank(&self) -> u32 {
        self.comm.rank().unsigned_abs()
    }

    fn size(&self) -> u32 {
        self.comm.size().unsigned_abs()
    }

    fn barrier(&mut self, wait: Wait, meanwhile: &mut dyn FnMut()) -> Result<(), FabricError> {
        self.wait_for_all(&mut Backoff::new(wait), wait == Wait::Patient, meanwhile);
        Ok(())
    }

    /// The first message between two ranks waits until both have set up their connection. At the end this would
    /// take long, because one of them sleeps. So all ranks pass the end barrier once before.
    fn prepare_end(&mut self) -> Result<(), FabricError> {
        if !std::mem::replace(&mut self.prepared, true) {
            self.wait_for_all(&mut Backoff::new(Wait::Eager), true, &mut || ());
        }
        Ok(())
    }

    fn broadcast(&mut self, bytes: &mut [u8]) -> Result<(), FabricError> {
        self.comm.process_at_rank(0).broadcast_into(bytes);
        Ok(())
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
        let root = self.comm.process_at_rank(0);
        if self.rank() != 0 {
            root.gather_into(own);
            return Ok(Vec::new());
        }
        let mut all = vec![0; own.len() * self.size() as usize];
        root.gather_into_root(own, &mut all[..]);
        Ok(all)
    }

    fn gather_varying(&mut self, own: &[u8], counts: &[usize]) -> Result<Vec<u8>, FabricError> {
        let root = self.comm.process_at_rank(0);
        if self.rank() != 0 {
            root.gather_varcount_into(own);
            return Ok(Vec::new());
        }
        let (counts, starts, total) = mpi_counts(counts)?;
        let mut all = vec![0; total];
        root.gather_varcount_into_root(own, &mut PartitionMut::new(&mut all[..], counts, starts));
        Ok(all)
    }

    fn send(&mut self, to: u32, message: &[u8]) -> Result<(), FabricError> {
        self.comm.process_at_rank(to as i32).send(message);
        Ok(())
    }

    fn receive(&mut self, from: u32, buffer: &mut [u8]) -> Result<(), FabricError> {
        self.comm.process_at_rank(from as i32).receive_into(buffer);
        Ok(())
    }
}

impl Pairwise for World {
    /// A message that the partner does not receive: MPI_Cancel is no help, because for a send it is deprecated (MPI 4.0,
    /// section 3.8.4) and Open MPI does not implement it. For a receive MPI guarantees that it ends the operation, whatever
    /// the partner does.
    fn exchange(
        &mut self,
        with: &Channel,
        own: &Arc<Vec<u8>>,
        theirs: &mut [u8],
        deadline: Instant,
    ) -> Result<bool, FabricError> {
        let partner = self.comm.process_at_rank(with.partner as i32);
        let tag = i32::from(Channel::NUMBERS) + i32::from(with.number % Channel::NUMBERS);
        let length = with.message_bytes.max(1);
        // SAFETY: all receives are complete when this function returns, so MPI writes into `theirs` only before.
        let theirs: &'static mut [u8] = unsafe { &mut *std::ptr::from_mut(theirs) };
        // SAFETY: if a send is not complete when this function returns, `own` is never freed (below). As long as another
        // owner of `own` exists, its content cannot change.
        let sent: &'static [u8] = unsafe { &*std::ptr::from_ref(own.as_slice()) };
        let receive = |message| partner.immediate_receive_into_with_tag(StaticScope, message, tag);
        let receives: Vec<Pending> = theirs.chunks_mut(length).map(receive).collect();
        let send = |message| partner.immediate_send_with_tag(StaticScope, message, tag);
        let sends: Vec<Pending> = sent.chunks(length).map(send).collect();
        let mut backoff = Backoff::new(Wait::Eager);
        let mut is_complete = true;
        for receive in receives {
            if let Err(pending) = until(deadline, receive, &mut backoff) {
                pending.cancel();
                pending.wait_without_status();
                is_complete = false;
            }
        }
        let mut all_left = true;
        for send in sends {
            if let Err(pending) = until(deadline, send, &mut backoff) {
                std::mem::forget(pending);
                all_left = false;
            }
        }
        if !all_left {
            std::mem::forget(Arc::clone(own));
        }
        Ok(is_complete && all_left)
    }
}

/// Waits until the request is complete. Returns it if it is not complete at the deadline.
fn until(deadline: Instant, mut request: Pending, backoff: &mut Backoff) -> Result<(), Pending> {
    while let Err(pending) = request.test() {
        if Instant::now() >= deadline {
            return Err(pending);
        }
        request = pending;
        backoff.pause();
    }
    Ok(())
}

impl Divisible for World {
    fn subset(&mut self, is_member: bool) -> Result<Option<Self>, FabricError> {
        let color = if is_member { Color::with_value(0) } else { Color::undefined() };
        let comm = self.comm.split_by_color(color);
        Ok(comm.map(|comm| Self { prepared: false, sent: Vec::new(), comm }))
    }
}
