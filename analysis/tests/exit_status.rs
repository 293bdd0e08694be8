//! What scripts and monitoring read: exit statuses, and the line of a Nagios plugin.

mod common;

use common::*;
use std::fmt::Write;
use std::path::Path;

/// One session of seven runs on 12 nodes; the first one has this name and is slower by this factor.
fn fleet(first: &str, slower: f64) -> String {
    let mut csv = String::from("node,run,elapsed_s\n");
    for (node, run) in (0..12).flat_map(|node| (0..7).map(move |run| (node, run))) {
        let (name, factor) =
            if node == 0 { (first.to_owned(), slower) } else { (format!("n{node:02}"), 1.0) };
        let seconds = 100.0 * factor * (1.0 + 0.002 * ((node * 7 + run * 3) % 11) as f64);
        let _ = writeln!(csv, "{name},{run},{seconds:.4}");
    }
    csv
}

fn nagios(path: &Path, args: &[&str]) -> (i32, String) {
    let output = report(&[&["report", path.to_str().unwrap(), "--exit", "nagios"], args].concat());
    (output.status.code().unwrap(), out(&output))
}

#[test]
fn a_plugin_has_one_line_and_four_statuses() {
    let folder = Folder::new();
    let slow = folder.put("slow.csv", fleet("n|00", 1.08));
    let (status, text) = nagios(&slow, &[]);
    let line = text.lines().next().unwrap();
    assert!(
        status == 2 && line.starts_with("PMMPI CRITICAL - 1 of 12 nodes is slower than its class: n/00 +"),
        "{text}"
    );
    // What follows this character is performance data.
    assert!(!line.contains('|'), "{line}");
    let healthy = folder.put("healthy.csv", fleet("n00", 1.0));
    let (status, text) = nagios(&healthy, &[]);
    assert!(status == 0 && text.starts_with("PMMPI OK - none of 12 nodes"), "{text}");
}

/// The line always goes to stdout, and the report to a file if it has another format.
#[test]
fn the_line_is_never_lost() {
    let folder = Folder::new();
    let slow = folder.put("slow.csv", fleet("n00", 1.08));
    let file = folder.path().join("report.json");
    let (status, text) = nagios(&slow, &["--format", "json", "-o", file.to_str().unwrap()]);
    assert!(status == 2 && text.starts_with("PMMPI CRITICAL - ") && text.lines().count() == 1, "{text}");
    let found: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_valid("report", &found);
    for wrong in [
        &["--format", "json"][..],
        &["--bogus"],
        &["--delta", "x"],
        &["--resets", "/nonexistent"],
        &["-o", "/nonexistent/report.txt"],
    ] {
        let (status, text) = nagios(&slow, wrong);
        assert!(
            status == 3 && text.starts_with("PMMPI UNKNOWN - ") && text.lines().count() == 1,
            "{wrong:?} {text}"
        );
    }
    let (status, text) = nagios(Path::new("--exit=nagios"), &["--bogus"]);
    assert!(status == 3 && text.starts_with("PMMPI UNKNOWN - "), "{text}");
}

/// A healthy part of the input says nothing about the other part.
#[test]
fn unusable_input_is_not_ok() {
    let folder = Folder::new();
    folder.put("healthy.csv", fleet("n00", 1.0));
    folder.put("garbage.pmr", "garbage");
    let (status, text) = nagios(folder.path(), &[]);
    assert!(
        status == 3 && text.lines().next().unwrap().ends_with("; pmmpi could not use some input"),
        "{text}"
    );
    folder.put("slow.csv", fleet("n00", 1.08).replace("n00,", "m00,"));
    assert_eq!(nagios(folder.path(), &[]).0, 2, "a slow node is more urgent");
}

/// A node of which all rows are rejected does not vanish.
#[test]
fn rejected_nodes_are_counted() {
    let folder = Folder::new();
    let file = folder.put("f.csv", fleet("n00", 1.0) + "n12,1,nan\nn13,1,-5\nn14,1\n");
    let path = file.to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    assert_eq!((&found["accounted"]["unmeasured"], &found["accounted"]["judged"]), (&2.into(), &12.into()));
    let text = out(&report(&["report", path]));
    assert!(text.contains("14 nodes: 12 judged; 2 without a time: n12, n13"), "{text}");
    assert_eq!(report(&["report", path, "--fail-on", "unjudged"]).status.code(), Some(4));
}

/// Seven runs of one node.
fn single(slower: f64, first_run: usize) -> String {
    let row = |run: usize| {
        format!("n00,{},{:.4}\n", first_run + run, 100.0 * slower * (1.0 + 0.0008 * ((run * 5) % 7) as f64))
    };
    "node,run,elapsed_s\n".to_owned() + &(0..7).map(row).collect::<String>()
}

/// One node has no others to be compared with: the report says which command compares it with a baseline, and that command
/// finds a slower run.
#[test]
fn a_single_node_is_compared_with_a_baseline() {
    let folder = Folder::new();
    let baseline = folder.put("baseline.csv", single(1.0, 0));
    let output = report(&["report", baseline.to_str().unwrap(), "--fail-on", "slow", "--delta", "4"]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(
        err(&output),
        "pmmpi: --fail-on slow: the report judged no node, because no node was measured together with another node \
         of its class. To compare nodes with their own earlier runs, use: pmmpi compare EARLIER NEW --fail-on slower:4%\n"
    );
    for (slower, status) in [(1.08, 3), (1.0, 0)] {
        let new = folder.put("new.csv", single(slower, 7));
        let [baseline, new] = [&baseline, &new].map(|path| path.to_str().unwrap());
        let compared = report(&["compare", baseline, new, "--fail-on", "slower:4%"]);
        assert_eq!(compared.status.code(), Some(status), "{}", out(&compared));
    }
    // Something was judged, or nothing was asked: no advice.
    let healthy = folder.put("healthy.csv", fleet("n00", 1.0));
    for (path, args) in
        [(&healthy, &["--fail-on", "slow"][..]), (&baseline, &["--fail-on", "failed"]), (&baseline, &[])]
    {
        let output = report(&[&["report", path.to_str().unwrap()], args].concat());
        assert_eq!(err(&output), "", "{args:?}");
    }
}

/// Nodes with too few runs are not judged: a check cannot say that none is slow.
#[test]
fn too_few_runs_are_no_success() {
    let folder = Folder::new();
    let few: Vec<String> = fleet("n00", 1.0)
        .lines()
        .filter(|line| !line.contains(",run,") || line.starts_with("node"))
        .filter(|line| line.starts_with("node") || line.split(',').nth(1).unwrap() < "3")
        .map(str::to_owned)
        .collect();
    let file = folder.put("f.csv", few.join("\n"));
    let path = file.to_str().unwrap();
    let output = report(&["report", path, "--fail-on", "slow"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        out(&output)
            .contains("no node looks slower than its class, but all compared nodes have too few runs"),
        "{}",
        out(&output)
    );
    assert_eq!(report(&["report", path, "--fail-on", "slow", "--min-runs", "3"]).status.code(), Some(0));
    assert_eq!(nagios(&file, &[]).0, 3);
}
