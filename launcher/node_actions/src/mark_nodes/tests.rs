mod all_findings_are_measured;
mod dry_run_after_a_kill;
mod other_cluster;
mod unreadable_nodes;

use super::*;
use crate::error::ScontrolFailure;
use crate::fake::{Fake, SlurmCall, node};
use crate::settings::{Action, MeasuredKernel};
use proptest::prelude::*;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;

const OUR_COMMENT: &str = "a [pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz] b";
const REASON: &str = "pmmpi: slow-memory: +8.1 % (at least 7.4 %) 20261126-xyz";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn settings(&self, action: Action) -> ActionSettings {
        let log = self.0.path().join("log");
        let kernels = kernels(&[("triad", "memory")]);
        ActionSettings { action, max_nodes: Some(100), kernels, fleet: 100, apply: true, log }
    }

    /// Writes into the log that pmmpi has marked these nodes.
    fn has_marked(&self, action: &Action, nodes: &[&str]) {
        let mut journal = Journal::open(&self.settings(action.clone()).log, None).unwrap();
        let act = match action {
            Action::Drain => Act::Drain(REASON.to_owned()),
            Action::Comment => Act::AddComment(REASON.to_owned()),
            Action::Feature(name) => Act::AddFeature(name.clone()),
        };
        for name in nodes {
            let cause = MarkCause { reason: REASON.to_owned(), found_by: Vec::new() };
            let id = journal.intend(name, &act, Some(&cause)).unwrap();
            let (node, result) = (name.to_string(), journal::Result::Done);
            journal
                .append(Entry::Outcome { id, node, result, note: None, before: None, after: None })
                .unwrap();
        }
    }

    fn log(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.0.path().join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// "intent a drain", "outcome a done", ... without the lines "begin".
    fn entries(&self) -> Vec<String> {
        let word = |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let entry = |line: &serde_json::Value| {
            let words = ["entry", "node", "act", "result"].map(|key| word(line, key));
            words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
        };
        self.log().iter().map(entry).filter(|entry| entry != "begin").collect()
    }
}

fn slow(nodes: &[&str]) -> Vec<Finding> {
    let of = |node: &&str| (*node).to_owned();
    let finding = |node| Finding { node, reason: REASON.to_owned(), found_by: Vec::new() };
    nodes.iter().map(of).map(finding).collect()
}

fn kernels(all: &[(&str, &str)]) -> Vec<MeasuredKernel> {
    let ran = |kernel: &str| Measurement { kernel: kernel.to_owned(), ..Measurement::default() };
    all.iter().map(|(kernel, area)| MeasuredKernel { ran: ran(kernel), area: (*area).to_owned() }).collect()
}

fn names(nodes: &[&str]) -> Vec<String> {
    nodes.iter().map(|node| node.to_string()).collect()
}

fn is_done(decision: &Decision) -> bool {
    matches!(decision, Decision::Done { .. })
}

#[test]
fn each_action_marks_and_unmarks() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let (place, mut a) = (Place::new(), node("a", "IDLE", None));
        a.comment = "rack 7".to_owned();
        a.available_features = names(&["gpu", "big"]);
        a.active_features = names(&["gpu"]);
        let slurm = Fake::new([a.clone(), node("b", "MIXED", None)]);
        let settings = place.settings(action.clone());
        let report = run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
        assert!(is_done(&report.decisions[0]) && !report.needs_attention(), "{report}");
        let marked = slurm.of("a");
        let wanted = match action {
            Action::Drain => (names(&["IDLE", "DRAIN"]), "rack 7".to_owned(), vec!["gpu", "big"]),
            Action::Comment => (names(&["IDLE"]), format!("rack 7 [{REASON}]"), vec!["gpu", "big"]),
            Action::Feature(_) => (names(&["IDLE"]), "rack 7".to_owned(), vec!["gpu", "big", "pmmpi_slow"]),
        };
        assert_eq!(
            (marked.state, marked.comment, marked.available_features),
            (wanted.0, wanted.1, names(&wanted.2))
        );
        assert_eq!(slurm.of("b"), node("b", "MIXED", None));
        // Again: nothing changes.
        let again = run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
        assert_eq!(again.decisions, [Decision::Skipped { node: "a".to_owned(), why: Skip::AlreadyMarked }]);
        let report = run(&[], &names(&["a", "b"]), &settings, &slurm).unwrap();
        assert!(is_done(&report.decisions[0]), "{report}");
        assert_eq!(report.decisions[1], Decision::Skipped { node: "b".to_owned(), why: Skip::NotMarked });
        assert_eq!((slurm.of("a"), slurm.updates().len()), (a, 2));
        let log = place.entries().join(", ");
        let (mark, unmark) = match action {
            Action::Drain => ("drain", "resume"),
            Action::Comment => ("add_comment", "remove_comment"),
            Action::Feature(_) => ("add_feature", "remove_feature"),
        };
        assert_eq!(log, format!("intent a {mark}, outcome a done, intent a {unmark}, outcome a done"));
    }
}

#[test]
fn one_update_has_state_and_reason() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    run(&slow(&["a"]), &[], &place.settings(Action::Drain), &slurm).unwrap();
    assert_eq!(slurm.updates(), [format!("update NodeName=a State=DRAIN Reason={REASON}")]);
    let log = place.log();
    assert_eq!(log[2]["before"]["state"], serde_json::json!(["IDLE"]));
    assert_eq!(log[2]["after"]["state"], serde_json::json!(["IDLE", "DRAIN"]));
}

#[test]
fn a_dry_run_shows_the_commands_and_changes_nothing() {
    let (place, slurm) =
        (Place::new(), Fake::new([node("a", "IDLE", None), node("b", "DOWN", Some("dead"))]));
    let slurm = slurm.with(|moment, _| {
        assert_eq!(moment, SlurmCall::ReadAll);
        None
    });
    let mut settings = place.settings(Action::Drain);
    settings.apply = false;
    let report = run(&slow(&["a", "b", "c", "n[1-9]"]), &[], &settings, &slurm).unwrap();
    assert_eq!(
        report.to_string(),
        format!(
            "a: would run: scontrol update NodeName=a State=DRAIN 'Reason={REASON}'\n\
             b: not changed: Slurm or somebody else took this node out of service, or pmmpi does not know this \
             state (DOWN: dead)\n\
             c: not changed: Slurm has no node with this name (`scontrol show node` lists the names)\n\
             n[1-9]: not changed: this is not the name of a single host\n"
        )
    );
    assert!(place.log().is_empty() && !settings.log.exists());
}

/// Hosts call themselves by other names than Slurm does.
#[test]
fn hosts_are_found_by_their_names_in_slurm() {
    let (mut b, c) = (node("b", "IDLE+DRAIN", Some(REASON)), node("c", "IDLE", None));
    b.host_name = Some("b7.cluster".to_owned());
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None), b, c]));
    place.has_marked(&Action::Drain, &["b"]);
    let mut settings = place.settings(Action::Drain);
    settings.max_nodes = Some(2);
    let report = run(&slow(&["a.cluster", "a"]), &names(&["b7.cluster"]), &settings, &slurm).unwrap();
    assert!(report.decisions.iter().all(is_done) && !report.needs_attention(), "{report}");
    let drain = format!("update NodeName=a State=DRAIN Reason={REASON}");
    assert_eq!(slurm.updates(), ["update NodeName=b State=UNDRAIN".to_owned(), drain]);
    // A node that is found again counts once, by whatever name.
    settings.max_nodes = Some(1);
    let report = run(&slow(&["a.cluster"]), &[], &settings, &slurm).unwrap();
    assert_eq!(report.decisions, [Decision::Skipped { node: "a".to_owned(), why: Skip::AlreadyMarked }]);
    assert!(report.over_limit.is_none() && !report.needs_attention(), "{report}");
}

#[test]
fn a_host_that_slurm_does_not_know_needs_an_operator() {
    let nodes = [("a", "vm"), ("b", "vm"), ("c", "c")].map(|(name, host_name)| NodeState {
        host_name: Some(host_name.to_owned()),
        ..node(name, "IDLE", None)
    });
    let (place, slurm) = (Place::new(), Fake::new(nodes));
    let settings = place.settings(Action::Drain);
    for (slow_nodes, passed) in [(slow(&["x.cluster", "vm"]), vec![]), (vec![], names(&["x", "vm.cluster"]))]
    {
        let report = run(&slow_nodes, &passed, &settings, &slurm).unwrap();
        assert!(report.needs_attention() && report.is_without_nodes(), "{report}");
        assert!(report.to_string().contains(
            ": not changed: this is the name of several nodes in Slurm (NodeName or NodeHostName): a, b; "
        ));
    }
    let report = run(&slow(&["x", "c.cluster"]), &[], &settings, &slurm).unwrap();
    assert!(report.needs_attention() && !report.is_without_nodes(), "{report}");
    assert_eq!(slurm.updates().len(), 1);
    assert!(!run(&[], &[], &settings, &slurm).unwrap().is_without_nodes());
}

#[test]
fn too_many_findings_mark_no_node_but_passed_nodes_resume() {
    let ours = || node("d", "IDLE+DRAIN", Some(REASON));
    let nodes = ["a", "b", "c"].map(|name| node(name, "IDLE", None));
    let slurm = Fake::new(nodes.into_iter().chain([ours()]));
    let place = Place::new();
    place.has_marked(&Action::Drain, &["d"]);
    let mut settings = place.settings(Action::Drain);
    (settings.max_nodes, settings.fleet) = (None, 40);
    let report = run(&slow(&["a", "b", "c"]), &names(&["d"]), &settings, &slurm).unwrap();
    assert!(report.needs_attention());
    let text = report.to_string();
    assert!(
        text.contains(
            "the screen found 3 slow nodes, and 1 more node still has pmmpi's mark; the limit is 2 "
        ),
        "{text}"
    );
    assert_eq!(slurm.updates(), ["update NodeName=d State=UNDRAIN"]);
    // The next run has room for two.
    let report = run(&slow(&["a", "b"]), &[], &settings, &slurm).unwrap();
    assert!(report.decisions.iter().all(is_done));
    // And the run after that has none, although it finds only one more.
    let report = run(&slow(&["c"]), &[], &settings, &slurm).unwrap();
    assert_eq!((report.over_limit.unwrap().marked_before, slurm.updates().len()), (2, 3));
}

/// A reason that begins with `pmmpi:` is not enough.
#[test]
fn only_a_mark_that_the_log_has_is_removed() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let (place, slurm) = (Place::new(), Fake::new(["a", "b"].map(|name| node(name, "IDLE", None))));
        let settings = place.settings(action.clone());
        run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
        let lost = place.0.path().join("lost");
        std::fs::rename(&settings.log, &lost).unwrap();
        run(&slow(&["b"]), &[], &settings, &slurm).unwrap();
        let before = slurm.all();
        for apply in [true, false] {
            let settings = ActionSettings { apply, ..settings.clone() };
            let report = run(&[], &names(&["a"]), &settings, &slurm).unwrap();
            assert_eq!(report.decisions, [Decision::Skipped { node: "a".to_owned(), why: Skip::NotLogged }]);
        }
        // The marks still count for the limit.
        let full = ActionSettings { max_nodes: Some(2), ..settings.clone() };
        assert_eq!(run(&slow(&["c"]), &[], &full, &slurm).unwrap().over_limit.unwrap().marked_before, 2);
        assert_eq!(slurm.all(), before, "{action:?}");
        std::fs::rename(&lost, &settings.log).unwrap();
        let report = run(&[], &names(&["a"]), &settings, &slurm).unwrap();
        assert!(is_done(&report.decisions[0]), "{report}");
    }
}

/// Somebody who adds words to a reason of pmmpi wants to keep the node.
#[test]
fn a_mark_that_somebody_changed_stays() {
    for action in [Action::Drain, Action::Comment] {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        let settings = place.settings(action.clone());
        run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
        // Before the first read, or between the reads.
        for changes_at in [SlurmCall::ReadAll, SlurmCall::Read("a".to_owned())] {
            let mut own = Some(slurm.of("a"));
            let mut theirs = slurm.of("a");
            theirs.comment = theirs.comment.replace("xyz", "xyz, DIMM pulled");
            if let Some(reason) = &mut theirs.reason {
                reason.text.push_str(", DIMM pulled");
            }
            let changed = theirs.clone();
            slurm.hook(move |moment, nodes| {
                if moment == changes_at {
                    nodes.insert("a".to_owned(), changed.clone());
                }
                None
            });
            let report = run(&[], &names(&["a"]), &settings, &slurm).unwrap();
            let said = report.to_string();
            assert!(said.contains("somebody changed the text of the mark: Slurm shows `"), "{said}");
            assert_eq!(slurm.of("a"), theirs, "{said}");
            slurm.hook(move |_, nodes| {
                if let Some(own) = own.take() {
                    nodes.insert("a".to_owned(), own);
                }
                None
            });
            run(&[], &[], &settings, &slurm).unwrap();
            slurm.hook(|_, _| None);
        }
        assert!(is_done(&run(&[], &names(&["a"]), &settings, &slurm).unwrap().decisions[0]));
    }
}

/// A node with slow memory is not repaired because its cores are fast.
#[test]
fn a_mark_stays_until_the_gate_measures_what_it_names() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        let mut settings = place.settings(action.clone());
        run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
        let marked = slurm.of("a");
        for other in [kernels(&[("fma", "compute"), ("./true", "./true")]), Vec::new()] {
            settings.kernels = other;
            let said = run(&[], &names(&["a"]), &settings, &slurm).unwrap().to_string();
            let why = format!(
                "did not measure all that pmmpi found on this node (`{REASON}`). Repeat the gate with "
            );
            assert!(said.contains(&why), "{said}");
            assert_eq!(slurm.of("a"), marked);
        }
        settings.kernels = kernels(&[("fma", "compute"), ("latency", "memory")]);
        let report = run(&[], &names(&["a"]), &settings, &slurm).unwrap();
        assert!(is_done(&report.decisions[0]), "{report}");
    }
}

#[test]
fn a_node_that_is_slow_and_passed_is_left_alone() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let report = run(&slow(&["a"]), &names(&["a"]), &place.settings(Action::Drain), &slurm).unwrap();
    assert_eq!(report.decisions, [Decision::Skipped { node: "a".to_owned(), why: Skip::Contradiction }]);
    assert!(slurm.updates().is_empty());
}

#[test]
fn findings_of_one_node_are_one_act() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let mut findings = slow(&["a", "a"]);
    findings[1].reason = "slow disk\n".to_owned();
    run(&findings, &[], &place.settings(Action::Drain), &slurm).unwrap();
    assert_eq!(slurm.of("a").reason.unwrap().text, format!("{REASON}; slow disk"));
}

/// Between the first read and the act.
#[test]
fn a_node_that_others_take_in_the_meantime_is_left_alone() {
    for (action, is_slow) in
        [(Action::Drain, true), (Action::Drain, false), (Action::Comment, true), (Action::feature(), true)]
    {
        let start = if is_slow { node("a", "IDLE", None) } else { node("a", "IDLE+DRAIN", Some(REASON)) };
        let theirs = || node("a", "IDLE+DRAIN", Some("bad DIMM"));
        let (place, slurm) = (Place::new(), Fake::new([start]));
        if !is_slow {
            place.has_marked(&action, &["a"]);
        }
        let slurm = slurm.with(move |moment, nodes| {
            if moment == SlurmCall::Read("a".to_owned()) {
                nodes.insert("a".to_owned(), theirs());
            }
            None
        });
        let (findings, passed) = if is_slow { (slow(&["a"]), vec![]) } else { (vec![], names(&["a"])) };
        let report = run(&findings, &passed, &place.settings(action), &slurm).unwrap();
        assert!(
            matches!(&report.decisions[0], Decision::Skipped { why: Skip::OutOfService(_), .. }),
            "{report}"
        );
        assert_eq!((slurm.of("a"), slurm.updates().len()), (theirs(), 0));
        assert_eq!(place.entries().last().unwrap(), "outcome a skipped");
        assert_eq!(place.log().last().unwrap()["before"]["reason"]["text"], "bad DIMM");
    }
}

/// The act uses the last read, not the first.
#[test]
fn a_comment_that_others_write_in_the_meantime_stays() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let slurm = slurm.with(|moment, nodes| {
        if moment == SlurmCall::Read("a".to_owned()) && nodes["a"].comment.is_empty() {
            nodes.get_mut("a").unwrap().comment = "new fan".to_owned();
        }
        None
    });
    run(&slow(&["a"]), &[], &place.settings(Action::Comment), &slurm).unwrap();
    assert_eq!(slurm.of("a").comment, format!("new fan [{REASON}]"));
}

/// After the act, others change the node at once: pmmpi says so and does not act again.
#[test]
fn a_node_that_is_not_as_wanted_is_reported() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let slurm = slurm.with(|moment, nodes| {
        if moment == SlurmCall::AfterUpdate("a".to_owned()) {
            nodes.insert("a".to_owned(), node("a", "DOWN", Some("dead")));
        }
        None
    });
    let report = run(&slow(&["a"]), &[], &place.settings(Action::Drain), &slurm).unwrap();
    let text = report.to_string();
    assert!(text.contains("FAILED") && text.contains("state DOWN, reason `dead`, set by eva@"), "{text}");
    assert!(report.needs_attention());
    assert_eq!((slurm.updates().len(), place.entries()[1].as_str()), (1, "outcome a failed"));
}

#[test]
fn a_comment_of_others_that_changed_is_reported() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let slurm = slurm.with(|moment, nodes| {
        if moment == SlurmCall::AfterUpdate("a".to_owned()) {
            nodes.get_mut("a").unwrap().comment.push_str(" by eva");
        }
        None
    });
    let report = run(&slow(&["a"]), &[], &place.settings(Action::Comment), &slurm).unwrap();
    assert!(report.to_string().contains("the rest of the comment or other features changed"), "{report}");
}

#[test]
fn a_failure_of_one_node_does_not_stop_the_others() {
    let failure = || Some(ScontrolFailure::Failed("Invalid node state specified".to_owned()));
    let cases = [
        SlurmCall::Read("a".to_owned()),
        SlurmCall::BeforeUpdate("a".to_owned()),
        SlurmCall::AfterUpdate("a".to_owned()),
    ];
    for case in cases {
        let (place, slurm) = (Place::new(), Fake::new(["a", "b"].map(|name| node(name, "IDLE", None))));
        let at = case.clone();
        let slurm = slurm.with(move |moment, _| if moment == at { failure() } else { None });
        let report = run(&slow(&["a", "b"]), &[], &place.settings(Action::Drain), &slurm).unwrap();
        // If Slurm did what it called a failure, the node is as wanted.
        let is_a_done = case == SlurmCall::AfterUpdate("a".to_owned());
        assert_eq!(
            report.decisions.iter().map(is_done).collect::<Vec<_>>(),
            [is_a_done, true],
            "{case:?} {report}"
        );
        assert_eq!(slurm.of("a").has_drain(), is_a_done);
        assert!(slurm.of("b").has_drain() && report.stopped.is_none());
        let is_said =
            place.log().iter().any(|line| line["note"].as_str().is_some_and(|note| note.contains("Invalid")));
        assert!(is_said, "{case:?}");
    }
}

#[test]
fn a_slurm_that_hangs_stops_the_run() {
    let cases = [
        SlurmCall::Read("a".to_owned()),
        SlurmCall::BeforeUpdate("a".to_owned()),
        SlurmCall::AfterUpdate("a".to_owned()),
    ];
    for case in cases {
        let (place, slurm) = (Place::new(), Fake::new(["a", "b"].map(|name| node(name, "IDLE", None))));
        let at = case.clone();
        let slurm = slurm.with(move |moment, _| {
            (moment == at).then_some(ScontrolFailure::TooLong(Duration::from_secs(30)))
        });
        let report = run(&slow(&["a", "b"]), &[], &place.settings(Action::Drain), &slurm).unwrap();
        let b = &report.decisions[1];
        assert!(matches!(b, Decision::Skipped { why: Skip::Stopped(_), .. }), "{case:?} {report}");
        assert!(!slurm.of("b").has_drain() && report.stopped.is_some() && report.needs_attention());
        // Slurm may still act on a request of which pmmpi knows no end.
        let open = Journal::open(&place.settings(Action::Drain).log, None).unwrap().open_intents().len();
        assert_eq!(open, usize::from(case == SlurmCall::BeforeUpdate("a".to_owned())), "{case:?}");
    }
}

#[test]
fn a_missing_slurm_is_an_error_and_not_a_finding() {
    for why in [
        ScontrolFailure::Missing,
        ScontrolFailure::TooLong(Duration::from_secs(30)),
        ScontrolFailure::Failed("x".to_owned()),
        ScontrolFailure::Unreadable("x".to_owned()),
    ] {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        let slurm = slurm.with(move |moment, _| (moment == SlurmCall::ReadAll).then(|| why.clone()));
        let error = run(&slow(&["a"]), &[], &place.settings(Action::Drain), &slurm).unwrap_err();
        assert!(matches!(error, Error::Tool(_)) && slurm.updates().is_empty());
    }
}

#[test]
fn without_a_log_nothing_happens() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    for log in ["/proc/nowhere/log", "/dev/full", "/"] {
        let settings = ActionSettings { log: PathBuf::from(log), ..place.settings(Action::Drain) };
        assert!(run(&slow(&["a"]), &[], &settings, &slurm).is_err(), "{log}");
    }
    // Somebody removes it during the run.
    let log = place.settings(Action::Drain).log;
    slurm.hook(move |moment, _| {
        if moment == SlurmCall::ReadAll {
            std::fs::remove_file(&log).unwrap();
        }
        None
    });
    let report = run(&slow(&["a"]), &[], &place.settings(Action::Drain), &slurm).unwrap();
    assert!(report.stopped.is_some() && slurm.updates().is_empty(), "{report}");
}

#[test]
fn two_at_once_do_not_act() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    let _first = Journal::open(&settings.log, None).unwrap();
    assert!(matches!(run(&slow(&["a"]), &[], &settings, &slurm), Err(Error::Held { .. })));
    assert!(slurm.updates().is_empty());
}

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
    Journal::open(&settings.log, None).unwrap().intend("gone", &Act::Resume, None).unwrap();
    let report = run(&[], &[], &settings, &slurm).unwrap();
    assert!(report.to_string().contains("Slurm no longer has this node"), "{report}");
    assert_eq!(place.entries()[1], "outcome gone node_gone");
}

/// Ends the run at this moment, as SIGKILL would.
fn kill_at(slurm: &Fake, at: SlurmCall) {
    slurm.hook(move |moment, _| {
        if moment == at {
            std::panic::resume_unwind(Box::new("killed"));
        }
        None
    });
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
        prop_assert!(Journal::open(&settings.log, None).unwrap().open_intents().is_empty());
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
