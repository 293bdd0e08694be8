//! Fake memory controllers: their files and their counts.

use super::*;
use crate::validate::findings::{KernelFindings, ValidationFindings};
use crate::validate::pin::Pinned;
use pmmpi::counters::count_and_quality::Gap;
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{CounterHandle, Opened, Scope, Scripted, Set};
use pmmpi::node::NodeFacts;
use pmmpi::record::{Mode, Run, RunHeader};
use pmmpi_events::validation::Trust;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A fake machine's files; drop removes them.
pub struct Root(PathBuf);

impl Root {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("test-memory-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A machine with these hardware threads in each socket.
    pub fn sockets(sockets: &[&[u32]]) -> Self {
        let root = Self::new();
        for (socket, cpu) in
            (0..).zip(sockets).flat_map(|(socket, cpus)| cpus.iter().map(move |cpu| (socket, cpu)))
        {
            let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
            root.put(&file, &format!("{socket}\n"));
        }
        let last = sockets.iter().copied().flatten().max().unwrap();
        root.put("sys/devices/system/cpu/online", &format!("0-{last}\n"));
        root
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds the caches of a hardware thread: level, type and size of each.
    pub fn caches(&self, cpu: u32, caches: &[(u32, &str, &str)]) {
        for (index, (level, kind, size)) in caches.iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            self.put(&format!("{folder}/level"), &format!("{level}\n"));
            self.put(&format!("{folder}/type"), &format!("{kind}\n"));
            self.put(&format!("{folder}/size"), &format!("{size}\n"));
        }
    }

    /// Adds a PMU; with an empty mask, it is a PMU of cores.
    pub fn pmu(&self, name: &str, number: u32, mask: &str, format: &[(&str, &str)], events: &[(&str, &str)]) {
        let folder = format!("sys/bus/event_source/devices/{name}");
        self.put(&format!("{folder}/type"), &format!("{number}\n"));
        if !mask.is_empty() {
            self.put(&format!("{folder}/cpumask"), &format!("{mask}\n"));
        }
        format.iter().for_each(|(name, bits)| self.put(&format!("{folder}/format/{name}"), bits));
        events.iter().for_each(|(name, text)| self.put(&format!("{folder}/events/{name}"), text));
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn processor(vendor: &str, family: u32, model: u32) -> Hardware {
    let cpu_vendor = Some(vendor.to_owned());
    Hardware { cpu_vendor, cpu_family: Some(family), cpu_model: Some(model), ..Hardware::default() }
}

fn skylake() -> Hardware {
    processor("GenuineIntel", 6, 0x55)
}

/// A socket with two controllers that count software events of this Linux kernel: the PMU `software` replaces
/// `uncore_imc`, with these bits for events.
fn stand_in(event: &str, cpu: u32) -> Root {
    let root = Root::sockets(&[&[0, 1]]);
    root.caches(cpu, &[(2, "Unified", "1024K")]);
    root.put("proc/meminfo", "MemAvailable: 67108864 kB\n");
    for channel in 0..2 {
        let format = [("event", event), ("umask", "config1:0-7")];
        root.pmu(&format!("uncore_imc_{channel}"), kind::SOFTWARE, &cpu.to_string(), &format, &[]);
    }
    root
}

fn of_event<'a>(checks: &'a [EventCheck], event: &str) -> &'a EventCheck {
    checks.iter().find(|check| check.event == event).unwrap_or_else(|| panic!("{event} in {checks:?}"))
}

/// The whole way from sysfs through perf_event_open(2), on the hardware thread of the mask, to the verdict in a report.
/// The events count no traffic, so the verdict must be "unusable".
#[test]
fn a_pmu_that_is_opened_on_its_mask_is_judged_kept_and_no_cause() {
    let pinned = Pinned::to(None).unwrap();
    // 0x04 counts migrations to and from this hardware thread. An array has 64 MiB.
    let root = stand_in("config:0-7", pinned.cpu());
    let hardware = skylake();
    let mut memory = MemoryControllers::new(root.path(), &hardware, pinned.cpu());
    let triad = kernel("triad-nt").unwrap();
    let checks = memory.checks(triad, 2);
    let trips = (64 << 20) / LINE_BYTES;
    assert_eq!(checks.len(), 2);
    if of_event(&checks, "dram_read_bytes").quality == Quality::Denied {
        // This user is not root, and perf_event_paranoid is above 0.
        assert!(
            checks[0]
                .reason
                .as_ref()
                .unwrap()
                .ends_with("memory controllers, set kernel.perf_event_paranoid to 0")
        );
        return;
    }
    for (event, lines) in [("dram_read_bytes", 2.0), ("dram_write_bytes", 1.0)] {
        let check = of_event(&checks, event);
        assert_eq!(
            (check.quality, check.verdict, check.trips),
            (Quality::Exact, "unusable", Some(trips)),
            "{check:?}"
        );
        assert!(check.measured.is_some() && check.deviation.is_some_and(|off| off > 0.25));
        let bytes = 64.0 * lines * trips as f64;
        assert_eq!(check.expected, Some([0.95 * bytes, 1.05 * bytes]));
    }
    let facts = NodeFacts { hardware, ..NodeFacts::default() };
    let mut findings = ValidationFindings::new(&facts, pinned.cpu(), 2);
    findings.memory = Some(memory.found());
    findings.add_mappings(memory.mappings());
    findings.kernels.push(KernelFindings { checks, ..KernelFindings::new(triad) });
    findings.judge();
    assert!(findings.is_unusable());
    let folder = root.path().join("trust");
    pmmpi_events::validation::keep(&folder, &findings.cpu.name, findings.json().unwrap().as_bytes()).unwrap();
    let trust = Trust::read(&folder);
    let mut run = Run::empty(RunHeader::new("run".into(), Vec::new(), Mode::Plain, 0), 1);
    let key = pmmpi::node::NodeKey { hostname: "a".into(), boot_id: String::new(), time_namespace: 0 };
    run.nodes.push(pmmpi::record::NodeRecord { facts: Some(facts), ..pmmpi::record::NodeRecord::new(key) });
    let trust = trust.of_run(&run);
    let event = |name: &str, kind, config| Event::counted(name, Encoding::new(kind, config));
    // As --group memory counts it and as the user types it; after another boot, the PMU has another number.
    assert_eq!(trust.of(&event("dram_reads", 77, 4)), EventVerdict::Unusable);
    assert_eq!(trust.of(&event("uncore_imc_1/event=0x04,umask=0x0c/", 78, 4)), EventVerdict::Unusable);
    assert_eq!(trust.of(&event("uncore_imc_1/event=0x05/", 78, 5)), EventVerdict::Unknown);
    // Another PMU with the number that the controllers had at the validation.
    assert_eq!(trust.of(&event("uncore_cha_0/event=0x04/", kind::SOFTWARE, 4)), EventVerdict::Unknown);
}

/// The event is the clock of the hardware thread, which runs at a constant rate: its whole count is background.
#[test]
fn what_is_counted_all_the_time_is_taken_off() {
    let pinned = Pinned::to(None).unwrap();
    let root = stand_in("config1:8-15", pinned.cpu());
    let mut memory = MemoryControllers::new(root.path(), &skylake(), pinned.cpu());
    let checks = memory.checks(kernel("copy").unwrap(), 3);
    let read = of_event(&checks, "dram_read_bytes");
    if read.quality != Quality::Denied {
        // Each of the two controllers counts one line per nanosecond.
        assert!(read.overhead.unwrap() > 1e6, "{read:?}");
        // If the machine stops for a while, the background is not steady, and there is no verdict.
        assert!(["unusable", "not counted here"].contains(&read.verdict), "{read:?}");
    }
}

/// A thread of the user `nobody`, on a kernel that does not let ordinary users count outside the cores.
#[test]
fn who_may_not_count_them_is_told_and_takes_no_memory() {
    // SAFETY: no arguments.
    let is_root = unsafe { libc::geteuid() } == 0;
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let level: Option<i32> = level.and_then(|level| level.trim().parse().ok());
    if !is_root || level.is_none_or(|level| level < 1) {
        return;
    }
    let checked = std::thread::spawn(|| {
        let root = stand_in("config:0-7", 0);
        // SAFETY: the system call, unlike the C library's function, changes this thread only.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) }, 0);
        let mut memory = MemoryControllers::new(root.path(), &skylake(), 0);
        let checks = memory.checks(kernel("copy").unwrap(), TIMES);
        // SAFETY: as above. Only root may remove the folder.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 0, -1) }, 0);
        (checks, memory.arrays.is_none())
    });
    let (checks, none_taken) = checked.join().unwrap();
    assert_eq!(verdicts(&checks), [("not counted here", "denied"); 2]);
    assert!(none_taken && checks[0].reason.as_ref().unwrap().contains("kernel.perf_event_paranoid"));
}

thread_local!(static NOW_NS: Cell<i64> = const { Cell::new(0) });

/// Each call adds a millisecond.
fn clock() -> i64 {
    NOW_NS.set(NOW_NS.get() + 1_000_000);
    NOW_NS.get()
}

const TRIPS: u64 = 1 << 20;
const TIMES: usize = 3;

/// The reads and writes that two controllers count in each run of the kernel and in each interval without it.
struct Script {
    kernel: [f64; 2],
    idle: [f64; 2],
    gap: Option<Gap>,
    running: u64,
}

impl Script {
    fn exactly(kernel: &Kernel, of_reads: f64, of_writes: f64) -> Self {
        let bytes = |at: usize| {
            let expected = kernel
                .expected(&pmmpi_kernels::Caches::default())
                .into_iter()
                .find(|expected| expected.event == BYTES[at].event);
            expected.map(|expected| (expected.low.of(TRIPS) + expected.high.of(TRIPS)) / 2.0).unwrap()
        };
        // Each count is one line.
        let lines = [bytes(READ) * of_reads / 64.0, bytes(WRITTEN) * of_writes / 64.0];
        Self { kernel: lines, idle: [0.0; 2], gap: None, running: 1 }
    }

    fn checks(&self, of: &str, hardware: &Hardware) -> Vec<EventCheck> {
        let events = ["dram_reads", "dram_writes"];
        let events: Vec<_> = events.map(|name| (Event::counted(name, Encoding::new(0, 0)), self.gap)).into();
        let set = |number: u32| {
            let handle = CounterHandle { set: number, group: 0, cpu: Some(0), descriptor: -1, id: 0 };
            (Set { scope: Scope::Socket, events: events.clone(), groups: vec![vec![0, 1]] }, handle)
        };
        let (sets, handles) = [set(0), set(1)].into_iter().unzip();
        let mut counts = [0u64; 2];
        let mut time = 0;
        let mut snapshots = Vec::new();
        for section in 0..=2 * TIMES {
            let add = if section % 2 == 0 { self.idle } else { self.kernel };
            for end in [false, true] {
                if end {
                    time += 2;
                    // Each controller counts half.
                    (0..2).for_each(|at| counts[at] = counts[at].wrapping_add((add[at] / 2.0) as i64 as u64));
                }
                let group = [2, time, time / 2 * (1 + self.running), counts[0], counts[1]];
                snapshots.push([group, group].concat());
            }
        }
        let mut moved = vec![Moved::default(); TIMES];
        let mut counters = Scripted::new(Opened { sets, handles }, snapshots);
        traffic::measure(&mut counters, clock, &mut moved, || ());
        let root = Root::new();
        let memory = MemoryControllers { clock, ..MemoryControllers::new(root.path(), hardware, 0) };
        memory.judged(kernel(of).unwrap(), TRIPS, &moved)
    }
}

fn verdicts(checks: &[EventCheck]) -> [(&'static str, &'static str); 2] {
    let [read, written] = checks else { panic!("{checks:?}") };
    assert_eq!([&read.event[..], &written.event], [BYTES[READ].event, BYTES[WRITTEN].event]);
    [(read.verdict, read.quality.name()), (written.verdict, written.quality.name())]
}

#[test]
fn bytes_are_judged_as_any_other_count() {
    let streams = pmmpi_kernels::all().iter().filter(|kernel| kernel.memory == pmmpi_kernels::Memory::Arrays);
    for of in streams.map(|kernel| kernel.name) {
        let judged =
            |reads, writes| Script::exactly(kernel(of).unwrap(), reads, writes).checks(of, &skylake());
        assert_eq!(verdicts(&judged(1.0, 1.0)), [("trusted", "exact"); 2], "{of}");
        // Twice as much, as if each half of a line counts; and half as much.
        assert_eq!(verdicts(&judged(2.0, 1.0)), [("unusable", "exact"), ("trusted", "exact")], "{of}");
        assert_eq!(verdicts(&judged(0.5, 0.5)), [("unusable", "exact"); 2], "{of}");
        // Reads only.
        assert_eq!(verdicts(&judged(1.0, 0.0)), [("trusted", "exact"), ("unusable", "exact")], "{of}");
        let near = judged(1.0, 0.8);
        assert_eq!(verdicts(&near), [("trusted", "exact"), ("within", "exact")], "{of}");
        assert!((near[1].deviation.unwrap() - 0.15 / 0.95).abs() < 1e-6);
    }
}

/// A non-temporal store reads no line; a plain store does. The counted reads must show this difference.
#[test]
fn write_allocate_shows_as_reads_and_stores_past_the_caches_without() {
    let as_if = |of: &str, moved: &str, hardware: &Hardware| {
        verdicts(&Script::exactly(kernel(moved).unwrap(), 1.0, 1.0).checks(of, hardware))[READ].0
    };
    let (milan, icx) = (processor("AuthenticAMD", 0x19, 0x11), processor("GenuineIntel", 6, 0x6a));
    let grace = processor("0x41", 8, 0xd4f);
    // The kernel, and the kernel whose bytes the counters show. There is no table for Arm, so below only the expected
    // ranges are compared for it.
    for (of, moved, verdict) in [("copy-nt", "copy", "unusable"), ("copy", "copy-nt", "unusable")] {
        assert_eq!(as_if(of, moved, &milan), verdict, "{of}");
        assert_eq!(as_if(of, moved, &skylake()), verdict, "{of}");
    }
    // Ice Lake may claim a line that it will fill, and never reads a line for a non-temporal store.
    assert_eq!((as_if("copy", "copy-nt", &icx), as_if("copy-nt", "copy", &icx)), ("trusted", "unusable"));
    // On Arm, both kinds of stores may read or not.
    let memory = MemoryControllers::new(Path::new("/nonexistent"), &grace, 0);
    let ranges = ["copy", "copy-nt"].map(|of| memory.expected(kernel(of).unwrap(), READ).unwrap());
    assert_eq!(ranges[0], ranges[1]);
    assert_eq!([ranges[0].low.per_trip, ranges[0].high.per_trip], [0.95 * 64.0, 1.05 * 128.0]);
}

#[test]
fn others_traffic_is_taken_off_and_said_and_where_it_is_not_steady_nothing_is() {
    let triad = kernel("triad").unwrap();
    let mut script = Script::exactly(triad, 1.0, 1.0);
    // Each call of the clock takes a millisecond: intervals without work have three, the kernel one.
    let background = 1000.0;
    script.idle = script.kernel.map(|_| 3.0 * background);
    script.kernel = script.kernel.map(|lines| lines + background);
    let checks = script.checks("triad", &skylake());
    assert_eq!(verdicts(&checks), [("trusted", "exact"); 2]);
    assert_eq!(checks[0].overhead.map(f64::round), Some(64.0 * background));
    // Every other interval has additional traffic, as much as TRIPS lines.
    let sections = |idle: [f64; 4]| {
        let section = |lines: f64| traffic::Traffic {
            counts: ["dram_reads", "dram_writes"]
                .map(|name| (name.to_owned(), pmmpi_events::metrics::MetricInput::exact(lines as u64)))
                .into(),
            ns: 1.0,
        };
        let mut moved = vec![Moved::default(); TIMES];
        for (at, one) in moved.iter_mut().enumerate() {
            one.add(&section(idle[at]), &section(3.0 * TRIPS as f64), &section(idle[at + 1]));
        }
        MemoryControllers::new(Path::new("/nonexistent"), &skylake(), 0).judged(triad, TRIPS, &moved)
    };
    assert_eq!(verdicts(&sections([0.0; 4]))[READ].0, "trusted");
    let much = TRIPS as f64;
    let unsteady = sections([0.0, much, 0.0, much]);
    assert_eq!(verdicts(&unsteady)[READ], ("not counted here", "exact"));
    assert!(
        unsteady[READ].deviation.is_none()
            && unsteady[READ].reason.as_ref().unwrap().contains("other work uses")
    );
}

#[test]
fn what_was_not_counted_is_not_judged_and_says_why() {
    let copy = kernel("copy").unwrap();
    let exact = || Script::exactly(copy, 1.0, 1.0);
    for (script, quality, why) in [
        (Script { running: 0, ..exact() }, "scaled", "50.0 % of the time"),
        // The count runs backwards.
        (
            Script { kernel: exact().kernel.map(|lines| -lines), ..exact() },
            "overflowed",
            "overflowed, or went backwards",
        ),
    ] {
        let checks = script.checks("copy", &skylake());
        assert_eq!(verdicts(&checks), [("not counted here", quality); 2]);
        assert!(
            checks[0].deviation.is_none() && checks[0].reason.as_ref().unwrap().contains(why),
            "{checks:?}"
        );
    }
    // No event opens.
    let refused = |gap: Gap| {
        let events = ["dram_reads", "dram_writes"];
        let events = events.map(|name| (Event::counted(name, Encoding::new(20, 0)), Some(gap))).into();
        let opened = Opened {
            sets: vec![Set { scope: Scope::Socket, events, groups: Vec::new() }],
            handles: Vec::new(),
        };
        let mut moved = vec![Moved::default(); TIMES];
        traffic::leave_out(&opened, &mut moved);
        MemoryControllers::new(Path::new("/nonexistent"), &skylake(), 0).judged(copy, TRIPS, &moved)
    };
    let denied = refused(Gap::of_errno(libc::EACCES));
    assert_eq!(verdicts(&denied), [("not counted here", "denied"); 2]);
    let why = denied[0].reason.as_ref().unwrap();
    assert!(
        why.contains("kernel.perf_event_paranoid") && why.contains("CAP_PERFMON") && why.ends_with("to 0"),
        "{why}"
    );
    assert_eq!(verdicts(&refused(Gap::of_errno(libc::EBUSY))), [("not counted here", "unavailable"); 2]);
    assert!(denied.iter().all(|check| check.measured.is_none() && check.expected.is_some()));
}

/// The reason is one of two: no controllers, or no memory for arrays larger than the caches.
#[test]
fn where_nothing_can_be_measured_it_is_said_and_nothing_is_opened_or_taken() {
    let checks = |root: &Root, hardware: &Hardware| {
        let mut memory = MemoryControllers::new(root.path(), hardware, 0);
        let checks = memory.checks(kernel("add").unwrap(), TIMES);
        assert!(memory.arrays.is_none());
        let reason = checks[0].reason.clone().unwrap();
        assert_eq!(memory.found().reason.as_ref(), Some(&reason));
        (verdicts(&checks)[READ].1.to_owned(), reason)
    };
    let bare = Root::sockets(&[&[0, 1]]);
    let (quality, why) = checks(&bare, &skylake());
    assert!(
        quality == "unsupported"
            && why.contains("no PMU of memory")
            && why.contains("load the driver: modprobe intel_uncore"),
        "{why}"
    );
    let guest = Hardware { hypervisor: true, ..skylake() };
    assert!(checks(&bare, &guest).1.contains("this virtual machine has none"));
    assert!(
        checks(&bare, &processor("AuthenticAMD", 0x19, 0x11))
            .1
            .contains("load the driver: modprobe amd_uncore")
    );
    let small = stand_in("config:0-7", 0);
    small.put("proc/meminfo", "MemAvailable: 200000 kB\n");
    let (quality, why) = checks(&small, &skylake());
    assert!(quality == "unavailable" && why.starts_with("too little memory"), "{why}");
}

/// Zen 2's controllers count reads and writes together: only the sum has a verdict, the two parts say why they have
/// none.
#[test]
fn where_reads_and_writes_are_one_count_their_sum_is_judged() {
    let zen2 = processor("AuthenticAMD", 0x17, 0x31);
    let memory = MemoryControllers::new(Path::new("/nonexistent"), &zen2, 0);
    let section = |lines: u64| traffic::Traffic {
        counts: (0..8)
            .map(|at| (format!("dram_channel_{at}"), pmmpi_events::metrics::MetricInput::exact(lines / 8)))
            .collect(),
        ns: 1.0,
    };
    let judged = |lines: u64| {
        let mut moved = vec![Moved::default(); TIMES];
        moved.iter_mut().for_each(|one| one.add(&section(0), &section(lines), &section(0)));
        memory.judged(kernel("triad").unwrap(), TRIPS, &moved)
    };
    let checks = judged(4 * TRIPS);
    assert_eq!(verdicts(&checks[..2]), [("not counted here", "unsupported"); 2]);
    assert!(checks[0].reason.as_ref().unwrap().contains("together"));
    assert_eq!((checks[2].event.as_str(), checks[2].verdict), ("dram_bytes", "trusted"));
    assert_eq!(judged(3 * TRIPS)[2].verdict, "within");
}
