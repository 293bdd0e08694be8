//! A mark stays until a gate has run all that found the node slow or wrong, with the same options.

use super::*;

const COMPUTE: &str = "pmmpi: slow-compute: +9.0 % (at least 8.1 %) 20261126-abc";
const WRONG: &str = "pmmpi: wrong-result: triad 20261127-xyz";
const LARGE: [&str; 2] = ["--memory", "85%"];

fn ran(kernel: &str, options: &[&str]) -> Measurement {
    Measurement { kernel: kernel.to_owned(), options: names(options), ..Measurement::default() }
}

/// On node a.
fn finding(reason: &str, kernel: &str, options: &[&str]) -> Vec<Finding> {
    vec![Finding { node: "a".to_owned(), reason: reason.to_owned(), found_by: vec![ran(kernel, options)] }]
}

fn fma() -> MeasuredKernel {
    MeasuredKernel { ran: ran("fma", &[]), area: "compute".to_owned() }
}

fn triad(options: &[&str]) -> MeasuredKernel {
    MeasuredKernel { ran: ran("triad", options), area: "memory".to_owned() }
}

/// What pmmpi says after a gate with these kernels that node a has passed; empty if it removes the mark.
fn gate(settings: &ActionSettings, slurm: &Fake, kernels: Vec<MeasuredKernel>) -> String {
    let report = run(&[], &names(&["a"]), &ActionSettings { kernels, ..settings.clone() }, slurm).unwrap();
    if is_done(&report.decisions[0]) { String::new() } else { report.to_string() }
}

fn already_marked() -> [Decision; 1] {
    [Decision::Skipped { node: "a".to_owned(), why: Skip::AlreadyMarked }]
}

#[test]
fn a_gate_needs_the_kernel_and_the_options_of_the_finding() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        let settings = place.settings(action.clone());
        run(&finding(REASON, "triad", &LARGE), &[], &settings, &slurm).unwrap();
        let marked = slurm.of("a");
        let latency = MeasuredKernel { ran: ran("latency", &LARGE), area: "memory".to_owned() };
        for kernels in [vec![fma()], vec![latency], vec![triad(&[])], vec![triad(&["--memory", "1G"])]] {
            let said = gate(&settings, &slurm, kernels);
            let why = format!(": `{REASON}`. Repeat the gate with `--kernels triad --memory 85%`\n");
            assert!(said.ends_with(&why), "{action:?} {said}");
            assert_eq!(slurm.of("a"), marked);
        }
        assert_eq!(gate(&settings, &slurm, vec![fma(), triad(&LARGE)]), "", "{action:?}");
    }
}

/// Slurm keeps the first reason, and the log has both.
#[test]
fn a_gate_needs_each_finding_on_a_marked_node() {
    for action in [Action::Drain, Action::Comment, Action::feature()] {
        let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
        let settings = place.settings(action.clone());
        run(&finding(COMPUTE, "fma", &[]), &[], &settings, &slurm).unwrap();
        let marked = slurm.of("a");
        let report = run(&finding(WRONG, "triad", &LARGE), &[], &settings, &slurm).unwrap();
        assert_eq!(report.decisions, already_marked());
        assert_eq!((slurm.of("a"), slurm.updates().len()), (marked.clone(), 1));
        for (kernels, missing) in
            [(vec![fma()], WRONG), (vec![fma(), triad(&[])], WRONG), (vec![triad(&LARGE)], COMPUTE)]
        {
            let said = gate(&settings, &slurm, kernels);
            let why = format!(
                ": `{missing}`. Repeat the gate with `--kernels fma` and `--kernels triad --memory 85%` in one screen."
            );
            assert!(said.contains(&why), "{action:?} {said}");
            assert_eq!(slurm.of("a"), marked);
        }
        assert_eq!(gate(&settings, &slurm, vec![fma(), triad(&LARGE)]), "", "{action:?}");
        // Both findings are over.
        run(&finding(COMPUTE, "fma", &[]), &[], &settings, &slurm).unwrap();
        assert_eq!(gate(&settings, &slurm, vec![fma()]), "", "{action:?}");
    }
}

#[test]
fn the_same_finding_again_adds_no_line() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    for reason in [COMPUTE, "pmmpi: slow-compute: +9.3 % 20261127-xyz"] {
        run(&finding(reason, "fma", &[]), &[], &settings, &slurm).unwrap();
    }
    assert_eq!(place.entries(), ["intent a drain", "outcome a done"]);
    for _ in 0..2 {
        run(&finding(WRONG, "triad", &[]), &[], &settings, &slurm).unwrap();
    }
    let log = place.log();
    let words = ["act", "text", "reason"].map(|key| log[log.len() - 2][key].as_str().unwrap());
    assert_eq!(words, ["drain", COMPUTE, WRONG]);
    assert_eq!(place.entries(), ["intent a drain", "outcome a done", "finding a drain"]);
}

/// The limit is about new marks.
#[test]
fn a_finding_counts_although_the_limit_allows_no_mark() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    run(&finding(COMPUTE, "fma", &[]), &[], &settings, &slurm).unwrap();
    let full = ActionSettings { max_nodes: Some(0), ..settings.clone() };
    let report = run(&finding(WRONG, "triad", &[]), &[], &full, &slurm).unwrap();
    assert!(report.over_limit.is_some(), "{report}");
    assert!(gate(&settings, &slurm, vec![fma()]).contains(WRONG));
}

/// The site marks nodes with a comment now, and drained them before.
#[test]
fn a_finding_counts_for_the_mark_that_the_node_has() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    run(&finding(COMPUTE, "fma", &[]), &[], &settings, &slurm).unwrap();
    let comment = place.settings(Action::Comment);
    let report = run(&finding(WRONG, "triad", &[]), &[], &comment, &slurm).unwrap();
    assert_eq!(report.decisions, already_marked());
    assert!(gate(&settings, &slurm, vec![fma()]).contains(WRONG));
}

/// Somebody removes the mark by hand: the next mark has its own finding.
#[test]
fn a_finding_of_an_earlier_mark_does_not_count() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    run(&finding(WRONG, "triad", &[]), &[], &settings, &slurm).unwrap();
    slurm.hook(|moment, nodes| {
        if moment == SlurmCall::ReadAll {
            nodes.insert("a".to_owned(), node("a", "IDLE", None));
        }
        None
    });
    run(&finding(COMPUTE, "fma", &[]), &[], &settings, &slurm).unwrap();
    slurm.hook(|_, _| None);
    assert_eq!(gate(&settings, &slurm, vec![fma()]), "");
}

/// It only shows what pmmpi would do.
#[test]
fn a_dry_run_keeps_no_finding() {
    let (place, slurm) = (Place::new(), Fake::new([node("a", "IDLE", None)]));
    let settings = place.settings(Action::Drain);
    run(&finding(COMPUTE, "fma", &[]), &[], &settings, &slurm).unwrap();
    let before = place.log();
    let dry = ActionSettings { apply: false, ..settings.clone() };
    run(&finding(WRONG, "triad", &[]), &[], &dry, &slurm).unwrap();
    assert_eq!(place.log(), before);
}
