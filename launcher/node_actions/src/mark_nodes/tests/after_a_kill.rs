//! The next run closes what a killed pmmpi left open.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

const OUR_COMMENT: &str = "a [pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz] b";

#[test]
fn after_a_kill_the_next_run_writes_what_it_finds() {
    let cases = [
        (SlurmCall::Read("a".to_owned()), "found_not_done"),
        (SlurmCall::BeforeUpdate("a".to_owned()), "found_not_done"),
        (SlurmCall::AfterUpdate("a".to_owned()), "found_done"),
    ];
    for (case, found) in cases {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        kill_at(&slurm, case);
        let settings = place.settings(Action::Drain);
        let killed = catch_unwind(AssertUnwindSafe(|| run(&slow(&["a"]), &[], &settings, &slurm)));
        assert!(killed.is_err());
        slurm.hook(|_, _| None);
        let report = run(&[], &[], &settings, &slurm).unwrap();
        assert_eq!((report.recovered.len(), report.decisions.len()), (1, 0));
        assert_eq!(place.entries(), ["intent a drain".to_owned(), format!("outcome a {found}")]);
        assert!(run(&[], &[], &settings, &slurm).unwrap().recovered.is_empty());
    }
}

#[test]
fn an_intent_of_a_node_that_slurm_no_longer_has_is_closed() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    Journal::open(&settings.log, &unknown_cluster()).unwrap().intend("gone", &Act::Resume, None).unwrap();
    let report = run(&[], &[], &settings, &slurm).unwrap();
    assert!(report.to_string().contains("Slurm no longer has this node"), "{report}");
    assert_eq!(place.entries()[1], "outcome gone node_gone");
}

fn some_node() -> impl Strategy<Value = (&'static str, Option<&'static str>, &'static str, bool)> {
    let states = [
        "IDLE",
        "MIXED",
        "IDLE+DRAIN",
        "ALLOCATED+DRAIN",
        "DOWN",
        "DOWN+DRAIN",
        "IDLE+FAIL",
        "IDLE+MAINTENANCE",
    ];
    let reasons = [None, Some(REASON), Some("pmmpi: older"), Some("bad DIMM"), Some("x pmmpi: y")];
    let comments = ["", "rack 7", OUR_COMMENT, "a [pmmpi: older] b", "\"odd\""];
    (
        prop::sample::select(states.to_vec()),
        prop::sample::select(reasons.to_vec()),
        prop::sample::select(comments.to_vec()),
        any::<bool>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever the nodes are like, and whenever pmmpi is killed.
    #[test]
    fn no_node_of_others_changes_and_none_stays_between(
        nodes in prop::collection::vec(some_node(), 1..8),
        wishes in prop::collection::vec(0..4u8, 8),
        max_nodes in 0..6u32,
        action in prop::sample::select(vec![Action::Drain, Action::Comment, Action::feature()]),
        calls in 0..30usize,
    ) {
        let place = Place::new();
        let mut settings = place.settings(action.clone());
        settings.max_nodes = Some(max_nodes);
        let build = |at: usize, (state, reason, comment, has_feature): (&str, Option<&str>, &str, bool)| {
            let mut node = node(&format!("n{at}"), state, reason);
            node.comment = comment.to_owned();
            node.available_features = names(if has_feature { &["gpu", "pmmpi_slow"] } else { &["gpu"] });
            node.active_features = node.available_features.clone();
            node
        };
        let slurm = Fake::new(nodes.iter().enumerate().map(|(at, about)| build(at, *about)));
        let before = slurm.all();
        place.has_marked(&action, &before.keys().map(String::as_str).collect::<Vec<_>>());
        let wished = |bit: u8| (0..nodes.len()).filter(|at| wishes[*at] & bit != 0).map(|at| format!("n{at}")).collect::<Vec<_>>();
        let (slow_nodes, passed) = (wished(1), wished(2));
        let findings = slow(&slow_nodes.iter().map(String::as_str).collect::<Vec<_>>());
        let (left, end) = (Rc::new(Cell::new(calls)), "killed");
        slurm.hook(move |_, _| match left.get() {
            0 => std::panic::resume_unwind(Box::new(end)),
            calls => { left.set(calls - 1); None }
        });
        let _ = catch_unwind(AssertUnwindSafe(|| run(&findings, &passed, &settings, &slurm)));
        let is_marked = |nodes: &BTreeMap<String, NodeState>| nodes.values().filter(|node| decide::is_marked(&action, node)).count();
        let after_kill = slurm.all();
        slurm.hook(|_, _| None);
        run(&findings, &passed, &settings, &slurm).unwrap();
        prop_assert!(Journal::open(&settings.log, &unknown_cluster()).unwrap().open_intents().is_empty());
        for nodes in [after_kill, slurm.all()] {
            prop_assert!(is_marked(&nodes) <= is_marked(&before).max(max_nodes as usize));
            for (name, node) in &nodes {
                let old = &before[name];
                let is_wished = slow_nodes.contains(name) != passed.contains(name);
                let is_others = old.reason.as_ref().is_some_and(|reason| !reason.is_ours())
                    || old.has_drain() && old.reason.is_none()
                    || ["DOWN", "FAIL", "MAINTENANCE"].iter().any(|flag| old.state.iter().any(|have| have == flag));
                prop_assert!(node == old || is_wished && !is_others, "{old:?} became {node:?}");
                prop_assert!(node.has_drain() == old.has_drain() || node.has_drain() == node.has_our_reason());
                prop_assert!(node.available_features.contains(&"gpu".to_owned()));
                prop_assert_eq!(crate::comment::without(&node.comment), crate::comment::without(&old.comment));
            }
        }
    }
}
