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

/// Also if Slurm shows the mark of the log.
#[test]
fn a_log_of_a_cluster_is_of_no_use_where_the_name_is_unknown() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    slurm.is_cluster(Some("alpha"));
    run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
    let log = place.log();
    slurm.is_cluster(None);
    for apply in [true, false] {
        let settings = ActionSettings { apply, ..settings.clone() };
        let error = run(&[], &names(&["a"]), &settings, &slurm).unwrap_err();
        let told = "whether this cluster is alpha (no answer); ";
        assert!(error.to_string().contains(told), "{apply} {error}");
    }
    assert_eq!((place.log(), slurm.updates().len()), (log, 1));
}

#[test]
fn a_log_without_name_and_marks_gets_the_name_at_once() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    run(&[], &[], &settings, &slurm).unwrap();
    slurm.is_cluster(Some("alpha"));
    run(&[], &[], &settings, &slurm).unwrap();
    slurm.is_cluster(Some("beta"));
    assert!(matches!(run(&[], &[], &settings, &slurm), Err(Error::NoJournal(..))));
    assert_eq!(clusters(&place.log()), [None, Some("alpha")]);
}

/// An older pmmpi wrote it, or Slurm did not tell the name.
#[test]
fn a_log_with_marks_gets_the_name_of_the_cluster_that_it_changes() {
    let nodes = ["a", "b"].map(|name| node(name, "IDLE", None));
    let (place, slurm) = (Place::new(), Fake::new(nodes));
    let settings = place.settings(Action::Drain);
    run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
    slurm.is_cluster(Some("alpha"));
    // Nothing to change.
    for apply in [false, true] {
        let settings = ActionSettings { apply, ..settings.clone() };
        let report = run(&slow(&["a"]), &[], &settings, &slurm).unwrap();
        let marked = Decision::Skipped { node: "a".to_owned(), why: Skip::AlreadyMarked };
        assert_eq!(report.decisions, [marked]);
    }
    assert_eq!(clusters(&place.log()), [None, None]);
    run(&slow(&["b"]), &names(&["a"]), &settings, &slurm).unwrap();
    assert_eq!(clusters(&place.log()), [None, None, None, Some("alpha")]);
    assert_eq!(slurm.updates().len(), 3);
}

/// Before pmmpi changes a node or writes an outcome, and before the rounds.
#[test]
fn a_log_without_a_name_needs_one_of_its_marks() {
    let (place, slurm) = (Place::new(), Fake::new(["a", "b"].map(|name| node(name, "IDLE", None))));
    let settings = place.settings(Action::Drain);
    place.has_marked(&Action::Drain, &["a"]);
    slurm.is_cluster(Some("beta"));
    let told = "it names no cluster, and no node of this cluster (beta) has a mark that is in the log. If it is the log of \
                this cluster, add `\"cluster\":\"beta\"` to one of its entries `begin`. Otherwise";
    for apply in [true, false] {
        let settings = ActionSettings { apply, ..settings.clone() };
        let error = run(&slow(&["b"]), &[], &settings, &slurm).unwrap_err();
        assert!(error.to_string().contains(told), "{apply} {error}");
    }
    let error = journal::check_log(&settings.log, &slurm).unwrap_err();
    assert!(error.to_string().contains(told), "{error}");
    assert!(place.entries().len() == 2 && slurm.updates().is_empty());
    // Somebody does as told.
    let log = std::fs::read_to_string(&settings.log).unwrap();
    let log = log.replacen("\"entry\":\"begin\"", "\"entry\":\"begin\",\"cluster\":\"beta\"", 1);
    std::fs::write(&settings.log, log).unwrap();
    assert!(is_done(&run(&slow(&["b"]), &[], &settings, &slurm).unwrap().decisions[0]));
}

/// The intent of a killed run.
#[test]
fn an_act_without_outcome_may_show_the_cluster() {
    for (state, is_accepted) in [("IDLE+DRAIN", true), ("IDLE", false)] {
        let reason = is_accepted.then_some(REASON);
        let (place, slurm) = (Place::new(), Fake::new([node("a", state, reason)]));
        let settings = place.settings(Action::Drain);
        let mut journal = Journal::open(&settings.log, &unknown_cluster()).unwrap();
        journal.intend("a", &Act::Drain(REASON.to_owned()), None).unwrap();
        // The end of a mark shows nothing.
        journal.intend("a", &Act::RemoveComment, None).unwrap();
        drop(journal);
        slurm.is_cluster(Some("beta"));
        let entries = place.entries();
        assert_eq!(run(&[], &[], &settings, &slurm).is_ok(), is_accepted, "{state}");
        assert_eq!(place.entries().len() > entries.len(), is_accepted, "{state}");
    }
}
