//! A rank's measurement: the stamps t0 to t3, the barriers between them, the snapshots of the counters, and the gather.
//!
//! The order of the steps matters: `t0, barrier, t1, snapshot | WORK | snapshot, t2, barrier, t3`. Between the two
//! snapshots a session does nothing unless the program asks for it: no system call, no thread, no memory of its
//! own.

use super::live_probes;
use super::live_record::{Fault, LiveRecord, Phase};
use super::live_regions::{Recorder, RegionTable};
use crate::bounds::Pings;
use crate::clock;
use crate::counters::counter_table::{CounterTable, Snapshot};
use crate::counters::counts::{Cost, Counts};
use crate::counters::empty_entry::EmptyEntry;
use crate::counters::open_counters::OpenCounters;
use crate::ids::RankId;
use crate::node::{CpuSet, NodeKey, Watched};
use crate::record::{End, KernelReport, KernelResult, Part, RankRecord, Screened};
use crate::regions::{At, Regions};
use crate::transport::fabric::{Fabric, FabricError, Wait};
use crate::transport::gather::gather;
use crate::transport::node_meeting::Meeting;
use crate::transport::ping_exchange::{self, Leaders};
use std::sync::atomic::Ordering::Relaxed;

/// The memory in which a rank records its measurement. It may outlive the rank.
#[derive(Clone, Copy, Debug)]
pub struct RankMemory<'a> {
    /// Its stamps and its phase.
    pub live: &'a LiveRecord,
    /// Its regions.
    pub regions: &'a RegionTable,
    /// Its snapshots of the counters, with room for all that the rank opened.
    pub snapshots: CounterTable<'a>,
}

/// A measurement of this rank.
pub struct RankSession<'a, F, P> {
    live: &'a LiveRecord,
    snapshots: CounterTable<'a>,
    counters: P,
    fabric: F,
    regions: Recorder<'a>,
    empty_entry: EmptyEntry,
    pings: Option<(Leaders, Pings)>,
    allowed: CpuSet,
    beginning: Beginning,
    /// When the session last checked that the counters still exist (CLOCK_MONOTONIC, ns).
    looked_ns: i64,
}

/// How a session begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// When the tool began to work for this rank (CLOCK_MONOTONIC, ns): its cost up to t0 is part of the
    /// record.
    pub began_ns: i64,
    /// Whether ranks exchange pings with the hub; the same on every rank.
    pub pings: bool,
    /// Whether the last rank leaves the end barrier at once; the same on every rank.
    pub tight_end: bool,
    /// Where the ranks of a node meet; the same on every rank.
    pub meeting: Meeting,
}

/// Facts about the work that a session cannot see.
#[derive(Clone, Debug)]
pub struct Work {
    /// How it ended.
    pub end: End,
    /// User and system CPU time of the child that did the work (ns); `None` if this process did it.
    pub child_cpu_ns: Option<[i64; 2]>,
    /// What a kernel of `pmmpi screen` reported.
    pub kernel: Option<KernelReport>,
}

/// What the rank that describes its node adds; empty on the other ranks.
#[derive(Clone, Debug, Default)]
pub struct OfNode {
    /// A [`crate::record::HostPart`] in wire form.
    pub host: Vec<u8>,
    /// What was read of the node around the work.
    pub watched: Watched,
}

/// Indices of the two snapshots in arrays of both.
const AT_START: usize = 0;
const AT_STOP: usize = 1;

impl<'a, F: Fabric, P: OpenCounters> RankSession<'a, F, P> {
    /// Does everything that takes time, so that [`Self::start`] need not.
    pub fn open(memory: RankMemory<'a>, counters: P, fabric: F, beginning: Beginning) -> Self {
        let (RankMemory { live, regions, snapshots }, opened) = (memory, counters.opened().clone());
        live.rank.store(fabric.rank(), Relaxed);
        live.size.store(fabric.size(), Relaxed);
        clock::tsc(); // asks CPUID now, not at t1
        Self {
            live,
            snapshots,
            counters,
            fabric,
            regions: Recorder::new(regions, snapshots, opened),
            empty_entry: EmptyEntry::default(),
            pings: None,
            allowed: CpuSet::allowed(),
            beginning,
            looked_ns: 0,
        }
    }

    /// Measures what the counters count in a region without content. Only for a session in the program itself: if the
    /// program is a child, its counters do not count the reader.
    pub fn measure_empty_entry(&mut self) {
        self.empty_entry = EmptyEntry::measure(&mut self.counters);
    }

    /// Notes that the program called MPI_Abort with this code.
    pub fn note_abort(&self, code: i32) {
        self.live.note_abort(code);
    }

    /// The interconnect.
    pub fn fabric(&mut self) -> &mut F {
        &mut self.fabric
    }

    /// t0, barrier, t1, snapshot. The work follows. If the barrier fails, this returns the error but takes all
    /// stamps: the other ranks must not wait for this rank later.
    pub fn start(&mut self) -> Result<(), FabricError> {
        let prepared = if self.beginning.tight_end { self.fabric.prepare_end() } else { Ok(()) };
        let exchanged = self.first_pings();
        let before_ns = clock::monotonic_ns();
        self.live.setup_ns.store(before_ns - self.beginning.began_ns, Relaxed);
        self.live.raw_ns[AT_START].store(clock::raw_ns(), Relaxed);
        let t0_ns = self.stamp(0);
        self.live.raw_slack_ns.store(t0_ns - before_ns, Relaxed);
        let passed = self.fabric.barrier(Wait::Eager, &mut || ());
        self.stamp(1);
        self.live.real_ns[AT_START].store(clock::realtime_ns(), Relaxed);
        self.live.ran_on[AT_START].store(current_cpu(), Relaxed);
        self.live.set_phase(Phase::Started);
        self.count(Snapshot::Start, AT_START);
        passed.and(exchanged).and(prepared)
    }

    /// Snapshot, t2, barrier, t3. The work is over.
    pub fn stop(&mut self) -> Result<(), FabricError> {
        self.counters.verify(usize::MAX);
        self.count(Snapshot::Stop, AT_STOP);
        self.live.ran_on[AT_STOP].store(current_cpu(), Relaxed);
        self.live.real_ns[AT_STOP].store(clock::realtime_ns(), Relaxed);
        self.stamp(2);
        self.live.set_phase(Phase::Stopped);
        let passed = self.fabric.barrier(Wait::Patient, &mut || ());
        let t3_ns = self.stamp(3);
        self.live.raw_ns[AT_STOP].store(clock::raw_ns(), Relaxed);
        self.live.raw_slack_ns.fetch_add(clock::monotonic_ns() - t3_ns, Relaxed);
        // Entries that are still open end with the work.
        let (stop, ending) = (self.snapshots.of(Snapshot::Stop), self.regions.ending());
        stop.iter().zip(ending).for_each(|(from, to)| to.store(from.load(Relaxed), Relaxed));
        self.regions.end_all(self.live.t_ns[2].load(Relaxed), t3_ns);
        self.live.set_phase(Phase::Released);
        passed.and(self.last_pings())
    }

    /// Reads in the same order at both ends, so that all differences cover the same length of time.
    fn count(&mut self, snapshot: Snapshot, at: usize) {
        let began_ns = clock::monotonic_ns();
        self.counters.snapshot(self.snapshots.of(snapshot));
        self.live.tsc[at].store(clock::tsc().unwrap_or(0), Relaxed);
        self.store_cpu_time(at);
        self.live.snapshot_ns[at].store(clock::monotonic_ns() - began_ns, Relaxed);
    }

    fn first_pings(&mut self) -> Result<(), FabricError> {
        if self.beginning.pings {
            let (leaders, pings) = self.pings.insert(Default::default());
            *leaders = Leaders::find(&mut self.fabric, NodeKey::own())?;
            pings.before = ping_exchange::exchange(&mut self.fabric, leaders)?;
        }
        Ok(())
    }

    fn last_pings(&mut self) -> Result<(), FabricError> {
        if let Some((leaders, pings)) = &mut self.pings {
            // Messages of the program may still be under way, and could mix with the following ones.
            self.fabric.isolate()?;
            pings.after = ping_exchange::exchange(&mut self.fabric, leaders)?;
        }
        Ok(())
    }

    /// Enters the region `name` together with all other ranks: t0, barrier, t1.
    pub fn enter_region(&mut self, name: &[u8]) -> Result<(), FabricError> {
        self.regions.arrive(name, At::Begin);
        let t0_ns = clock::monotonic_ns();
        let passed = self.fabric.barrier(Wait::Eager, &mut || ());
        let t1_ns = clock::monotonic_ns();
        self.look(t1_ns);
        if let Some(start) = self.regions.begin(name, t0_ns, t1_ns) {
            self.counters.snapshot(start);
        }
        self.judge(name, passed)
    }

    /// Leaves the region `name` together with all other ranks: t2, barrier, t3. Does so even if this rank is not in
    /// the region, because other ranks may be.
    pub fn leave_region(&mut self, name: &[u8]) -> Result<(), FabricError> {
        self.regions.arrive(name, At::End);
        self.look(clock::monotonic_ns());
        self.counters.snapshot(self.regions.ending());
        let t2_ns = clock::monotonic_ns();
        let passed = self.fabric.barrier(Wait::Eager, &mut || ());
        let t3_ns = clock::monotonic_ns();
        let passed = self.judge(name, passed);
        self.regions.end(name, t2_ns, t3_ns);
        passed
    }

    /// True if the rank is in a region of this name.
    pub fn is_in_region(&self, name: &[u8]) -> bool {
        self.regions.is_in(name)
    }

    /// Checks that the counters for regions are still the tool's. Does so at most every 0.1 ms, because a check
    /// costs as much as half a snapshot.
    fn look(&mut self, now_ns: i64) {
        const HOLDS_NS: i64 = 100_000;
        if now_ns - self.looked_ns >= HOLDS_NS {
            self.counters.verify(self.regions.ending().len());
            self.looked_ns = now_ns;
        }
    }

    /// Handles a failed barrier of a region: its entry must not count.
    fn judge(&mut self, name: &[u8], passed: Result<(), FabricError>) -> Result<(), FabricError> {
        if passed.is_err() {
            self.live.note(Fault::MpiCall);
            self.regions.disprove(name);
        }
        passed
    }

    /// Sends this rank's data to rank 0. Returns every node's [`Part`] in wire form on rank 0, `None` elsewhere.
    pub fn gather(
        &mut self,
        work: Work,
        mpi_library: Option<&str>,
        of_node: OfNode,
    ) -> Result<Option<Vec<Vec<u8>>>, FabricError> {
        let mut part = self.part(self.record(&work), mpi_library, of_node.host);
        part.screened = work.kernel.map(|KernelReport { measures, result, .. }| {
            let results = vec![KernelResult { rank: self.rank(), ..result }];
            Screened { measures, results, ..Screened::default() }
        });
        part.regions = self.regions.table().regions(self.rank());
        part.counts = self.counts(&part.regions);
        part.probes = live_probes::collect(self.rank());
        part.starting_ns = Some(self.live.t_ns[1].load(Relaxed) - self.beginning.began_ns);
        if let Some(node) = part.nodes.first_mut() {
            node.watched = of_node.watched;
            node.pings = self.pings.as_ref().map(|(_, pings)| pings.clone()).unwrap_or_default();
        }
        let parts = gather(&mut self.fabric, self.beginning.meeting, part);
        let since_t3 = clock::monotonic_ns() - self.live.t_ns[3].load(Relaxed);
        self.live.gather_ns.store(since_t3, Relaxed);
        parts
    }

    fn counts(&self, regions: &Regions) -> Counts {
        let snapshots_ns = self.live.snapshot_ns.each_ref().map(|took| took.load(Relaxed));
        let cost = Cost { opening_ns: self.live.opening_ns.load(Relaxed), snapshots_ns };
        Counts::of_rank(self.rank(), self.counters.opened(), self.snapshots, regions).at_cost(cost)
    }

    fn stamp(&self, which: usize) -> i64 {
        let now_ns = clock::monotonic_ns();
        self.live.t_ns[which].store(now_ns, Relaxed);
        now_ns
    }

    fn store_cpu_time(&self, at: usize) {
        let (user_ns, system_ns) = own_cpu_time();
        self.live.cpu_user_ns[at].store(user_ns, Relaxed);
        self.live.cpu_system_ns[at].store(system_ns, Relaxed);
    }

    fn record(&self, work: &Work) -> RankRecord {
        let record = self.live.record(&self.template(work.end));
        match work.child_cpu_ns {
            Some([cpu_user_ns, cpu_system_ns]) => RankRecord { cpu_user_ns, cpu_system_ns, ..record },
            None => record,
        }
    }

    /// What this rank will send, as far as it is known before the work.
    pub fn part_before(&self, mpi_library: Option<&str>, host: Vec<u8>) -> Part {
        let record = RankRecord { rank: self.rank(), ..self.template(End::Lost) };
        self.part(record, mpi_library, host)
    }

    fn part(&self, record: RankRecord, mpi_library: Option<&str>, host: Vec<u8>) -> Part {
        let mpi_library = mpi_library.filter(|_| record.rank == RankId(0)).map(str::to_owned);
        let empty_entry = self.empty_entry.clone();
        Part { mpi_library, empty_entry, ..Part::of_rank(NodeKey::own().clone(), host, record) }
    }

    fn rank(&self) -> RankId {
        RankId(self.fabric.rank())
    }

    /// A record with nothing measured.
    fn template(&self, end: End) -> RankRecord {
        RankRecord { allowed: self.allowed.clone(), ..RankRecord::unmeasured(end) }
    }
}

/// User and system CPU time of this process, all threads (ns): getrusage(2).
fn own_cpu_time() -> (i64, i64) {
    // SAFETY: an all-zero rusage is valid, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    (timeval_ns(usage.ru_utime), timeval_ns(usage.ru_stime))
}

/// A timeval in nanoseconds.
pub fn timeval_ns(time: libc::timeval) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_usec * 1000
}

/// The hardware thread that runs this code; negative if the kernel does not report it.
fn current_cpu() -> i32 {
    // SAFETY: no arguments. Through the vDSO: no system call.
    unsafe { libc::sched_getcpu() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::open_counters::Scripted;
    use crate::record::{Mode, Run, RunHeader};
    use crate::session::launcher_request::SharedRequest;
    use crate::transport::fabric::{Solo, Threads};
    use std::time::Duration;

    fn work(end: End) -> Work {
        Work { end, child_cpu_ns: None, kernel: None }
    }

    fn open<'a, F: Fabric>(
        live: &'a LiveRecord,
        regions: &'a RegionTable,
        mut fabric: F,
    ) -> RankSession<'a, F, Scripted> {
        let began_ns = clock::monotonic_ns();
        let told = SharedRequest::share(&mut fabric, || SharedRequest {
            meeting: Meeting::arrange(),
            ..SharedRequest::default()
        })
        .unwrap();
        let beginning = Beginning { began_ns, pings: true, tight_end: true, meeting: told.meeting };
        let memory = RankMemory { live, regions, snapshots: CounterTable::default() };
        RankSession::open(memory, Scripted::default(), fabric, beginning)
    }

    fn header() -> RunHeader {
        RunHeader::new("r".into(), vec!["work".into()], Mode::Plain, 0)
    }

    #[test]
    fn ranks_as_threads_give_one_run_whose_bounds_hold_the_truth() {
        for size in [2u32, 3, 6] {
            let ranks = Threads::new(size).into_iter().map(|fabric| {
                std::thread::spawn(move || {
                    let (live, regions) = (LiveRecord::default(), RegionTable::boxed());
                    let mut session = open(&live, &regions, fabric);
                    let rank = session.fabric().rank();
                    session.start().unwrap();
                    session.enter_region(b"sleep").unwrap();
                    std::thread::sleep(Duration::from_millis(3 + u64::from(rank)));
                    session.leave_region(b"sleep").unwrap();
                    session.stop().unwrap();
                    session.gather(work(End::Exited(0)), Some("threads"), OfNode::default()).unwrap()
                })
            });
            let ranks: Vec<_> = ranks.collect();
            let mut gathered = ranks.into_iter().map(|r| r.join().unwrap());
            let parts = gathered.next().unwrap().expect("rank 0 has the parts");
            assert!(gathered.all(|p| p.is_none()));
            let run = Run::assemble(header(), size, &parts, 0).unwrap();
            assert_eq!((run.ranks.len() as u32, run.nodes.len(), run.size), (size, 1, size));
            assert!(run.is_sound());
            assert_eq!(run.header.mpi_library.as_deref(), Some("threads"));
            let bounds = run.elapsed().unwrap();
            let first = run.ranks.iter().map(|r| r.real_ns[0]).min().unwrap();
            let last = run.ranks.iter().map(|r| r.real_ns[1]).max().unwrap();
            assert!(bounds.consistent);
            // real_ns is read inside t1..t2, so the time between is at most W.
            assert!(last - first <= bounds.upper_ns);
            assert!(bounds.lower_ns >= 3_000_000);
            let regions = run.regions.bounds(size as usize, run.max_drift());
            assert_eq!((regions[0].name, regions[0].entries), ("sleep", Some(1)));
            let longest_ns = 2_000_000 + 1_000_000 * i64::from(size) - 1000; // minus the clock's possible error
            assert!(longest_ns <= regions[0].lower_ns && regions[0].upper_ns <= bounds.upper_ns);
        }
    }

    #[test]
    fn one_process_alone_is_a_job_of_one_rank() {
        let (live, regions) = (LiveRecord::default(), RegionTable::boxed());
        let mut session = open(&live, &regions, Solo);
        session.start().unwrap();
        assert_eq!(live.phase(), Phase::Started);
        session.stop().unwrap();
        let parts = session.gather(work(End::Signaled(9)), None, OfNode::default()).unwrap().unwrap();
        let run = Run::assemble(header(), 1, &parts, 5).unwrap();
        assert_eq!(run.end(), Some(End::Signaled(9)));
        assert!(run.overhead_ns().unwrap() >= 5);
        assert_eq!(run.ranks[0].tsc.is_some(), clock::tsc().is_some());
    }

    /// One process alone. Its barriers fail while the cell is true.
    struct Failing<'a>(&'a std::cell::Cell<bool>);

    impl Fabric for Failing<'_> {
        fn rank(&self) -> u32 {
            0
        }

        fn size(&self) -> u32 {
            1
        }

        fn barrier(&mut self, _: Wait, _: &mut dyn FnMut()) -> Result<(), FabricError> {
            if self.0.get() { Err(FabricError { call: "MPI_Ibarrier", code: 1 }) } else { Ok(()) }
        }

        fn broadcast(&mut self, _: &mut [u8]) -> Result<(), FabricError> {
            Ok(())
        }

        fn gather(&mut self, own: &[u8]) -> Result<Vec<u8>, FabricError> {
            Ok(own.to_vec())
        }

        fn gather_varying(&mut self, own: &[u8], _: &[usize]) -> Result<Vec<u8>, FabricError> {
            Ok(own.to_vec())
        }

        fn send(&mut self, _: u32, _: &[u8]) -> Result<(), FabricError> {
            unreachable!("there is nobody else")
        }

        fn receive(&mut self, _: u32, _: &mut [u8]) -> Result<(), FabricError> {
            unreachable!("there is nobody else")
        }
    }

    #[test]
    fn an_entry_whose_barrier_failed_is_not_counted() {
        let (live, regions, fails) =
            (LiveRecord::default(), RegionTable::boxed(), std::cell::Cell::new(false));
        let mut session = open(&live, &regions, Failing(&fails));
        let mut enter_and_leave = |first_fails: bool, second_fails: bool| {
            fails.set(first_fails);
            assert_eq!(session.enter_region(b"a").is_err(), first_fails);
            fails.set(second_fails);
            assert_eq!(session.leave_region(b"a").is_err(), second_fails);
        };
        enter_and_leave(false, false);
        assert!(!live.has(Fault::MpiCall));
        enter_and_leave(true, false);
        enter_and_leave(false, true);
        let found = regions.regions(RankId(0));
        assert_eq!((found.totals[0].entries, found.unrecorded), (1, 2));
        assert!(live.has(Fault::MpiCall));
    }
}
