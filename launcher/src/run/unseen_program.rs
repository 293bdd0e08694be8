//! For programs in which the agent does not see MPI_Init: measures the process of one rank from outside.

use super::node_record;
use super::run_folder;
use super::task::Task;
use pmmpi::RankId;
use pmmpi::bounds::Stamps;
use pmmpi::clock;
use pmmpi::counters::counter_table::{CounterTable, Snapshot};
use pmmpi::counters::counts::Counts;
use pmmpi::counters::open_counters::OpenCounters;
use pmmpi::counters::perf_event_open::Counters;
use pmmpi::node::{CpuSet, NodeKey};
use pmmpi::record::run_file::Slot;
use pmmpi::record::{Mode, Part, RankRecord, Run, RunHeader, wire};
use pmmpi::regions::Regions;
use pmmpi::session::live_record::Fault;
use pmmpi::session::shared_memory::{Blob, SharedMemory};
use pmmpi_events::summary_line::Summary;
use pmmpi_workload::console::{say, warn};
use pmmpi_workload::health_watch::HealthWatch;
use pmmpi_workload::process::Ended;
use pmmpi_workload::{Failure, saving};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A process measured by its parent (CLOCK_MONOTONIC, ns).
pub struct Around<'a> {
    pub began_ns: i64,
    pub ended_ns: i64,
    pub ended: &'a Ended,
    /// Counters of the process and its descendants.
    pub counters: Counters,
    /// The node's counts before the process started, if this process read them.
    pub health: Option<Arc<HealthWatch>>,
}

/// Saves a plain run of one rank: this rank's process from its start to its end, without barriers.
pub fn keep(
    task: &Task,
    mut header: RunHeader,
    mut around: Around,
    shared: &SharedMemory,
    slot: Option<Slot>,
) -> Result<(), Failure> {
    (header.mode, header.job.launched_ranks) = (Mode::Plain, None);
    // This rank may have read the description of the node for the agent; if not, it reads it now.
    let host = shared.take(Blob::Node).ok().filter(|host| !host.is_empty());
    let host = host.unwrap_or_else(|| node_record::part(task.settings.quiet));
    let mut part = Part::of_rank(NodeKey::own().clone(), host, around.record());
    part.counts = around.counts();
    if let (Some(node), Some(health)) = (part.nodes.first_mut(), &around.health) {
        node.watched = health.end_alone(&node.host);
    }
    let part = wire::encode(&part).map_err(run_folder::not_kept)?;
    let mut run = Run::assemble(header, 1, &[part], 0).map_err(run_folder::not_kept)?;
    run.keep_options(&task.settings.selection);
    let save = |folder| saving::save(folder, slot, &run, task.settings.quiet);
    let saved = task.settings.out.as_deref().map(save).transpose();
    if !task.settings.quiet {
        say(Summary { run: &run, file: saved.as_ref().ok().and_then(|file| file.as_deref()) });
        if task.launch.launcher.is_some() || around.ended.end.is_success() {
            warn_that_it_is_no_more(task, shared);
        }
    }
    saved.map(drop)
}

fn warn_that_it_is_no_more(task: &Task, shared: &SharedMemory) {
    let why = if shared.live().has(Fault::OtherLaunch) {
        "the program itself started an MPI job with a launcher. To measure that job, put pmmpi into its \
         launch command: mpirun -n 2 pmmpi ./prog"
            .to_owned()
    } else if shared.live().has(Fault::OtherLibc) {
        "the program uses a C library other than glibc, but the agent works only in programs that use glibc"
            .to_owned()
    } else if shared.live().has(Fault::InInit) {
        "the program ended inside MPI_Init, which waits for the other ranks of the job".to_owned()
    } else {
        let unseen = task.unseen();
        format!("pmmpi saw no call of MPI_Init ({unseen}). If this is not an MPI program, add --mode plain")
    };
    let process = if task.launch.launcher.is_some() { "the process of rank 0" } else { "the process" };
    warn(format_args!(
        "{}: pmmpi measured {process} from its start to its end, without barriers, because {why}",
        task.program.display()
    ));
}

impl Around<'_> {
    /// The counts since the process started, when all counters were 0.
    fn counts(&mut self) -> Counts {
        let words: Vec<_> = std::iter::repeat_with(AtomicU64::default)
            .take(CounterTable::words_of_snapshots(self.counters.opened()))
            .collect();
        let table = CounterTable::without_regions(&words, self.counters.opened());
        table.start_at_zero(self.counters.opened());
        self.counters.snapshot(table.of(Snapshot::Stop));
        Counts::of_rank(RankId(0), self.counters.opened(), table, &Regions::default())
    }

    fn record(&self) -> RankRecord {
        let (began_ns, ended_ns) = (self.began_ns, self.ended_ns);
        let ended_real_ns = clock::realtime_ns() - (clock::monotonic_ns() - ended_ns);
        RankRecord {
            stamps: Stamps::new(began_ns, began_ns, ended_ns, ended_ns).unwrap_or_default(),
            real_ns: [ended_real_ns - (ended_ns - began_ns), ended_real_ns],
            cpu_user_ns: self.ended.cpu_user_ns,
            cpu_system_ns: self.ended.cpu_system_ns,
            allowed: CpuSet::allowed(),
            ..RankRecord::unmeasured(self.ended.for_the_record())
        }
    }
}
