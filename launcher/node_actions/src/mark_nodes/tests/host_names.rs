//! Which node of Slurm a host of a screen is.

use super::*;

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
