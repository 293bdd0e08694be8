//! Metrics of cores, on runs that are made by hand.

use super::of_hand_made_run as metric;
use super::{hardware, skylake_node as skylake, zen2_node as zen2};
use crate::metrics::*;
use crate::validation::Trust;
use pmmpi::bounds::Stamps;
use pmmpi::clock::Crystal;
use pmmpi::counters::count_and_quality::{Gap, Quality, WhyUnavailable};
use pmmpi::counters::counts::{Cost, CountRow, Counts, GroupCounts};
use pmmpi::counters::event::{Encoding, Event};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::node::{CpuSet, Hardware, HwThread, NodeFacts, NodeKey, Topology};
use pmmpi::record::{End, HostPart, LostRank, Mode, NodeRecord, RankRecord, Run, RunHeader};
use pmmpi::{NodeId, RankId};
use proptest::prelude::*;

const SPLIT: [&str; 4] = ["smt_both", "smt_a_alone", "smt_b_alone", "smt_neither"];
/// TSC cycles per cycle of the 25 MHz crystal, at 2.1 GHz (McCalpin-2018-09).
const RATIO: u64 = 84;
/// Crystal cycles for which the nodes worked, and the duration of one (ns).
const WORKED: u64 = 1_000_000;
const CRYSTAL_NS: u64 = 40;
const CORES: u32 = 6;

/// Crystal cycles in which (both, the first alone, the second alone) of a core's hardware threads were busy.
type Busy = [u64; 3];

/// Two ranks per node; the first one counts. Threads n and n + CORES are siblings. The cores are in two sockets.
fn run(hardware: &Hardware, busy: &[Vec<Busy>], threads_a_core: u32) -> Run {
    let header = RunHeader::new("run".into(), vec!["./a".into()], Mode::Mpi, 0);
    let mut run = Run::empty(header, 2 * busy.len() as u32);
    let thread = |cpu: u32| {
        let core = cpu % CORES;
        HwThread { cpu, core, socket: core / 3, numa: core / 3, last_level_cache: Some(core / 3) }
    };
    let threads = (0..threads_a_core * CORES).map(thread).collect();
    run.topologies = vec![Topology { source: "hand".into(), threads, ..Topology::default() }];
    for (number, cores) in busy.iter().enumerate() {
        let hostname = format!("node{number}");
        let node = NodeId(number as u32);
        run.nodes.push(NodeRecord {
            key: NodeKey { boot_id: hostname.clone(), hostname, time_namespace: 0 },
            facts: Some(NodeFacts { hardware: hardware.clone(), ..NodeFacts::default() }),
            topology: Some(0),
            health: Vec::new(),
        });
        for rank in [counting(node), RankId(counting(node).0 + 1)] {
            let worked_ns = (WORKED * CRYSTAL_NS) as i64;
            run.ranks.push(RankRecord {
                rank,
                node,
                stamps: Stamps::new(0, 10, 10 + worked_ns, 20 + worked_ns).unwrap(),
                tsc: Some([7, 7 + WORKED * RATIO]),
                allowed: CpuSet(vec![(0, 2 * CORES - 1)]),
                ..RankRecord::unmeasured(End::Finalized)
            });
        }
        run.counts.join(counts(counting(node), cores, hardware));
    }
    run.counts.rows.sort_by_key(|row| (row.region, row.set, row.rank, row.cpu));
    run
}

/// The rank of that node that counts.
fn counting(node: NodeId) -> RankId {
    RankId(2 * node.0)
}

fn counts(rank: RankId, cores: &[Busy], hardware: &Hardware) -> Counts {
    let event = |name| (Event::counted(name, Encoding::new(0, 0)), None);
    let set = |names: &[&'static str]| Set {
        scope: Scope::Core,
        events: names.iter().map(|name| event(name)).collect(),
        groups: vec![(0..names.len() as u32).collect()],
    };
    let first: &[&str] =
        if *hardware == skylake() { &["ref_cycles_a", "ref_xclk_any"] } else { &["ref_cycles_a"] };
    let row = |cpu: u32, set: u32, counts: &[u64]| {
        let counted = GroupCounts { enabled_ns: 9, running_ns: 9, counts: counts.to_vec() };
        CountRow { rank, cpu: Some(cpu), set, region: None, groups: vec![Some(counted)] }
    };
    let mut rows = Vec::new();
    for (core, [both, a, b]) in (0..).zip(cores) {
        rows.push(row(core, 0, &[RATIO * (both + a), both + a + b][..first.len()]));
        rows.push(row(core + CORES, 1, &[RATIO * (both + b)]));
    }
    Counts { sets: vec![set(first), set(&["ref_cycles_b"])], rows, ..Counts::default() }
}

/// The row of that core's first (0) or second (1) hardware thread on a node.
fn row_of(run: &mut Run, node: NodeId, core: u32, sibling: u32) -> &mut CountRow {
    let cpu = Some(core + sibling * CORES);
    run.counts.rows.iter_mut().find(|row| (row.rank, row.cpu) == (counting(node), cpu)).unwrap()
}

fn counted(row: &mut CountRow) -> &mut GroupCounts {
    row.groups[0].as_mut().unwrap()
}

/// Each core is busy for another part of the time.
fn busy() -> Vec<Vec<Busy>> {
    let core = |node: u64, core: u64| [100_000 * core, 50_000 * (node + 1), 10_000 * (core + node)];
    (0..2).map(|node| (0..u64::from(CORES)).map(|at| core(node, at)).collect()).collect()
}

/// The share of this part of the time, averaged over the cores of these nodes.
fn mean(busy: &[Vec<Busy>], part: usize) -> f64 {
    let cores = busy.iter().flatten();
    let share = |core: &Busy| core.get(part).copied().unwrap_or(WORKED - core.iter().sum::<u64>()) as f64;
    cores.clone().map(share).sum::<f64>() / cores.count() as f64 / WORKED as f64
}

fn assert_split(run: &Run, busy: &[Vec<Busy>], quality: Quality) {
    for (part, name) in SPLIT.iter().enumerate() {
        let (value, expected) = (metric(run, name), mean(busy, part));
        assert_eq!(value.quality(), quality, "{name}: {:?}", value.reason());
        assert!((value.value().unwrap() - expected).abs() < 1e-9, "{name}: {value:?}, not {expected}");
    }
}

#[test]
fn the_split_of_a_run_is_the_mean_over_its_cores() {
    let busy = busy();
    let run = run(&skylake(), &busy, 2);
    assert_split(&run, &busy, Quality::Exact);
    assert_eq!(metric(&run, "smt_both").reason(), None);
    // Nothing was counted on the ranks' own threads.
    assert_eq!(metric(&run, "ipc").value(), None);
    let alone =
        of_ranks(&run, &Trust::default()).into_iter().find(|value| value.metric.name == "smt_both").unwrap();
    assert_eq!(alone.value(), None);
}

#[test]
fn a_core_that_contradicts_itself_is_left_out_and_counted() {
    let mut busy = busy();
    let mut run = run(&skylake(), &busy, 2);
    // The union exceeds the sum of both threads.
    let [both, a, b] = busy[1].remove(2);
    counted(row_of(&mut run, NodeId(1), 2, 0)).counts[1] = 2 * both + a + b + WORKED / 100;
    assert_split(&run, &busy, Quality::Partial);
    let reason = metric(&run, "smt_neither").reason().unwrap();
    let expected = "1 of 12 cores is left out; this is core 2 of node1: the counts contradict one \
                    another: ref_cycles_core <= ref_cycles_a + ref_cycles_b";
    assert!(reason.starts_with(expected), "{reason}");
    // The bounds need no union.
    assert_eq!(metric(&run, "smt_both_upper").quality(), Quality::Exact);
    // The union is less than one thread alone.
    busy[0].remove(4);
    counted(row_of(&mut run, NodeId(0), 4, 0)).counts[1] = 0;
    assert_split(&run, &busy, Quality::Partial);
    let reason = metric(&run, "smt_both").reason().unwrap();
    assert!(
        reason.starts_with("2 of 12 cores are left out; the first of these is core 4 of node0: the counts"),
        "{reason}"
    );
    // The same on all cores.
    run.counts.rows.iter_mut().filter(|row| row.set == 0).for_each(|row| counted(row).counts[1] = 0);
    let both = metric(&run, "smt_both");
    assert!(matches!(both.result, Err(Lack::Contradiction(_))), "{both:?}");
}

#[test]
fn siblings_that_were_not_read_at_one_instant_do_not_contradict_one_another() {
    let busy = vec![vec![[0, WORKED / 2, 0]; CORES as usize]];
    let mut run = run(&skylake(), &busy, 2);
    let late = WORKED / 1000;
    let of_core = |run: &mut Run| counted(row_of(run, NodeId(0), 3, 0)).counts[0] += RATIO * late;
    of_core(&mut run);
    assert_eq!(metric(&run, "smt_both").quality(), Quality::Partial);
    // The two snapshots took long enough to explain the difference.
    let took = |ns: i64| Cost { opening_ns: 5, snapshots_ns: [ns, ns] };
    let apart_ns = (late * CRYSTAL_NS) as i64;
    run.counts.cost = Some([took(0), took(apart_ns / 2)]);
    assert_eq!(metric(&run, "smt_both").quality(), Quality::Exact);
    let (lower, upper) = (metric(&run, "smt_both_lower"), metric(&run, "smt_both_upper"));
    assert!(lower.value() == Some(0.0) && upper.value().is_some_and(|upper| upper < 0.0012), "{upper:?}");
}

#[test]
fn a_core_without_a_count_is_left_out_and_says_why() {
    let mut busy = busy();
    let mut run = run(&skylake(), &busy, 2);
    busy[0].remove(1);
    row_of(&mut run, NodeId(0), 1, 1).groups = vec![None];
    assert_split(&run, &busy, Quality::Partial);
    let reason = metric(&run, "smt_both").reason().unwrap();
    let expected = "1 of 12 cores is left out; this is core 1 of node0: ref_cycles_b: no counter is open";
    assert!(reason.starts_with(expected), "{reason}");
    // A hardware thread that went offline before pmmpi opened counters there.
    busy[0].remove(2);
    run.counts.rows.retain(|row| (row.rank, row.cpu) != (RankId(0), Some(3)));
    assert_split(&run, &busy, Quality::Partial);
    assert!(metric(&run, "smt_both").reason().unwrap().starts_with("2 of 12 cores"));
    // A count for a part of the time makes the mean scaled.
    let mut run = self::run(&skylake(), &self::busy(), 2);
    let scaled = counted(row_of(&mut run, NodeId(1), 0, 1));
    (scaled.enabled_ns, scaled.counts[0]) = (18, scaled.counts[0] / 2);
    assert_split(&run, &self::busy(), Quality::Scaled);
    let both = metric(&run, "smt_both");
    assert!(both.reason().unwrap().starts_with("ref_cycles_b: counted 50.0 %"), "{both:?}");
    assert_eq!(both.result.unwrap().running_share, Some(0.5));
}

#[test]
fn where_nothing_could_be_counted_it_is_said() {
    let closed = |gap: Gap, sets: &[usize], threads: u32| {
        let mut run = run(&skylake(), &busy(), threads);
        for set in sets {
            run.counts.sets[*set].groups.clear();
            run.counts.sets[*set].events.iter_mut().for_each(|(_, of)| *of = Some(gap));
            run.counts.rows.retain(|row| row.set != *set as u32);
            for rank in [0, 2].map(RankId) {
                let row = CountRow { rank, cpu: None, set: *set as u32, region: None, groups: Vec::new() };
                run.counts.rows.push(row);
            }
        }
        metric(&run, "smt_both")
    };
    let denied = closed(Gap::Denied(libc::EACCES), &[0, 1], 2);
    assert_eq!((denied.value(), denied.quality()), (None, Quality::Denied));
    assert!(denied.reason().unwrap().contains("CAP_PERFMON"));
    let unsupported = closed(Gap::Unsupported(libc::ENOENT), &[0, 1], 2);
    assert_eq!(unsupported.quality(), Quality::Unsupported);
    // SMT is off, or the processor has none.
    let off = closed(Gap::Unavailable(WhyUnavailable::NoSuchThread), &[1], 1);
    assert_eq!((off.value(), off.quality()), (None, Quality::Unavailable));
    let reason = off.reason().unwrap();
    assert!(
        reason.starts_with("ref_cycles_b: the event needs hardware threads") && reason.contains("SMT"),
        "{reason}"
    );
    // Cores with more than two hardware threads.
    let four = closed(Gap::Unavailable(WhyUnavailable::NoSuchThread), &[], 4);
    assert_eq!(
        four.reason().unwrap(),
        "ref_cycles_b: the core has 4 hardware threads, but this metric needs two"
    );
}

/// One of the two nodes has SMT off.
#[test]
fn cores_of_one_hardware_thread_are_left_out_of_the_others() {
    let mut busy = busy();
    let mut run = run(&skylake(), &busy, 2);
    busy[1].clear();
    let mut off = run.topologies[0].clone();
    off.threads.retain(|thread| thread.cpu < CORES);
    run.topologies.push(off);
    run.nodes[1].topology = Some(1);
    run.counts.rows.retain(|row| row.rank != RankId(2) || row.set == 0);
    assert_split(&run, &busy, Quality::Partial);
    let reason = metric(&run, "smt_both").reason().unwrap();
    let expected =
        "6 of 12 cores are left out; the first of these is core 0 of node1: ref_cycles_b: only one";
    assert!(reason.starts_with(expected), "{reason}");
}

#[test]
fn what_is_not_known_of_a_node_leaves_it_out() {
    let mut busy = busy();
    let known = run(&skylake(), &busy, 2);
    busy[1].clear();
    let mut unplaced = known.clone();
    unplaced.nodes[1].topology = None;
    assert_split(&unplaced, &busy, Quality::Partial);
    let reason = metric(&unplaced, "smt_both").reason().unwrap();
    let expected = "6 of 12 cores are left out; the first of these is hardware thread 0 of node1: \
                    ref_cycles_b: pmmpi does not know which";
    assert!(reason.starts_with(expected), "{reason}");
    // The counting rank was killed, so the times of its counts are unknown.
    let mut killed = known.clone();
    killed.ranks.retain(|rank| rank.rank != RankId(2));
    killed.lost.push(LostRank {
        rank: RankId(2),
        node: NodeId(1),
        t_ns: vec![0, 1],
        end: End::Signaled(9),
        ended_ns: Some(9),
        whereabouts: None,
    });
    assert_split(&killed, &busy, Quality::Partial);
    let reason = metric(&killed, "smt_both").reason().unwrap();
    assert!(reason.contains("core 0 of node1: ") && reason.contains("did not complete its work"), "{reason}");
    let mut without_tsc = known;
    without_tsc.ranks.iter_mut().for_each(|rank| rank.tsc = None);
    assert!(metric(&without_tsc, "smt_both").reason().unwrap().starts_with("no value for tsc_hz"));
    // The user asked for no counts.
    without_tsc.counts = Counts::default();
    let nothing = metric(&without_tsc, "smt_both_lower");
    assert_eq!(nothing.reason().unwrap(), "ref_cycles_a: the run did not count this event");
}

#[test]
fn processors_without_a_union_have_bounds() {
    let busy = busy();
    let run = run(&zen2(), &busy, 2);
    let both = metric(&run, "smt_both");
    assert!(matches!(&both.result, Err(Lack::NotHere(reason)) if reason.contains("bounds")), "{both:?}");
    let of_core = |[both, a, b]: &Busy| {
        let [first, second] = [both + a, both + b].map(|busy| busy as f64 / WORKED as f64);
        [(first + second - 1.0).max(0.0), first.min(second)]
    };
    let slack = run.max_drift().ppm() * 1e-6;
    let bounds: Vec<[f64; 2]> = busy.iter().flatten().map(of_core).collect();
    let mean = |at: usize| bounds.iter().map(|bounds| bounds[at]).sum::<f64>() / bounds.len() as f64;
    let off = |name: &str, expected: f64| (metric(&run, name).value().unwrap() - expected).abs();
    assert!(off("smt_both_lower", mean(0)) <= slack + 1e-12, "{:?}", metric(&run, "smt_both_lower"));
    assert!(off("smt_both_upper", mean(1)) <= slack + 1e-12);
    assert_eq!(metric(&run, "smt_both_upper").quality(), Quality::Exact);
}

fn any_core() -> impl Strategy<Value = Busy> {
    let part = prop_oneof![Just(0), 0..=WORKED / 3];
    let third = prop::array::uniform3(part);
    let all = (0..=WORKED).prop_map(|both| [both, 0, WORKED - both]);
    prop_oneof![third, all]
}

fn any_busy() -> impl Strategy<Value = Vec<Vec<Busy>>> {
    let node = || prop::collection::vec(any_core(), CORES as usize);
    prop::collection::vec(node(), 1..4)
}

proptest! {
    /// The four parts add up to the whole time, each part is right, and the bounds enclose the part of both
    /// threads.
    #[test]
    fn parts_add_up_and_bounds_enclose(busy in any_busy(), skylake_nodes in any::<bool>()) {
        let hardware = if skylake_nodes { skylake() } else { zen2() };
        let run = run(&hardware, &busy, 2);
        let values = of_run(&run, &Trust::default());
        let value = |name: &str| values.iter().find(|value| value.metric.name == name).unwrap().value();
        let truth = mean(&busy, 0);
        let (lower, upper) = (value("smt_both_lower").unwrap(), value("smt_both_upper").unwrap());
        prop_assert!((0.0..=1.0).contains(&lower) && (0.0..=1.0).contains(&upper));
        prop_assert!(lower <= truth + 1e-12 && truth <= upper + 1e-12, "{} {} {}", lower, truth, upper);
        if skylake_nodes {
            let parts = SPLIT.map(|name| value(name).unwrap());
            prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            for (part, value) in parts.iter().enumerate() {
                prop_assert!((value - mean(&busy, part)).abs() < 1e-9);
            }
        } else {
            prop_assert_eq!(value("smt_both"), None);
        }
    }

    /// Whatever a file says, each metric has a value or a reason.
    #[test]
    fn no_run_makes_it_panic(
        busy in any_busy(),
        threads in 0u32..4,
        counts in prop::collection::vec((0usize..99, any::<u64>(), any::<u64>(), any::<u64>()), 0..9),
        cpus in prop::collection::vec((0usize..99, prop::option::of(any::<u32>()), 0u32..8), 0..9),
        tsc in prop::option::of(any::<[u64; 2]>()),
        cost in prop::option::of(any::<[i64; 2]>()),
    ) {
        let mut run = run(&skylake(), &busy, threads);
        let rows = run.counts.rows.len();
        for (at, count, enabled, running) in counts {
            let group = counted(&mut run.counts.rows[at % rows]);
            (group.counts[0], group.enabled_ns, group.running_ns) = (count, enabled, running);
        }
        for (at, cpu, rank) in cpus {
            let row = &mut run.counts.rows[at % rows];
            (row.cpu, row.rank) = (cpu, RankId(rank));
        }
        run.ranks[0].tsc = tsc;
        run.counts.cost = cost.map(|snapshots_ns| [Cost { opening_ns: 0, snapshots_ns }; 2]);
        for value in of_run(&run, &Trust::default()) {
            prop_assert_eq!(value.value().is_some(), value.quality().has_value());
            prop_assert!(value.value().is_none_or(f64::is_finite));
            prop_assert!(value.quality() == Quality::Exact || value.reason().is_some());
        }
    }
}

/// Sapphire Rapids: each sibling counts its part of the union, in crystal cycles.
fn distributed(crystal: Crystal) -> Run {
    let hardware = Hardware { crystal, ..hardware("GenuineIntel", 6, 0x8f) };
    let mut run = run(&hardware, &busy(), 2);
    for (set, name) in run.counts.sets.iter_mut().zip(["ref_distributed_a", "ref_distributed_b"]) {
        set.events.push((Event::counted(name, Encoding::new(0, 0)), None));
        set.groups[0].push(1);
    }
    for (node, cores) in busy().iter().enumerate() {
        for (core, [both, a, b]) in (0..).zip(cores) {
            for (sibling, alone) in [(0, a), (1, b)] {
                counted(row_of(&mut run, NodeId(node as u32), core, sibling)).counts.push(both / 2 + alone);
            }
        }
    }
    run
}

#[test]
fn the_crystals_ratio_turns_parts_of_the_union_into_the_split() {
    let crystal = Crystal { crystal_hz: None, tsc_ratio: Some([2 * RATIO as u32, 2]) };
    assert_split(&distributed(crystal), &busy(), Quality::Exact);
    // With the rate alone, the result is as exact as the clock that measured the TSC's rate.
    let told = Crystal { crystal_hz: Some(25_000_000), tsc_ratio: None };
    assert_split(&distributed(told), &busy(), Quality::Exact);
    // With a known ratio, a wrong nominal rate (from a rounded frequency) has no effect.
    let rounded = Crystal { crystal_hz: Some(24_000_000), ..crystal };
    assert_split(&distributed(rounded), &busy(), Quality::Exact);
    let unknown = metric(&distributed(Crystal::default()), "smt_both");
    assert_eq!((unknown.value(), unknown.quality()), (None, Quality::Unavailable));
    assert!(unknown.reason().unwrap().contains("no value for crystal_hz"), "{unknown:?}");
    // With a wrong ratio of 1, the union would be less than one thread alone.
    let not_so = Crystal { tsc_ratio: Some([1, 1]), ..crystal };
    assert!(matches!(metric(&distributed(not_so), "smt_both").result, Err(Lack::Contradiction(_))));
}

#[test]
fn a_run_file_keeps_the_crystals_of_its_nodes() {
    let folder = tempfile::TempDir::with_prefix("test-crystals-").unwrap();
    let crystal = Crystal { crystal_hz: Some(25_000_000), tsc_ratio: Some([160, 2]) };
    let mut run = distributed(crystal);
    // A cluster with several kinds of nodes, and a node from which no rank reported.
    run.nodes[0].facts.as_mut().unwrap().hardware.crystal = Crystal::default();
    let key = NodeKey { hostname: "silent".into(), boot_id: String::new(), time_namespace: 0 };
    run.nodes.push(NodeRecord::new(key));
    let path = pmmpi::record::run_file::write(folder.path(), &run).unwrap();
    assert_eq!(pmmpi::record::run_file::read(&path).unwrap(), run);
}

/// Decoding returns the same facts.
#[test]
fn a_nodes_crystal_travels_with_its_facts() {
    let hardware = Hardware {
        crystal: Crystal { crystal_hz: None, tsc_ratio: Some([168, 2]) },
        ..hardware("GenuineIntel", 6, 0x6a)
    };
    let facts = NodeFacts { hardware, ..NodeFacts::default() };
    let bytes = pmmpi::record::wire::encode(&HostPart::new(facts.clone(), None)).unwrap();
    assert_eq!(pmmpi::record::wire::decode::<HostPart>(&bytes).unwrap().facts(), (facts, None));
}
