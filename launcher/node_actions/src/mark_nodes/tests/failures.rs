//! Slurm fails or hangs, or the log cannot be used.

use super::*;
use crate::error::ScontrolFailure;
use std::path::PathBuf;
use std::time::Duration;

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
        let log = place.settings(Action::Drain).log;
        let open = Journal::open(&log, &unknown_cluster()).unwrap().open_intents().len();
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
    let _first = Journal::open(&settings.log, &unknown_cluster()).unwrap();
    assert!(matches!(run(&slow(&["a"]), &[], &settings, &slurm), Err(Error::Held { .. })));
    assert!(slurm.updates().is_empty());
}
