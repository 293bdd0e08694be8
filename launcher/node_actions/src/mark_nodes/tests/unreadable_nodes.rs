//! A node whose record pmmpi cannot read may still have the mark that the log has.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_mark_of_the_log_counts_for_the_limit() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let nodes = ["a", "b", "c"].map(|name| node(name, "IDLE", None));
        let (place, slurm) = (Place::new(), Fake::new(nodes));
        place.has_marked(&action, &["b"]);
        let full = ActionSettings { max_nodes: Some(1), ..place.settings(action.clone()) };
        // c never had a mark.
        slurm.cannot_read(&["b", "c"]);
        for apply in [true, false] {
            let settings = ActionSettings { apply, ..full.clone() };
            let report = run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
            assert_eq!(report.over_limit.unwrap().marked_before, 1, "{action:?} {apply}");
        }
        // Now pmmpi sees that somebody has removed the mark.
        slurm.cannot_read(&[]);
        assert!(run(&slow(&["a"]), &[], &full, &slurm).unwrap().over_limit.is_none(), "{action:?}");
    }
}

#[test]
fn a_mark_without_outcome_counts_for_the_limit() {
    let (place, slurm) = (Place::new(), Fake::new(["a", "b"].map(|name| node(name, "IDLE", None))));
    let settings = ActionSettings { max_nodes: Some(1), ..place.settings(Action::Drain) };
    kill_at(&slurm, SlurmCall::AfterUpdate("b".to_owned()));
    assert!(catch_unwind(AssertUnwindSafe(|| run(&slow(&["b"]), &[], &settings, &slurm))).is_err());
    slurm.hook(|_, _| None);
    slurm.cannot_read(&["b"]);
    for apply in [false, true] {
        let report = run(&slow(&["a"]), &[], &ActionSettings { apply, ..settings.clone() }, &slurm).unwrap();
        assert_eq!(report.over_limit.unwrap().marked_before, 1, "{apply}");
    }
}
