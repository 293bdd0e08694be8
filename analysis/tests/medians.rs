//! The medians of an archive: what they contain, and reports that read them in place of earlier runs.

mod common;

use common::*;
use pmmpi_analysis::input::importers::{self, ImportOptions, MEDIANS_FOLDER};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SESSIONS: usize = 6;

/// Twelve nodes in weekly sessions of seven runs; n03 is 3 % slower from s4 on.
fn fleet(sessions: std::ops::Range<usize>) -> String {
    let mut csv = String::from("node,session,run,started,blas,elapsed_s\n");
    for (node, session, run) in
        (0..12).flat_map(|node| sessions.clone().flat_map(move |s| (0..7).map(move |r| (node, s, r))))
    {
        let place =
            |factor: usize, of: usize| ((node * 7 + session * 5 + run * 3) * factor % of) as f64 / of as f64;
        let own = 0.02 * ((node * 5) % 12) as f64 / 12.0 + 0.002 * place(13, 31) + 0.002 * place(17, 29);
        let slower = if node == 3 && session >= 3 { 1.03 } else { 1.0 };
        let seconds = 100.0 * (1.0 + own) * slower;
        let (month, day) = (10 + (session * 7) / 28, 1 + (session * 7) % 28);
        let _ = writeln!(
            csv,
            "n{node:02},s{},{run},2026-{month}-{day:02}T08:{run:02}:00Z,mkl,{seconds:.6}",
            session + 1
        );
    }
    csv
}

fn export(folder: &Folder, name: &str, csv: &str) -> PathBuf {
    let table = folder.put(name, csv);
    let archive = folder.path().join("archive");
    let output = report(&["export", table.to_str().unwrap(), "-o", archive.to_str().unwrap()]);
    assert!(output.status.success(), "{}", err(&output));
    archive
}

fn found(args: &[&str]) -> Value {
    let output = report(&[&["report", "--format", "json"], args].concat());
    assert!(output.status.success(), "{args:?}: {}", err(&output));
    let found = json(&output);
    assert_valid("report", &found);
    found
}

fn of_nodes(report: &Value) -> BTreeMap<String, &Value> {
    let nodes = report["nodes"].as_array().unwrap().iter();
    nodes.map(|node| (node["node"].as_str().unwrap().to_owned(), node)).collect()
}

fn codes(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

/// Node, session: median (s), deviation (s), runs, start.
type Content = BTreeMap<(String, String), (f64, f64, u32, i64)>;

fn content(path: &Path) -> Content {
    let table = importers::read(&[path.to_owned()], &ImportOptions::default()).table;
    let row = |row: usize| {
        let of = table.median_of(row).unwrap();
        let median = table.elapsed_s[row];
        let deviation = f64::from(of.deviation) * median;
        let key = (table.node_name(row).to_owned(), table.session_name(row).unwrap_or_default().to_owned());
        (key, (median, deviation, of.runs, table.started_unix_ns[row]))
    };
    let content: Content = (0..table.len()).map(row).collect();
    assert_eq!(content.len(), table.len(), "one row per node and session");
    content
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

/// The verdicts and the history of a report that reads all runs.
#[test]
fn a_report_of_the_latest_session_knows_the_history() {
    let folder = Folder::new();
    let archive = export(&folder, "all.csv", &fleet(0..SESSIONS));
    let archive = archive.to_str().unwrap();
    let (all, since) = (found(&[archive]), found(&[archive, "--since", "2026-11-08"]));
    let [all, of_since] = [&all, &since].map(of_nodes);
    assert_eq!(all.len(), of_since.len());
    for (name, node) in all {
        let other = of_since[&name];
        for key in ["verdict", "median_s", "runs", "slowdown", "presence", "session"] {
            assert_eq!(node[key], other[key], "{name} {key}");
        }
        let (history, other) = (&node["history"], &other["history"]);
        for key in ["verdict", "sessions", "since", "until", "until_date", "course"] {
            assert_eq!(history[key], other[key], "{name} {key}");
        }
        for key in ["before_s", "now_s"] {
            let [a, b] = [history, other].map(|history| history[key].as_f64().unwrap());
            assert!((a / b - 1.0).abs() < 1e-3, "{name} {key}: {a} {b}");
        }
        assert_eq!(history["verdict"], if name == "n03" { "SLOWED" } else { "SAME" });
    }
    assert!(!codes(&since).contains(&"medians-behind"));
    let text = out(&report(&["report", archive, "--since", "2026-11-08"]));
    assert!(
        text.starts_with("84 runs, 60 medians, 12 nodes, 4 files\nselected: --since 2026-11-08\n"),
        "{text}"
    );
    let without = found(&[archive, "--since", "2026-11-08", "--no-history"]);
    assert!(of_nodes(&without).values().all(|node| node["history"]["sessions"] == 1));
}

/// The runs of earlier months may be deleted.
#[test]
fn medians_outlive_the_runs() {
    let folder = Folder::new();
    let archive = export(&folder, "all.csv", &fleet(0..SESSIONS));
    std::fs::remove_dir_all(archive.join("month=2026-10")).unwrap();
    let later = export(&folder, "later.csv", &fleet(SESSIONS..SESSIONS + 1));
    assert_eq!(later, archive);
    let since = found(&[archive.to_str().unwrap(), "--since", "2026-11-15"]);
    let n03 = of_nodes(&since)["n03"].clone();
    assert_eq!((&n03["history"]["sessions"], &n03["history"]["since"]), (&7.into(), &"s4".into()), "{n03}");
    // Medians alone are an input, too.
    let medians = archive.join(MEDIANS_FOLDER);
    let alone = found(&[medians.to_str().unwrap()]);
    let n03 = of_nodes(&alone)["n03"].clone();
    assert_eq!((&n03["history"]["verdict"], &n03["runs"]), (&"SLOWED".into(), &7.into()), "{n03}");
    for key in ["ci_s", "slow_runs"] {
        assert!(n03[key].is_null() && n03["null_reasons"][key].as_str().unwrap().contains("only the median"));
    }
}

/// A session that is exported in two parts has one row per node, over all its runs.
#[test]
fn an_export_brings_the_medians_up_to_date() {
    let folder = Folder::new();
    let whole = fleet(0..SESSIONS);
    let (header, rows) = whole.split_once('\n').unwrap();
    let part = |is_in: &dyn Fn(usize) -> bool| {
        let rows = rows.lines().enumerate().filter(|(at, _)| is_in(*at)).map(|(_, row)| format!("{row}\n"));
        format!("{header}\n{}", rows.collect::<String>())
    };
    let archive = export(&folder, "odd.csv", &part(&|at| at % 2 == 1));
    let before = content(&archive.join(MEDIANS_FOLDER));
    export(&folder, "even.csv", &part(&|at| at % 2 == 0));
    let after = content(&archive.join(MEDIANS_FOLDER));
    assert_ne!(before, after);
    let other = Folder::new();
    assert_eq!(after, content(&export(&other, "all.csv", &whole).join(MEDIANS_FOLDER)));
    export(&folder, "again.csv", &whole);
    assert_eq!(after, content(&archive.join(MEDIANS_FOLDER)));
}

/// Another program added a file to the archive: the report says so, and the next export mends it.
#[test]
fn medians_that_lack_runs_are_told_and_mended() {
    let folder = Folder::new();
    let archive = export(&folder, "early.csv", &fleet(0..2));
    let other = Folder::new();
    let added = export(&other, "mid.csv", &fleet(2..5));
    for month in ["month=2026-10", "month=2026-11"] {
        std::fs::create_dir_all(archive.join(month)).unwrap();
        for file in std::fs::read_dir(added.join(month)).unwrap() {
            let file = file.unwrap().path();
            std::fs::copy(&file, archive.join(month).join("other.parquet")).unwrap();
        }
    }
    let args = [archive.to_str().unwrap(), "--since", "2026-10-29"];
    let behind = found(&args);
    assert!(codes(&behind).contains(&"medians-behind"), "{:?}", codes(&behind));
    export(&folder, "late.csv", &fleet(5..SESSIONS));
    let mended = found(&args);
    assert!(!codes(&mended).contains(&"medians-behind"), "{:?}", codes(&mended));
    let whole = Folder::new();
    let expected = content(&export(&whole, "all.csv", &fleet(0..SESSIONS)).join(MEDIANS_FOLDER));
    assert_eq!(content(&archive.join(MEDIANS_FOLDER)), expected);
}

/// No run is lost, and the message says what to do; after that the medians are complete again.
#[test]
fn damaged_medians_are_an_error() {
    let folder = Folder::new();
    let archive = export(&folder, "early.csv", &fleet(0..3));
    let medians = archive.join(MEDIANS_FOLDER);
    std::fs::write(medians.join("month=2026-10/medians.parquet"), b"PAR1 nothing PAR1").unwrap();
    let table = folder.put("late.csv", fleet(3..SESSIONS));
    let again = || report(&["export", table.to_str().unwrap(), "-o", archive.to_str().unwrap()]);
    let output = again();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("all runs were added, but the medians"), "{}", err(&output));
    assert!(err(&output).contains("move the folder `_medians` out of the archive"), "{}", err(&output));
    std::fs::remove_dir_all(&medians).unwrap();
    let output = again();
    assert!(out(&output).starts_with("0 rows added"), "{} {}", out(&output), err(&output));
    let whole = Folder::new();
    let expected = content(&export(&whole, "all.csv", &fleet(0..SESSIONS)).join(MEDIANS_FOLDER));
    assert_eq!(content(&medians), expected);
}

/// Neither reports of all runs nor comparisons and exports take medians for runs.
#[test]
fn medians_are_no_runs() {
    let folder = Folder::new();
    let archive = export(&folder, "all.csv", &fleet(0..2));
    let (path, medians) = (archive.to_str().unwrap(), archive.join(MEDIANS_FOLDER));
    assert!(out(&report(&["report", path])).starts_with("168 runs, 12 nodes, 1 file\n"));
    // Given beside the runs, they say nothing new.
    let both = found(&[path, medians.to_str().unwrap()]);
    assert!(of_nodes(&both).values().all(|node| node["runs"] == 7 && node["history"]["sessions"] == 2));
    let other = folder.path().join("other");
    let output = report(&["export", medians.to_str().unwrap(), "-o", other.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{} {}", out(&output), err(&output));
    assert!(err(&output).contains("medians"), "{}", err(&output));
    let output = report(&["compare", path, medians.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{} {}", out(&output), err(&output));
    let again = report(&["export", table_of(&folder).to_str().unwrap(), "-o", path]);
    assert!(out(&again).starts_with("0 rows added"), "{}", err(&again));
}

/// A label that is new in the third export of a month gives the table a new column.
#[test]
fn a_new_label_changes_no_earlier_medians() {
    let folder = Folder::new();
    export(&folder, "a.csv", &fleet(0..1));
    export(&folder, "b.csv", &fleet(1..2));
    let labelled = fleet(2..3).replace("blas,elapsed_s", "maintenance,elapsed_s").replace(",mkl,", ",dimm,");
    let archive = export(&folder, "c.csv", &labelled);
    export(&folder, "d.csv", &fleet(3..4));
    assert_eq!(content(&archive.join(MEDIANS_FOLDER)).len(), 4 * 12);
}

/// A late run of a session whose other runs were deleted.
#[test]
fn a_late_run_removes_no_medians_of_deleted_runs() {
    let folder = Folder::new();
    let whole = fleet(0..SESSIONS);
    let is_late = |line: &&str| line.starts_with("n05,s2,");
    let early: Vec<&str> = whole.lines().filter(|line| !is_late(line)).collect();
    let archive = export(&folder, "early.csv", &early.join("\n"));
    let medians = archive.join(MEDIANS_FOLDER);
    let before = content(&medians);
    std::fs::remove_dir_all(archive.join("month=2026-10")).unwrap();
    let late: Vec<&str> = whole
        .lines()
        .enumerate()
        .filter(|(at, line)| *at == 0 || is_late(line))
        .map(|(_, line)| line)
        .collect();
    export(&folder, "late.csv", &late.join("\n"));
    let after = content(&medians);
    assert_eq!(after.len(), before.len() + 1);
    assert!(before.iter().all(|(key, row)| after[key] == *row));
    // Some runs of a median were deleted, others come later: the median of more runs stays.
    let two: Vec<&str> = whole
        .lines()
        .enumerate()
        .filter(|(at, line)| *at == 0 || line.starts_with("n06,s2,"))
        .map(|(_, line)| line)
        .take(3)
        .collect();
    export(&folder, "two.csv", &two.join("\n"));
    assert_eq!(content(&medians), after);
}

/// Runs without a session are one session, and `--since` may also cut a named one: no verdict rests on runs before it.
#[test]
fn medians_judge_no_node_of_the_latest_session() {
    let folder = Folder::new();
    let mut csv = String::from("node,session,run,started,elapsed_s\n");
    for (node, run) in (0..24).flat_map(|node| (0..7).map(move |run| (node, run))) {
        let slow = if node == 3 {
            1.2
        } else if node == 15 && run == 3 {
            1.5
        } else {
            1.0
        };
        let seconds = 100.0 * slow * (1.0 + 0.001 * ((node * 5 + run * 3) % 7) as f64);
        let hour = if node < 12 { 6 } else { 18 };
        let _ = writeln!(csv, "n{node:02},SESSION,{run},2026-11-20T{hour:02}:{run:02}:00Z,{seconds}");
    }
    for (name, session) in [("without.csv", ""), ("with.csv", "s9")] {
        let folder = Folder::new();
        let archive = export(&folder, name, &csv.replace("SESSION", session));
        let path = archive.to_str().unwrap();
        let args = ["--since", "2026-11-20T12:00:00Z"];
        let [with, without] = [&args[..], &[&args[..], &["--no-history"]].concat()]
            .map(|args| found(&[&[path], args].concat()));
        assert_eq!(of_nodes(&with).keys().collect::<Vec<_>>(), of_nodes(&without).keys().collect::<Vec<_>>());
        assert_eq!(with["slow_runs"], without["slow_runs"]);
        assert_eq!(with["slow_runs"][0]["node"], "n15");
        assert_eq!(codes(&with).contains(&"cut-session"), !session.is_empty(), "{:?}", codes(&with));
    }
    drop(folder);
}

#[test]
fn exports_at_the_same_time_lose_no_medians() {
    let folder = Folder::new();
    let archive = export(&folder, "first.csv", &fleet(0..1));
    let tables: Vec<PathBuf> =
        (1..4).map(|session| folder.put(&format!("{session}.csv"), fleet(session..session + 1))).collect();
    let export_one = |table: &PathBuf| {
        command(&["export", table.to_str().unwrap(), "-o", archive.to_str().unwrap()]).spawn().unwrap()
    };
    let running: Vec<_> = tables.iter().map(export_one).collect();
    running.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    export(&folder, "last.csv", &fleet(4..5));
    assert_eq!(content(&archive.join(MEDIANS_FOLDER)).len(), 5 * 12);
    assert!(
        !codes(&found(&[archive.to_str().unwrap(), "--since", "2026-10-29"])).contains(&"medians-behind")
    );
}

/// An archive without medians, and one that lost a part of them.
#[test]
fn missing_medians_are_told() {
    let folder = Folder::new();
    let archive = export(&folder, "all.csv", &fleet(0..SESSIONS));
    let (parent, medians) = (folder.path().join("parent"), MEDIANS_FOLDER);
    std::fs::create_dir(&parent).unwrap();
    let below = parent.join("archive");
    std::fs::rename(&archive, &below).unwrap();
    let since = || found(&[parent.to_str().unwrap(), "--since", "2026-11-08"]);
    assert_eq!(of_nodes(&since())["n03"]["history"]["sessions"], 6, "an archive in a folder");
    std::fs::remove_dir_all(below.join(medians).join("month=2026-10")).unwrap();
    assert!(codes(&since()).contains(&"medians-behind"));
    std::fs::remove_dir_all(below.join(medians)).unwrap();
    assert!(codes(&since()).contains(&"medians-behind"));
    let again = report(&[
        "export",
        folder.path().join("all.csv").to_str().unwrap(),
        "-o",
        below.to_str().unwrap(),
        "--since",
        "2026-11-08",
    ]);
    assert!(out(&again).starts_with("0 rows added"), "{}", err(&again));
    assert!(!codes(&since()).contains(&"medians-behind"));
}

fn table_of(folder: &Folder) -> PathBuf {
    folder.path().join("all.csv")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Median, deviation, number and first start of all runs of a node in a session.
    #[test]
    fn medians_are_those_of_the_runs(
        runs in proptest::collection::vec((0..3usize, 0..4usize, 1..100_000u32, 0..60u32), 1..80),
        first in 0..80usize
    ) {
        let header = "node,session,run,started,elapsed_s\n";
        let row = |(run, (node, session, ms, minute)): (usize, &(usize, usize, u32, u32))| {
            let session_name = if *session == 3 { String::new() } else { format!("s{session}") };
            format!("n{node},{session_name},{run},2026-1{}-28T23:{minute:02}:00Z,{:.3}\n", session % 2, f64::from(*ms) / 1000.0)
        };
        let rows: Vec<String> = runs.iter().enumerate().map(row).collect();
        let (early, late) = rows.split_at(first.min(rows.len()));
        let folder = Folder::new();
        let parts = [early, late].into_iter().filter(|part| !part.is_empty()).enumerate();
        let archive = parts.map(|(at, part)| export(&folder, &format!("{at}.csv"), &format!("{header}{}", part.concat()))).last();
        let found = content(&archive.unwrap().join(MEDIANS_FOLDER));
        let mut expected: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
        for (node, session, ms, _) in &runs {
            let session = if *session == 3 { String::new() } else { format!("s{session}") };
            expected.entry((format!("n{node}"), session)).or_default().push(f64::from(*ms) / 1000.0);
        }
        prop_assert_eq!(found.len(), expected.len());
        for (key, mut times) in expected {
            let (found, deviation, count, _) = found[&key];
            let middle = median(&mut times);
            prop_assert!((found - middle).abs() <= 1e-12 * middle && count == times.len() as u32);
            let mut distances: Vec<f64> = times.iter().map(|time| (time - middle).abs()).collect();
            prop_assert!((deviation - median(&mut distances)).abs() <= 1e-6 * middle);
        }
    }
}
