//! `pmmpi compare`: two sets of runs.

mod common;

use common::*;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Seven runs on each node, .1 % apart; `slower` is the factor of a node, `start` the hour of a run.
fn csv(label: &str, slower: impl Fn(usize) -> f64, start: impl Fn(usize) -> usize) -> String {
    let mut csv = String::from("node,run,session,started,variant,flops,elapsed_s\n");
    for (node, run) in (0..5).flat_map(|node| (0..7).map(move |run| (node, run))) {
        let noise = 1.0 + 0.001 * ((node * 5 + run * 3) % 7) as f64;
        let (seconds, hour) = (100.0 * slower(node) * noise, start(run));
        let (day, hour) = (1 + hour / 24, hour % 24);
        let _ = writeln!(
            csv,
            "n{node},{label}{run},s,2026-11-{day:02}T{hour:02}:00:{node:02}Z,{label},{:.3},{seconds:.6}",
            1e6 / seconds
        );
    }
    csv
}

fn compare(args: &[&str]) -> std::process::Output {
    report(&[&["compare"], args].concat())
}

fn found(args: &[&str]) -> Value {
    let output = compare(&[args, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    let found = json(&output);
    assert_valid("compare", &found);
    found
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// All but that of the column with text, which only some of the comparisons ask for.
fn codes(found: &Value) -> Vec<&str> {
    let codes = found["warnings"].as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap());
    codes.filter(|code| *code != "unread-values").collect()
}

/// 2 % on all nodes, and 5 % on one of them.
#[test]
fn differences_are_found_with_their_size() {
    let folder = Folder::new();
    let a = folder.put("a.csv", csv("a", |_| 1.0, |run| run));
    let b = folder.put("b.csv", csv("b", |node| if node == 3 { 1.05 } else { 1.02 }, |run| 48 + run));
    let (a, b) = (text(&a), text(&b));
    let of = found(&[a, b]);
    let class = &of["classes"][0];
    assert!((class["ratio"].as_f64().unwrap() - 1.02).abs() < 0.001 && class["different"] == true, "{class}");
    assert!(class["smallest_visible"].as_f64().unwrap() < 0.015, "{class}");
    let nodes = of["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), &nodes[0]["node"], &nodes[0]["runs"]), (5, &json!("n3"), &json!([7, 7])));
    assert!(nodes.iter().all(|node| node["different"] == true), "{nodes:?}");
    let flops = of["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "flops").unwrap();
    assert!((flops["ratio"].as_f64().unwrap() - 1.0 / 1.02).abs() < 0.001 && flops["different"] == true);
    assert_eq!(codes(&of), ["not-in-turns"]);
    let shown = out(&compare(&[a, b]));
    for line in ["class 1: B is 2.0 % slower than A (", "5 of 5 nodes differ with certainty: n3 +5.0 %, "] {
        assert!(shown.lines().any(|found| found.starts_with(line)), "{line}: {shown}");
    }
    let back = found(&[b, a]);
    assert!((back["classes"][0]["ratio"].as_f64().unwrap() * 1.02 - 1.0).abs() < 0.001);
    for (what, status) in [
        ("different", 3),
        ("slower", 3),
        ("slower:1%", 3),
        ("slower:4", 3),
        ("slower:6%", 0),
        ("faster", 0),
        ("faster:0.1%", 4),
        ("faster:0.1%,slower:1%", 3),
    ] {
        let output = compare(&[a, b, "--fail-on", what]);
        assert_eq!(output.status.code(), Some(status), "{what}: {}", err(&output));
    }
}

#[test]
fn equal_sets_do_not_differ() {
    let folder = Folder::new();
    let a = folder.put("a.csv", csv("a", |_| 1.0, |run| run));
    let b = folder.put("b.csv", csv("b", |_| 1.0, |run| run));
    let of = found(&[text(&a), text(&b)]);
    assert_eq!((&of["classes"][0]["different"], &of["classes"][0]["ratio"]), (&json!(false), &json!(1.0)));
    assert_eq!(of["differs"], json!([]));
    let shown = out(&compare(&[text(&a), text(&b)]));
    assert!(
        shown.contains(
            "class 1: no certain difference (B is 0.0 % slower); these runs would show a difference of "
        ),
        "{shown}"
    );
    assert_eq!(compare(&[text(&a), text(&b), "--fail-on", "different,slower:5%"]).status.code(), Some(0));
}

/// A run is either in A or in B.
#[test]
fn the_same_runs_are_not_compared() {
    let folder = Folder::new();
    let first = csv("a", |_| 1.0, |run| run);
    let a = folder.put("a.csv", &first);
    let more = csv("b", |_| 1.02, |run| 20 + run);
    let both = folder.put("both.csv", first + more.split_once('\n').unwrap().1);
    for args in [[text(&a), text(&a)], [text(&a), text(&both)]] {
        let output = compare(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(" are also in the other set"), "{}", err(&output));
    }
    let of = found(&["time:..2026-11-01T22:00:00Z", "time:2026-11-01T05:00:00Z..", "--in", text(&both)]);
    assert!(codes(&of).contains(&"shared-runs"), "{of}");
}

/// Runs of several programs cannot be matched by what differs.
#[test]
fn other_work_is_not_compared() {
    let folder = Folder::new();
    let of = |name: &str, label: &str, work: [&str; 2]| {
        let rows: Vec<String> = csv(label, |_| 1.0, |run| run)
            .lines()
            .enumerate()
            .map(|(at, line)| match at {
                0 => format!("{line},class"),
                _ => format!("{line},{}", work[at % 2]),
            })
            .collect();
        folder.put(name, rows.join("\n"))
    };
    let a = of("a.csv", "a", ["old small", "old large"]);
    let b = of("b.csv", "b", ["new small", "new large"]);
    let output = compare(&[text(&a), text(&b)]);
    assert_eq!(output.status.code(), Some(2));
    let message = "class: A has old large | old small, B has new large | new small";
    assert!(err(&output).contains(message), "{}", err(&output));
    let mixed = of("mixed.csv", "m", ["old small", "other"]);
    let found = found(&[text(&a), text(&mixed)]);
    assert!(codes(&found).contains(&"unpaired-runs"), "{found}");
    assert!(found["b"]["compared"].as_u64().unwrap() < 35, "{found}");
}

/// One node that varies much more than the others is not certain because of them.
#[test]
fn a_noisy_node_is_not_certain() {
    let folder = Folder::new();
    let noisy = |label: &str, shift: f64| -> String {
        let line = |line: &str| {
            let (head, _) = line.rsplit_once(',').unwrap();
            if !line.starts_with("n0,") {
                return format!("{line}\n");
            }
            let run: f64 = head.split(',').nth(1).unwrap()[1..].parse().unwrap();
            format!("{head},{:.4}\n", 100.0 + shift + 4.0 * ((run * 5.0) % 7.0 - 3.0) / 3.0)
        };
        csv(label, |_| 1.0, |run| run).lines().map(line).collect()
    };
    let a = folder.put("a.csv", noisy("a", 0.0));
    let b = folder.put("b.csv", noisy("b", -1.5));
    let of = found(&[text(&a), text(&b)]);
    let nodes = of["nodes"].as_array().unwrap();
    assert!(nodes.iter().all(|node| node["different"] == false), "{nodes:?}");
}

/// A metric that may be 0 has no ratio, and is not lost.
#[test]
fn zeros_have_no_ratio() {
    let folder = Folder::new();
    let faults = |text: String, faults: &str| -> String {
        let line = |(at, line): (usize, &str)| {
            let fields: Vec<&str> = line.split(',').collect();
            let value = if at == 0 { "faults" } else { faults };
            format!("{},{value},{}\n", fields[..5].join(","), fields[6])
        };
        text.lines().enumerate().map(line).collect()
    };
    let a = folder.put("a.csv", faults(csv("a", |_| 1.0, |run| run), "0"));
    let b = folder.put("b.csv", faults(csv("b", |_| 1.0, |run| run), "5000"));
    let of = found(&[text(&a), text(&b)]);
    let metric = &of["metrics"][0];
    assert_eq!((&metric["ratio"], &metric["a"], &metric["b"]), (&Value::Null, &json!(0.0), &json!(5000.0)));
    assert_eq!(metric["null_reasons"]["ratio"], "some values are 0 or below, so there is no ratio");
}

/// Parts of the same runs: by session, by label, by time; runs in turns are paired.
#[test]
fn parts_of_runs_are_compared() {
    let folder = Folder::new();
    let turns = folder.path().join("turns");
    folder.put("turns/a.csv", csv("a", |_| 1.0, |run| 2 * run));
    folder.put("turns/b.csv", csv("b", |_| 1.02, |run| 2 * run + 1));
    let of = found(&["label:variant=a", "label:variant=b", "--in", text(&turns)]);
    assert_eq!((&of["classes"][0]["in_turns"], &of["classes"][0]["different"]), (&json!(5), &json!(true)));
    assert_eq!((codes(&of), &of["differs"]), (Vec::<&str>::new(), &json!([])));
    let later = csv("a", |_| 1.0, |run| 48 + run).replace(",s,", ",t,");
    folder.put("sessions/a.csv", csv("a", |_| 1.0, |run| run));
    folder.put("sessions/b.csv", later.replace("n2,", "n9,"));
    let sessions = folder.path().join("sessions");
    for parts in [["session:s", "session:t"], ["time:..2026-11-02", "time:2026-11-02T01:00:00+01:00.."]] {
        let of = found(&[parts[0], parts[1], "--in", text(&sessions)]);
        assert_eq!((&of["classes"][0]["nodes"], &of["classes"][0]["different"]), (&json!(4), &json!(false)));
        assert_eq!(codes(&of), ["unpaired-runs"], "time is the question");
        let warnings = of["warnings"].as_array().unwrap();
        let unpaired = warnings.iter().find(|warning| warning["code"] == "unpaired-runs").unwrap();
        let message = "runs without a partner in the other set: 7 runs of A (n2), 7 runs of B (n9)";
        assert_eq!((&unpaired["message"], &of["a"]["compared"]), (&json!(message), &json!(28)));
    }
}

/// What all runs of A and B differ in is named, and does not keep nodes apart.
#[test]
fn what_differs_is_named() {
    let folder = Folder::new();
    let with = |kernel: &str, text: String| -> String {
        let line = |line: &str| {
            let (head, seconds) = line.rsplit_once(',').unwrap();
            let kernel = if line.starts_with("node") { "kernel" } else { kernel };
            format!("{head},{kernel},{seconds}\n")
        };
        text.lines().map(line).collect()
    };
    let a = folder.put("a.csv", with("6.1-x", csv("a", |_| 1.0, |run| run)));
    let b = folder.put("b.csv", with("6.2-y", csv("b", |_| 1.0, |run| run)));
    let of = found(&[text(&a), text(&b), "--class-by", "kernel,variant"]);
    let differs = json!([
        { "key": "kernel", "a": ["6.1-x"], "b": ["6.2-y"] },
        { "key": "variant", "a": ["a"], "b": ["b"] }
    ]);
    assert_eq!((&of["differs"], &of["classes"][0]["nodes"]), (&differs, &json!(5)));
    let shown = out(&compare(&[text(&a), text(&b), "--class-by", "kernel"]));
    assert!(shown.contains("A and B differ in kernel: A has 6.1-x, B has 6.2-y\n"), "{shown}");
}

#[test]
fn few_runs_say_so() {
    let folder = Folder::new();
    let a = folder.put("a.csv", "node,run,elapsed_s\nn1,1,100\nn1,2,101\n");
    let b = folder.put("b.csv", "node,run,elapsed_s\nn1,1,110\nn1,2,111\n");
    let of = found(&[text(&a), text(&b)]);
    let class = &of["classes"][0];
    assert_eq!(
        (&class["ci"], &class["smallest_visible"], &class["different"]),
        (&Value::Null, &Value::Null, &json!(false))
    );
    assert_eq!(class["null_reasons"]["ci"], "A or B has too few runs to show how much the times vary");
    assert_eq!(codes(&of), ["not-in-turns", "few-runs"]);
    assert_eq!(compare(&[text(&a), text(&b), "--fail-on", "slower:1%"]).status.code(), Some(4));
}

#[test]
fn other_formats_have_the_same() {
    let folder = Folder::new();
    let a = folder.put("a.csv", csv("a", |_| 1.0, |run| run));
    let b = folder.put("b.csv", csv("b", |_| 1.02, |run| run));
    let table = out(&compare(&[text(&a), text(&b), "--format", "csv"]));
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("kind,name,class,nodes,") && rows.len() == 1 + 1 + 5 + 1, "{table}");
    assert!(rows[1].starts_with("class,,undeclared,5,") && rows[1].ends_with(",true"), "{table}");
    let page = out(&compare(&[text(&a), text(&b), "--format", "md"]));
    assert!(
        page.contains("| Class | Nodes | A, s |") && page.contains("class 1: B is 2.0 % slower"),
        "{page}"
    );
    let file = folder.path().join("c.json");
    let output = compare(&[text(&a), text(&b), "--format", "json", "-o", text(&file)]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_valid("compare", &serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap());
}

#[test]
fn wrong_usage_is_told() {
    let folder = Folder::new();
    let a = folder.put("a.csv", csv("a", |_| 1.0, |run| run));
    let other = folder.put("other.csv", csv("a", |_| 1.0, |run| run).replace("\nn", "\nm"));
    for (args, message) in [
        (&[text(&a)][..], "were not provided"),
        (&[text(&a), "/nonexistent"], "/nonexistent: cannot be read"),
        (&["label:x", text(&a)], "label:x: expected label:KEY=VALUE"),
        (&["time:2026", text(&a)], "expected time:FROM..TO"),
        (&["session:x", "session:s", "--in", text(&a)], "session:x has no run with a time"),
        (
            &[text(&a), text(&other)],
            "no runs of the same work on the same node: A has runs on n0, n1, n2, ...; B has runs on m0",
        ),
        (&[text(&a), text(&a), "--fail-on", "slow"], "expected different, slower:X% or faster:X%"),
        (&[text(&a), text(&a), "--fail-on", "slower:-1%"], "expected 0 to 1000 percent"),
        (&[text(&a), text(&a), "--fdr", "99"], "--fdr: expected"),
    ] {
        let output = compare(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(message), "{args:?}: {}", err(&output));
    }
}
