//! A dry run knows the marks of a log as the next real run does, also if a killed pmmpi wrote no outcome.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_dry_run_sees_a_mark_without_outcome() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        let settings = place.settings(action.clone());
        kill_at(&slurm, SlurmCall::AfterUpdate("a".to_owned()));
        assert!(catch_unwind(AssertUnwindSafe(|| run(&slow(&["a"]), &[], &settings, &slurm))).is_err());
        slurm.hook(|_, _| None);
        let before = place.log();
        let dry = ActionSettings { apply: false, ..settings.clone() };
        let report = run(&[], &names(&["a"]), &dry, &slurm).unwrap();
        assert!(matches!(report.decisions[..], [Decision::WouldRun { .. }]), "{action:?} {report}");
        assert_eq!(place.log(), before);
        let report = run(&[], &names(&["a"]), &settings, &slurm).unwrap();
        assert!(is_done(&report.decisions[0]) && report.recovered.len() == 1, "{action:?} {report}");
    }
}

#[test]
fn a_dry_run_does_not_see_a_mark_that_was_not_set() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    kill_at(&slurm, SlurmCall::BeforeUpdate("a".to_owned()));
    assert!(catch_unwind(AssertUnwindSafe(|| run(&slow(&["a"]), &[], &settings, &slurm))).is_err());
    // Another drain with a reason of pmmpi.
    slurm.hook(|moment, nodes| {
        if moment == SlurmCall::ReadAll {
            nodes.insert("a".to_owned(), node("a", "IDLE+DRAIN", Some("pmmpi: by hand")));
        }
        None
    });
    let dry = ActionSettings { apply: false, ..settings };
    let report = run(&[], &names(&["a"]), &dry, &slurm).unwrap();
    assert_eq!(report.decisions, [Decision::Skipped { node: "a".to_owned(), why: Skip::NotLogged }]);
}
