//! From counts to a cause: stored runs, columns of other tools, and nodes made by hand.

use pmmpi::record::run_file;
use pmmpi_analysis::input::node_counters::of_nodes;
use pmmpi_analysis::stats::cause::{CauseKind, CauseSettings, Explanation, NoCause, SnoopFilters, explain};
use pmmpi_analysis::stats::node_counts::{Counted, NAMES};
use pmmpi_analysis::stats::verdict_rule::Verdict;
use pmmpi_events::validation::Trust;
use proptest::prelude::*;
use std::path::Path;

/// Runs on a virtual machine: the Linux kernel's own counters, and no others.
#[test]
fn stored_runs_give_what_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/runs/v3");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (mut nodes, mut hosts) = (0, Vec::new());
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "pmr")) {
        let run = run_file::read(&path).unwrap();
        let counted = of_nodes(&run, &Trust::default().of_run(&run));
        assert_eq!(counted.len(), run.nodes.len());
        for node in &counted {
            nodes += 1;
            assert!(node.positive("task_clock_ns").is_some() && node.positive("cpus").is_some(), "{node:?}");
            assert!(node.positive("ranks").is_some() && node.get("context_switches").is_some());
            assert!(
                node.why_not("cycles").unwrap().contains("not counted by this processor and Linux kernel")
            );
            assert!(node.get("cycles").is_none() && node.get("cycles_user").is_none());
            assert!(node.positive("task_clock_ns_most") <= node.positive("task_clock_ns"));
        }
        if run.header.command == ["hpcc"] {
            hosts.push((run.elapsed().unwrap().lower_ns, counted));
        }
    }
    assert_eq!((nodes > 9, hosts.len()), (true, 3));
    // The runs of each host, as if they were the nodes of a class.
    let class: Vec<Option<Counted>> = hosts.iter().map(|(_, nodes)| nodes.first().cloned()).collect();
    let times: Vec<f64> = hosts.iter().map(|(ns, _)| (*ns as f64).ln()).collect();
    for explanation in explain(&class, &times, &CauseSettings { min_nodes: 3, ..CauseSettings::default() }) {
        assert_eq!(explanation.terms.keys().copied().collect::<Vec<_>>(), ["d_off_cpu", "d_on_cpu"]);
    }
}

fn columns(changed: &[(&str, f64)]) -> Option<Counted> {
    let usual = [
        ("cpus", 48.0),
        ("tsc", 2.1e10),
        ("instructions", 2e12),
        ("cycles", 1.4e12),
        ("ref_cycles", 1e12),
        ("task_clock_ns", 4.8e11),
        ("cycles_kernel", 1e9),
        ("instructions_kernel", 1e9),
        ("context_switches", 100.0),
        ("page_faults", 5000.0),
        ("dram_bytes", 1e12),
        ("dram_read_bytes", 0.7e12),
        ("snoop_filter_evictions", 1e9),
        ("system_read_bytes", 4e12),
    ];
    let by = |name: &str| changed.iter().find(|(known, _)| *known == name).map_or(1.0, |(_, by)| *by);
    Some(Counted::new(usual.map(|(name, value)| (name, value * by(name)))))
}

/// A node that takes longer by `slower`, among nine equal nodes.
fn one(slower: f64, changed: &[(&str, f64)]) -> Explanation {
    let mut class = vec![columns(&[]); 9];
    class.push(columns(changed));
    let mut times = vec![10f64.ln(); 9];
    times.push((10.0 * slower).ln());
    let explained = explain(&class, &times, &CauseSettings::default()).pop().unwrap();
    let sum: f64 = explained.terms.values().sum();
    assert!((sum - slower.ln()).abs() < 1e-12, "{explained:?}");
    explained
}

fn name(slower: f64, changed: &[(&str, f64)]) -> &'static str {
    one(slower, changed).cause.unwrap().kind.name()
}

#[test]
fn each_cause_has_its_word() {
    let t = 1.1;
    let (tsc, clock) = (("tsc", t), ("task_clock_ns", t));
    let [i, c, r] = [("instructions", t), ("cycles", t), ("ref_cycles", t)];
    assert_eq!(name(t, &[tsc, clock, r]), "frequency");
    assert_eq!(name(t, &[tsc, clock]), "utilisation/halted");
    assert_eq!(name(t, &[tsc]), "utilisation/off-cpu");
    assert_eq!(name(t, &[tsc, clock, i, c, r]), "instructions");
    let kernel = [("instructions_kernel", 201.0), ("cycles_kernel", 141.0)];
    assert_eq!(name(t, &[&[tsc, clock, i, c, r][..], &kernel].concat()), "instructions/kernel");
    assert_eq!(name(t, &[tsc, clock, c, r, kernel[1]]), "cpi/kernel");
    assert_eq!(
        name(t, &[tsc, clock, c, r, ("dram_bytes", 1.5), ("system_read_bytes", 2.0)]),
        "cpi/cache-and-memory"
    );
    assert_eq!(name(t, &[tsc, clock, c, r, ("system_read_bytes", 2.0)]), "cpi/cache");
    assert_eq!(name(t, &[tsc, clock, c, r]), "cpi/memory");
    assert_eq!(name(t, &[tsc, clock, c, r, ("dram_bytes", 1.5)]), "cpi/memory-traffic");
    assert_eq!(name(t, &[tsc, clock, ("cpus", 1.0 / t)]), "cpus");
    assert_eq!(name(t, &[]), "uncounted");
    let third = t.powf(1.0 / 3.0);
    assert_eq!(
        name(t, &[tsc, clock, ("instructions", third), ("cycles", third * third), ("ref_cycles", t)]),
        "mixed"
    );
}

/// Ten nodes, of which the last takes 10 % longer because of its cycles per instruction. The counts of all nodes are
/// multiplied by those of `usual`, those of the last by `more`.
fn cpi(snoop_filter: SnoopFilters, usual: &[(&str, f64)], more: &[(&str, f64)]) -> &'static str {
    let t = 1.1;
    let slow = [("tsc", t), ("task_clock_ns", t), ("cycles", t), ("ref_cycles", t)];
    let by = |name: &str| usual.iter().find(|(known, _)| *known == name).map_or(1.0, |(_, by)| *by);
    let more: Vec<(&str, f64)> = more.iter().map(|(name, more)| (*name, more * by(name))).collect();
    let others = usual.iter().filter(|(name, _)| !more.iter().any(|(known, _)| known == name)).copied();
    let last: Vec<(&str, f64)> = slow.into_iter().chain(more.iter().copied()).chain(others).collect();
    let mut class = vec![columns(usual); 9];
    class.push(columns(&last));
    let mut times = vec![10f64.ln(); 9];
    times.push((10.0 * t).ln());
    let settings = CauseSettings { snoop_filter, ..CauseSettings::default() };
    explain(&class, &times, &settings).pop().unwrap().cause.unwrap().kind.name()
}

/// SC18: slow runs have at least 1.5 times the least number of L2 fills, evictions of snoop filters account for most of the
/// additional fills, and the additional DRAM traffic is reads.
#[test]
fn a_snoop_filter_is_named_only_where_it_is_one_and_evicts_the_lines() {
    use SnoopFilters::{Counted, None, WithConflicts};
    // 4e12 bytes are 6.25e10 lines, of which the filters usually evict 1e9.
    let fills = |by: f64| ("system_read_bytes", by);
    let (reads, bytes) = (("dram_read_bytes", 1.3), ("dram_bytes", 1.2));
    let evicting = |share: f64, by: f64| ("snoop_filter_evictions", 1.0 + share * (by - 1.0) * 62.5);
    let not_counted = [("snoop_filter_evictions", 0.0)];
    for by in [1.5, 2.2] {
        assert_eq!(cpi(WithConflicts, &not_counted, &[fills(by), reads, bytes]), "cpi/snoop-filter");
        assert_eq!(cpi(None, &not_counted, &[fills(by), reads, bytes]), "cpi/cache-and-memory");
        assert_eq!(cpi(Counted, &not_counted, &[fills(by), reads, bytes]), "cpi/cache-and-memory");
        assert_eq!(cpi(WithConflicts, &not_counted, &[fills(by)]), "cpi/cache", "no more reads from memory");
        for of in [WithConflicts, Counted] {
            assert_eq!(cpi(of, &[], &[fills(by), reads, bytes, evicting(0.8, by)]), "cpi/snoop-filter");
            let few = [fills(by), reads, bytes, evicting(0.3, by)];
            assert_eq!(cpi(of, &[], &few), "cpi/cache-and-memory", "most lines have another reason");
        }
    }
    // An AMD EPYC with 2.2 % more bytes into its L2 caches.
    assert_eq!(cpi(None, &[], &[fills(1.022), bytes]), "cpi/cache-and-memory");
    assert_eq!(cpi(WithConflicts, &not_counted, &[fills(1.4), reads, bytes]), "cpi/cache-and-memory");
    assert_eq!(cpi(WithConflicts, &[], &[fills(1.4), evicting(0.8, 1.4)]), "cpi/snoop-filter");
    assert_eq!(cpi(None, &[], &[fills(1.4), evicting(0.8, 1.4), bytes]), "cpi/cache-and-memory");
}

/// A line costs 600 cycles at most: few more lines do not explain many more cycles, and a program that hardly uses memory is
/// not slow because of it.
#[test]
fn counts_that_cannot_cost_the_cycles_are_no_cause() {
    use SnoopFilters::{None, WithConflicts};
    // 10 % of 1.4e12 cycles are 1.4e11 cycles. 1 % of 6.25e10 lines cost 3.75e11 at most, 0.3 % 1.1e11.
    let fills = |by: f64| ("system_read_bytes", by);
    assert_eq!(cpi(None, &[], &[fills(1.01)]), "cpi/cache");
    let few = [("system_read_bytes", 0.001), ("dram_bytes", 0.001), ("snoop_filter_evictions", 0.001)];
    for more in [&[fills(1.6), ("snoop_filter_evictions", 40.0)][..], &[fills(2.0), ("dram_bytes", 2.0)], &[]]
    {
        assert_eq!(cpi(WithConflicts, &few, more), "cpi", "{more:?}");
    }
    assert_eq!(cpi(None, &[], &[]), "cpi/memory");
}

/// The cause of the last of `nodes` nodes, which takes 10 % longer, while another one `lacks` a count.
fn cause_beside(nodes: usize, changed: &[(&str, f64)], lacks: &'static str) -> &'static str {
    let t = 1.1f64;
    let node = |changed: &[(&str, f64)]| {
        let mut node = columns(changed).unwrap();
        let most = |name: &str| changed.iter().find(|(known, _)| *known == name).map_or(1.0, |(_, by)| *by);
        node.set("ranks", 2.0);
        node.set("ref_cycles_most", 0.5e12 * most("ref_cycles_most"));
        node.set("task_clock_ns_most", 2.4e11 * most("task_clock_ns_most"));
        node.set("steal_ns", 0.0);
        node
    };
    let mut class = vec![Some(node(&[])); nodes - 1];
    class.push(Some(node(changed)));
    class[1].as_mut().unwrap().lack(lacks, "not counted there");
    let mut times = vec![10f64.ln(); nodes - 1];
    times.push((10.0 * t).ln());
    let explained = explain(&class, &times, &CauseSettings::default());
    for (node, ln_time) in explained.iter().zip(&times) {
        assert!((node.terms.values().sum::<f64>() - (ln_time - times[0])).abs() < 1e-12, "{lacks}: {node:?}");
        assert!(!node.terms.is_empty(), "{lacks}: {node:?}");
    }
    explained.last().unwrap().cause.as_ref().unwrap().kind.name()
}

/// A count that one node lacks is no reason to explain the others without it.
#[test]
fn the_counts_of_one_node_explain_no_other() {
    let t = 1.1;
    let longer = [("tsc", t), ("task_clock_ns", t), ("task_clock_ns_most", t)];
    let [cpus, imbalance, uncounted] = [
        ([&longer[..], &[("cpus", 1.0 / t)]].concat(), "cpus"),
        ([&longer[..], &[("ref_cycles_most", t)]].concat(), "imbalance"),
        (Vec::new(), "uncounted"),
    ];
    for (changed, cause) in [&cpus, &imbalance, &uncounted] {
        for lacks in ["cpus", "tsc", "ranks", "ref_cycles_most", "task_clock_ns", "ref_cycles"] {
            assert_eq!(cause_beside(10, changed, lacks), *cause, "without {lacks} on another node");
        }
    }
    // Too few nodes for terms of their own: these are compared without the term.
    let work =
        [&longer[..], &[("instructions", t), ("cycles", t), ("ref_cycles", t), ("ref_cycles_most", t)]]
            .concat();
    for lacks in ["cpus", "tsc", "ranks"] {
        assert_eq!(cause_beside(5, &work, lacks), "instructions", "5 nodes, one without {lacks}");
    }
}

#[test]
fn words_have_evidence() {
    let t = 1.1;
    let cause = one(t, &[("tsc", t), ("context_switches", 7.0)]).cause.unwrap();
    let CauseKind::OffCpu(Some(switches)) = &cause.kind else { panic!("{cause:?}") };
    assert!((switches.own - 700.0).abs() < 1e-6 && (switches.usual - 100.0).abs() < 1e-6, "{cause:?}");
    assert!((cause.difference - t.ln()).abs() < 1e-9);
    assert!((cause.share - 1.0).abs() < 1e-9 && cause.score > 3.0);
    let more_than_half = one(t, &[("tsc", t), ("task_clock_ns", t), ("ref_cycles", t.powf(0.45))]);
    assert_eq!(more_than_half.cause.unwrap().kind.name(), "utilisation/halted");
}

#[test]
fn who_gets_none_is_told_why() {
    let healthy = one(1.0, &[]);
    assert_eq!(healthy.cause, Err(NoCause::NoSlower));
    let few = explain(&vec![columns(&[]); 3], &[0.0, 0.0, 0.1], &CauseSettings::default());
    assert_eq!(few[2].cause, Err(NoCause::FewNodes { nodes: 3, needed: 5 }));
    assert_eq!(few[2].terms.len(), 5);
    let mut denied = Counted::default();
    denied.lack("instructions", "not allowed");
    let only = |names: &[&'static str]| Some(Counted::new(names.iter().map(|name| (*name, 1.0))));
    let mut class = vec![columns(&[]); 4];
    let user = only(&["instructions_user", "cycles_user", "ref_cycles_user"]);
    class.extend([None, Some(denied), only(&["page_faults"]), user]);
    let all = explain(&class, &[0.0; 8], &CauseSettings::default());
    let reason = |at: usize| all[at].cause.clone().unwrap_err();
    let missing = NoCause::Missing { name: "instructions", reason: "not allowed".into() };
    assert_eq!((reason(4), reason(5)), (NoCause::NothingCounted, missing));
    assert_eq!((reason(6), reason(7)), (NoCause::NoTerms, NoCause::NoReference));
    assert_eq!(all.iter().filter(|one| one.terms.is_empty()).count(), 4);
    let slow = one(1.1, &[("tsc", 1.1)]);
    assert!(slow.clone().for_verdict(Some(Verdict::SlowTail)).cause.is_ok());
    for (verdict, none) in [(None, NoCause::Alone), (Some(Verdict::Ok), NoCause::NotSlow)] {
        let healthy = slow.clone().for_verdict(verdict);
        assert!(healthy.cause == Err(none) && healthy.terms == slow.terms);
    }
}

fn all_of(value: impl Strategy<Value = f64>) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(value, NAMES.len())
}

fn counted(values: &[f64]) -> Option<Counted> {
    Some(Counted::new(NAMES.into_iter().zip(values.iter().copied())))
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(-1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(1e308),
        Just(5e-324),
        1.0..1e12f64,
        proptest::num::f64::ANY
    ]
}

proptest! {
    #[test]
    fn any_columns_can_be_explained(
        nodes in proptest::collection::vec((proptest::option::of(all_of(value())), value()), 0..12)
    ) {
        let class: Vec<Option<Counted>> = nodes.iter()
            .map(|(values, _)| counted(values.as_ref()?))
            .collect();
        let times: Vec<f64> = nodes.iter().map(|(_, time)| time.ln()).collect();
        let all = explain(&class, &times, &CauseSettings { min_nodes: 2, ..CauseSettings::default() });
        prop_assert_eq!(all.len(), nodes.len());
        for one in &all {
            let said = one.cause.iter().flat_map(|cause| [cause.share, cause.score]);
            let mut all = one.terms.values().chain(one.parts.values()).copied().chain(said);
            prop_assert!(all.all(f64::is_finite), "{:?}", one);
        }
    }

    /// The order of nodes does not change a cause.
    #[test]
    fn order_does_not_matter(
        nodes in proptest::collection::vec((all_of(0.9..1.1f64), 0.9..1.1f64), 5..30), by in 0usize..30
    ) {
        let all = |nodes: &[(Vec<f64>, f64)]| {
            let class: Vec<Option<Counted>> = nodes.iter()
                .map(|(values, _)| counted(values))
                .collect();
            explain(&class, &nodes.iter().map(|(_, time)| time.ln()).collect::<Vec<_>>(), &CauseSettings::default())
        };
        let mut turned = nodes.clone();
        turned.rotate_left(by % nodes.len());
        let mut back = all(&turned);
        back.rotate_right(by % nodes.len());
        prop_assert_eq!(all(&nodes), back);
    }
}
