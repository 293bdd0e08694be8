//! A team of threads, each pinned to one hardware thread.

use crate::affinity::pin;
use crate::barrier::SpinBarrier;
use crate::error::Error;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that stay on their hardware threads until the team is dropped.
pub struct Team {
    hardware_threads: Arc<[u32]>,
    members: Vec<(Sender<Job>, JoinHandle<()>)>,
    barrier: Arc<SpinBarrier>,
}

/// One thread's place in the team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TeamMember {
    /// The number of the thread in the team, from 0.
    pub number: usize,
    /// The hardware thread on which it runs.
    pub hardware_thread: u32,
}

/// The times at which a thread started and ended its part of a repetition, by CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the thread left the barrier.
    pub start_ns: u64,
    /// When its work was done.
    pub end_ns: u64,
}

/// A value for each thread of a team.
pub struct PerThread<S>(Arc<[Slot<S>]>);

/// Alone in its cache lines, as threads write to their own slots.
#[repr(align(128))]
struct Slot<S>(Mutex<S>);

impl Span {
    /// Its length; at least 1 ns, so that a rate is finite.
    pub fn elapsed_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(1)
    }

    /// From the earliest start to the latest end.
    pub fn of_all(spans: &[Span]) -> Span {
        let start_ns = spans.iter().map(|span| span.start_ns).min().unwrap_or_default();
        Span { start_ns, end_ns: spans.iter().map(|span| span.end_ns).max().unwrap_or_default() }
    }
}

impl Team {
    /// Starts a thread on each of these hardware threads. The caller chooses one hardware thread per core, because
    /// threads that share a core slow each other down.
    pub fn new(hardware_threads: &[u32]) -> Result<Self, Error> {
        if hardware_threads.is_empty() {
            return Err(Error::Setting("No hardware thread is given; give at least one".to_owned()));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = hardware_threads.iter().find(|one| !seen.insert(**one)) {
            return Err(Error::Setting(format!(
                "Hardware thread {twice} is given twice; give each hardware thread once"
            )));
        }
        let barrier = Arc::new(SpinBarrier::new(hardware_threads.len()));
        let mut team = Self { hardware_threads: hardware_threads.into(), members: Vec::new(), barrier };
        for hardware_thread in hardware_threads {
            let (sender, jobs): (Sender<Job>, Receiver<Job>) = channel();
            let builder = Builder::new().name(format!("screen-{hardware_thread}"));
            let started = builder.spawn(move || jobs.into_iter().for_each(|job| job()));
            let thread = started.map_err(|reason| Error::System {
                what: format!("Cannot start a thread for hardware thread {hardware_thread}"),
                reason,
                advice: "raise the limit of processes (ulimit -u) or of the container (pids.max)",
            })?;
            team.members.push((sender, thread));
        }
        team.each(|member| pin(member.hardware_thread))?;
        Ok(team)
    }

    /// The hardware threads of the team, in the order of its threads.
    pub fn hardware_threads(&self) -> &[u32] {
        &self.hardware_threads
    }

    /// The number of threads.
    pub fn len(&self) -> usize {
        self.hardware_threads.len()
    }

    /// False: a team has at least one thread.
    pub fn is_empty(&self) -> bool {
        self.hardware_threads.is_empty()
    }

    /// Calls `work` on each thread at the same time, and waits for all threads. If several threads fail, returns the
    /// error of the first one; a wrong result comes before all other errors.
    pub fn each<R, W>(&self, work: W) -> Result<Vec<R>, Error>
    where
        R: Send + 'static,
        W: Fn(TeamMember) -> Result<R, Error> + Send + Sync + 'static,
    {
        let (work, (sender, results)) = (Arc::new(work), channel());
        for (number, (jobs, _)) in self.members.iter().enumerate() {
            let member = TeamMember { number, hardware_thread: self.hardware_threads[number] };
            let (work, sender) = (Arc::clone(&work), sender.clone());
            let job = move || {
                let result = catch_unwind(AssertUnwindSafe(|| work(member))).unwrap_or_else(|panic| {
                    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                    Err(Error::Internal(format!(
                        "The thread on hardware thread {} panicked: {text}",
                        member.hardware_thread
                    )))
                });
                // Free what the work holds before the caller continues.
                drop(work);
                let _ = sender.send((number, result)); // the caller waits for it
            };
            jobs.send(Box::new(job)).map_err(|_| self.lost(number))?;
        }
        drop(sender);
        let mut done: Vec<Option<Result<R, Error>>> = (0..self.len()).map(|_| None).collect();
        for (number, result) in results {
            done[number] = Some(result);
        }
        let (mut values, mut first) = (Vec::new(), None);
        for (number, result) in done.into_iter().enumerate() {
            match (result.unwrap_or_else(|| Err(self.lost(number))), &first) {
                (Ok(value), _) => values.push(value),
                (Err(_), Some(Error::Wrong(_))) => {}
                (Err(error), None) | (Err(error @ Error::Wrong(_)), Some(_)) => first = Some(error),
                (Err(_), Some(_)) => {}
            }
        }
        first.map_or(Ok(values), Err)
    }

    /// Makes a value on each thread.
    pub fn create<S, W>(&self, work: W) -> Result<PerThread<S>, Error>
    where
        S: Send + 'static,
        W: Fn(TeamMember) -> Result<S, Error> + Send + Sync + 'static,
    {
        let values = self.each(work)?;
        Ok(PerThread(values.into_iter().map(|value| Slot(Mutex::new(value))).collect()))
    }

    /// Calls `work` on each thread with the thread's own value, as [`Team::each`].
    pub fn with<S, R, W>(&self, values: &PerThread<S>, work: W) -> Result<Vec<R>, Error>
    where
        S: Send + 'static,
        R: Send + 'static,
        W: Fn(TeamMember, &mut S) -> Result<R, Error> + Send + Sync + 'static,
    {
        let slots = Arc::clone(&values.0);
        self.each(move |member| {
            let mut value = slots[member.number].0.lock().unwrap_or_else(PoisonError::into_inner);
            work(member, &mut value)
        })
    }

    /// Calls `work` on each thread with the thread's own value. All threads start together. Returns what each thread
    /// returned, and the span of each thread.
    pub fn timed<S, R, W>(&self, values: &PerThread<S>, work: W) -> Result<(Vec<R>, Vec<Span>), Error>
    where
        S: Send + 'static,
        R: Send + 'static,
        W: Fn(&mut S) -> R + Send + Sync + 'static,
    {
        let barrier = Arc::clone(&self.barrier);
        let done = self.with(values, move |_, value| {
            barrier.wait();
            let start_ns = now_ns();
            let result = work(value);
            Ok((result, Span { start_ns, end_ns: now_ns() }))
        })?;
        Ok(done.into_iter().unzip())
    }

    fn lost(&self, number: usize) -> Error {
        Error::Internal(format!("The thread on hardware thread {} ended", self.hardware_threads[number]))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for (jobs, thread) in self.members.drain(..) {
            drop(jobs);
            let _ = thread.join(); // jobs catch their panics
        }
    }
}

/// Now, by CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to the given struct. The call cannot fail: the Linux kernel always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::affinity::allowed_hardware_threads;
    use crate::error::Wrong;

    /// A team on at most two hardware threads of this machine.
    pub(crate) fn small_team() -> Team {
        let allowed = allowed_hardware_threads().unwrap();
        Team::new(&allowed[..allowed.len().min(2)]).unwrap()
    }

    #[test]
    fn each_thread_runs_on_its_hardware_thread_only() {
        let team = small_team();
        let found = team.each(|_| Ok(allowed_hardware_threads().unwrap())).unwrap();
        let expected: Vec<Vec<u32>> = team.hardware_threads().iter().map(|one| vec![*one]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_team_refuses_hardware_threads_that_it_cannot_use() {
        let messages: Vec<String> = [&[][..], &[0, 1, 0], &[60_000]]
            .into_iter()
            .map(|hardware_threads| Team::new(hardware_threads).err().unwrap().to_string())
            .collect();
        assert!(messages[0].contains("at least one"), "{messages:?}");
        assert!(messages[1].contains("Hardware thread 0 is given twice"), "{messages:?}");
        assert!(messages[2].contains("hardware thread 60000"), "{messages:?}");
    }

    #[test]
    fn a_panic_of_a_thread_is_an_error_and_the_team_works_on() {
        let team = small_team();
        let error = team.each(|member| -> Result<(), Error> { panic!("number {}", member.number) });
        assert!(error.unwrap_err().to_string().contains("panicked: number 0"));
        let numbers = team.each(|member| Ok(member.number)).unwrap();
        assert_eq!(numbers, (0..team.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_wrong_result_comes_before_a_panic() {
        let team = small_team();
        let last = team.len() - 1;
        let error = team.each(move |member| -> Result<(), Error> {
            assert!(member.number == last, "not the last one");
            let [of, expected, found] = ["x", "1", "2"].map(str::to_owned);
            let hardware_thread = member.hardware_thread;
            Err(Error::Wrong(Wrong { hardware_thread, of, element: 0, expected, found, wrong_count: 1 }))
        });
        assert!(matches!(error, Err(Error::Wrong(_))), "{error:?}");
    }

    #[test]
    fn values_stay_with_their_threads_and_spans_enclose_the_work() {
        let team = small_team();
        let values = team.create(|member| Ok(member.hardware_thread)).unwrap();
        let (inside, spans) = team
            .timed(&values, |value| {
                *value += 1000;
                now_ns()
            })
            .unwrap();
        for (inside, span) in inside.into_iter().zip(&spans) {
            assert!((span.start_ns..=span.end_ns).contains(&inside));
            let all = Span::of_all(&spans);
            assert!(all.start_ns <= span.start_ns && span.end_ns <= all.end_ns);
        }
        let found = team.with(&values, |member, value| Ok(*value - member.hardware_thread)).unwrap();
        assert_eq!(found, vec![1000; team.len()]);
    }
}
