//! No node of the input is lost without a word: odd nodes, nodes alone in their class, missing nodes.

mod common;

use common::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Rows of a CSV; `memory` and `runs` of a node in a session.
fn csv(
    nodes: usize,
    sessions: usize,
    memory: impl Fn(usize, usize) -> u32,
    runs: impl Fn(usize, usize) -> usize,
) -> String {
    let mut csv = String::from("node,session,run,memory,elapsed_s\n");
    for (node, session) in (0..nodes).flat_map(|node| (0..sessions).map(move |session| (node, session))) {
        for run in 0..runs(node, session) {
            let memory = memory(node, session);
            let slower = if memory == 96 { 1.08 } else { 1.0 };
            let place = (node * 7 + run * 3 + session) % 11;
            let seconds = 100.0 * slower * (1.0 + 0.002 * place as f64 + 0.004 * (node % 5) as f64);
            let _ = writeln!(csv, "n{node:02},s{session},{run},{memory},{seconds:.4}");
        }
    }
    csv
}

/// n12 has lost a DIMM, n05 was not measured in the latest session, n06 only twice, and n23 has another memory size and
/// did other work.
#[test]
fn every_node_is_accounted_for() {
    let folder = Folder::new();
    let memory = |node: usize, session: usize| if node == 12 && session == 1 { 96 } else { 128 };
    let runs = |node: usize, session: usize| match (node, session) {
        (5, 1) => 0,
        (6, 1) => 2,
        _ => 7,
    };
    let file = folder.put("f.csv", csv(24, 2, memory, runs));
    let path = file.to_str().unwrap();
    let found = json(&report(&["report", path, "--class-by", "memory", "--format", "json"]));
    assert_valid("report", &found);
    let accounted = &found["accounted"];
    assert_eq!(
        accounted,
        &json!({ "judged": 21, "odd": 1, "alone": 0, "few_runs": 1, "missing": 1, "gone": 0, "own_history": 0, "wrong": 0, "unmeasured": 0 })
    );
    let nodes = found["nodes"].as_array().unwrap();
    let odd: Vec<&Value> = nodes.iter().filter(|node| node["odd"] != json!([])).collect();
    assert_eq!(odd.len(), 1);
    assert_eq!(odd[0]["odd"], json!([{ "key": "memory", "value": "96", "class_value": "128" }]));
    assert!(odd[0]["verdict"].is_null() && odd[0]["as_member_of"]["class"] == "memory=128");
    let slowdown = odd[0]["as_member_of"]["slowdown"].as_f64().unwrap();
    assert!((slowdown - 0.08).abs() < 0.02 && odd[0]["as_member_of"]["verdict"] == "SLOW", "{}", odd[0]);
    // The same advice in each format.
    assert_eq!(odd[0]["as_member_of"]["suggests_drain"], true);
    let rows = out(&report(&["report", path, "--class-by", "memory", "--format", "csv"]));
    let to_drain: Vec<&str> = rows.lines().filter(|row| row.contains(",true,")).collect();
    assert!(to_drain.len() == 1 && to_drain[0].starts_with("n12,memory=96,"), "{to_drain:?}");
    let text = out(&report(&["report", path, "--class-by", "memory"]));
    let first: Vec<&str> = text.lines().take(24).collect();
    for line in [
        "apart from the odd node below, no node stands out from its class",
        "n12 is odd: memory is 96, its peers have 128; ",
        "24 nodes: 21 judged; 1 odd: n12; 1 with too few runs: n06; 1 not in the latest session: n05",
        "* compared with the class that this node would belong to",
    ] {
        assert!(first.iter().any(|found| found.starts_with(line)), "{line}: {text}");
    }
    for (fail_on, status) in [
        ("slow", 3),
        ("odd", 3),
        ("missing", 3),
        ("odd,missing", 3),
        ("wrong", 0),
        ("failed", 0),
        ("unjudged", 4),
    ] {
        let output = report(&["report", path, "--class-by", "memory", "--fail-on", fail_on]);
        assert_eq!(output.status.code(), Some(status), "{fail_on}");
    }
    let monitored = report(&["report", path, "--class-by", "memory", "--exit", "nagios"]);
    assert_eq!(monitored.status.code(), Some(2));
    assert!(out(&monitored).starts_with("PMMPI CRITICAL - "), "{}", out(&monitored));
}

/// The nodes to avoid, as Slurm reads them, with reasons on stderr.
#[test]
fn slow_nodes_can_be_excluded() {
    let folder = Folder::new();
    let rows = csv(24, 1, |node, _| if (7..10).contains(&node) || node == 12 { 96 } else { 128 }, |_, _| 7);
    let file = folder.put("f.csv", rows);
    let path = file.to_str().unwrap();
    let list = report(&["report", path, "--format", "exclude"]);
    assert_eq!(out(&list), "n[07-09,12]\n", "{}", err(&list));
    assert_eq!(out(&report(&["report", path, "--format", "nodefile"])), "n07\nn08\nn09\nn12\n");
    let reason = "pmmpi: n08: SLOW: +8.";
    assert!(err(&list).lines().any(|line| line.starts_with(reason)), "{}", err(&list));
    let healthy = folder.put("healthy.csv", csv(24, 1, |_, _| 128, |_, _| 7));
    let none = report(&["report", healthy.to_str().unwrap(), "--format", "exclude"]);
    assert!(out(&none).is_empty() && err(&none).contains("no node to avoid"), "{}", err(&none));
    // Slurm's own program expands the list, without a cluster.
    let conf = folder.put("slurm.conf", "ClusterName=test\nSlurmctldHost=localhost\n");
    let hosts = std::process::Command::new("scontrol")
        .env("SLURM_CONF", conf)
        .args(["show", "hostnames", out(&list).trim()])
        .output();
    if let Ok(hosts) = hosts {
        assert_eq!(String::from_utf8_lossy(&hosts.stdout), "n07\nn08\nn09\nn12\n");
    }
}

/// Without enough peers, or with other work, a node is alone and not odd.
#[test]
fn a_node_without_peers_is_alone() {
    let folder = Folder::new();
    let memory = |node: usize, _: usize| if node == 0 { 96 } else { 128 };
    let few = folder.put("few.csv", csv(5, 1, memory, |_, _| 7));
    let of = |path: &std::path::Path, args: &[&str]| {
        let path = path.to_str().unwrap();
        json(&report(&[&["report", path, "--format", "json"], args].concat()))["accounted"].clone()
    };
    assert_eq!(of(&few, &["--class-by", "memory"])["alone"], 1);
    assert_eq!(of(&few, &["--class-by", "none"])["judged"], 5);
    let many = csv(6, 1, memory, |_, _| 7);
    let enough = folder.put("enough.csv", &many);
    assert_eq!(of(&enough, &["--class-by", "memory"])["odd"], 1);
    let mut work = String::new();
    for (number, line) in many.lines().enumerate() {
        let label = if number == 0 {
            "app"
        } else if line.starts_with("n00") {
            "hpl"
        } else {
            "stream"
        };
        let _ = writeln!(work, "{line},{label}");
    }
    let work = folder.put("work.csv", work);
    let of_work = of(&work, &["--class-by", "memory,app"]);
    assert_eq!((&of_work["odd"], &of_work["alone"]), (&json!(0), &json!(1)));
}

/// A single node cannot be compared: a check that says "no slow node" would be wrong.
#[test]
fn nothing_judged_is_no_success() {
    let folder = Folder::new();
    let file = folder.put("f.csv", csv(1, 1, |_, _| 128, |_, _| 7));
    let path = file.to_str().unwrap();
    assert_eq!(report(&["report", path]).status.code(), Some(0));
    for fail_on in ["slow", "suspect", "unjudged"] {
        assert_eq!(report(&["report", path, "--fail-on", fail_on]).status.code(), Some(4), "{fail_on}");
    }
    assert_eq!(report(&["report", path, "--exit", "nagios"]).status.code(), Some(3));
    let missing = report(&["report", "/nonexistent", "--exit", "nagios"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(out(&missing).starts_with("PMMPI UNKNOWN - "), "{}", out(&missing));
}

#[test]
fn a_key_that_no_file_has_is_told() {
    let folder = Folder::new();
    let file = folder.put("f.csv", csv(3, 1, |_, _| 128, |_, _| 5));
    let output = report(&["report", file.to_str().unwrap(), "--class-by", "memory,kernel"]);
    let text = out(&output);
    assert!(text.contains("--class-by kernel: ") && !text.contains("--class-by memory: "), "{text}");
}

/// Who types the default keys asks for the columns with these names, and for the columns of further facts.
#[test]
fn typed_default_keys_are_columns_of_a_csv() {
    const BY_DEFAULT: &str = "cpu,microcode,memory,kernel,command,ranks,labels,class";
    let folder = Folder::new();
    let mut rows = String::from("node,run,elapsed_s,memory,dimms\n");
    for (node, run) in (0..8).flat_map(|node| (0..5).map(move |run| (node, run))) {
        let _ = writeln!(rows, "n{node},{run},{}.5,{},{}", 100 + run, 64 << (node % 2), 4 + node / 4);
    }
    let file = folder.put("f.csv", rows);
    let path = file.to_str().unwrap();
    let classes = |by: &[&str]| {
        let found = json(&report(&[&["report", path, "--format", "json"], by].concat()));
        let mut classes: Vec<String> =
            array(&found, "classes").map(|class| class["class"].as_str().unwrap().to_owned()).collect();
        classes.sort();
        classes
    };
    assert_eq!(classes(&[]).len(), 1);
    assert_eq!(classes(&["--class-by", BY_DEFAULT]), ["memory=128", "memory=64"]);
    assert_eq!(
        classes(&["--class-by", &format!("{BY_DEFAULT},dimms")]),
        ["memory=128, dimms=4", "memory=128, dimms=5", "memory=64, dimms=4", "memory=64, dimms=5"]
    );
}

/// A node whose result is wrong has no time, but it does not vanish. HPL says FAILED.
#[test]
fn a_wrong_result_is_no_time() {
    let folder = Folder::new();
    let good = std::fs::read_to_string(fixture("hpl/n01/HPL.out")).unwrap();
    let bad = good.replace("PASSED", "FAILED");
    assert_ne!(good, bad);
    for node in 0..6 {
        folder.put(&format!("n{node}/HPL.out"), if node == 3 { &bad } else { &good });
    }
    let path = folder.path().to_str().unwrap();
    let args = ["report", path, "--path-pattern", "{node}/HPL.out"];
    let found = json(&report(&[&args[..], &["--format", "json"]].concat()));
    assert_valid("report", &found);
    assert_eq!((&found["accounted"]["wrong"], &found["wrong"][0]["node"]), (&json!(1), &json!("n3")));
    let sum: u64 = found["accounted"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, 6);
    let text = out(&report(&args));
    assert!(text.contains("\nn3 computed ") && text.contains("FAILED"), "{text}");
    let status = |what: &str| report(&[&args[..], &["--fail-on", what]].concat()).status.code();
    // One run of each node is too few to judge it.
    assert_eq!((status("wrong"), status("slow"), status("odd")), (Some(3), Some(4), Some(1)));
    assert_eq!(report(&[&args[..], &["--exit", "nagios"]].concat()).status.code(), Some(2));
}

/// The path of HPL's output gives the node. If the paths differ in another part, too, several nodes may look like one.
#[test]
fn a_part_of_a_path_that_nothing_read_is_told() {
    let folder = Folder::new();
    let output = std::fs::read_to_string(fixture("hpl/n01/HPL.out")).unwrap();
    for (node, run) in (0..3).flat_map(|node| (0..5).map(move |run| (node, run))) {
        folder.put(&format!("hpl/cn{node}/run{run}/HPL.out"), &output);
    }
    let path = folder.path().to_str().unwrap();
    let text = out(&report(&["report", path]));
    let hint = "if this part is the node, use --path-pattern '{node}/{run}/HPL.out' [unread-path]";
    assert!(text.contains(hint) && text.contains(": node run0)"), "{text}");
    let found =
        json(&report(&["report", path, "--path-pattern", "{node}/{run}/HPL.out", "--format", "json"]));
    let codes: Vec<&Value> = array(&found, "warnings").map(|warning| &warning["code"]).collect();
    assert!(!codes.contains(&&json!("unread-path")), "{codes:?}");
    let nodes: BTreeSet<&str> = array(&found, "nodes").map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, BTreeSet::from(["cn0", "cn1", "cn2"]));
}

/// A node that is far too fast is named, with the usual reasons.
#[test]
fn a_node_that_is_too_fast_is_named() {
    let folder = Folder::new();
    let rows = csv(24, 1, |node, _| if node == 7 { 96 } else { 128 }, |_, _| 7);
    // The factor of the lost DIMM makes this node the only one that is not slowed.
    let faster: Vec<String> = rows
        .lines()
        .map(|line| match line.rsplit_once(',') {
            Some((head, seconds)) if line.starts_with("n07") => {
                format!("{head},{:.4}", seconds.parse::<f64>().unwrap() / 1.2)
            }
            _ => line.to_owned(),
        })
        .collect();
    let file = folder.put("f.csv", faster.join("\n"));
    let path = file.to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &found);
    let fast: Vec<&Value> = array(&found, "nodes").filter(|node| node["verdict"] == "FAST").collect();
    assert_eq!(fast.iter().map(|node| &node["node"]).collect::<Vec<_>>(), ["n07"]);
    let text = out(&report(&["report", path]));
    assert!(
        text.contains(
            "1 of 24 nodes is much faster than its class (check its results and its configuration): n07"
        ),
        "{text}"
    );
    assert_eq!(report(&["report", path, "--fail-on", "slow"]).status.code(), Some(0));
}

/// Columns with text that divide the runs into kinds are named, unless they make up classes.
#[test]
fn columns_that_nothing_uses_are_named() {
    let folder = Folder::new();
    let mut rows = String::new();
    for (number, line) in csv(6, 1, |_, _| 128, |_, _| 6).lines().enumerate() {
        let (blas, remark, nb) = match number {
            0 => ("blas".to_owned(), "remark".to_owned(), "nb".to_owned()),
            _ => (["mkl", "openblas"][number % 2].to_owned(), format!("remark {number}"), number.to_string()),
        };
        let _ = writeln!(rows, "{line},{blas},{remark},{nb}");
    }
    let file = folder.put("f.csv", rows);
    let path = file.to_str().unwrap();
    let text = out(&report(&["report", path]));
    let warning = "warning: the report does not use these columns: blas (mkl, openblas); runs with different values are in one \
                   class [unused-columns]";
    assert!(text.contains(warning), "{text}");
    let text = out(&report(&["report", path, "--class-by", "blas"]));
    assert!(!text.contains("unused-columns") && text.contains("class 2: blas=openblas"), "{text}");
}

/// A report that compares no nodes accounts for them, too.
#[test]
fn nodes_that_are_not_compared_are_accounted_for() {
    let folder = Folder::new();
    let file = folder.put("f.csv", csv(3, 1, |node, _| 64 << node, |_, _| 7));
    let text = out(&report(&["report", file.to_str().unwrap(), "--class-by", "memory"]));
    assert_eq!(
        text.lines().nth(1),
        Some("3 nodes: 0 judged; 3 alone in a class (not judged): n00, n01, n02"),
        "{text}"
    );
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().unwrap().iter()
}

fn fixture(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The groups hold each node of the input once, whatever the input is.
    #[test]
    fn no_node_is_lost(
        rows in proptest::collection::vec((0..9usize, 0..4usize, 0..4usize, 0..3u32, 1..9u32), 1..120)
    ) {
        let folder = Folder::new();
        let mut csv = String::from("node,session,run,memory,elapsed_s\n");
        for (node, session, run, memory, seconds) in &rows {
            let _ = writeln!(csv, "n{node},s{session},{run},{memory},{seconds}");
        }
        let file = folder.put("f.csv", csv);
        let path = file.to_str().unwrap();
        for by in ["none", "memory"] {
            let found = json(&report(&["report", path, "--class-by", by, "--format", "json"]));
            let sum: u64 = found["accounted"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
            let hosts: BTreeSet<usize> = rows.iter().map(|row| row.0).collect();
            prop_assert_eq!(sum, hosts.len() as u64, "{}", found["accounted"]);
        }
    }
}
