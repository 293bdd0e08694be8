//! The launcher of rank 0 while the ranks measure: it starts the runner and stays its parent. If any rank is killed, it
//! names it, reports the rounds that are saved, and ends the others.

use super::rank_connections::RankConnections;
use crate::launch::RunnerFamily;
use crate::run::exec_runner;
use crate::run::task::Task;
use pmmpi::counters::descriptor_room::DescriptorRoom;
use pmmpi::node::NodeKey;
use pmmpi::record::End;
use pmmpi::session::shared_memory::SharedMemory;
use pmmpi_workload::process::Running;
use pmmpi_workload::rank_watch::Hello;
use pmmpi_workload::runner_plan::RunnerPlan;
use pmmpi_workload::screen_plan::{ScreenPlan, Screened};
use pmmpi_workload::screen_report::{self, INCOMPLETE};
use pmmpi_workload::supervision::{Ending, Hearer, Told};
use pmmpi_workload::{Failure, descendants, signals};
use std::collections::BTreeSet;
use std::io::{IsTerminal, PipeReader, Write, pipe};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Time for the ranks to save and to end after a signal. Open MPI kills its processes one second after the signal.
const AFTER_SIGNAL: Duration = Duration::from_millis(600);
/// Most ranks that a message names.
const MOST_NAMES: usize = 8;
/// Time for MPI_Finalize.
const FINALIZE: Duration = Duration::from_secs(30);

/// Why the supervisor stops waiting.
enum Heard {
    /// All rounds are done, or rank 0 ended them in order.
    Ended(Ending),
    /// The runner ended, and said nothing.
    NoMore,
    /// These ranks ended first.
    Lost(Vec<Hello>),
    /// The ranks did not end in time after this signal.
    Signal(i32),
}

pub struct Supervisor {
    plan: ScreenPlan,
    runner: Running,
    /// The runner reads its plan from it.
    _shared: SharedMemory,
    hearer: Hearer<PipeReader>,
    connections: Option<RankConnections>,
    /// The work of the ranks at this time.
    doing: String,
    done: Screened,
}

impl Supervisor {
    /// Starts the runner, which measures as the plan says.
    pub fn start(task: &Task, family: RunnerFamily, mut plan: ScreenPlan) -> Result<Self, Failure> {
        let (reader, writer) =
            pipe().map_err(|e| Failure::own(format_args!("cannot make a pipe to pmmpi-runner: {e}")))?;
        // SAFETY: sets a flag of a descriptor that this process owns. The runner inherits it.
        unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFD, 0) };
        // Without connections, only the job's launcher notices that a rank ended.
        let connections = RankConnections::listen().ok();
        plan.told_on = Some(writer.as_raw_fd());
        plan.watch = connections.as_ref().map(|connections| connections.address().clone());
        let orders = RunnerPlan::Screen(Box::new(plan.clone()));
        let (runner, shared) = exec_runner::prepare(task, family, &orders)?;
        signals::prepare();
        descendants::adopt();
        signals::forward();
        let started = runner.start();
        let runner = started.map_err(|e| Failure::own(format_args!("cannot start pmmpi-runner: {e}")))?;
        let (hearer, doing) = (Hearer::new(reader), "MPI_Init".to_owned());
        Ok(Self { plan, runner, _shared: shared, hearer, connections, doing, done: Screened::default() })
    }

    /// Waits for the end of the rounds, and shows the result.
    pub fn run(mut self) -> Result<End, Failure> {
        // Each connection needs a descriptor. The runner must not inherit the limit.
        let room = DescriptorRoom::make();
        let heard = self.wait();
        drop(room);
        let end = match heard {
            Heard::Ended(ending) => {
                self.done.ending = ending;
                // A failure does not matter any more.
                let _ = self.runner.wait(Some(FINALIZE));
                signals::no_more_children();
                return screen_report::finish(&self.plan, &self.done);
            }
            Heard::NoMore => self.finish_without_rank_0(),
            Heard::Lost(ranks) => {
                self.pause();
                self.finish_without(&ranks)
            }
            Heard::Signal(signal) => {
                self.pause();
                self.done.ending.stopped_by = Some(signal);
                screen_report::finish(&self.plan, &self.done)
            }
        };
        // Only now, because an MPI library that loses a connection ends the whole job.
        self.connections.take().into_iter().for_each(RankConnections::stop);
        descendants::signal(&descendants::living(self.runner.pid()), libc::SIGKILL);
        end
    }

    /// Stops the runner, which would print that MPI failed. The launcher of the job may give little time.
    fn pause(&self) {
        // SAFETY: the call accesses no memory, and the runner has not been waited for.
        unsafe { libc::kill(self.runner.pid(), libc::SIGSTOP) };
    }

    fn wait(&mut self) -> Heard {
        let mut stop: Option<(i32, Instant)> = None;
        loop {
            stop = stop
                .or_else(|| signals::asked_to_end().map(|signal| (signal, Instant::now() + AFTER_SIGNAL)));
            let left = stop.map(|(_, deadline)| deadline.saturating_duration_since(Instant::now()));
            if let (Some((signal, _)), Some(Duration::ZERO)) = (stop, left) {
                return Heard::Signal(signal);
            }
            let mut polled = self.poll(left);
            // Whoever ends in order ends after this message, which may have come after poll(2) looked for it.
            if !polled.lost.is_empty() && !polled.has_words {
                polled.has_words = self.poll(Some(Duration::ZERO)).has_words;
            }
            if polled.has_words {
                let Some(all) = self.hearer.hear() else { return Heard::NoMore };
                for told in all {
                    match told {
                        Told::Begins(work) => self.doing = work,
                        Told::Saved(file) => self.done.files.push(file),
                        Told::Ended(ending) => return Heard::Ended(ending),
                    }
                }
            }
            if !polled.lost.is_empty() && stop.is_none() {
                return Heard::Lost(polled.lost);
            }
        }
    }

    /// Waits until something comes, for this time at most.
    fn poll(&mut self, limit: Option<Duration>) -> Polled {
        let pipe = libc::pollfd { fd: self.hearer.pipe().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let connections = self.connections.iter().flat_map(RankConnections::polls);
        let mut polls: Vec<_> = [pipe].into_iter().chain(connections).collect();
        // Rounded up, so that the time is over afterwards.
        let limit_ms = limit.map_or(-1, |limit| limit.as_micros().div_ceil(1000) as libc::c_int);
        // SAFETY: so many live structures.
        if unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, limit_ms) } < 1 {
            return Polled::default();
        }
        let lost = self.connections.as_mut().map(|connections| connections.settle(&polls[1..]));
        let mut lost = lost.unwrap_or_default();
        // The end of the pipe says that rank 0 has ended.
        lost.retain(|of| of.rank != 0);
        Polled { has_words: polls[0].revents != 0, lost }
    }

    /// Reports what is saved after the end of the runner, which has said why it failed unless a signal ended it.
    fn finish_without_rank_0(&mut self) -> Result<End, Failure> {
        let end = self.runner.wait(None).map_or(End::Lost, |ended| ended.end);
        // Perhaps it failed because another rank had ended. After a kill, the job's launcher kills the others, too.
        let is_killed = end == End::Signaled(libc::SIGKILL);
        let others = if is_killed { Vec::new() } else { self.poll(Some(Duration::ZERO)).lost };
        match end {
            End::Exited(code) if others.is_empty() && self.done.files.is_empty() => Ok(End::Exited(code)),
            _ if others.is_empty() => {
                let host = NodeKey::own().hostname.clone();
                self.finish_without(&[Hello { token: [0; 16], rank: 0, host }])
            }
            _ => self.finish_without(&others),
        }
    }

    /// Names the ranks that have ended, and reports what is saved.
    fn finish_without(&mut self, lost: &[Hello]) -> Result<End, Failure> {
        let names: BTreeSet<String> =
            lost.iter().map(|of| format!("{} (rank {})", of.host, of.rank)).collect();
        let some: Vec<&str> = names.iter().take(MOST_NAMES).map(String::as_str).collect();
        let more = names.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let during = &self.doing;
        // Some launchers pass no output on after the end of a rank, so the user may not see the report.
        let hint = match &self.plan.rounds.out {
            Some(folder) if !self.done.files.is_empty() => {
                format!(". To report the rounds that are saved: pmmpi-report screen {}", folder.display())
            }
            _ => String::new(),
        };
        let message = format!(
            "{}{more}: the process of pmmpi has ended during {during}, so the screen ends{hint}",
            some.join(", ")
        );
        self.done.ending.failure = Some(Failure { code: INCOMPLETE, message });
        if std::io::stderr().is_terminal() {
            let _ = std::io::stderr().write_all(b"\r\x1b[K"); // the bar of the runner
        }
        screen_report::finish(&self.plan, &self.done)
    }
}

/// What came.
#[derive(Default)]
struct Polled {
    /// True if rank 0 has said something, or has ended.
    has_words: bool,
    /// Other ranks that have ended.
    lost: Vec<Hello>,
}
