//! pmmpi removes no mark that is not its own or that somebody changed, and undoes no change of others.

use super::*;

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
