//! Flags of a run that need no counters: where its ranks ran, and how equal its nodes were.

#[expect(dead_code)]
mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use pmmpi::RankId;
use pmmpi::counters::counts::{CountRow, GroupCounts};
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::node::{CpuSet, HwThread, Topology};
use pmmpi::record::Run;
use serde_json::Value;

const S: i64 = 1_000_000_000;
const CORES: u32 = 4;

/// Four cores on two sockets. Hardware threads 0 and 4 share core 0.
fn topology() -> Topology {
    let thread = |cpu: u32| HwThread {
        cpu,
        core: cpu % CORES,
        socket: cpu % CORES / 2,
        numa: cpu % CORES / 2,
        last_level_cache: None,
    };
    Topology { source: "test".into(), threads: (0..2 * CORES).map(thread).collect(), ..Topology::default() }
}

/// A run with these ranks: the host and the hardware threads of each.
fn measured(ranks: &[(&str, &str)]) -> Run {
    let stamped: Vec<(&str, [i64; 4])> =
        ranks.iter().map(|(host, _)| (*host, [0, S, 9 * S, 10 * S])).collect();
    let mut run = runs::run("r", &stamped);
    run.topologies = vec![topology()];
    run.nodes.iter_mut().for_each(|node| node.topology = Some(0));
    for (record, (_, cpus)) in run.ranks.iter_mut().zip(ranks) {
        record.allowed = CpuSet::parse(cpus).unwrap();
        let first = record.allowed.numbers().next();
        record.ran_on = [first, first];
    }
    run
}

/// Codes and messages.
fn flags(run: &Run) -> Vec<[String; 2]> {
    let folder = Folder::new();
    folder.write(run);
    let found = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &found);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let flags = found["runs"][0]["flags"].as_array().unwrap().iter();
    flags.map(|flag| [&flag["code"], &flag["message"]].map(text)).collect()
}

fn codes(run: &Run) -> Vec<String> {
    flags(run).into_iter().map(|[code, _]| code).collect()
}

#[test]
fn ranks_with_cores_of_their_own_raise_no_flag() {
    let own_cores = [("a", "0,4"), ("a", "1,5"), ("b", "2,6"), ("b", "3,7")];
    assert_eq!(codes(&measured(&own_cores)), Vec::<String>::new());
    // One rank of a node may use the whole node, and ranks of a socket may be as many as its hardware threads.
    assert_eq!(codes(&measured(&[("a", "0-7"), ("b", "0-7")])), Vec::<String>::new());
    assert_eq!(codes(&measured(&[("a", "0,1,4,5"), ("a", "0,1,4,5")])), Vec::<String>::new());
    // What is not known raises nothing.
    let mut unknown = measured(&[("a", "0-7"), ("a", "0-7")]);
    unknown.topologies.clear();
    unknown.nodes.iter_mut().for_each(|node| node.topology = None);
    assert_eq!(codes(&unknown), Vec::<String>::new());
}

#[test]
fn bindings_that_disturb_are_named() {
    let unbound = flags(&measured(&[("a", "0-7"), ("a", "0-7"), ("b", "1")]));
    let [[code, message]] = &unbound[..] else { panic!("{unbound:?}") };
    assert_eq!(code, "unbound-ranks");
    assert!(
        message.starts_with("2 ranks (0, 1) may run on all hardware threads of their node: "),
        "{message}"
    );

    let same = flags(&measured(&[("a", "0,4"), ("a", "0,4"), ("a", "0,4"), ("a", "1")]));
    let expected = [
        [
            "overlapping-ranks",
            "3 ranks (0, 1, 2) are bound to hardware threads that other ranks may use, too: check how the launcher binds the ranks",
        ],
        ["more-ranks-than-cores", "4 ranks of a share 2 cores with 3 hardware threads"],
    ];
    assert_eq!(same, expected.map(|pair| pair.map(str::to_owned)));

    let all_threads: Vec<(&str, String)> = (0..8).map(|cpu| ("a", cpu.to_string())).collect();
    let all_threads: Vec<(&str, &str)> =
        all_threads.iter().map(|(host, cpu)| (*host, cpu.as_str())).collect();
    let both_nodes: Vec<(&str, &str)> =
        all_threads.iter().copied().chain(all_threads.iter().map(|(_, cpu)| ("b", *cpu))).collect();
    let crowded = flags(&measured(&both_nodes));
    let expected =
        "8 ranks of a share 4 cores with 8 hardware threads; ranks of 1 more node share cores, too";
    assert_eq!(crowded, [["more-ranks-than-cores".to_owned(), expected.to_owned()]]);
}

#[test]
fn a_move_to_another_core_is_told_and_one_to_a_sibling_is_not() {
    let mut run = measured(&[("a", "0-3"), ("b", "0-3")]);
    run.ranks[0].ran_on = [Some(0), Some(4)];
    run.ranks[1].ran_on = [Some(2), None];
    assert_eq!(codes(&run), Vec::<String>::new());
    run.ranks[1].ran_on = [Some(2), Some(3)];
    let expected = ["moved-ranks", "rank 1 began and ended on different cores"];
    assert_eq!(flags(&run), [expected.map(str::to_owned)]);
}

#[test]
fn nodes_that_differ_within_a_run_are_named() {
    let mut run = measured(&[("a", "0,4"), ("b", "0,4"), ("c", "0,4"), ("c", "1,5")]);
    let set = |run: &mut Run, node: usize, name: &str, value: &str| {
        run.nodes[node].facts.as_mut().unwrap().inventory.set(name, value.into());
    };
    for (node, transports) in ["tcp", "tcp", "shared memory, tcp"].into_iter().enumerate() {
        set(&mut run, node, "transports", transports);
        set(&mut run, node, "switch", &format!("s{node}"));
        set(&mut run, node, "other_hugepages", if node == 1 { "none" } else { "4 x 1048576 kB" });
    }
    let expected = ["unequal-nodes", "nodes differ: other_hugepages is 4 x 1048576 kB, but none on b"];
    assert_eq!(flags(&run), [expected.map(str::to_owned)]);
    // Connections open when a process first needs them. The hardware of the nodes counts.
    let mut run = measured(&[("a", "0,4"), ("b", "0,4"), ("c", "0,4")]);
    for (node, transports) in ["tcp", "none", "none"].into_iter().enumerate() {
        set(&mut run, node, "transports", transports);
        set(&mut run, node, "kernel_options", &"x".repeat(if node == 0 { 90 } else { 80 }));
        let hardware = &mut run.nodes[node].facts.as_mut().unwrap().hardware;
        hardware.microcode = Some(if node == 2 { "0x2" } else { "0x1" }.into());
    }
    let x = "x".repeat(60);
    let expected =
        format!("nodes differ: kernel_options is {x}..., but {x}... on a; microcode is 0x1, but 0x2 on c");
    assert_eq!(flags(&run), [["unequal-nodes".to_owned(), expected]]);
}

/// Ranks that counted cycles at this frequency, on nodes with turbo steps for one and for two active cores of a socket. The
/// reference cycles are those of a TSC of 2 GHz.
fn at_frequency(ranks: &[(&str, &str)], ghz: f64, steps: Option<&str>) -> Run {
    let mut run = measured(ranks);
    for node in &mut run.nodes {
        let facts = node.facts.as_mut().unwrap();
        steps.iter().for_each(|steps| facts.inventory.set("turbo_steps", (*steps).to_owned()));
    }
    let event = |name: &str, config| (Event::counted(name, Encoding::new(kind::HARDWARE, config)), None);
    let events = vec![event("cycles", 0), event("ref_cycles", 9)];
    run.counts.sets = vec![Set { scope: Scope::Task, events, groups: vec![vec![0, 1]] }];
    let seconds = 8.0; // t1 to t2
    let counts = [ghz, 2.0].map(|ghz| (ghz * seconds * 1e9) as u64).to_vec();
    let counted = GroupCounts { enabled_ns: 8 * S as u64, running_ns: 8 * S as u64, counts };
    let row = |rank: &pmmpi::record::RankRecord| CountRow {
        rank: RankId(rank.rank.0),
        cpu: None,
        set: 0,
        region: None,
        groups: vec![Some(counted.clone())],
    };
    run.counts.rows = run.ranks.iter().map(row).collect();
    run.ranks.iter_mut().for_each(|rank| rank.tsc = Some([0, (2.0 * seconds * 1e9) as u64]));
    run
}

#[test]
fn cores_below_their_turbo_step_raise_a_flag() {
    const STEPS: Option<&str> = Some("1: 3.70 GHz, 2: 3.00 GHz");
    let message = |run: &Run| {
        let raised = flags(run).into_iter().find(|[code, _]| code == "below-turbo-step");
        raised.map(|[_, message]| message)
    };
    // Cores 0 and 1 are of one socket: 3.0 GHz is its step, and 2.8 GHz is 7 % below.
    let two = [("n1", "0"), ("n1", "1")];
    let text = message(&at_frequency(&two, 2.8, STEPS)).unwrap();
    assert!(
        text.starts_with(
            "cores ran at 2.80 GHz, but the turbo step for 2 active cores per socket is 3.00 GHz (n1)"
        ),
        "{text}"
    );
    assert_eq!(message(&at_frequency(&two, 2.9, STEPS)), None);
    // One core on each socket may have 3.7 GHz.
    let apart = [("n1", "0"), ("n1", "2")];
    assert!(
        message(&at_frequency(&apart, 3.0, STEPS)).unwrap().contains("1 active core per socket is 3.70 GHz")
    );
    // A rank that may run on both cores may keep both active.
    assert_eq!(message(&at_frequency(&[("n1", "0-1")], 3.0, STEPS)), None);
    // With one busy thread, it keeps one core active, wherever it may run.
    let mut one_thread = at_frequency(&[("n1", "0-1")], 3.0, STEPS);
    one_thread.ranks[0].cpu_user_ns = 8 * S;
    assert!(message(&one_thread).unwrap().contains("1 active core per socket is 3.70 GHz"));
    one_thread.ranks[0].cpu_user_ns = 9 * S;
    assert_eq!(message(&one_thread), None);
    // Hardware threads 0 and 4 are one core.
    assert!(message(&at_frequency(&[("n1", "0"), ("n1", "4")], 3.0, STEPS)).is_some());
    // Of all sockets, the one of which least may be expected counts.
    let unequal = [("n1", "0"), ("n1", "1"), ("n1", "2")];
    assert_eq!(message(&at_frequency(&unequal, 3.0, STEPS)), None);
}

#[test]
fn without_known_steps_there_is_no_flag_of_turbo() {
    let two = [("n1", "0"), ("n1", "1")];
    let is_raised = |run: &Run| codes(run).contains(&"below-turbo-step".to_owned());
    assert!(!is_raised(&at_frequency(&two, 2.2, None)));
    // The steps end with one core.
    assert!(!is_raised(&at_frequency(&two, 2.2, Some("1: 3.70 GHz"))));
    let mut off = at_frequency(&two, 2.2, Some("2: 3.00 GHz"));
    assert!(is_raised(&off));
    off.nodes[0].facts.as_mut().unwrap().inventory.set("turbo", "off".to_owned());
    assert!(!is_raised(&off));
    // One of two nodes does not know its steps.
    let mut half = at_frequency(&[("n1", "0"), ("n2", "0")], 2.2, Some("2: 3.00 GHz"));
    assert!(is_raised(&half));
    half.nodes[1].facts.as_mut().unwrap().inventory = pmmpi::node::Inventory::default();
    assert!(!is_raised(&half));
}

#[test]
fn a_limit_below_the_turbo_step_is_what_may_be_expected() {
    let mut run = at_frequency(&[("n1", "0"), ("n1", "1")], 2.3, Some("2: 3.00 GHz"));
    let settings = &mut run.nodes[0].facts.as_mut().unwrap().settings;
    settings.frequency_limits_hz = Some([1_000_000_000, 2_400_000_000]);
    assert!(!codes(&run).contains(&"below-turbo-step".to_owned()));
    run.nodes[0].facts.as_mut().unwrap().settings.frequency_limits_hz = Some([1_000_000_000, 2_500_000_000]);
    let raised = flags(&run).into_iter().find(|[code, _]| code == "below-turbo-step").unwrap();
    assert!(raised[1].contains("the configured maximum frequency is 2.50 GHz"), "{raised:?}");
}
