//! Runs without a time: their nodes are accounted for, and an archive keeps them.

mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use pmmpi::record::{End, LostRank, Run};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const START_NS: i64 = 1_795_000_000_000_000_000;

/// How a run ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Good,
    Ended(End),
    /// The last rank began and was lost.
    LostRank,
    /// The last rank left no data, not even its node.
    Silent,
    /// No rank left data.
    Nothing,
}

/// A job with one rank on each of these nodes; a plain program if there is one node.
fn job(number: usize, nodes: &[usize], ending: Ending) -> Run {
    let names: Vec<String> = nodes.iter().map(|node| format!("h{node}")).collect();
    let work_ns = 1_000_000_000 + number as i64 * 1_000_000;
    let ranks: Vec<(&str, [i64; 4])> =
        names.iter().map(|name| (name.as_str(), [0, 10, 10 + work_ns, 20 + work_ns])).collect();
    let mut run = runs::run(&format!("run-{number}"), &ranks);
    run.header.started_unix_ns = START_NS + number as i64 * 1_000_000_000;
    match ending {
        Ending::Good => {}
        Ending::Ended(end) => run.ranks.iter_mut().for_each(|rank| rank.end = end),
        Ending::LostRank => {
            let rank = run.ranks.pop().unwrap();
            run.lost.push(LostRank {
                rank: rank.rank,
                node: rank.node,
                t_ns: vec![0, 10],
                end: End::Lost,
                ended_ns: None,
                whereabouts: None,
            });
        }
        Ending::Silent => {
            run.ranks.pop();
            run.nodes.truncate(run.ranks.len());
        }
        Ending::Nothing => (run.ranks, run.nodes) = (Vec::new(), Vec::new()),
    }
    run
}

fn written(jobs: impl Iterator<Item = Run>) -> Folder {
    let folder = Folder::new();
    jobs.for_each(|run| _ = folder.write(&run));
    folder
}

/// Five plain runs on each of four nodes; on h3 all were killed.
fn killed_on_one_node() -> Folder {
    let ending = |node| if node == 3 { Ending::Ended(End::Signaled(9)) } else { Ending::Good };
    written((0..20).map(|number| job(number, &[number % 4], ending(number % 4))))
}

fn text_of(path: &Path, args: &[&str]) -> String {
    out(&report(&[&["report", path.to_str().unwrap()], args].concat()))
}

fn json_of(path: &Path, args: &[&str]) -> Value {
    let found = json(&report(&[&["report", path.to_str().unwrap(), "--format", "json"], args].concat()));
    assert_valid("report", &found);
    found
}

fn export(from: &Path, archive: &Path, args: &[&str]) -> std::process::Output {
    let (from, archive) = (from.to_str().unwrap(), archive.to_str().unwrap());
    report(&[&["export", from, "-o", archive], args].concat())
}

/// The exit status of each level, and of Nagios.
fn statuses(path: &Path, args: &[&str]) -> Vec<(String, Option<i32>)> {
    let levels = ["slow", "suspect", "odd", "moved", "missing", "gone", "wrong", "failed", "unjudged"];
    let levels = levels.map(|level| ["--fail-on", level]).into_iter().chain([["--exit", "nagios"]]);
    let status = |level: [&str; 2]| {
        let all = [&["report", path.to_str().unwrap()], args, &level].concat();
        (level.join(" "), report(&all).status.code())
    };
    levels.map(status).collect()
}

#[test]
fn a_node_of_failed_runs_is_accounted_for() {
    let folder = killed_on_one_node();
    let place = Folder::new();
    let archive = place.path().join("archive");
    assert!(export(folder.path(), &archive, &[]).status.success());
    for path in [folder.path(), &archive] {
        let found = json_of(path, &[]);
        let accounted = &found["accounted"];
        assert_eq!((&accounted["judged"], &accounted["unmeasured"]), (&json!(3), &json!(1)), "{accounted}");
        let failed = json!([{
            "node": "h3", "runs": 5, "run_id": "run-19", "session": null,
            "started_unix_ns": START_NS + 19_000_000_000_i64, "reason": "rank 0 on h3: signal 9",
        }]);
        assert_eq!(found["failed"], failed);
        let line = "4 nodes: 3 judged; 1 without a time (5 runs failed or not complete): h3";
        for format in ["text", "md", "html"] {
            let text = text_of(path, &["--format", format]);
            assert!(text.contains(line), "{format}: {text}");
        }
        assert!(text_of(path, &[]).lines().take(5).any(|found| found == line));
        assert!(text_of(path, &[]).starts_with("20 runs, 4 nodes, "), "{}", text_of(path, &[]));
        let metrics = text_of(path, &["--format", "openmetrics"]);
        assert!(metrics.contains("pmmpi_nodes_accounted{group=\"unmeasured\"} 1"), "{metrics}");
        for format in ["csv", "exclude", "nodefile"] {
            let output = report(&["report", path.to_str().unwrap(), "--format", format]);
            assert!(err(&output).contains(line), "{format}: {}", err(&output));
        }
        for (level, expected) in [("unjudged", 4), ("failed", 3), ("slow", 0), ("missing", 0), ("gone", 0)] {
            let output = report(&["report", path.to_str().unwrap(), "--fail-on", level]);
            assert_eq!(output.status.code(), Some(expected), "{level}");
        }
        let nagios = text_of(path, &["--exit", "nagios"]);
        let reason =
            "PMMPI CRITICAL - 5 runs failed or are not complete on h3; the latest: rank 0 on h3: signal 9; ";
        assert!(nagios.starts_with(reason), "{nagios}");
    }
}

/// No node is compared, so the report begins with the runs. The nodes are accounted for nevertheless.
#[test]
fn the_first_screen_accounts_for_nodes_if_all_runs_failed() {
    let folder = written((0..2).map(|number| job(number, &[0, 1], Ending::Ended(End::TimedOut))));
    let place = Folder::new();
    let archive = place.path().join("archive");
    assert!(export(folder.path(), &archive, &[]).status.success());
    for path in [folder.path(), &archive] {
        let text = text_of(path, &[]);
        let line = "2 nodes: 0 judged; 2 without a time (2 runs failed or not complete): h0, h1";
        assert!(text.lines().take(4).any(|found| found == line), "{text}");
        let nagios = text_of(path, &["--exit", "nagios"]);
        assert!(nagios.contains("no node can be compared: no run has a valid elapsed time"), "{nagios}");
    }
}

/// The selection holds for failed runs, too.
#[test]
fn failed_runs_are_selected_like_others() {
    let folder = killed_on_one_node();
    let place = Folder::new();
    let archive = place.path().join("archive");
    assert!(export(folder.path(), &archive, &[]).status.success());
    let late = "2026-11-18T11:06:50Z"; // the last ten runs
    for path in [folder.path(), &archive] {
        for (args, unmeasured, failed) in [
            (&["--node", "h0,h1"][..], 0, Some(0)),
            (&["--node", "h3"], 1, Some(5)),
            (&["--since", late], 1, Some(3)),
            (&["--until", late], 1, Some(2)),
            (&["--run", "run-7"], 1, Some(1)),
            (&["--where", "build=O3"], 1, Some(5)),
            (&["--class", "./hpl -n"], 1, Some(5)),
        ] {
            let found = json_of(path, args);
            let runs: u64 = array(&found, "failed").map(|failed| failed["runs"].as_u64().unwrap()).sum();
            assert_eq!(found["accounted"]["unmeasured"], unmeasured, "{args:?} {}", path.display());
            assert_eq!(Some(runs), failed, "{args:?} {}", path.display());
        }
    }
}

/// An export of the same runs adds nothing, and the medians are up to date.
#[test]
fn an_archive_keeps_each_failed_run_once() {
    let folder = killed_on_one_node();
    let place = Folder::new();
    let archive = place.path().join("archive");
    let into = archive.display();
    let first = out(&export(folder.path(), &archive, &[]));
    assert_eq!(first, format!("20 rows added to {into}, 0 were already there\n"));
    let files = parquet_files(&archive);
    let again = out(&export(folder.path(), &archive, &[]));
    assert_eq!(again, format!("0 rows added to {into}, 20 were already there\n"));
    assert_eq!(parquet_files(&archive), files);
    // Only failed runs are new: no session changes, but the list of files does.
    let more = written(std::iter::once(job(20, &[3], Ending::Ended(End::Aborted(1)))));
    assert_eq!(
        out(&export(more.path(), &archive, &[])),
        format!("1 row added to {into}, 0 were already there\n")
    );
    let found = json_of(&archive, &["--since", "2026-01-01"]);
    let codes: Vec<&Value> = array(&found, "warnings").map(|warning| &warning["code"]).collect();
    assert!(!codes.contains(&&json!("medians-behind")), "{codes:?}");
    assert_eq!(found["failed"][0]["runs"], 6);
    // The archive of an archive is equal.
    let second = folder.path().join("second");
    assert!(export(&archive, &second, &[]).status.success());
    assert_eq!(json_of(&second, &[])["failed"], json_of(&archive, &[])["failed"]);
    // The medians do not count failed runs.
    let medians = json_of(&archive.join("_medians"), &[]);
    let names: BTreeSet<&str> = array(&medians, "nodes").map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["h0", "h1", "h2"]));
}

/// A run was exported while it went on, and again when it was complete.
#[test]
fn a_run_that_was_exported_before_its_end_has_its_time() {
    let good = |number| job(number, &[number % 4], Ending::Good);
    let before = written((0..20).map(|number| match number {
        7 => job(7, &[3], Ending::LostRank),
        _ => good(number),
    }));
    let place = Folder::new();
    let archive = place.path().join("archive");
    assert!(export(before.path(), &archive, &[]).status.success());
    assert_eq!(json_of(&archive, &[])["failed"][0]["runs"], 1);
    let after = written(std::iter::once(good(7)));
    assert!(export(after.path(), &archive, &[]).status.success());
    let found = json_of(&archive, &[]);
    assert_eq!((&found["failed"], &found["accounted"]["judged"]), (&json!([]), &json!(4)));
    assert_eq!(statuses(&archive, &[]).last().unwrap().1, Some(0));
}

/// HPL says FAILED on n3.
#[test]
fn an_archive_keeps_wrong_results() {
    let folder = Folder::new();
    let good = std::fs::read_to_string(fixture("hpl/n01/HPL.out")).unwrap();
    let bad = good.replace("PASSED", "FAILED");
    for (node, run) in (0..6).flat_map(|node| (0..5).map(move |run| (node, run))) {
        folder.put(&format!("hpl/n{node}/r{run}/HPL.out"), if node == 3 { &bad } else { &good });
    }
    let from = folder.path().join("hpl");
    for pattern in ["{session}/{node}/{run}/HPL.out", "{session}/{node}/*/HPL.out"] {
        let pattern = ["--path-pattern", pattern];
        let archive = Folder::new();
        let into = archive.path().join("archive");
        let first = out(&export(&from, &into, &pattern));
        assert!(!first.starts_with("0 rows"), "{first}");
        let again = out(&export(&from, &into, &pattern));
        assert!(again.starts_with("0 rows"), "{pattern:?}: {again}");
        let (before, after) = (json_of(&from, &pattern), json_of(&into, &[]));
        assert_eq!(before["wrong"][0]["node"], "n3");
        for key in ["accounted", "wrong", "nodes"] {
            assert_eq!(before[key], after[key], "{pattern:?} {key}");
        }
        assert_eq!(statuses(&from, &pattern), statuses(&into, &[]));
        // Nothing of the archive counts as rejected in an export of other, valid results.
        let more = folder.put("more.csv", "node,run,elapsed_s\nn0,1,3\n");
        assert_eq!(export(&more, &into, &[]).status.code(), Some(0));
    }
}

/// Rows that a CSV has without a time. Runs of other tools are identified by node, session, run and class.
#[test]
fn an_archive_keeps_nodes_without_a_time() {
    let folder = Folder::new();
    let mut csv = String::from("node,session,run,class,started,elapsed_s\n");
    for (node, run) in (0..6).flat_map(|node| (0..6).map(move |run| (node, run))) {
        let elapsed = match (node, run) {
            (5, 0..3) => "nan".to_owned(),
            (5, _) => "-1".to_owned(),
            _ => format!("{}", 10.0 + f64::from(run) * 0.01),
        };
        csv += &format!("n{node},s,{run},c,2026-11-20T10:00:0{run}Z,{elapsed}\n");
    }
    csv += "n6,s,a\tb,c,,5\nn7,s,1,c\n";
    let file = folder.put("f.csv", csv);
    let place = Folder::new();
    let archive = place.path().join("archive");
    let done = export(&file, &archive, &[]);
    assert_eq!(
        (done.status.code(), out(&done).starts_with("37 rows added")),
        (Some(1), true),
        "{}",
        out(&done)
    );
    assert!(out(&export(&file, &archive, &[])).starts_with("0 rows added"));
    for by in [&[][..], &["--class-by", "none"]] {
        let (before, after) = (json_of(&file, by), json_of(&archive, by));
        assert_eq!(before["accounted"]["unmeasured"], 2);
        for key in ["accounted", "nodes", "failed"] {
            assert_eq!(before[key], after[key], "{key}");
        }
    }
    // The row of n7 has no time either, but it is not whole: nothing says which field is missing.
    assert_eq!(statuses(&file, &[]), statuses(&archive, &[]));
    assert!(
        text_of(&archive, &[]).contains("8 nodes: 5 judged")
            || text_of(&archive, &[]).contains("7 nodes: 5 judged; 2 without a time: n5, n6")
    );
}

/// Without rows that lack a time, an archive has no file and no column for them, as in older versions.
#[test]
fn an_archive_without_failed_runs_has_no_columns_for_them() {
    let folder = written((0..8).map(|number| job(number, &[number % 4], Ending::Good)));
    let place = Folder::new();
    let archive = place.path().join("archive");
    assert!(export(folder.path(), &archive, &[]).status.success());
    let files = parquet_files(&archive);
    assert_eq!(files.len(), 2, "{files:?}"); // the runs and the medians
    let is_named =
        |file: &PathBuf| String::from_utf8_lossy(&std::fs::read(file).unwrap()).contains("no_time");
    assert!(!files.iter().any(is_named));
}

fn parquet_files(folder: &Path) -> BTreeSet<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { parquet_files(&path) } else { BTreeSet::from([path]) };
    all.flat_map(of).filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect()
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().unwrap().iter()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        5 => Just(Ending::Good),
        1 => Just(Ending::Ended(End::Signaled(9))),
        1 => Just(Ending::Ended(End::Exited(1))),
        1 => Just(Ending::Ended(End::NotStarted(2))),
        1 => Just(Ending::Ended(End::TimedOut)),
        1 => Just(Ending::Ended(End::Aborted(1))),
        1 => Just(Ending::LostRank),
        1 => Just(Ending::Silent),
        1 => Just(Ending::Nothing),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// The groups hold each node of the run files once, whatever failed. An archive of the runs tells the same.
    #[test]
    fn no_node_of_run_files_is_lost(
        jobs in proptest::collection::vec(
            (proptest::collection::btree_set(0..6usize, 1..4), ending(), 0..3usize), 1..30)
    ) {
        let folder = Folder::new();
        let mut hosts = BTreeSet::new();
        let mut failed = 0;
        for (number, (nodes, ending, session)) in jobs.into_iter().enumerate() {
            let nodes: Vec<usize> = nodes.into_iter().collect();
            let mut run = job(number, &nodes, ending);
            if session > 0 {
                run.header.labels.push(("session".to_owned(), format!("s{session}")));
            }
            hosts.extend(run.nodes.iter().map(|node| node.key.hostname.clone()));
            failed += usize::from(!matches!(ending, Ending::Good));
            folder.write(&run);
        }
        let place = Folder::new();
        let archive = place.path().join("archive");
        prop_assert!(export(folder.path(), &archive, &[]).status.success());
        let reports = [folder.path(), &archive].map(|path| json_of(path, &[]));
        let accounted: Vec<u64> =
            reports[0]["accounted"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).collect();
        prop_assert_eq!(accounted.iter().sum::<u64>(), hosts.len() as u64, "{}", reports[0]["accounted"]);
        for key in ["accounted", "failed", "nodes"] {
            prop_assert_eq!(&reports[0][key], &reports[1][key], "{}", key);
        }
        let [before, after] = [folder.path(), &archive].map(|path| statuses(path, &[]));
        let is_failed = before.contains(&("--fail-on failed".to_owned(), Some(3)));
        prop_assert_eq!(is_failed, failed > 0);
        prop_assert_eq!(before, after);
    }
}
