//! The supervisor of a screen: the `pmmpi` process of rank 0. It starts the runner and stays its parent. If any rank is
//! killed while the ranks measure, the supervisor names this rank, reports the saved rounds, and ends the other ranks.

use super::rank_connections::RankConnections;
use crate::launch::RunnerFamily;
use crate::run::exec_runner;
use crate::run::task::Task;
use pmmpi::counters::descriptor_room::DescriptorRoom;
use pmmpi::node::NodeKey;
use pmmpi::record::End;
use pmmpi::session::shared_memory::SharedMemory;
use pmmpi_workload::process::Running;
use pmmpi_workload::rank_watch::{Hello, OVER, STOP, TOLD};
use pmmpi_workload::runner_plan::RunnerPlan;
use pmmpi_workload::screen_messages::{Hearer, RoundsEnd, Told};
use pmmpi_workload::screen_plan::{ScreenOutcome, ScreenPlan};
use pmmpi_workload::screen_report::{self, INCOMPLETE};
use pmmpi_workload::{Failure, descendants, signals};
use std::io::{IsTerminal, PipeReader, Write, pipe};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Time for the ranks to save and to end after a signal. Open MPI kills its processes one second after the signal.
const AFTER_SIGNAL: Duration = Duration::from_millis(600);
/// Most ranks that a message names.
const MOST_NAMES: usize = 8;
/// Time for the ranks to end by themselves after the report: as much as the kernels and programs have after --timeout.
const GRACE: Duration = Duration::from_secs(10);
/// A signal directly before the sleep does not end it.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);
/// Time for MPI_Finalize.
const FINALIZE: Duration = Duration::from_secs(30);

/// Why the supervisor stops waiting.
enum Heard {
    /// All rounds are done, or rank 0 ended them in order.
    Ended(RoundsEnd),
    /// The runner ended, and said nothing.
    NoMore,
    /// Other ranks ended first.
    Lost,
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
    /// Other ranks that have ended, in this order.
    lost: Vec<Hello>,
    /// True if the runner's own connection has ended.
    has_lost_rank_0: bool,
    done: ScreenOutcome,
}

impl Supervisor {
    /// Starts the runner, which measures as the plan says.
    pub fn start(task: &Task, family: RunnerFamily, mut plan: ScreenPlan) -> Result<Self, Failure> {
        let (reader, writer) = pipe()
            .map_err(|e| Failure::own(format_args!("pmmpi cannot make a pipe to pmmpi-runner: {e}")))?;
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
        let (lost, has_lost_rank_0, done) = (Vec::new(), false, ScreenOutcome::default());
        Ok(Self { plan, runner, _shared: shared, hearer, connections, doing, lost, has_lost_rank_0, done })
    }

    /// Waits for the end of the rounds, and shows the result.
    pub fn run(mut self) -> Result<End, Failure> {
        // Each connection needs a descriptor. Neither the runner nor the report must inherit the limit.
        let room = DescriptorRoom::make();
        let heard = self.wait();
        // Perhaps rank 0 failed because another rank had ended.
        let end = if matches!(heard, Heard::NoMore) { self.end_of_runner() } else { End::Lost };
        drop(room);
        let result = match heard {
            Heard::Ended(ending) => {
                self.say(OVER);
                let limit = if ending.stopped_by.is_some() { AFTER_SIGNAL } else { FINALIZE };
                self.done.ending = ending;
                if self.runner.ends_within(limit) {
                    // Its end does not matter any more.
                    let _ = self.runner.wait(None);
                    signals::no_more_children();
                    return screen_report::finish(&self.plan, &self.done);
                }
                self.pause();
                screen_report::finish(&self.plan, &self.done)
            }
            Heard::NoMore => self.finish_without_rank_0(end),
            Heard::Lost => {
                self.pause();
                let lost = std::mem::take(&mut self.lost);
                self.finish_without(&lost)
            }
            Heard::Signal(signal) => {
                self.say(TOLD);
                self.done.ending.stopped_by = Some(signal);
                let result = screen_report::finish(&self.plan, &self.done);
                self.runner.ends_within(GRACE); // the user's program may save something
                result
            }
        };
        // Only now, because an MPI library that loses a connection ends the whole job.
        self.say(STOP);
        descendants::signal(&descendants::living(self.runner.pid()), libc::SIGKILL);
        result
    }

    /// Says this word to all ranks.
    fn say(&mut self, word: u8) {
        self.connections.iter_mut().for_each(|connections| connections.say(word));
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
            let mut has_words = self.poll(left.unwrap_or(LONGEST_SLEEP));
            descendants::reap_all_but(self.runner.pid());
            // Whoever ends in order ends after rank 0 has said so.
            let has_lost = self.has_lost_rank_0 || !self.lost.is_empty();
            has_words = has_words || has_lost && self.poll(Duration::ZERO);
            while has_words {
                let Some(all) = self.hearer.hear() else { return Heard::NoMore };
                for told in all {
                    match told {
                        Told::Begins(work) => self.doing = work,
                        Told::Saved(file) => self.done.files.push(file),
                        Told::Ended(ending) => return Heard::Ended(ending),
                    }
                }
                has_words = has_lost && self.poll(Duration::ZERO);
            }
            if !self.lost.is_empty() {
                return Heard::Lost;
            }
            if self.has_lost_rank_0 {
                return Heard::NoMore;
            }
        }
    }

    /// Waits until something comes, for this time at most. True if rank 0 has said something, or has ended.
    fn poll(&mut self, limit: Duration) -> bool {
        let pipe = libc::pollfd { fd: self.hearer.pipe().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let connections = self.connections.iter().flat_map(RankConnections::polls);
        let mut polls: Vec<_> = [pipe].into_iter().chain(connections).collect();
        // Rounded up, so that the time is over afterwards.
        let limit_ms = limit.as_micros().div_ceil(1000) as libc::c_int;
        // SAFETY: so many live structures.
        if unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, limit_ms) } < 1 {
            return false;
        }
        if let Some(connections) = &mut self.connections {
            let lost = connections.settle(&polls[1..]);
            self.has_lost_rank_0 |= lost.iter().any(|of| of.rank == 0);
            self.lost.extend(lost.into_iter().filter(|of| of.rank != 0));
        }
        polls[0].revents != 0
    }

    /// How the runner ended. Also looks which other ranks have ended.
    fn end_of_runner(&mut self) -> End {
        // After a failure, MPI_Finalize may wait for a rank that has ended.
        let has_ended = self.runner.ends_within(FINALIZE);
        let end =
            if has_ended { self.runner.wait(None).map_or(End::Lost, |ended| ended.end) } else { End::Lost };
        // After a kill, the job's launcher kills the others, too.
        if end == End::Signaled(libc::SIGKILL) {
            self.lost.clear();
        } else {
            self.poll(Duration::ZERO);
        }
        end
    }

    /// Reports what is saved after this end of the runner, which has said why it failed unless a signal ended it.
    fn finish_without_rank_0(&mut self, end: End) -> Result<End, Failure> {
        let others = std::mem::take(&mut self.lost);
        match (end, signals::asked_to_end()) {
            _ if !others.is_empty() => self.finish_without(&others),
            (End::Exited(code), _) if self.done.files.is_empty() => Ok(End::Exited(code)),
            (_, Some(signal)) => {
                self.done.ending.stopped_by = Some(signal);
                screen_report::finish(&self.plan, &self.done)
            }
            _ => {
                let host = NodeKey::own().hostname.clone();
                self.finish_without(&[Hello { token: [0; 16], rank: 0, host }])
            }
        }
    }

    /// Names the ranks that have ended, and reports what is saved.
    fn finish_without(&mut self, lost: &[Hello]) -> Result<End, Failure> {
        self.say(TOLD);
        let name = |of: &Hello| format!("{} (rank {})", of.host, of.rank);
        let some: Vec<String> = lost.iter().take(MOST_NAMES).map(name).collect();
        let more = lost.len().saturating_sub(MOST_NAMES);
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
            "{}{more}: the process of pmmpi was killed, failed or did not answer during {during}, so the screen ends{hint}",
            some.join(", ")
        );
        self.done.ending.failure = Some(Failure { code: INCOMPLETE, message });
        if std::io::stderr().is_terminal() {
            let _ = std::io::stderr().write_all(b"\r\x1b[K"); // the bar of the runner
        }
        screen_report::finish(&self.plan, &self.done)
    }
}
