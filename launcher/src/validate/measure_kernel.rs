//! Runs a test loop between two snapshots, several times.

use super::Reference;
use pmmpi::counters::count_and_quality::{Gap, Quality, Reading, WhyUnavailable};
use pmmpi::counters::counter_table::was_read;
use pmmpi::counters::open_counters::{GROUP_HEAD, OpenCounters, Opened};
use pmmpi_kernels::{Caches, EMPTY, Expected, Function, Kernel, PreparedMemory};
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A clock read beside a counter that must agree with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// CLOCK_THREAD_CPUTIME_ID, compared with the task clock.
    CpuTime,
    /// The time stamp counter, compared with that of the PMU `msr`.
    Tsc,
    /// The time stamp counter, compared with reference cycles: equal if the core never halts.
    TscWhileRunning,
}

const CONTEXT_SWITCHES: &str = "context_switches";

/// The kernel for the comparison of clocks: the longest one that stays in user mode.
pub const CLOCKS_KERNEL: &str = "cycles";

impl Beside {
    pub const ALL: [Self; 3] = [Beside::CpuTime, Beside::Tsc, Beside::TscWhileRunning];

    /// The event that must agree with the clock.
    pub fn event(self) -> &'static str {
        match self {
            Beside::CpuTime => "task_clock_ns",
            Beside::Tsc => "tsc",
            Beside::TscWhileRunning => "ref_cycles",
        }
    }

    /// True for a clock that stops while another thread has the core, as a thread's counters do.
    fn stops(self) -> bool {
        self == Beside::CpuTime
    }

    /// The name of the clock.
    pub fn name(self) -> &'static str {
        match self {
            Beside::CpuTime => "CPU time of the thread",
            Beside::Tsc | Beside::TscWhileRunning => "time stamp counter",
        }
    }
}

/// The values of all clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    cpu_ns: f64,
    tsc: Option<f64>,
    /// How often another thread took the core.
    interruptions: i64,
}

impl Clocks {
    fn read() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the calls fill in live locals; if they fail, zeros are valid.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now);
            usage.assume_init()
        };
        Self {
            cpu_ns: now.tv_sec as f64 * 1e9 + now.tv_nsec as f64,
            tsc: pmmpi::clock::tsc().map(|ticks| ticks as f64),
            interruptions: usage.ru_nivcsw,
        }
    }

    fn since(self, start: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns - start.cpu_ns,
            tsc: self.tsc.zip(start.tsc).map(|(now, then)| now - then),
            interruptions: self.interruptions - start.interruptions,
        }
    }

    fn of(&self, beside: Beside) -> Option<f64> {
        match beside {
            Beside::CpuTime => Some(self.cpu_ns),
            Beside::Tsc | Beside::TscWhileRunning => self.tsc,
        }
    }
}

/// One section: a reading of each event of the only set, and the clocks.
struct Section {
    readings: Vec<Reading>,
    clocks: Clocks,
}

impl Section {
    /// True if no other thread took the core meanwhile.
    fn was_alone(&self) -> bool {
        self.clocks.interruptions == 0
    }
}

/// The value of one event in one section.
#[derive(Clone, Debug)]
pub struct EventValue {
    pub quality: Quality,
    pub running_share: Option<f64>,
    /// Why there is no value, or why it is incomplete.
    pub reason: Option<String>,
    pub value: Option<f64>,
    pub expected: Option<[f64; 2]>,
}

impl EventValue {
    /// `value` is the reading minus the overhead of the snapshots.
    pub fn of(reading: &Reading, value: Option<f64>, expected: Option<[f64; 2]>) -> Self {
        let (quality, running_share, reason) = (reading.quality(), reading.running_share(), reading.reason());
        Self { quality, running_share, reason, value, expected }
    }

    /// How far the value is outside the expected range, as a fraction of the nearer limit; a limit below 1 counts as 1.
    pub fn deviation(&self) -> Option<f64> {
        let (value, [low, high]) = (self.value?, self.expected?);
        Some(if value < low {
            (low - value) / low.max(1.0)
        } else if value > high {
            (value - high) / high.max(1.0)
        } else {
            0.0
        })
    }
}

/// Several sections with the kernel, and several without work.
pub struct Repeats {
    full: Vec<Section>,
    empty: Vec<Section>,
}

/// The most tries if other threads take the core, as a multiple of the wanted repeats.
const MOST_TRIES: usize = 4;

/// Where a kernel runs: the hardware threads and caches for [`pmmpi_kernels::Memory::prepare`].
#[derive(Clone, Copy)]
pub struct KernelPlace<'a> {
    pub cpus: [u32; 2],
    pub caches: &'a Caches,
}

/// Runs a kernel until it had the core alone `times` times, at most `MOST_TRIES` times as often. Does not run it if no
/// event opens.
pub fn repeat(
    kernel: &Kernel,
    place: KernelPlace,
    times: usize,
    counters: &mut dyn OpenCounters,
) -> io::Result<Repeats> {
    let KernelPlace { cpus, caches } = place;
    let words: [Vec<AtomicU64>; 2] =
        std::array::from_fn(|_| (0..counters.opened().words()).map(|_| AtomicU64::new(0)).collect());
    let mut section =
        |run: Function, trips, memory: &PreparedMemory| measure(counters, &words, run, trips, memory);
    let none = pmmpi_kernels::Memory::None.prepare(0, cpus, caches)?;
    // The first section loads code and tables into memory.
    section(EMPTY, 0, &none);
    let empty: Vec<Section> = (0..times).map(|_| section(EMPTY, 0, &none)).collect();
    let nothing_open =
        empty.iter().all(|section| section.readings.iter().all(|one| !one.quality().has_value()));
    if nothing_open {
        return Ok(Repeats { full: Vec::new(), empty });
    }
    let fresh = kernel.memory == pmmpi_kernels::Memory::FreshPages;
    let mut memory = kernel.memory.prepare(kernel.trips, cpus, caches)?;
    section(kernel.body.run, kernel.trips, &memory);
    let mut full = Vec::with_capacity(times);
    let mut alone = 0;
    for _ in 0..times * MOST_TRIES {
        if fresh {
            memory = kernel.memory.prepare(kernel.trips, cpus, caches)?;
        }
        full.push(section(kernel.body.run, kernel.trips, &memory));
        alone += usize::from(full.last().is_some_and(Section::was_alone));
        if alone == times {
            break;
        }
    }
    Ok(Repeats { full, empty })
}

fn measure(
    counters: &mut dyn OpenCounters,
    words: &[Vec<AtomicU64>; 2],
    run: Function,
    trips: u64,
    memory: &PreparedMemory,
) -> Section {
    let start = Clocks::read();
    counters.snapshot(&words[0]);
    // SAFETY: the memory was prepared for this kernel and these trips.
    unsafe { run(trips, memory.start(), memory.stride()) };
    counters.snapshot(&words[1]);
    let clocks = Clocks::read().since(start);
    let readings = readings(counters.opened(), &words[0], &words[1]);
    for word in words.iter().flatten() {
        word.store(0, Relaxed); // a failed snapshot leaves the old values
    }
    Section { readings, clocks }
}

/// The readings of the first set's events, in their order.
fn readings(opened: &Opened, start: &[AtomicU64], stop: &[AtomicU64]) -> Vec<Reading> {
    let Some(set) = opened.sets.first() else { return Vec::new() };
    let missing =
        |gap: Option<Gap>| Reading::missing(gap.unwrap_or(Gap::Unavailable(WhyUnavailable::NoSnapshot)));
    let mut readings: Vec<Reading> = set.events.iter().map(|(_, gap)| missing(*gap)).collect();
    for ((handle, start), (_, stop)) in opened.places(start).zip(opened.places(stop)) {
        if !was_read(start) || !was_read(stop) {
            continue;
        }
        let between = |at: usize| stop[at].load(Relaxed).wrapping_sub(start[at].load(Relaxed));
        let group = set.groups.get(handle.group as usize).map_or(&[][..], Vec::as_slice);
        for (at, event) in group.iter().enumerate() {
            if let (Some(reading), Some((_, gap))) =
                (readings.get_mut(*event as usize), set.events.get(*event as usize))
            {
                let [enabled_ns, running_ns] = [1, 2].map(between);
                *reading = Reading { count: between(GROUP_HEAD + at), enabled_ns, running_ns, gap: *gap };
            }
        }
    }
    readings
}

impl Repeats {
    /// Event `at` of the group in each repeat, minus the overhead of the snapshots, with its expected value. Leaves
    /// out repeats in which another thread took the core, if there are other repeats. If there are none, a clock
    /// that did not stop meanwhile is no reference.
    pub(super) fn of(&self, at: usize, reference: Reference, trips: u64) -> Vec<EventValue> {
        if self.full.is_empty() {
            let expected = match reference {
                Reference::Paper(expected) => Some(on_paper(expected, trips, 0)),
                Reference::Beside(_) => None,
            };
            let missing = |section: &Section| EventValue::of(&section.readings[at], None, expected);
            return self.empty.first().map(missing).into_iter().collect();
        }
        let overhead = self.overhead(at).unwrap_or(0.0);
        let some_alone = self.full.iter().any(Section::was_alone);
        let sections = self.full.iter().filter(|section| !some_alone || section.was_alone());
        sections
            .map(|section| {
                let reading = section.readings[at];
                let expected = match reference {
                    Reference::Paper(expected) => {
                        Some(on_paper(expected, trips, section.clocks.interruptions))
                    }
                    Reference::Beside(beside) => {
                        let clock =
                            section.clocks.of(beside).filter(|_| beside.stops() || section.was_alone());
                        clock.map(|clock| [clock - self.clock_overhead(beside); 2])
                    }
                };
                EventValue::of(&reading, reading.value().map(|value| value as f64 - overhead), expected)
            })
            .collect()
    }

    /// The count that two snapshots add to event `at`: the median of the sections without work.
    pub fn overhead(&self, at: usize) -> Option<f64> {
        let value = |section: &Section| section.readings[at].value().map(|value| value as f64);
        median(self.empty.iter().map(value).collect::<Option<Vec<f64>>>()?)
    }

    fn clock_overhead(&self, beside: Beside) -> f64 {
        let clocks = self.empty.iter().filter_map(|section| section.clocks.of(beside));
        median(clocks.collect()).unwrap_or(0.0)
    }
}

/// The expected count of a kernel. Other threads that take the core add context switches, so the upper limit grows by
/// their number.
fn on_paper(expected: Expected, trips: u64, interruptions: i64) -> [f64; 2] {
    let more = if expected.event == CONTEXT_SWITCHES { interruptions.max(0) as f64 } else { 0.0 };
    [expected.low.of(trips), expected.high.of(trips) + more]
}

/// The middle value, or the lower of the two middle values, so that the result is a measured value.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::counters::default;
    use pmmpi::counters::event::{Encoding, Event};
    use pmmpi::counters::open_counters::{CounterHandle, Scripted, Set};

    /// One group of two events. `counts` has the counts of each snapshot; the group runs all the time if `running`
    /// is 2, half of the time if it is 1.
    fn scripted(counts: impl IntoIterator<Item = [u64; 2]>, running: u64) -> Scripted {
        let event = |name| (Event::counted(name, Encoding::new(0, 0)), None);
        let set = Set { events: vec![event("a"), event("b")], groups: vec![vec![0, 1]], ..Set::default() };
        let handle = CounterHandle { set: 0, group: 0, cpu: None, descriptor: -1, id: 0 };
        let opened = Opened { sets: vec![set], handles: vec![handle] };
        let snapshot = move |(at, [a, b]): (usize, [u64; 2])| {
            let time = at as u64 + 1;
            vec![2, time * 2, time * running, a, b]
        };
        Scripted::new(opened, counts.into_iter().enumerate().map(snapshot))
    }

    const HERE: KernelPlace =
        KernelPlace { cpus: [0, 0], caches: &Caches { l1_bytes: 0, l2_bytes: 0, l3_bytes: 0 } };

    fn loads() -> &'static Kernel {
        pmmpi_kernels::all().iter().find(|kernel| kernel.name == "loads").unwrap()
    }

    #[test]
    fn what_snapshots_cost_is_taken_off() {
        // Sections: one warm-up and three without work; then one warm-up and the repeats with work.
        let empty = [[0, 0], [9, 9], [10, 0], [13, 2], [20, 0], [23, 2], [30, 0], [39, 2]];
        let first = [[0, 0], [900, 9]];
        // Snapshots for the most tries, because other threads may take the core on a busy machine.
        let full = (0..3 * MOST_TRIES as u64).flat_map(|time| [[200 * time, 0], [200 * time + 103, 7]]);
        let mut counters = scripted(empty.into_iter().chain(first).chain(full), 2);
        let repeats = repeat(loads(), HERE, 3, &mut counters).unwrap();
        assert_eq!((repeats.overhead(0), repeats.overhead(1)), (Some(3.0), Some(2.0)));
        let paper = Reference::Paper(Expected::exactly("a", 100.0, 0.0));
        for measured in repeats.of(0, paper, 1) {
            assert_eq!((measured.value, measured.expected), (Some(100.0), Some([100.0; 2])));
        }
        assert!(repeats.of(1, paper, 1).iter().all(|measured| measured.value == Some(5.0)));
    }

    #[test]
    fn where_nothing_is_open_nothing_runs() {
        let mut counters = Scripted::new(Opened::default(), []);
        let repeats = repeat(loads(), HERE, 3, &mut counters).unwrap();
        assert!(repeats.full.is_empty());
    }

    #[test]
    fn a_snapshot_that_fails_is_no_count() {
        let mut counters = scripted([[0, 0]; 1], 2);
        let repeats = repeat(loads(), HERE, 3, &mut counters).unwrap();
        let paper = Reference::Paper(Expected::exactly("a", 100.0, 0.0));
        assert!(repeats.of(0, paper, 1).iter().all(|measured| measured.value.is_none()));
    }

    #[test]
    fn others_that_took_the_core_are_no_error_of_the_count_of_switches() {
        let switches = Expected::exactly(CONTEXT_SWITCHES, 0.0, 1.0);
        assert_eq!(on_paper(switches, 20, 3), [20.0, 23.0]);
        assert_eq!(on_paper(Expected::exactly("page_faults", 0.0, 1.0), 20, 3), [20.0, 20.0]);
        let names: Vec<String> = default::groups().into_iter().flatten().map(|event| event.name).collect();
        assert!(names.iter().any(|name| name == CONTEXT_SWITCHES));
    }

    #[test]
    fn the_median_is_a_value_that_occurred() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
