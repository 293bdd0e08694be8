//! The exit status: what the user asked for, all together.

use super::common::*;
use super::made::*;

fn status(files: &[String], args: &[&str]) -> Option<i32> {
    screen_report(files, args).status.code()
}

/// n04 is slow, and n01 was repaired and is fast again: the gate alone would hide the slow node.
#[test]
fn gate_and_fail_on_both_count() {
    let folder = Folder::new();
    let of_slow = |slow: &'static [u32]| {
        let times = move |at: At<'_>| Outcome::Times(if slow.contains(&at.node) { 1.2 } else { 1.0 });
        Screen { rounds: 0..7, ..Screen::of(0, 6) }.write(&folder.path().join(slow.len().to_string()), times)
    };
    let slow = of_slow(&[4]);
    assert_eq!(status(&slow, &["--gate", "n01"]), Some(0));
    assert_eq!(status(&slow, &["--gate", "n01", "--fail-on", "slow"]), Some(3));
    assert_eq!(status(&slow, &["--gate", "n04"]), Some(3));
    let healthy = of_slow(&[]);
    assert_eq!(status(&healthy, &["--gate", "n01", "--fail-on", "slow"]), Some(0));
    // A repaired node that took no part is undecided; a slow node is the worse news.
    assert_eq!(status(&healthy, &["--gate", "n01,n77", "--fail-on", "slow"]), Some(4));
    assert_eq!(status(&slow, &["--gate", "n01,n77", "--fail-on", "slow"]), Some(3));
}

/// An archive has no values of kernels. It must not look like a screen without findings.
#[test]
fn an_archive_alone_is_no_screen() {
    let folder = Folder::new();
    let files = Screen::of(0, 5).write(&folder.path().join("runs"), |_| Outcome::Times(1.0));
    let archive = folder.path().join("archive").display().to_string();
    assert!(report(&words(&["export", "--output", &archive], &files)).status.success());
    for args in [&["screen", &archive][..], &["screen", &archive, "--format", "json"]] {
        let refused = report(args);
        assert_eq!((refused.status.code(), out(&refused)), (Some(2), String::new()));
        let told = err(&refused);
        assert!(told.starts_with(&format!("pmmpi: no screen in {archive}: ")), "{told}");
        assert!(told.contains("pmmpi report ARCHIVE"), "{told}");
    }
    let both = report(&words(&["screen", &archive], &files));
    assert!(both.status.success() && out(&both).starts_with("screen of 5 nodes: 3 rounds"), "{}", out(&both));
}

/// For a report, `slow` looks only at the latest screen for wrong results; `wrong` looks at the latest results of each node.
#[test]
fn a_wrong_result_of_an_earlier_screen_is_wrong_and_not_slow() {
    let folder = Folder::new();
    let screen = |day: i64, nodes: std::ops::Range<u32>, wrong: u32| {
        let outcome = move |at: At<'_>| if at.node == wrong { Outcome::IsWrong } else { Outcome::Times(1.0) };
        let screen = Screen { nodes, rounds: 0..7, ..Screen::of(day, 0) };
        screen.write(&folder.path().join(format!("day{day}")), outcome)
    };
    const NONE: u32 = 99;
    let earlier = screen(0, 0..7, 6);
    let latest = screen(1, 0..6, NONE);
    let fail_on =
        |files: &[String], what: &str| report(&words(&["report", "--fail-on", what], files)).status.code();
    assert_eq!(fail_on(&earlier, "slow"), Some(3));
    let both = [earlier, latest].concat();
    assert_eq!(fail_on(&both, "slow"), Some(0));
    assert_eq!(fail_on(&both, "slow,wrong"), Some(3));
}

/// A node on which a kernel fails is not slow, but it has not passed either.
#[test]
fn a_node_without_a_result_is_no_pass() {
    let folder = Folder::new();
    let files = Screen { rounds: 0..7, ..Screen::of(0, 6) }.write(folder.path(), |at| match at {
        At { node: 2, .. } => Outcome::Fails,
        _ => Outcome::Times(1.0),
    });
    let checked = screen_report(&files, &["--fail-on", "slow"]);
    assert_eq!(checked.status.code(), Some(4), "{}", out(&checked));
    let told = "pmmpi: --fail-on slow: 1 node without a result of a kernel: n02 (triad)\n";
    assert_eq!(err(&checked), told);
    assert_eq!(status(&files, &["--fail-on", "suspect"]), Some(3));
    assert_eq!(status(&files, &[]), Some(0));
    // The gate asks for another node, which is fit.
    assert_eq!(status(&files, &["--gate", "n01"]), Some(0));
    assert_eq!(status(&files, &["--gate", "n01", "--fail-on", "slow"]), Some(4));
}

/// Slurm gave n05 and n06 to the job, but no rank ran there.
#[test]
fn a_node_of_the_job_without_a_rank_is_no_pass() {
    let folder = Folder::new();
    let of = |name: &str, lists: &[(&str, &str)]| {
        let variables: Vec<(String, String)> =
            lists.iter().map(|(name, list)| ((*name).to_owned(), (*list).to_owned())).collect();
        let healthy = |_: At<'_>| Outcome::Times(1.0);
        let files = Screen { rounds: 0..7, ..Screen::of(0, 5) }.write_changed(
            &folder.path().join(name),
            healthy,
            |run| run.header.environment.clone_from(&variables),
        );
        let found = json(&screen_report(&files, &["--format", "json"]));
        assert_valid("report", &found);
        (files, found["not_screened"].clone())
    };
    let (files, named) = of("job", &[("SLURM_JOB_NODELIST", "n[00-06]")]);
    assert_eq!(named, serde_json::json!(["n05", "n06"]));
    let checked = screen_report(&files, &["--fail-on", "slow"]);
    assert_eq!(checked.status.code(), Some(4));
    let sentence = "2 nodes of the job took no part in the screen: n05, n06";
    assert!(out(&checked).contains(sentence), "{}", out(&checked));
    assert_eq!(err(&checked), format!("pmmpi: --fail-on slow: {sentence}\n"));
    assert_eq!(status(&files, &[]), Some(0));
    // A step on a part of the job, and names that are not those of the hosts.
    for (name, lists) in [
        ("step", &[("SLURM_JOB_NODELIST", "n[00-06]"), ("SLURM_STEP_NODELIST", "n[00-04]")][..]),
        ("domain", &[("SLURM_JOB_NODELIST", "n[00-04].cluster")]),
        ("others", &[("SLURM_JOB_NODELIST", "slurm[1-5]")]),
        ("none", &[]),
    ] {
        let (files, named) = of(name, lists);
        assert_eq!(named, serde_json::json!([]), "{name}");
        assert_eq!(status(&files, &["--fail-on", "slow"]), Some(0), "{name}");
    }
}

/// The only node of its class has values, but no verdict, and a slow node of earlier screens is no node of this one.
#[test]
fn a_node_without_a_verdict_is_named() {
    let folder = Folder::new();
    let files = Screen { rounds: 0..7, ..Screen::of(0, 4) }.write_changed(
        folder.path(),
        |_| Outcome::Times(1.0),
        |run| {
            let facts = run.nodes[3].facts.as_mut().unwrap();
            facts.hardware.kernel = Some("6.2.0".to_owned());
        },
    );
    let text = out(&screen_report(&files, &[]));
    assert!(text.contains("none of 3 compared nodes looks slow"), "{text}");
    assert!(
        text.contains("1 of 4 nodes cannot be compared with other nodes or with earlier screens: n03\n"),
        "{text}"
    );
    let found = json(&screen_report(&files, &["--format", "json"]));
    assert_valid("report", &found);
    let nodes = found["screened"].as_array().unwrap();
    assert_eq!((&nodes[3]["node"], &nodes[3]["verdict"]), (&"n03".into(), &serde_json::Value::Null));
    assert!(nodes[..3].iter().all(|node| node["verdict"] == "OK"), "{nodes:?}");
    assert_eq!(status(&files, &["--fail-on", "slow"]), Some(0));
    let metrics = out(&screen_report(&files, &["--format", "openmetrics"]));
    assert!(!metrics.contains("pmmpi_screen_verdict{node=\"n03\""), "{metrics}");
    let gate = out(&screen_report(&files, &["--gate", "n03"]));
    assert!(gate.contains("n03: UNDECIDED: pmmpi cannot compare triad"), "{gate}");
}
