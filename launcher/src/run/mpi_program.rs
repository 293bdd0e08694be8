//! MPI programs: the agent inside them measures; this process supervises and saves.

use super::health_answer;
use super::keep_partial_run::{self, Carrier};
use super::node_record;
use super::run_folder;
use super::task::Task;
use super::unseen_program::{self, Around};
use crate::own_files;
use crate::program;
use pmmpi::clock;
use pmmpi::counters::counter_table::Snapshot;
use pmmpi::counters::counts::Counts;
use pmmpi::counters::open_counters::OpenCounters;
use pmmpi::counters::perf_event_open::Counters;
use pmmpi::counters::selection::Selection;
use pmmpi::node::NodeKey;
use pmmpi::partial::{self, CarrierNote};
use pmmpi::record::run_file::Slot;
use pmmpi::record::{End, Mode, RankRecord, Run, RunHeader, wire};
use pmmpi::session::launch_origin;
use pmmpi::session::launcher_request::LauncherRequest;
use pmmpi::session::live_record::{Fault, LiveRecord, Phase};
use pmmpi::session::shared_memory::{Blob, SHARED_MEMORY_VARIABLE, SharedMemory};
use pmmpi_events::summary_line::Summary;
use pmmpi_workload::console::{say, warn};
use pmmpi_workload::health_watch::HealthWatch;
use pmmpi_workload::process::{LEFT, PreparedProgram, Running};
use pmmpi_workload::{Failure, descendants, saving, signals};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A running program with the agent in it.
pub struct Started {
    header: RunHeader,
    shared: Arc<SharedMemory>,
    carrier: Carrier,
    running: Running,
    began_ns: i64,
    counters: Counters,
    /// On the rank that describes its node.
    health: Option<Arc<HealthWatch>>,
}

/// Starts the program. After an error, no part of it runs. `slot` reserves the run's file, if this rank may save it.
pub fn start(task: &Task, slot: Option<&Slot>) -> Result<Started, Failure> {
    let agent = own_files::agent()?;
    let shared =
        Arc::new(SharedMemory::create().map_err(|e| {
            Failure::own(format_args!("pmmpi cannot create shared memory for its agent: {e}"))
        })?);
    let header = task.header(Mode::Mpi);
    let keep = task
        .settings
        .out
        .as_deref()
        .and_then(|out| partial::keep_in(out, header.clone(), &task.settings.selection).ok());
    let request = LauncherRequest { keep, extras: task.settings.extras, local_ranks: task.launch.local_size };
    if !wire::encode(&request).is_ok_and(|request| shared.put(Blob::Request, &request).is_ok()) {
        shared.live().note(Fault::NoPartial);
    }
    if let Some(expectation) = task.expectation()
        && let Ok(expectation) = wire::encode(&expectation)
    {
        // Without it, the agent does not compare MPI's ranks with the launch.
        let _ = shared.put(Blob::Expectation, &expectation);
    }
    let mut carrier = Carrier::new(shared.clone(), slot.and_then(Slot::room), header.clone());
    if task.settings.out.is_some() {
        carrier.begin(task.job.as_deref());
    }
    // First this, then the counters: they would count the program that reads the topology, and the witness.
    describe_node(task, &shared);
    signals::prepare();
    signals::note_in(&shared.live().asked_to_end);
    signals::forward();
    let health = task.role.leads().then(|| health_answer::begin(shared.clone()));
    let counters = hand_down_counters(&task.selection(), &task.program, &shared);
    let prepared = PreparedProgram::new(&task.program, &task.settings.argv, with_agent(&agent, &shared));
    if task.settings.timeout.is_some() {
        descendants::adopt();
    }
    let began_ns = clock::monotonic_ns();
    let running = prepared.and_then(|prepared| prepared.start()).map_err(|e| match e.raw_os_error() {
        Some(errno) => program::failure(task.program.as_os_str(), errno),
        None => Failure::own(e),
    })?;
    Ok(Started { header, shared, carrier, running, began_ns, counters, health })
}

impl Started {
    /// Waits for the program's end and saves the run that the agent gathered.
    pub fn measure(self, task: &Task, slot: Option<Slot>) -> Result<End, Failure> {
        let Self { header, shared, mut carrier, running, began_ns, counters, health } = self;
        let ended = running
            .wait(task.settings.timeout)
            .map_err(|e| Failure::own(format_args!("pmmpi could not wait for the program: {e}")))?;
        let ended_ns = clock::monotonic_ns();
        if ended.is_left {
            say(format_args!("{}: {}: {LEFT}", NodeKey::own().hostname, task.program.display()));
        }
        signals::no_more_children();
        let end = ended.for_the_record();
        shared.live().set_end(end, ended_ns);
        let kept = if shared.live().phase() == Phase::Fresh && task.speaks() {
            unseen_program::keep(
                task,
                header,
                Around { began_ns, ended_ns, ended: &ended, counters, health },
                &shared,
                slot,
            )
        } else {
            keep(task, header, &shared, LostRankData { carrier: &mut carrier, counters }, slot, end)
        };
        // This rank has sent its record, but rank 0 may have been killed before it came. The carrier checks this later.
        let in_doubt = shared.live().phase() == Phase::Gathered && !task.speaks() && !end.is_success();
        if !in_doubt {
            carrier.let_go();
        }
        let status = ended.status();
        if let (End::Exited(code @ 1..), true) = (status, is_abandoned(shared.live().phase())) {
            task.launch.end_job(code);
        }
        match kept {
            // If the program failed, its status is the exit status.
            Err(failure) if !status.is_success() => {
                say(failure);
                Ok(status)
            }
            Err(failure) => Err(failure),
            Ok(()) => Ok(status),
        }
    }
}

/// Opens the counters of the program and of all processes that it starts. The agent finds their description in the
/// shared memory; the program inherits their descriptors.
fn hand_down_counters(selection: &Selection, program: &Path, shared: &SharedMemory) -> Counters {
    let began_ns = clock::monotonic_ns();
    let mut counters = selection.open_for(program);
    // If this fails, the rank has stamps but no counts.
    let _ = counters
        .hand_down()
        .and_then(|handed| wire::encode(&handed).map_err(std::io::Error::other))
        .and_then(|handed| shared.put(Blob::Counters, &handed));
    shared.live().opening_ns.store(clock::monotonic_ns() - began_ns, Ordering::Relaxed);
    counters
}

/// This process's environment, with the agent as the first library in LD_PRELOAD.
fn with_agent(agent: &Path, shared: &SharedMemory) -> Vec<(OsString, OsString)> {
    const PRELOAD: &str = "LD_PRELOAD";
    let mut preload = OsString::from(agent);
    if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    // The agent compares its own launch with this one, to detect that another launcher started it.
    let shared = shared.path() + &launch_origin::of(|name| std::env::var_os(name));
    let own = [(PRELOAD.into(), preload), (SHARED_MEMORY_VARIABLE.into(), shared.into())];
    let others = std::env::vars_os().filter(|(name, _)| name != PRELOAD && name != SHARED_MEMORY_VARIABLE);
    others.chain(own).collect()
}

/// Runs before the program starts, so that it does not disturb the measurement.
fn describe_node(task: &Task, shared: &SharedMemory) {
    if task.role.leads() && shared.put(Blob::Node, &node_record::part(task.settings.quiet)).is_err() {
        shared.live().note(Fault::NoNodeRecord);
    }
    shared.live().announce_node();
}

fn keep(
    task: &Task,
    header: RunHeader,
    shared: &SharedMemory,
    mut left: LostRankData,
    slot: Option<Slot>,
    end: End,
) -> Result<(), Failure> {
    let gathered = shared.take(Blob::Gathered).map_err(run_folder::not_kept)?;
    if gathered.is_empty() {
        let partial = is_abandoned(shared.live().phase()).then(|| left.keep(shared));
        explain(task, shared, partial);
        return Ok(());
    }
    let parts = wire::split(&gathered).map_err(run_folder::not_kept)?;
    let gather_ns = shared.live().gather_ns.load(Ordering::Relaxed);
    let size = shared.live().size.load(Ordering::Relaxed);
    let mut run = Run::assemble(header, size, &parts, gather_ns).map_err(run_folder::not_kept)?;
    run.keep_options(&task.settings.selection);
    // The agent recorded everything up to MPI_Finalize; only a bad end after it is new.
    let is_news = |own: &&mut RankRecord| !end.is_success() && !matches!(own.end, End::Aborted(_));
    if let Some(own) = run.ranks.first_mut().filter(is_news) {
        own.end = end;
    }
    let told = CarrierNote::read(shared);
    if !run.is_complete() && told.is_some() {
        return keep_what_came(task, shared, left, &run);
    }
    let save = |folder| saving::save(folder, slot, &run, task.settings.quiet);
    let saved = task.settings.out.as_deref().map(save).transpose();
    if let (Ok(Some(_)), Some(told)) = (&saved, told.filter(|_| may_have_been_carried(shared.live()))) {
        partial::remove(&told.folder);
    }
    let saved = saved.map_err(|failure| with_what_is_left(failure, left.keep(shared)));
    if !task.settings.quiet {
        let file = saved.as_ref().ok().and_then(|file| file.as_deref());
        say(Summary { run: &run, file });
    }
    if shared.live().has(Fault::SecondProgram) && !task.settings.quiet {
        warn(format_args!(
            "{} started several MPI programs: pmmpi measured only the first of these programs",
            task.program.display()
        ));
    }
    saved.map(drop)
}

/// The carrier starts a certain time after the ranks' t1 and stops when rank 0 has gathered the run. Every t1 is later
/// than rank 0's t0.
fn may_have_been_carried(live: &LiveRecord) -> bool {
    const ANY_CLOCK: u32 = 20; // a margin of 1/20 is more than the rate error of any clock
    let [t0, t3] = [0, 3].map(|at: usize| live.t_ns[at].load(Ordering::Relaxed));
    let gathered = t3 + live.gather_ns.load(Ordering::Relaxed);
    gathered - t0 > (keep_partial_run::FIRST - keep_partial_run::FIRST / ANY_CLOCK).as_nanos() as i64
}

/// The data that a rank left after a bad end.
struct LostRankData<'a> {
    carrier: &'a mut Carrier,
    counters: Counters,
}

impl LostRankData<'_> {
    /// Gets it written to disk. Gives the folder, or why nothing was written.
    fn keep(&mut self, shared: &SharedMemory) -> Result<PathBuf, String> {
        put_counts(shared, &last_counts(shared, &mut self.counters));
        self.carrier.keep()
    }
}

/// Stores all counts if the memory has room; else those of the rank's own threads; else these without regions.
fn put_counts(shared: &SharedMemory, counts: &Counts) {
    let own = || counts.only(|row| row.cpu.is_none());
    let whole = || counts.only(|row| row.cpu.is_none() && row.region.is_none());
    let tries: [&dyn Fn() -> Counts; 3] = [&|| counts.clone(), &own, &whole];
    let put =
        |counts: Counts| wire::encode(&counts).is_ok_and(|counts| shared.put(Blob::Counted, &counts).is_ok());
    // If none fits, only the stamps remain.
    let _ = tries.iter().any(|counts| put(counts()));
}

/// True if the measurement started but rank 0 did not gather it.
fn is_abandoned(phase: Phase) -> bool {
    (Phase::Started..Phase::Gathered).contains(&phase)
}

/// For a run in which some records did not reach rank 0: keeps what each rank has itself, because that is more.
fn keep_what_came(
    task: &Task,
    shared: &SharedMemory,
    mut left: LostRankData,
    run: &Run,
) -> Result<(), Failure> {
    let folder = left.keep(shared).map_err(run_folder::not_kept)?;
    let missing = run.size as usize - run.ranks.len();
    say(format_args!(
        "{}: the records of {missing} of {} ranks did not reach rank 0; the partial run is in {}",
        task.program.display(),
        run.size,
        folder.display()
    ));
    Ok(())
}

/// The counts of a rank up to its end. If the rank did not take its second snapshot, this process takes it: counters
/// stay readable after the counted process ends.
fn last_counts(shared: &SharedMemory, counters: &mut Counters) -> Counts {
    let live = shared.live();
    let opened = counters.opened().clone();
    let Ok(table) = shared.counters(&opened) else { return Counts::default() };
    if live.phase() == Phase::Started {
        counters.snapshot(table.of(Snapshot::Stop));
    }
    let rank = live.rank();
    Counts::of_rank(rank, &opened, table, &shared.regions().regions(rank))
}

/// Adds to the failure where the partial run is, or why there is none.
fn with_what_is_left(mut failure: Failure, kept: Result<PathBuf, String>) -> Failure {
    failure.message += &match kept {
        Ok(folder) => format!(
            "\n       The data that each rank measured is in {}; `pmmpi report` can read this folder",
            folder.display()
        ),
        Err(why) => {
            format!(
                "\n       \
                 pmmpi does not know whether any part of the run was saved ({why}). Measure again with \
                 another folder (--out)"
            )
        }
    };
    failure
}

/// Prints why there is no run, and where its partial run is. A rank with a fault of its own prints this itself;
/// otherwise rank 0 does.
fn explain(task: &Task, shared: &SharedMemory, partial: Option<Result<PathBuf, String>>) {
    let live = shared.live();
    let faults = [
        (Fault::UnknownMpi, "pmmpi does not know the family of the program's MPI library"),
        (Fault::MpiCall, "an MPI call of pmmpi itself failed"),
        (
            Fault::Handover,
            "the agent could not pass the ranks' records to pmmpi (is `ulimit -f`, which also \
             limits shared memory, below 80 MB?)",
        ),
        (Fault::Panic, "pmmpi's agent failed inside the program; please report this"),
    ];
    let program = task.program.display();
    let kept = match &partial {
        Some(Ok(folder)) => format!("; the partial run is in {}", folder.display()),
        Some(Err(why)) if task.settings.out.is_some() => {
            format!("; pmmpi does not know whether any part of the run was saved: {why}")
        }
        _ => String::new(),
    };
    if live.has(Fault::Mismatch) {
        return; // the agent has printed it
    }
    if let Some((_, why)) = faults.iter().find(|(fault, _)| live.has(*fault)) {
        say(format_args!("pmmpi could not measure {program}: {why}{kept}"));
    } else if task.speaks() && partial.is_some() && !task.settings.quiet {
        say(format_args!("{program} ended before MPI_Finalize{kept}"));
    }
}
