mod after_a_kill;
mod all_findings_are_measured;
mod changes_of_others;
mod dry_run_after_a_kill;
mod failures;
mod host_names;
mod other_cluster;
mod unreadable_nodes;

use super::*;
use crate::fake::{Fake, SlurmCall, node, unknown_cluster};
use crate::settings::{Action, MeasuredKernel};
use tempfile::TempDir;

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
        let mut journal = Journal::open(&self.settings(action.clone()).log, &unknown_cluster()).unwrap();
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

/// Ends the run at this moment, as SIGKILL would.
fn kill_at(slurm: &Fake, at: SlurmCall) {
    slurm.hook(move |moment, _| {
        if moment == at {
            std::panic::resume_unwind(Box::new("killed"));
        }
        None
    });
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
                "did not repeat the measurements that found a problem on this node: `{REASON}`. Repeat the gate with "
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
