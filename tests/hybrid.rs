//! A processor with several kinds of cores, from the kernel's files to the report. No CI machine has one, so this
//! file contains the kernel's files and counts.

use pmmpi::bounds::Stamps;
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::counts::Counts;
use pmmpi::counters::event::{Event, kind};
use pmmpi::counters::open_counters::{CounterHandle, Opened, Scope, Scripted, Set};
use pmmpi::node::{CpuSet, Hardware, NodeFacts, NodeKey};
use pmmpi::record::{End, Mode, NodeRecord, RankRecord, Run, RunHeader, run_file};
use pmmpi_events::metrics;
use pmmpi_events::names::{Asked, Capacity, EventNames, plan};
use pmmpi_events::summary_line::Summary;
use pmmpi_events::totals::totals;
use rig::checked_report::checked_report;
use rig::counting::{Counted, default_set};
use rig::sys::Machine;
use rig::tool::{Folder, pmmpi, run};
use serde_json::Value;

use std::process::Command;

const MS: u64 = 1_000_000;
/// Duration of the whole work.
const ENABLED_NS: u64 = 1000 * MS;

/// The events that are opened on such a machine: the default set and the requested events in `more`.
fn opened(machine: &Machine, more: &str) -> Opened {
    let names = EventNames::of(machine.root());
    let no_vendor = |_: &[String]| Err("nobody to ask".to_owned());
    let more = if more.is_empty() { Vec::new() } else { names.resolve(more, no_vendor).unwrap() };
    let mut opened = Opened::default();
    for asked in [names.resolve(&default_set(), no_vendor).unwrap(), more] {
        open(&mut opened, asked);
    }
    opened
}

fn open(opened: &mut Opened, asked: Vec<Asked>) {
    for plan in plan(asked, Scope::Task, Capacity::new(Some("GenuineIntel"), None, false)).unwrap() {
        let mut set = Set { scope: plan.scope, ..Set::default() };
        for group in plan.groups {
            let first = set.events.len() as u32;
            let (number, at) = (opened.sets.len() as u32, set.groups.len() as u32);
            set.groups.push((first..first + group.len() as u32).collect());
            set.events.extend(group.into_iter().map(|event| (event, None)));
            let cpus: Vec<Option<u32>> = match plan.scope {
                Scope::Task => vec![None],
                _ => plan.places.cpus(&CpuSet(vec![(0, 71)])).into_iter().map(Some).collect(),
            };
            let handle = |cpu| CounterHandle { set: number, group: at, cpu, descriptor: -1, id: 0 };
            opened.handles.extend(cpus.into_iter().map(handle));
        }
        opened.sets.push(set);
    }
}

/// The kernel's answers at t1 and t2. `running` gives how long a group was counted, from one of its events. `count`
/// gives the count of an event in that time (ns).
fn counted(opened: Opened, running: impl Fn(&Event) -> u64, count: impl Fn(&Event, u64) -> u64) -> Counts {
    let (mut start, mut stop) = (Vec::new(), Vec::new());
    for handle in &opened.handles {
        let set = &opened.sets[handle.set as usize];
        let events: Vec<&Event> =
            set.groups[handle.group as usize].iter().map(|at| &set.events[*at as usize].0).collect();
        let size = events.len() as u64;
        let running_ns = running(events[0]);
        start.extend([size, 5, 3].into_iter().chain(events.iter().map(|_| 7)));
        let counts = events.iter().map(|event| 7 + count(event, running_ns));
        stop.extend([size, 5 + ENABLED_NS, 3 + running_ns].into_iter().chain(counts));
    }
    Counted::with(&mut Scripted::new(opened, [start, stop]), || ()).counts
}

fn is_of(event: &Event, pmu: &str) -> bool {
    event.name.starts_with(&format!("{pmu}/"))
}

/// A program that was on big cores for 0.4 s at 5 GHz and 3 instructions per cycle, and on small cores for 0.6 s at 3
/// GHz and one instruction per cycle. Reference cycles have 2 GHz. `slices`: in how many of 4 time slices a counter
/// was free.
fn moved(machine: &Machine, [big, small]: [&str; 2], more: &str, slices: u64) -> Counts {
    let running = |event: &Event| match () {
        () if is_of(event, big) => 400 * MS / 4 * slices,
        () if is_of(event, small) => 600 * MS / 4 * slices,
        () => ENABLED_NS,
    };
    counted(opened(machine, more), running, |event, ns| {
        let is_big = is_of(event, big);
        let per_ns = match event.encoding.config[0] & 0xffff_ffff {
            _ if event.encoding.kind != kind::HARDWARE => return 11,
            0 if is_big => 5,
            0 => 3,
            1 if is_big => 15,
            1 => 3,
            _ => 2,
        };
        // The kernel has 1 in 100.
        if event.name.contains("_kernel") { per_ns * ns / 100 } else { per_ns * ns }
    })
}

fn run_of(counts: Counts) -> Run {
    let hardware = Hardware {
        cpu_vendor: Some("GenuineIntel".into()),
        cpu_family: Some(6),
        cpu_model: Some(0x97),
        ..Hardware::default()
    };
    let key = NodeKey { hostname: "hybrid".into(), boot_id: "a".into(), time_namespace: 1 };
    let facts = Some(NodeFacts { hardware, ..NodeFacts::default() });
    let header =
        RunHeader::new("20261121T000000.000000000Z-hybrid".into(), vec!["./prog".into()], Mode::Mpi, 1);
    let rank = RankRecord {
        stamps: Stamps::new(0, 10, 1_000_000_010, 1_000_000_020).unwrap(),
        tsc: Some([0, 2_000_000_000]),
        allowed: CpuSet(vec![(0, 0)]),
        ..RankRecord::unmeasured(End::Finalized)
    };
    let nodes = vec![NodeRecord { facts, ..NodeRecord::new(key) }];
    Run { nodes, ranks: vec![rank], counts, ..Run::empty(header, 1) }
}

fn metric(run: &Run, name: &str) -> (Option<f64>, Quality, String) {
    let values = metrics::of_run(run, &pmmpi_events::validation::Trust::default());
    let value = values.iter().find(|value| value.metric.name == name).unwrap();
    (value.value(), value.quality(), value.reason().unwrap_or_default())
}

#[test]
fn all_kinds_together_are_the_program() {
    for (machine, pmus, slices) in [
        (Machine::hybrid_client(), ["cpu_core", "cpu_atom"], 4),
        (Machine::hybrid_client(), ["cpu_core", "cpu_atom"], 1),
        (Machine::big_little(), ["armv8_cortex_a72", "armv8_cortex_a53"], 4),
        (Machine::big_little(), ["armv8_cortex_a72", "armv8_cortex_a53"], 3),
    ] {
        let worth = if slices == 4 { Quality::Exact } else { Quality::Scaled };
        let run = run_of(moved(&machine, pmus, "branches:u", slices));
        let totals = totals(&run.counts, |_| true);
        let total = |name: &str| totals.iter().find(|total| total.event.name == name).unwrap();
        let [big, small] = pmus.map(|pmu| total(&format!("{pmu}/cycles/")));
        assert_eq!((big.count, big.quality), (Some(2_000_000_000), worth));
        assert_eq!((small.count, small.quality), (Some(1_800_000_000), worth));
        assert_eq!((total("page_faults").count, total("page_faults").quality), (Some(11), Quality::Exact));
        let (ipc, quality, reason) = metric(&run, "ipc");
        assert_eq!((ipc, quality), (Some(7.8 / 3.8), worth));
        // In the order of the kernel's list of PMUs.
        let [first, second] = [&totals[1], &totals[6]].map(|total| &total.event.name);
        assert!(reason.starts_with(&format!("instructions: the sum of {first} and {second}")), "{reason}");
        // 3.8 cycles for 2 reference cycles.
        let (hz, ..) = metric(&run, "frequency_active");
        assert!((hz.unwrap() - 3.8e9).abs() < 1.0, "{hz:?}");
        let summary = Summary { run: &run, file: None }.to_string();
        assert!(summary.contains("3.80 GHz, 2.05 instructions per cycle"), "{summary}");
    }
}

/// Memory controllers are not kinds of cores: each counts its part, and together they count for the socket.
#[test]
fn memory_controllers_have_a_sum_for_the_run_and_for_each_socket() {
    const LINE_BYTES: f64 = 64.0;
    let opened = opened(&Machine::intel_server(), "uncore_imc/cas_count_read/");
    let channel = |event: &Event| u64::from(event.encoding.kind) - 20;
    let counts = counted(
        opened,
        |_| ENABLED_NS,
        |event, _| match event.unit.as_str() {
            "bytes" => 100 + channel(event),
            _ => 11,
        },
    );
    let folder = Folder::new("controllers");
    run_file::write(folder.path(), &run_of(counts)).unwrap();
    let json = checked_report(folder.path());
    let counters = json["runs"][0]["counters"].as_array().unwrap();
    let of_socket = (0..6).map(|channel| 100.0 + f64::from(channel)).sum::<f64>() * LINE_BYTES;
    let sum = counters.iter().find(|counter| counter["name"] == "uncore_imc/cas_count_read/").unwrap();
    assert_eq!((&sum["value"], &sum["quality"]), (&(2.0 * of_socket).into(), &"exact".into()));
    assert_eq!((&sum["scope"], sum["sum_of"].as_array().unwrap().len()), (&"socket".into(), 6));
    let third = counters.iter().find(|counter| counter["name"] == "uncore_imc_3/cas_count_read/").unwrap();
    assert_eq!(third["value"], 2.0 * 103.0 * LINE_BYTES);
    let places = json["runs"][0]["places"].as_array().unwrap();
    assert_eq!(
        places.iter().map(|place| place["hardware_thread"].as_u64()).collect::<Vec<_>>(),
        [Some(0), Some(18)]
    );
    for place in places {
        assert_eq!(place["values"]["uncore_imc/cas_count_read/"], of_socket, "{place}");
        assert_eq!(place["values"]["uncore_imc_0/cas_count_read/"], 100.0 * LINE_BYTES, "{place}");
    }
}

#[test]
fn the_report_has_each_kind_and_the_sum() {
    let machine = Machine::hybrid_client();
    let pmus = ["cpu_core", "cpu_atom"];
    let folder = Folder::new("hybrid");
    let run_of_all = run_of(moved(&machine, pmus, "cpu_core/r1c0/", 2));
    run_file::write(folder.path(), &run_of_all).unwrap();
    let json = checked_report(folder.path());
    let counters = json["runs"][0]["counters"].as_array().unwrap();
    let counter = |name: &str| {
        let all: Vec<&Value> = counters.iter().filter(|counter| counter["name"] == name).collect();
        assert_eq!(all.len(), 1, "{name}");
        all[0]
    };
    let (big, small, sum) = (counter("cpu_core/cycles/"), counter("cpu_atom/cycles/"), counter("cycles"));
    assert_eq!((&big["value"], &small["value"]), (&2_000_000_000u64.into(), &1_800_000_000u64.into()));
    assert_eq!((&sum["value"], &sum["quality"]), (&3_800_000_000u64.into(), &"scaled".into()));
    assert_eq!(sum["sum_of"], serde_json::json!(["cpu_atom/cycles/", "cpu_core/cycles/"]));
    let reason = sum["reason"].as_str().unwrap();
    assert!(reason.starts_with("the sum of cpu_atom/cycles/ and cpu_core/cycles/"), "{reason}");
    assert!(big["sum_of"].is_null());
    let one_kind = counter("cpu_core/r1c0/");
    assert_eq!((&one_kind["value"], &one_kind["quality"]), (&11.into(), &"partial".into()));
    let text = run(Command::new(pmmpi()).arg("report").arg(folder.path())).success().out();
    assert!(text.contains("ipc") && text.contains("the sum of cpu_atom/"), "{text}");
}
