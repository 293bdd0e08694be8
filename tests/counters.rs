//! Counters on this machine, with or without a PMU. The counts of the kernel's own events are exact.

use pmmpi::counters::count_and_quality::{Quality, Reading};
use pmmpi::counters::event::{Encoding, Event, Modes, kind};
use pmmpi::counters::open_counters::{OpenCounters, Scope};
use pmmpi::counters::perf_event_open::{Counters, Target};
use pmmpi::node::NodeSettings;
use pmmpi_events::names::{Asked, EventNames};
use pmmpi_events::readings::readings;
use rig::cluster::machine;
use rig::counting::{Counted, alone, handed_down};
use rig::known_counts::{Pages, Watched, turns};
use rig::perf_rights::{LinuxKernel, time_stamp_counter, wrong_cells};
use rig::tool::target;
use rig::users::{Paranoid, is_root, pin};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

// linux/perf_event.h: enum perf_sw_ids.
const CPU_CLOCK: u64 = 0;
const TASK_CLOCK: u64 = 1;
const PAGE_FAULTS: u64 = 2;

/// Page faults of the program's own accesses, which any user may count.
fn page_faults() -> Encoding {
    Encoding::new(kind::SOFTWARE, PAGE_FAULTS).in_modes(Modes::User)
}

/// False if this user may not count on hardware threads: then there is nothing to check.
fn may_watch_hardware_threads() -> bool {
    is_root() || Paranoid::keep().unwrap().level() <= 0
}

/// The hardware threads of this machine, by the kernel's numbers.
fn online() -> Vec<u32> {
    NodeSettings::read(Path::new("/")).online.numbers().collect()
}

fn program() -> PathBuf {
    target().join("release/pmmpi-rig-pmu")
}

#[test]
fn each_user_may_count_what_each_level_allows_and_is_told_what_mends_the_rest() {
    let _alone = machine();
    let (asked, wrong) = wrong_cells(&program(), LinuxKernel::running()).unwrap();
    assert!(asked >= if is_root() { 6 * 4 * 8 } else { 8 } && wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn breakpoints_are_counted_to_the_last_one_on_all_threads() {
    const THREADS: u64 = 3;
    static WATCHED: Watched = Watched::new();
    for count in [0, 1, 16, 1000] {
        let counted = Counted::during(&alone("writes", WATCHED.event()), Target::ThisThread, || {
            thread::scope(|scope| {
                (0..THREADS).for_each(|_| drop(scope.spawn(|| WATCHED.write(count))));
                WATCHED.write(count);
            });
        });
        let reading = counted.of("writes").unwrap();
        let expected = (Quality::Exact, Some((THREADS + 1) * count));
        assert_eq!((reading.quality(), reading.value()), expected, "{reading:?}");
    }
}

#[test]
fn page_faults_are_counted_to_the_last_one() {
    let groups = alone("page-faults", page_faults());
    let faults = |work: &dyn Fn()| {
        let reading = Counted::during(&groups, Target::ThisThread, work).of("page-faults").unwrap();
        assert_eq!(reading.quality(), Quality::Exact);
        reading.value().unwrap()
    };
    let pages = Pages::new().unwrap();
    assert_eq!(faults(&|| ()), 0);
    assert_eq!(faults(&|| pages.touch()), Pages::COUNT as u64);
    assert_eq!(faults(&|| pages.touch()), 0);
}

/// As root, if the kernel shows its tracepoints: the tracepoint of a system call that nothing else makes.
#[test]
fn tracepoints_are_counted_to_the_last_one() {
    const CALLS: u64 = 1000;
    let no_vendor = |_: &[String]| Err("nobody to ask".to_owned());
    let name = "syscalls:sys_enter_getppid";
    let asked = match EventNames::of(Path::new("/")).resolve(name, no_vendor) {
        Ok(asked) => asked,
        // There is always a reason.
        Err(e) => {
            assert!(e.to_string().contains("did not look up tracepoints") || !is_root(), "{e}");
            return;
        }
    };
    let [Asked::Event(events)] = &asked[..] else { panic!("{asked:?}") };
    let counted = Counted::during(&[vec![events[0].event.clone()]], Target::ThisThread, || {
        // SAFETY: the call reads a number.
        (0..CALLS).for_each(|_| _ = unsafe { libc::getppid() });
    });
    let reading = counted.of(name).unwrap();
    assert_eq!((reading.quality(), reading.value()), (Quality::Exact, Some(CALLS)));
}

#[test]
fn a_program_reads_what_its_launcher_opened() {
    let _alone = machine();
    assert_eq!(handed_down(&program(), page_faults(), "pages").unwrap(), Pages::COUNT.to_string());
}

#[test]
fn each_hardware_thread_has_a_row_of_its_own() {
    if !may_watch_hardware_threads() {
        return;
    }
    let (own, cpus) = (pin().unwrap(), online());
    let targets: Vec<Target> = cpus.iter().map(|cpu| Target::Cpu(*cpu)).collect();
    let mut counters = Counters::default();
    let faults = Event::counted("page-faults", Encoding::new(kind::SOFTWARE, PAGE_FAULTS));
    let clock = Event::counted("cpu-clock", Encoding::new(kind::SOFTWARE, CPU_CLOCK));
    counters.add(Scope::Core, &[vec![faults], vec![clock]], &targets);
    let pages = Pages::new().unwrap();
    let counts = Counted::with(&mut counters, || pages.touch()).counts;
    let rows: Vec<Option<u32>> = counts.rows.iter().map(|row| row.cpu).collect();
    assert_eq!(rows, cpus.iter().copied().map(Some).collect::<Vec<_>>());
    for row in &counts.rows {
        let readings: Vec<Reading> = readings(&counts, row).map(|(_, reading)| reading).collect();
        assert!(readings.iter().all(|reading| reading.quality() == Quality::Exact), "{readings:?}");
        // The clock of a hardware thread runs whatever runs on the thread.
        assert!(readings[1].count > 0 && (row.cpu != Some(own) || readings[0].count >= Pages::COUNT as u64));
    }
}

#[test]
fn threads_and_children_are_counted_as_long_as_they_were_on_a_processor() {
    let _alone = machine();
    // Each works for about a tenth of a second, because a child's time before its exec is not counted for
    // NextProgram.
    let groups = vec![vec![Event::counted("task-clock", Encoding::new(kind::SOFTWARE, TASK_CLOCK))]];
    for work in [["0", "0"], ["3", "0"], ["0", "3"], ["3", "3"]] {
        for target in [Target::ThisThread, Target::NextProgram] {
            let (began, before) = (Instant::now(), children_ns());
            let counted = Counted::during(&groups, target, || {
                let status = Command::new(program()).arg("work").args(work).arg("300000000").status();
                assert!(status.unwrap().success());
            });
            let (clock_ns, used_ns) = (counted.value("task-clock").unwrap(), children_ns() - before);
            let most_ns = began.elapsed().as_nanos() as u64 * online().len() as u64;
            // A hypervisor may take time for other machines. The task's clock counts this time, but CPU time does
            // not, so the clock may show more. With up to seven equal workers, a tenth less means that one worker was
            // missed.
            let context = format!("{work:?}, {target:?}: {clock_ns} of {used_ns} ns");
            assert!(10 * clock_ns >= 9 * used_ns, "{context}");
            assert!(clock_ns <= most_ns, "{context}, and no more than {most_ns} can be");
        }
    }
}

/// CPU time of all children that this process has waited for (ns).
fn children_ns() -> u64 {
    // SAFETY: all zeros is a valid rusage, and the call writes it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// Counts on a hardware thread, because a thread may be off the processor for a while.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_time_stamp_counter_is_what_the_processor_says() {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;
    // Some hypervisors hide it from the kernel.
    let Some(tsc) = time_stamp_counter().filter(|_| may_watch_hardware_threads()) else { return };
    let mut counters = Counters::default();
    counters.add(Scope::Core, &alone("tsc", tsc), &[Target::Cpu(pin().unwrap())]);
    assert_eq!(counters.opened().words(), 4, "{:?}", counters.opened());
    // SAFETY: the instruction reads a register.
    let now = || unsafe { std::arch::x86_64::_rdtsc() };
    // The counter's value, and the processor's before and after it. Of ten readings, the one that took the shortest
    // time.
    let mut read = || {
        let readings = (0..10).map(|_| {
            let words: [AtomicU64; 4] = Default::default();
            let before = now();
            counters.snapshot(&words);
            (words[3].load(Relaxed), before, now())
        });
        readings.min_by_key(|(_, before, after)| after - before).unwrap()
    };
    let _alone = machine();
    // How far the readings are apart depends on the load; that the counter is between them does not.
    for _ in 0..5 {
        let (start, before_start, after_start) = read();
        turns(50_000_000);
        let (stop, before_stop, after_stop) = read();
        assert!((before_stop - after_start..=after_stop - before_start).contains(&(stop - start)));
    }
}
