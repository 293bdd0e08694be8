//! A log belongs to one cluster, because nodes of two clusters may have the same names.

use super::*;

/// The clusters in the lines `begin`.
fn clusters(log: &[serde_json::Value]) -> Vec<Option<&str>> {
    let begins = log.iter().filter(|line| line["entry"] == "begin");
    begins.map(|line| line["cluster"].as_str()).collect()
}

#[test]
fn the_log_of_another_cluster_has_no_marks_of_this_one() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    slurm.is_cluster(Some("alpha"));
    run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
    let log = place.log();
    assert_eq!(clusters(&log), [Some("alpha")]);
    // The same mark, as from another log.
    let other = Fake::new([slurm.of("a")]).with(|moment, _| panic!("{moment:?}"));
    other.is_cluster(Some("beta"));
    for apply in [true, false] {
        let settings = ActionSettings { apply, ..settings.clone() };
        for (findings, passed) in [(slow(&["a"]), vec![]), (vec![], names(&["a"]))] {
            let error = run(&findings, &passed, &settings, &other).unwrap_err();
            let told = "it is the log of the cluster alpha, but this is the cluster beta; ";
            assert!(error.to_string().contains(told), "{apply} {error}");
        }
    }
    assert_eq!(place.log(), log);
    for apply in [false, true] {
        let settings = ActionSettings { apply, ..settings.clone() };
        let report = run(&[], &names(&["a"]), &settings, &slurm).unwrap();
        assert!(!report.needs_attention() && is_done(&report.decisions[0]) == apply, "{report}");
    }
}

/// An older pmmpi wrote it, or Slurm did not tell the name.
#[test]
fn a_log_without_a_cluster_becomes_that_of_the_next_run() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
    for cluster in [Some("alpha"), None] {
        slurm.is_cluster(cluster);
        let dry = ActionSettings { apply: false, ..settings.clone() };
        for settings in [&dry, &settings] {
            let report = run(&slow(&["a"]), &[], settings, &slurm).unwrap();
            let marked = Decision::Skipped { node: "a".to_owned(), why: Skip::AlreadyMarked };
            assert_eq!(report.decisions, [marked], "{cluster:?}");
        }
    }
    slurm.is_cluster(Some("beta"));
    assert!(matches!(run(&[], &[], &settings, &slurm), Err(Error::NoJournal(..))));
    assert_eq!(clusters(&place.log()), [None, Some("alpha"), None]);
}
