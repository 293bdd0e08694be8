//! Metrics of programs, on runs that are made by hand: whatever hardware threads they ran on.

use super::of_hand_made_run as metric;
use super::{skylake_node as skylake, zen2_node as zen2};
use crate::metrics::{RuleJudgement, of_region, rules_of_region};
use crate::validation::Trust;
use pmmpi::bounds::Stamps;
use pmmpi::counters::count_and_quality::Gap;
use pmmpi::counters::counts::{CountRow, GroupCounts};
use pmmpi::counters::empty_entry::EmptyEntry;
use pmmpi::counters::event::{Encoding, Event};
use pmmpi::counters::expected::ExpectedInstructions;
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::node::{CpuSet, Hardware, HwThread, NodeFacts, NodeKey, Topology};
use pmmpi::record::{End, Mode, NodeRecord, RankRecord, Run, RunHeader};
use pmmpi::regions::RegionTotals;
use pmmpi::{NodeId, RankId};
use proptest::prelude::*;

/// Hardware threads of a node; the first half is socket 0.
const THREADS: u32 = 128;
const SECOND_NS: u64 = 1_000_000_000;
const TSC_HZ: u64 = 2_500_000_000;

/// One stay of a program's thread on a hardware thread.
#[derive(Clone, Copy, Debug)]
struct Stay {
    cpu: u32,
    ns: u64,
    /// Reference cycles in which it was not halted.
    ref_cycles: u64,
    cycles: u64,
}

/// Nodes of this processor; every rank works for a second.
fn run(hardware: &Hardware, nodes: u32) -> Run {
    let mut run = Run::empty(RunHeader::new("run".into(), vec!["./a".into()], Mode::Mpi, 0), 0);
    let place = |cpu: u32| HwThread {
        cpu,
        core: cpu,
        socket: cpu / (THREADS / 2),
        numa: cpu / (THREADS / 2),
        last_level_cache: None,
    };
    let threads = (0..THREADS).map(place).collect();
    run.topologies = vec![Topology { source: "hand".into(), threads, ..Topology::default() }];
    run.nodes = (0..nodes)
        .map(|node| NodeRecord {
            key: NodeKey { boot_id: format!("{node}"), hostname: format!("n{node}"), time_namespace: 0 },
            facts: Some(NodeFacts { hardware: hardware.clone(), ..NodeFacts::default() }),
            topology: Some(0),
            health: Vec::new(),
        })
        .collect();
    run
}

fn add_rank(run: &mut Run, node: u32, allowed: CpuSet) -> RankId {
    let rank = RankId(run.ranks.len() as u32);
    run.size += 1;
    run.ranks.push(RankRecord {
        rank,
        node: NodeId(node),
        stamps: Stamps::new(0, 10, 10 + SECOND_NS as i64, 20 + SECOND_NS as i64).unwrap(),
        tsc: Some([7, 7 + TSC_HZ]),
        allowed,
        ..RankRecord::unmeasured(End::Finalized)
    });
    rank
}

/// Adds a row with a set of its own.
fn add_row(run: &mut Run, rank: RankId, scope: Scope, cpu: Option<u32>, counts: &[(&'static str, u64)]) {
    let events = counts.iter().map(|(name, _)| (Event::counted(name, Encoding::new(0, 0)), None)).collect();
    run.counts.sets.push(Set { scope, events, groups: vec![(0..counts.len() as u32).collect()] });
    let counted = counts.iter().map(|(_, count)| *count).collect();
    let group = GroupCounts { enabled_ns: SECOND_NS, running_ns: SECOND_NS, counts: counted };
    let set = run.counts.sets.len() as u32 - 1;
    run.counts.rows.push(CountRow { rank, cpu, set, region: None, groups: vec![Some(group)] });
}

/// What the kernel and the processor count of these stays of a rank's threads.
fn count(run: &mut Run, rank: RankId, stays: &[Stay], is_zen2: bool) {
    let sum = |of: fn(&Stay) -> u64, stays: &[Stay]| stays.iter().map(of).sum::<u64>();
    let (cycles, ref_cycles) = (sum(|stay| stay.cycles, stays), sum(|stay| stay.ref_cycles, stays));
    let clock = ("task_clock_ns", sum(|stay| stay.ns, stays));
    if !is_zen2 {
        let counts = [("cycles", cycles), ("ref_cycles", ref_cycles), clock];
        return add_row(run, rank, Scope::Task, None, &counts);
    }
    add_row(run, rank, Scope::Task, None, &[("cycles", cycles), clock]);
    for cpu in 0..THREADS {
        let here: Vec<Stay> = stays.iter().filter(|stay| stay.cpu == cpu).copied().collect();
        let counts =
            [("mperf", sum(|stay| stay.ref_cycles, &here)), ("aperf", sum(|stay| stay.cycles, &here))];
        add_row(run, rank, Scope::Core, Some(cpu), &counts);
    }
}

#[track_caller]
fn assert_near(run: &Run, name: &str, expected: f64) {
    let value = metric(run, name);
    let found = value.value().unwrap_or_else(|| panic!("{name}: {:?}", value.reason()));
    assert!((found / expected - 1.0).abs() < 1e-9, "{name}: {found}, not {expected}");
}

/// A set of hardware threads that has this one.
fn allowed_with(cpus: Vec<u32>) -> CpuSet {
    CpuSet::from_numbers(cpus.into_iter())
}

fn any_stays() -> impl Strategy<Value = Vec<Stay>> {
    let stay = (0..THREADS, 1_000_000u64..10_000_000, 0.5f64..1.0, 0.3f64..1.6);
    let stay = stay.prop_map(|(cpu, ns, not_halted, to_base)| {
        let ref_cycles = (ns as f64 * 1e-9 * TSC_HZ as f64 * not_halted) as u64;
        Stay { cpu, ns, ref_cycles, cycles: (ref_cycles as f64 * to_base) as u64 }
    });
    prop::collection::vec(stay, 1..40)
}

proptest! {
    /// One thread is moved from one hardware thread to another, or never, on a node that lets it run anywhere: its
    /// utilisation and its frequencies are its own, on a processor that counts reference cycles and on one that counts
    /// them only on hardware threads.
    #[test]
    fn a_busy_thread_has_its_own_frequency_on_any_hardware_threads(
        stays in any_stays(),
        is_zen2: bool,
        is_free: bool,
    ) {
        let mut run = run(&if is_zen2 { zen2() } else { skylake() }, 1);
        let allowed = match is_free {
            true => CpuSet(vec![(0, THREADS - 1)]),
            false => allowed_with(stays.iter().map(|stay| stay.cpu).collect()),
        };
        let rank = add_rank(&mut run, 0, allowed);
        count(&mut run, rank, &stays, is_zen2);
        let sum = |of: fn(&Stay) -> u64| stays.iter().map(of).sum::<u64>() as f64;
        let (ns, ref_cycles, cycles) =
            (sum(|stay| stay.ns), sum(|stay| stay.ref_cycles), sum(|stay| stay.cycles));
        assert_near(&run, "utilisation", ref_cycles / (ns * 1e-9 * TSC_HZ as f64));
        assert_near(&run, "frequency_active", cycles / ref_cycles * TSC_HZ as f64);
        assert_near(&run, "frequency_net", cycles / (ns * 1e-9));
        assert_near(&run, "busy_threads", ns / SECOND_NS as f64);
    }
}

/// A thread that stays on `cpu` for these milliseconds, at 3 GHz, never halted.
fn busy(cpu: u32, milliseconds: u64) -> Stay {
    let ns = milliseconds * 1_000_000;
    Stay { cpu, ns, ref_cycles: ns / 10 * 25, cycles: ns * 3 }
}

#[test]
fn threads_and_ranks_do_not_change_the_utilisation() {
    // A rank with eight threads that are busy for a quarter of the time; four ranks on two hardware threads.
    let eight: Vec<Stay> = (0..8).map(|cpu| busy(cpu, 250)).collect();
    let shared: Vec<Vec<Stay>> = (0..4).map(|rank| vec![busy(rank % 2, 500)]).collect();
    for (ranks, busy_threads) in [(vec![eight], 2.0), (shared, 0.5)] {
        let mut run = run(&skylake(), 1);
        for stays in &ranks {
            let rank = add_rank(&mut run, 0, CpuSet(vec![(0, 7)]));
            count(&mut run, rank, stays, false);
        }
        assert_near(&run, "utilisation", 1.0);
        assert_near(&run, "frequency_net", 3e9);
        assert_near(&run, "busy_threads", busy_threads);
        // 3 GHz for the CPU time of a rank, at the nominal 2.5 GHz.
        assert_near(&run, "seconds_by_cycles", 1.2 * busy_threads);
    }
}

/// On Zen 2, what other programs do on hardware threads that the rank may not use is nothing to it.
#[test]
fn only_the_hardware_threads_of_the_ranks_count() {
    let mut run = run(&zen2(), 1);
    let rank = add_rank(&mut run, 0, allowed_with(vec![3]));
    count(&mut run, rank, &[busy(3, 1000)], true);
    let of_another = |row: &&mut CountRow| row.cpu.is_some_and(|cpu| cpu > 3);
    for row in run.counts.rows.iter_mut().filter(of_another) {
        row.groups[0].as_mut().unwrap().counts = vec![2_500_000_000, 1_000_000_000];
    }
    assert_near(&run, "utilisation", 1.0);
    assert_near(&run, "frequency_active", 3e9);
    // The default set also asks for the generic event, which these processors do not have.
    let event = (Event::counted("ref_cycles", Encoding::new(0, 0)), Some(Gap::Unsupported(libc::ENOENT)));
    run.counts.sets.push(Set { events: vec![event], groups: vec![], ..Set::default() });
    let set = run.counts.sets.len() as u32 - 1;
    run.counts.rows.insert(0, CountRow { rank, cpu: None, set, region: None, groups: vec![] });
    assert_near(&run, "utilisation", 1.0);
    run.counts.rows.retain(|row| row.cpu.is_none());
    let reason = metric(&run, "utilisation").reason().unwrap();
    assert_eq!(reason, "mperf: the run did not count this event");
}

/// Two nodes of two sockets: the bandwidth is that of a socket, whatever the number of ranks and sockets.
#[test]
fn bandwidths_of_sockets_are_means_over_sockets() {
    let mut run = run(&skylake(), 2);
    for node in 0..2 {
        for rank in 0..3 {
            let rank = (rank, add_rank(&mut run, node, CpuSet(vec![(0, THREADS - 1)])));
            count(&mut run, rank.1, &[busy(0, 1000)], false);
            if rank.0 == 0 {
                for (cpu, reads) in [(0, 100_000_000), (THREADS / 2, 300_000_000)] {
                    add_row(&mut run, rank.1, Scope::Socket, Some(cpu), &[("dram_read_bytes", 64 * reads)]);
                }
            }
        }
    }
    assert_near(&run, "dram_read_bandwidth", 200_000_000.0 * 64.0);
    run.nodes[1].topology = None;
    let reason = metric(&run, "dram_read_bandwidth").reason().unwrap();
    assert!(reason.starts_with("no value for sockets"), "{reason}");
}

/// The L3 cache of Zen counts for all programs that share it.
#[test]
fn counts_of_a_socket_have_no_ratio_to_those_of_a_program() {
    let mut run = run(&zen2(), 1);
    let rank = add_rank(&mut run, 0, CpuSet(vec![(0, 0)]));
    add_row(&mut run, rank, Scope::Task, None, &[("instructions", 1_000_000)]);
    add_row(&mut run, rank, Scope::Socket, Some(0), &[("l3_requests", 5_000), ("l3_misses", 1_000)]);
    assert_near(&run, "l3_miss_ratio", 0.2);
    for name in ["l3_request_rate", "l3_miss_rate"] {
        let value = metric(&run, name);
        assert_eq!(value.value(), None);
        let reason = value.reason().unwrap();
        assert!(
            reason.contains("counts whole sockets, but instructions counts only the program"),
            "{reason}"
        );
    }
}

/// Two ranks count in a region; a third rank entered it but has no counts. Each entry is a section of its own.
#[test]
fn a_region_has_metrics_and_rules_of_its_own() {
    let mut run = run(&skylake(), 1);
    let counts = [("instructions", 6_000_000), ("instructions_kernel", 30), ("task_clock_ns", 3_000_000)];
    for _ in 0..3 {
        let rank = add_rank(&mut run, 0, CpuSet(vec![(0, 7)]));
        add_row(&mut run, rank, Scope::Task, None, &[("instructions", 1_000_000_000)]);
        let totals = |region| RegionTotals {
            rank,
            region,
            entries: 10,
            inner_ns: 3_000_000,
            ..RegionTotals::default()
        };
        run.regions.totals.extend([totals(0), totals(1)]);
        if rank.0 < 2 {
            add_row(&mut run, rank, Scope::Task, None, &counts);
            run.counts.rows.last_mut().unwrap().region = Some(0);
        }
    }
    // The two lists of names have their own order.
    run.counts.regions = vec!["solve".into()];
    run.regions.names = vec!["other".into(), "solve".into()];
    let expected = |part: Option<&str>, instructions| ExpectedInstructions {
        part: part.map(str::to_owned),
        instructions,
    };
    run.expected = vec![expected(None, 500_000_000), expected(Some("solve"), 300_000)];
    assert_near(&run, "instructions_to_expected", 2.0);
    let trust = Trust::default();
    let of_region = |name: &str, metric: &str| {
        let all = of_region(&run, name, &trust);
        all.into_iter().find(|value| value.metric.name == metric).unwrap().value()
    };
    assert_eq!(of_region("solve", "instructions_to_expected"), Some(2.0));
    assert_eq!(of_region("solve", "instruction_rate"), Some(12_000_000.0 / 0.003));
    assert_eq!(of_region("solve", "busy_threads"), Some(1.0));
    assert_eq!(of_region("other", "instruction_rate"), None);
    let raised = |run: &Run| {
        let rules = rules_of_region(run, "solve", &trust).into_iter();
        let raised = rules.filter(|(_, judgement)| *judgement == RuleJudgement::Raised);
        raised.map(|(rule, _)| rule.code.as_str()).collect::<Vec<_>>()
    };
    // 0.3 ms for an entry. Whether the kernel did more than to read the counters, only an empty entry tells.
    assert!(raised(&run).is_empty());
    let empty =
        |instructions| EmptyEntry { counts: [("instructions_kernel".to_owned(), instructions)].into() };
    run.empty_entry = empty(3);
    assert!(raised(&run).is_empty(), "3 of an entry are of the counters");
    run.empty_entry = empty(2);
    assert_eq!(raised(&run), ["kernel-instructions-in-short-section"]);
    let mut longer = run.clone();
    longer.regions.totals.iter_mut().for_each(|totals| totals.entries = 1);
    assert!(raised(&longer).is_empty(), "3 ms for an entry");
}

/// The generic timer of Arm ticks at 25 MHz or at 1 GHz, whatever the cores' clock is.
#[test]
fn on_arm_no_rate_of_the_cores_is_assumed() {
    let seconds = |vendor: &str| {
        let mut run = run(&skylake(), 1);
        run.nodes[0].facts.as_mut().unwrap().hardware.cpu_vendor = Some(vendor.into());
        let rank = add_rank(&mut run, 0, CpuSet(vec![(0, 0)]));
        add_row(&mut run, rank, Scope::Task, None, &[("cycles", 2_500_000_000)]);
        metric(&run, "seconds_by_cycles").value()
    };
    assert!(seconds("GenuineIntel").is_some());
    assert_eq!(seconds("0x41"), None);
}
