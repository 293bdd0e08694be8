//! Lists of nodes to avoid, from a screen.

use super::common::*;
use super::made::*;
use pmmpi::record::Run;
use std::path::Path;

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
        err(&list).contains(
            "dgemm failed on all 6 nodes, so the reason is dgemm or its options, not the nodes: the list \
             ignores these failures"
        ),
        "{}",
        err(&list)
    );
}

/// With one node, too, the options are the likely reason, but only if no round has a time.
#[test]
fn the_only_node_is_avoided_only_if_some_rounds_had_a_time() {
    let folder = Folder::new();
    let of = |name: &str, failing: u32| {
        let outcome = move |at: At<'_>| if at.round < failing { Outcome::Fails } else { Outcome::Times(1.0) };
        Screen::of(0, 1).write(&folder.path().join(name), outcome)
    };
    let in_all = of("all", 3);
    for format in ["exclude", "nodefile"] {
        let list = screen_report(&in_all, &["--format", format]);
        assert_eq!(out(&list), "", "{}", err(&list));
        let told =
            "triad failed on the only node in all rounds, so the reason is probably triad or its options";
        assert!(err(&list).contains(told), "{}", err(&list));
    }
    let gate = screen_report(&in_all, &["--gate", "n00"]);
    assert_eq!(gate.status.code(), Some(3), "{}", out(&gate));
    let text = out(&screen_report(&in_all, &["--suggest"]));
    assert!(text.contains("no node should be drained"), "{text}");
    let list = screen_report(&of("some", 2), &["--format", "exclude"]);
    assert_eq!(out(&list), "n00\n", "{}", err(&list));
}

/// Seven rounds of six nodes, whose hosts have a domain in their names; n04 is slow, and Slurm's list is `list`.
fn with_domain(folder: &Path, list: &str) -> Vec<String> {
    let times = |at: At<'_>| Outcome::Times(if at.node == 4 { 1.2 } else { 1.0 });
    let change = |run: &mut Run| {
        run.nodes.iter_mut().for_each(|node| node.key.hostname.push_str(".cluster.example"));
        run.header.environment = vec![("SLURM_JOB_NODELIST".to_owned(), list.to_owned())];
    };
    Screen { rounds: 0..7, ..Screen::of(0, 6) }.write_changed(folder, times, change)
}

/// Slurm knows no host by another name.
#[test]
fn lists_and_commands_have_the_names_of_slurm() {
    let folder = Folder::new();
    // Not a list of these hosts: their own names are the best that is known.
    for (at, (list, name)) in
        [("n[00-05]", "n04"), ("slurm[1-6]", "n04.cluster.example"), ("n[0", "n04.cluster.example")]
            .into_iter()
            .enumerate()
    {
        let files = with_domain(&folder.path().join(at.to_string()), list);
        for format in ["exclude", "nodefile"] {
            for command in ["screen", "report"] {
                let shown = report(&words(&[command, "--format", format], &files));
                assert_eq!(out(&shown), format!("{name}\n"), "{list}: {}", err(&shown));
            }
        }
        let text = out(&screen_report(&files, &["--suggest"]));
        assert!(text.contains(&format!("scontrol update NodeName={name} State=DRAIN ")), "{text}");
        let option = format!("\noption of sbatch and srun to avoid these nodes:\n--exclude={name}\n");
        assert!(text.contains(&option), "{text}");
    }
}

/// NHC compares with the name of the host.
#[test]
fn suggestions_have_a_line_for_the_node_health_check() {
    let folder = Folder::new();
    let files = with_domain(folder.path(), "n[00-05]");
    let text = out(&screen_report(&files, &["--suggest"]));
    let line = "\nlines for nhc.conf (LBNL Node Health Check):\nn04.cluster.example || die 1 \"pmmpi: slow-memory: +";
    assert!(text.contains(line), "{text}");
    assert!(!out(&screen_report(&files, &[])).contains("nhc"));
}

/// The user names nodes as Slurm does.
#[test]
fn the_gate_finds_hosts_by_their_names_in_slurm() {
    let folder = Folder::new();
    let files = with_domain(folder.path(), "n[00-05]");
    let findings = folder.path().join("findings").display().to_string();
    for (asked, status) in [("n01", 0), ("n01.cluster.example", 0), ("n04", 3), ("n01.other", 4)] {
        let gate = screen_report(&files, &["--gate", asked, "--findings", &findings]);
        assert_eq!(gate.status.code(), Some(status), "{asked}: {}", out(&gate));
        let read: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&findings).unwrap()).unwrap();
        // Slurm may have another host of the name that the user typed.
        let passed: &[&str] = if status == 0 { &["n01.cluster.example"] } else { &[] };
        assert_eq!(read["passed"], serde_json::json!(passed), "{asked}");
    }
    let suspects = out(&screen_report(&files, &["--gate", "n01", "--suspects"]));
    assert_eq!(suspects, "triad\tn01.cluster.example\ntriad\tn04.cluster.example\n");
}
