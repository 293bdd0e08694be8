//! `pmmpi report` on many nodes: which nodes and runs are slow, since when, and what scripts see.

mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

#[path = "verdicts/results_of_others.rs"]
mod results_of_others;
#[path = "verdicts/sessions.rs"]
mod sessions;
#[path = "verdicts/suspects.rs"]
mod suspects;

use common::*;
use pmmpi::record::Run;
use runs::run;
use serde_json::{Value, json};

/// Runs with one rank each in a session; `nodes` has the seconds of each node's runs.
fn fleet(session: &str, began_s: i64, nodes: &[(String, Vec<f64>)]) -> Vec<Run> {
    let mut all = Vec::new();
    for (host, times) in nodes {
        for (number, seconds) in times.iter().enumerate() {
            let ns = (seconds * 1e9) as i64;
            let mut run = run(&format!("{session}-{host}-{number}"), &[(host, [0, 0, ns, ns])]);
            run.header.started_unix_ns = began_s * 1_000_000_000;
            if !session.is_empty() {
                run.header.labels = vec![("session".into(), session.into())];
            }
            all.push(run);
        }
    }
    all
}

/// Nodes 0.2 % apart with runs 0.1 % apart, each multiplied by its factor.
fn nodes(count: usize, runs: usize, factor: impl Fn(usize, usize) -> f64) -> Vec<(String, Vec<f64>)> {
    let time = |node: usize, run: usize| {
        (1.0 + 0.002 * ((node * 7) % 11) as f64 / 11.0 + 0.001 * ((run * 5 + node) % 7) as f64 / 7.0)
            * factor(node, run)
    };
    let times = |node: usize| (0..runs).map(|run| time(node, run)).collect();
    (0..count).map(|node| (format!("n{node:03}"), times(node))).collect()
}

fn reported(runs: &[Run], more: &[&str]) -> (Value, i32) {
    let folder = Folder::new();
    runs.iter().for_each(|run| _ = folder.write(run));
    let mut args = vec!["report", folder.path().to_str().unwrap(), "--format", "json"];
    args.extend(more);
    let output = report(&args);
    let report = json(&output);
    assert_valid("report", &report);
    (report, output.status.code().unwrap())
}

fn verdict<'a>(report: &'a Value, node: &str) -> &'a Value {
    let found = report["nodes"].as_array().unwrap().iter().find(|row| row["node"] == node);
    &found.unwrap_or_else(|| panic!("{node}"))["verdict"]
}

fn codes(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect()
}

/// A slow node, and a slow run of another node.
fn one_node_and_one_run(node: usize, run: usize) -> f64 {
    match (node, run) {
        (5, _) => 1.08,
        (9, 3) => 1.2,
        _ => 1.0,
    }
}

#[test]
fn a_slow_node_and_a_slow_run_are_named_and_fail_a_script() {
    let runs = fleet("", 0, &nodes(30, 7, one_node_and_one_run));
    let (report, code) = reported(&runs, &[]);
    assert_eq!(code, 0);
    let worst = &report["nodes"][0];
    assert_eq!(
        (&worst["node"], &worst["verdict"], &worst["suggests_drain"]),
        (&json!("n005"), &json!("SLOW"), &json!(true))
    );
    assert!((worst["slowdown"].as_f64().unwrap() - 0.08).abs() < 0.004, "{worst}");
    assert!(
        worst["slower_by_at_least"].as_f64().unwrap() > 0.07 && worst["p_adjusted"].as_f64().unwrap() < 0.01
    );
    assert_eq!(verdict(&report, "n009"), "OK");
    let slow_runs = report["slow_runs"].as_array().unwrap();
    assert_eq!(slow_runs.len(), 1, "{slow_runs:#?}");
    assert_eq!((&slow_runs[0]["run_id"], &slow_runs[0]["node"]), (&json!("-n009-3"), &json!("n009")));
    for (least, more, expected) in [
        ("slow", &[][..], 3),
        ("suspect", &[], 3),
        ("slow", &["--delta", "10%"], 0),
        ("suspect", &["--delta", "10"], 3),
        // With too few runs no node can be SLOW.
        ("slow", &["--min-runs", "8"], 4),
        ("suspect", &["--min-runs", "8"], 3),
    ] {
        let args = [&["--fail-on", least][..], more].concat();
        assert_eq!(reported(&runs, &args).1, expected, "{args:?}");
    }
    assert_eq!(reported(&fleet("", 0, &nodes(30, 7, |_, _| 1.0)), &["--fail-on", "suspect"]).1, 0);
}

#[test]
fn whatever_the_order_the_bytes_are_the_same() {
    let slow = |node, run| {
        if node % 9 == 4 {
            1.05
        } else if run == 3 {
            1.001
        } else {
            1.0
        }
    };
    let runs = fleet("", 0, &nodes(22, 5, slow));
    let folder = Folder::new();
    let files: Vec<String> = runs.iter().map(|run| folder.write(run).to_str().unwrap().to_owned()).collect();
    let bytes = |files: &[String]| {
        let args: Vec<&str> =
            ["report", "--format", "json"].into_iter().chain(files.iter().map(String::as_str)).collect();
        let output = report(&args);
        assert!(output.status.success(), "{}", err(&output));
        output.stdout
    };
    let expected = bytes(&files);
    let mut turned = files.clone();
    turned.reverse();
    assert!(bytes(&turned) == expected);
    turned.rotate_left(37);
    assert!(bytes(&turned) == expected);
}

#[test]
fn what_makes_verdicts_worth_less_is_said() {
    // Half of the class is 10 % slower.
    let (two, _) =
        reported(&fleet("", 0, &nodes(40, 7, |node, _| if node % 2 == 0 { 1.0 } else { 1.1 })), &[]);
    assert!(codes(&two).contains(&"bimodal-class"), "{:?}", codes(&two));
    let noisy = nodes(30, 7, |node, run| 1.0 + 0.1 * ((run * 3 + node) % 7) as f64);
    assert!(codes(&reported(&fleet("", 0, &noisy), &[]).0).contains(&"noise-floor"));
    let (few, _) = reported(&fleet("", 0, &nodes(30, 3, |node, _| if node == 2 { 1.1 } else { 1.0 })), &[]);
    assert!(codes(&few).contains(&"few-runs"));
    assert_eq!(verdict(&few, "n002"), "SUSPECT");
    let flaky = nodes(40, 9, |node, run| if node == 1 && run < 8 && run % 2 == 0 { 1.1 } else { 1.0 });
    assert!(codes(&reported(&fleet("", 0, &flaky), &[]).0).contains(&"flaky-node"));
    // One slow run per session is not significant in any single session.
    let sessions: Vec<Run> = (0..10)
        .flat_map(|session| {
            let now =
                nodes(30, 5, |node, run| if node == 3 && run == session as usize % 5 { 1.3 } else { 1.0 });
            fleet(&format!("s{session}"), session, &now)
        })
        .collect();
    let warnings = reported(&sessions, &[]).0["warnings"].to_string();
    assert!(warnings.contains("n003: 10 of 50 runs are slow"), "{warnings}");
    // A later session with two nodes does not hide the warning about the class.
    let mut again = fleet("s1", 1, &nodes(40, 7, |node, _| if node % 2 == 0 { 1.0 } else { 1.1 }));
    again.extend(fleet("s2", 2, &nodes(2, 7, |_, _| 1.0)));
    assert!(codes(&reported(&again, &[]).0).contains(&"bimodal-class"));
    let (one, _) = reported(&fleet("", 0, &nodes(1, 7, |_, _| 1.0)), &[]);
    let node = &one["nodes"][0];
    assert!(node["verdict"].is_null() && node["null_reasons"]["verdict"].is_string());
    // In a small class no node can stand out, and only the limit delta counts.
    let (small, _) = reported(&fleet("", 0, &nodes(4, 7, |node, _| if node == 2 { 1.1 } else { 1.0 })), &[]);
    assert_eq!(verdict(&small, "n002"), "SLOW-TAIL");
    assert!(small["nodes"][0]["null_reasons"]["p_value"].as_str().unwrap().contains("fewer than 20"));
}

#[test]
fn the_first_lines_say_what_is_wrong() {
    let folder = Folder::new();
    fleet("", 0, &nodes(30, 7, one_node_and_one_run)).iter().for_each(|run| _ = folder.write(run));
    let text = out(&report(&["report", folder.path().to_str().unwrap()]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[2].starts_with("1 of 30 nodes is slower than its class: n005 +7.9 % (at least +7."),
        "{text}"
    );
    assert!(lines[3].starts_with("1 of 210 runs is slower than the other runs of its node"), "{text}");
    let first = &lines[..24];
    assert!(first.iter().any(|line| line.contains("-n009-3") && line.contains("n009")), "{text}");
    assert!(first.iter().any(|line| line.starts_with("n005") && line.ends_with("SLOW")), "{text}");
    assert!(lines.iter().take(15).all(|line| line.chars().count() <= 90), "{text}");
}

fn csv(folder: &Folder, name: &str, rows: &[(&str, &str, f64)]) -> String {
    let mut text = String::from("node,run,session,elapsed_s\n");
    for (number, (node, session, seconds)) in rows.iter().enumerate() {
        text += &format!("{node},{number},{session},{seconds}\n");
    }
    folder.put(name, text).to_str().unwrap().to_owned()
}

/// Five runs of each node in a session, each slightly longer than the one before.
fn session<'a>(name: &'a str, nodes: &[(&'a str, f64)]) -> Vec<(&'a str, &'a str, f64)> {
    let runs = |(node, seconds): &(&'a str, f64)| {
        let (node, seconds) = (*node, *seconds);
        (0..5).map(move |run| (node, name, seconds * (1.0 + 0.0002 * f64::from(run))))
    };
    nodes.iter().flat_map(runs).collect()
}

const SLOW: [(&str, f64); 4] = [("a", 1.0), ("b", 1.001), ("c", 1.002), ("d", 1.2)];

/// Slow nodes come first, whatever their class, even if no node ran twice.
#[test]
fn verdicts_come_first() {
    let folder = Folder::new();
    let mut rows: Vec<(&str, &str, f64)> = session("s", &SLOW);
    rows.extend((0..12).map(|number| (["k", "l", "m", "n", "o", "p"][number % 6], "s", 5.0)));
    let mut text = std::fs::read_to_string(csv(&folder, "classes.csv", &rows)).unwrap();
    text = text.replace("node,run", "class,node,run").replace("\na,", "\nx,a,").replace("\nb,", "\nx,b,");
    text = text.replace("\nc,", "\nx,c,").replace("\nd,", "\nx,d,");
    text = ["k", "l", "m", "n", "o", "p"]
        .iter()
        .fold(text, |text, n| text.replace(&format!("\n{n},"), &format!("\ny,{n},")));
    let found =
        json(&report(&["report", "--format", "json", folder.put("classes.csv", text).to_str().unwrap()]));
    assert_eq!(
        (&found["nodes"][0]["node"], &found["nodes"][0]["verdict"]),
        (&json!("d"), &json!("SLOW-TAIL"))
    );
}

/// Rows of `node,run,session,elapsed_s,cpus,task_clock_ns`; the work of a node is its time on all CPUs.
fn counted(rows: &[(String, usize, &str, f64)]) -> String {
    let row = |(node, run, session, seconds): &(String, usize, &str, f64)| {
        format!("{node},{run},{session},{seconds},4,{}\n", (seconds * 4e9) as i64)
    };
    format!("node,run,session,elapsed_s,cpus,task_clock_ns\n{}", rows.iter().map(row).collect::<String>())
}

fn of_csv(text: String) -> Value {
    let folder = Folder::new();
    let found =
        json(&report(&["report", "--format", "json", folder.put("rows.csv", text).to_str().unwrap()]));
    assert_valid("report", &found);
    for row in found["nodes"].as_array().unwrap() {
        let reasons = row["null_reasons"].as_object().unwrap();
        for (key, value) in row.as_object().unwrap().iter().filter(|(_, value)| value.is_null()) {
            assert!(reasons.get(key).is_some_and(|why| why.as_str() != Some("")), "{key} {value}: {row}");
        }
    }
    found
}

/// With an even number of runs, median, slowdown and terms belong together.
#[test]
fn two_runs_have_a_median_between_them() {
    let rows: Vec<(String, usize, &str, f64)> = (0..10)
        .flat_map(|node| {
            let times = if node == 3 { [10.0, 20.0] } else { [10.0 + 0.01 * node as f64, 10.1] };
            times.into_iter().enumerate().map(move |(run, seconds)| (format!("n{node}"), run, "", seconds))
        })
        .collect();
    let found = of_csv(counted(&rows));
    let node = found["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n3").unwrap();
    let (median, slowdown) = (node["median_s"].as_f64().unwrap(), node["slowdown"].as_f64().unwrap());
    assert!((median - 200f64.sqrt()).abs() < 1e-9 && (slowdown - 0.40).abs() < 0.02, "{node}");
    assert_eq!(node["median_run_id"], "n3/0");
    let terms: f64 = node["terms"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    // The reference is the median of all nodes, and the slowdown is relative to the others.
    assert!((terms - slowdown.ln_1p()).abs() < 0.003, "{node}");
}

/// A node of which three of seven runs are twice as long is not simply OK.
#[test]
fn slow_runs_of_a_node_are_counted() {
    let rows: Vec<(String, usize, &str, f64)> = (0..30)
        .flat_map(|node| {
            let time = move |run: usize| {
                (1.0 + 0.001 * ((run * 5 + node) % 7) as f64) * if node == 4 && run < 3 { 2.0 } else { 1.0 }
            };
            (0..7).map(move |run| (format!("n{node:02}"), run, "", time(run)))
        })
        .collect();
    let found = of_csv(counted(&rows));
    let of = |node: &str| {
        found["nodes"].as_array().unwrap().iter().find(|row| row["node"] == node).unwrap().clone()
    };
    assert_eq!((&of("n04")["verdict"], &of("n04")["slow_runs"]), (&json!("OK"), &json!(3)));
    assert_eq!(of("n05")["slow_runs"], json!(0));
}

#[test]
fn settings_that_make_no_sense_are_wrong_usage() {
    let folder = Folder::new();
    folder.write(&run("r", &[("a", [0, 1, 2, 3])]));
    for wrong in [
        ["--delta", "-1"],
        ["--delta", "nan"],
        ["--fdr", "60"],
        ["--fdr", "x"],
        ["--min-runs", "-1"],
        ["--top", "-1"],
        ["--top", "x"],
        ["--fail-on", "ok"],
    ] {
        let output = report(&["report", folder.path().to_str().unwrap(), wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(err(&output).contains(&wrong[0][2..]), "{}", err(&output));
        assert!(!err(&output).contains("invalid digit") && !err(&output).contains("unexpected argument"));
    }
}

/// A label such as the number of the job puts each run in a class of its own.
#[test]
fn a_label_that_splits_classes_is_told() {
    let mut runs = fleet("", 0, &nodes(4, 7, |_, _| 1.0));
    for (number, run) in runs.iter_mut().enumerate() {
        run.header.labels = vec![("job".into(), (1000 + number % 7).to_string())];
    }
    let (report, _) = reported(&runs, &[]);
    assert!(!codes(&report).contains(&"split-by-label"), "four nodes of a job are compared");
    for (number, run) in runs.iter_mut().enumerate() {
        run.header.labels = vec![("job".into(), (1000 + number).to_string())];
    }
    let (report, _) = reported(&runs, &[]);
    let warnings = report["warnings"].as_array().unwrap();
    let split = warnings.iter().find(|warning| warning["code"] == "split-by-label").expect("a warning");
    let message = split["message"].as_str().unwrap();
    assert!(message.starts_with("the label job has 28 values in 28 runs of "), "{message}");
    let by = "cpu,microcode,memory,kernel,command,ranks";
    let (report, _) = reported(&runs, &["--class-by", by]);
    assert!(!codes(&report).contains(&"split-by-label"));
}
