//! Lists of nodes to avoid, from a screen.

use super::common::*;
use super::made::*;

/// A job would fail on a node where a kernel fails, too.
#[test]
fn nodes_with_a_failed_kernel_are_avoided() {
    let folder = Folder::new();
    let files = Screen { kernels: vec!["triad", "dgemm"], rounds: 0..7, ..Screen::of(0, 6) }.write(
        folder.path(),
        |at| match at {
            At { node: 3, kernel: "dgemm", round: 2, .. } => Outcome::Fails,
            At { node: 5, .. } => Outcome::Times(1.3),
            _ => Outcome::Times(1.0),
        },
    );
    for command in ["screen", "report"] {
        let list = report(&words(&[command, "--format", "exclude"], &files));
        assert_eq!(out(&list), "n[03,05]\n", "{}", err(&list));
        let reasons = err(&list);
        assert!(reasons.contains("pmmpi: n03: FAILED: dgemm failed in 1 of 7 runs\n"), "{reasons}");
        assert!(reasons.contains("pmmpi: n05: SLOW-TAIL: +"), "{reasons}");
        assert_eq!(out(&report(&words(&[command, "--format", "nodefile"], &files))), "n03\nn05\n");
    }
}

/// The reason is the kernel or its options, and a list of all nodes would let no job run.
#[test]
fn a_kernel_that_fails_everywhere_is_no_reason_to_avoid_nodes() {
    let folder = Folder::new();
    let files =
        Screen { kernels: vec!["triad", "dgemm"], ..Screen::of(0, 6) }.write(folder.path(), |at| match at {
            At { kernel: "dgemm", .. } => Outcome::Fails,
            At { node: 2, .. } => Outcome::Fails,
            _ => Outcome::Times(1.0),
        });
    let list = screen_report(&files, &["--format", "exclude"]);
    assert_eq!(out(&list), "n02\n", "{}", err(&list));
    assert!(err(&list).contains("pmmpi: n02: FAILED: triad failed in 3 of 3 runs\n"), "{}", err(&list));
    assert!(
        err(&list).contains("dgemm failed on all 6 nodes, so this is no reason to avoid a node"),
        "{}",
        err(&list)
    );
}
