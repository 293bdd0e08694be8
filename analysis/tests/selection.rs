//! `--since`, `--until`, `--node`, `--class` and `--where`: which runs count.

mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Three nodes, sessions on the 1st, 11th and 21st, classes small and large, three runs of each, also by two libraries.
fn csv() -> String {
    let mut csv = String::from("node,run,session,started,class,blas,elapsed_s\n");
    for (node, day, class, run) in (1..4).flat_map(|node| {
        [1, 11, 21].into_iter().flat_map(move |day| {
            ["small", "small, large"]
                .into_iter()
                .flat_map(move |class| (0..4).map(move |run| (node, day, class, run)))
        })
    }) {
        let blas = ["mkl", "openblas"][run % 2];
        let seconds = 10.0 + node as f64 * 0.01 + run as f64 * 0.001;
        let _ =
            writeln!(csv, "n{node},{run},s{day},2026-11-{day:02}T08:0{run}:00Z,\"{class}\",{blas},{seconds}");
    }
    csv
}

fn selected(path: &Path, args: &[&str]) -> Value {
    let args = [&["report", path.to_str().unwrap(), "--format", "json"], args].concat();
    let output = report(&args);
    assert!(output.status.success(), "{args:?}: {}", err(&output));
    let report = json(&output);
    assert_valid("report", &report);
    report
}

/// Node, class, session and number of runs of each row of the report.
fn nodes(report: &Value) -> Vec<String> {
    let nodes = report["nodes"].as_array().unwrap().iter();
    let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
    let mut nodes: Vec<String> = nodes
        .map(|node| {
            format!(
                "{} {} {} {}",
                text(node, "node"),
                text(node, "class"),
                text(node, "session"),
                node["runs"]
            )
        })
        .collect();
    nodes.sort();
    nodes
}

fn files(path: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// From a CSV file and from an archive.
#[test]
fn the_same_runs_are_selected_from_every_format() {
    let folder = Folder::new();
    let table = folder.put("all.csv", csv());
    let archive = folder.path().join("archive");
    let exported = report(&[
        "export",
        table.to_str().unwrap(),
        "-o",
        archive.to_str().unwrap(),
        "--class-by",
        "class,blas",
    ]);
    assert!(exported.status.success(), "{}", err(&exported));
    for (args, expected) in [
        (
            &["--since", "2026-11-21", "--no-history"][..],
            &[
                "n1 small s21 4",
                "n1 small, large s21 4",
                "n2 small s21 4",
                "n2 small, large s21 4",
                "n3 small s21 4",
                "n3 small, large s21 4",
            ][..],
        ),
        (
            &["--until", "2026-11-01T08:02:00Z", "--node", "n[2-3]", "--class", "small"],
            &["n2 small s1 2", "n3 small s1 2"],
        ),
        (&["--class", "large", "--node", "n1"], &["n1 small, large s21 4"]),
        (&["--where", "session=s11", "--class", "small", "--node", "n1,n7"], &["n1 small s11 4"]),
    ] {
        for path in [&table, &archive] {
            let args = [args, &["--class-by", "class"]].concat();
            assert_eq!(nodes(&selected(path, &args)), expected, "{args:?} {}", path.display());
        }
    }
    for path in [&table, &archive] {
        let of = selected(
            path,
            &["--where", "blas=mkl", "--class", "small", "--since", "2026-11-21", "--no-history"],
        );
        assert_eq!(nodes(&of), ["n1", "n2", "n3"].map(|node| format!("{node} small s21 2")));
        assert_eq!(of["selected"], json!({"since": "2026-11-21", "class": "small", "where": ["blas=mkl"]}),);
        assert!(selected(path, &[]).get("selected").is_none());
    }
}

/// Also a fact that is a column here; and a label that nothing has is told.
#[test]
fn a_selection_does_not_change_classes() {
    let folder = Folder::new();
    let table = folder.put("all.csv", csv().replace("blas", "kernel"));
    let of = selected(&table, &["--where", "kernel=mkl", "--class", "small"]);
    assert_eq!(nodes(&of), ["n1", "n2", "n3"].map(|node| format!("{node} small s21 2")));
    let output = report(&["report", table.to_str().unwrap(), "--where", "blas="]);
    assert!(out(&output).contains("unknown-label"), "{}", out(&output));
}

#[test]
fn every_format_says_what_was_selected() {
    let folder = Folder::new();
    let table = folder.put("all.csv", csv());
    for (format, expected) in [
        ("text", "\nselected: --until 2026-11-05 --node n[1-3] --where blas=mkl\n"),
        ("md", "Selected: `--until 2026-11-05 --node n[1-3] --where blas=mkl`"),
        ("html", "<p>Selected: <code>--until 2026-11-05 --node n[1-3] --where blas=mkl</code></p>"),
    ] {
        let args = ["--until", "2026-11-05", "--node", "n1,n2,n3", "--where", "blas=mkl", "--format", format];
        let text = out(&report(&[&["report", table.to_str().unwrap()], &args[..]].concat()));
        assert!(text.contains(expected), "{format}: {text}");
    }
}

#[test]
fn nothing_selected_is_an_error() {
    let folder = Folder::new();
    let table = folder.put("all.csv", csv());
    let table = table.to_str().unwrap();
    for (command, args) in [
        ("report", &["--since", "2027-01-01"][..]),
        ("report", &["--node", "m[1-9]"]),
        ("compare", &["--class", "huge"]),
    ] {
        let paths = if command == "compare" { vec![table, table] } else { vec![table] };
        let output = report(&[&[command], &paths[..], args].concat());
        let said = err(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("72 runs read, none with {}", args.join(" "))), "{said}");
    }
    let archive = folder.path().join("archive");
    let output = report(&["export", table, "-o", archive.to_str().unwrap(), "--where", "blas=goto"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    for (args, expected) in [
        (["--since", "yesterday"], "expected 2026-11-21 or"),
        (["--node", "n[1-"], "do not match"),
        (["--where", "blas"], "expected label=value"),
    ] {
        let output = report(&[&["report", table], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
}

/// A wrong name in a list of nodes is no silent loss of a node.
#[test]
fn selected_nodes_without_runs_are_named() {
    let folder = Folder::new();
    let path = folder.put("f.csv", csv());
    let warnings = |args: &[&str]| selected(&path, args)["warnings"].to_string();
    let named = warnings(&["--node", "n1,n[98-99]"]);
    assert!(named.contains("--node names 2 nodes without a selected run: n98, n99"), "{named}");
    assert!(!warnings(&["--node", "n1,n2"]).contains("unknown-node"));
}

/// Nothing tells when they ran.
#[test]
fn undated_runs_are_left_out_with_a_warning() {
    let folder = Folder::new();
    let rows = "node,run,started,elapsed_s\nn1,1,2026-11-01T08:00:00Z,1\nn1,2,,1\nn2,1,,1\n";
    let of = selected(&folder.put("all.csv", rows), &["--since", "2026-10-01"]);
    assert_eq!(nodes(&of), ["n1 undeclared  1"]);
    let told = "--since and --until leave out 2 runs whose start is not known";
    assert_eq!(undated(&of), [told]);
    // The medians of an archive are no runs.
    let archive = folder.path().join("archive");
    let [table, to] = [folder.path().join("all.csv"), archive.clone()].map(|path| path.display().to_string());
    assert!(report(&["export", &table, "-o", &to]).status.success());
    let of = selected(&archive, &["--since", "2026-10-01"]);
    assert_eq!((undated(&of), nodes(&of)), (vec![told], vec!["n1 undeclared  1".to_owned()]));
}

/// The messages of the warning.
fn undated(report: &Value) -> Vec<&str> {
    let warnings = report["warnings"].as_array().unwrap().iter();
    let undated = warnings.filter(|warning| warning["code"] == "undated-runs");
    undated.map(|warning| warning["message"].as_str().unwrap()).collect()
}

/// Also a run that failed and so has no time on any node.
#[test]
fn run_files_are_selected_by_start_node_and_label() {
    let folder = Folder::new();
    for (id, day, label) in [("a", 0, "O2"), ("b", 1, "O3"), ("c", 2, "O3")] {
        let mut run =
            runs::run(id, &[("n1", [0, 10, 1_000_010, 1_000_020]), ("n2", [0, 10, 1_000_010, 1_000_020])]);
        run.header.labels = vec![("build".into(), label.into())];
        run.header.started_unix_ns += day * 86_400_000_000_000;
        if id == "c" {
            run.ranks.iter_mut().for_each(|rank| rank.end = pmmpi::record::End::Signaled(9));
        }
        folder.write(&run);
    }
    let ids = |args: &[&str]| {
        let of = selected(folder.path(), args);
        of["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["run_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["a", "b", "c"]);
    // 1,700,000,000 s is 2023-11-14T22:13:20Z.
    assert_eq!(ids(&["--since", "2023-11-15"]), ["b", "c"]);
    assert_eq!(ids(&["--until", "2023-11-15T22:13:20Z"]), ["a"]);
    assert_eq!(ids(&["--where", "build=O3"]), ["b", "c"]);
    assert_eq!(ids(&["--where", "build=O3", "--until", "2023-11-16"]), ["b"]);
    assert_eq!(ids(&["--class", "build=O2"]), ["a"]);
    assert_eq!(ids(&["--class", "build=O3", "--where", "kernel=6.1.0"]), ["b", "c"]);
    let of_other = report(&["report", folder.path().to_str().unwrap(), "--where", "kernel=6.2"]);
    assert_eq!(of_other.status.code(), Some(2));
    assert!(err(&of_other).contains("3 runs read, none with --where kernel=6.2"), "{}", err(&of_other));
    let of_node = selected(folder.path(), &["--node", "n2", "--where", "build=O2"]);
    assert_eq!(of_node["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(of_node["accounted"]["alone"], 1);
}

/// Statistics of row groups show that a month has no run of the selection: its values may be damaged.
#[test]
fn row_groups_without_selected_runs_are_not_read() {
    let folder = Folder::new();
    let archive = folder.path().join("archive");
    for (name, month) in [("old.csv", "10"), ("new.csv", "11")] {
        let days = [1, 11, 21];
        let renamed = |csv: String, day| csv.replace(&format!(",s{day},"), &format!(",{month}s{day},"));
        let csv = days.into_iter().fold(csv().replace("2026-11-", &format!("2026-{month}-")), renamed);
        let table = folder.put(name, csv);
        let output = report(&[
            "export",
            table.to_str().unwrap(),
            "-o",
            archive.to_str().unwrap(),
            "--class-by",
            "class,blas",
        ]);
        assert!(output.status.success(), "{}", err(&output));
    }
    let old = files(&archive.join("month=2026-10")).remove(0);
    let mut bytes = std::fs::read(&old).unwrap();
    bytes[8..600].fill(0xaa); // the first columns; the footer stays
    std::fs::write(&old, bytes).unwrap();
    let path = archive.to_str().unwrap();
    assert_eq!(report(&["report", path]).status.code(), Some(1));
    for args in
        [&["--since", "2026-11-01"][..], &["--since", "2026-11-01", "--until", "2026-11-15", "--no-history"]]
    {
        let output = report(&[&["report", path], args].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
    }
}

#[test]
fn export_adds_only_what_is_selected() {
    let folder = Folder::new();
    let table = folder.put("all.csv", csv());
    let archive = folder.path().join("archive");
    let [table, path] = [&table, &archive].map(|path| path.to_str().unwrap());
    for (args, expected) in [
        (&["--node", "n1", "--since", "2026-11-21"][..], "8 rows added"),
        (&["--node", "n1"], "16 rows added"),
        (&[], "48 rows added"),
        (&["--until", "2026-11-21"], "0 rows added"),
    ] {
        let output = report(&[&["export", table, "-o", path], args].concat());
        assert!(out(&output).starts_with(expected), "{args:?}: {} {}", out(&output), err(&output));
    }
    assert_eq!(nodes(&selected(&archive, &[])), nodes(&selected(Path::new(table), &[])));
}
