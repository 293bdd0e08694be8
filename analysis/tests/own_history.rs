//! `pmmpi report` over several sessions: nodes that are slower or faster than they were, also after maintenance.

mod common;

use common::*;
use serde_json::{Value, json};
use std::fmt::Write;

const SESSIONS: usize = 6;

/// Twelve nodes: see [`fleet_of`].
fn fleet(slower: impl Fn(usize, usize) -> f64, maintenance: impl Fn(usize, usize) -> &'static str) -> String {
    fleet_of(12, slower, maintenance)
}

/// Nodes in six daily sessions of seven runs; `slower` is the factor of a node in a session. `maintenance` names the
/// maintenance after which a session of a node was made.
fn fleet_of(
    nodes: usize,
    slower: impl Fn(usize, usize) -> f64,
    maintenance: impl Fn(usize, usize) -> &'static str,
) -> String {
    let mut csv = String::from("node,session,run,started,maintenance,elapsed_s\n");
    for (node, session, run) in
        (0..nodes).flat_map(|node| (0..SESSIONS).flat_map(move |s| (0..7).map(move |r| (node, s, r))))
    {
        // Nodes differ by up to 2 %, sessions of a node by .2 %, and runs by .2 %; all nodes are slower in s4.
        let place =
            |factor: usize, of: usize| ((node * 7 + session * 5 + run * 3) * factor % of) as f64 / of as f64;
        let own = 0.02 * ((node * 5) % 12) as f64 / 12.0 + 0.002 * place(13, 31) + 0.002 * place(17, 29);
        let common = if session == 3 { 1.05 } else { 1.0 };
        let seconds = 100.0 * (1.0 + own) * common * slower(node, session);
        let (day, label) = (session + 10, maintenance(node, session));
        let _ = writeln!(
            csv,
            "n{node:02},s{},{run},2026-11-{day}T08:{run:02}:00Z,{label},{seconds:.6}",
            session + 1
        );
    }
    csv
}

fn of_nodes(report: &Value, node: &str) -> Value {
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().find(|found| found["node"] == node).unwrap().clone()
}

/// n03 slows down in s5, n05 was repaired before s4, n07 had one bad session.
fn changing(node: usize, session: usize) -> f64 {
    match (node, session) {
        (3, 4..) => 1.03,
        (5, ..3) => 1.08,
        (7, 2) => 1.06,
        _ => 1.0,
    }
}

#[test]
fn changes_are_told_with_size_and_date() {
    let folder = Folder::new();
    let file = folder.put("f.csv", fleet(changing, |_, _| ""));
    let path = file.to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &found);
    let slowed = of_nodes(&found, "n03");
    assert_eq!(slowed["verdict"], "OK", "the class alone does not show it");
    let history = &slowed["history"];
    for (key, expected) in [
        ("verdict", "SLOWED"),
        ("since", "s5"),
        ("until", "s4"),
        ("until_date", "2026-11-13"),
        ("course", "STEP"),
    ] {
        assert_eq!(history[key], expected, "{history}");
    }
    let change = history["change"].as_f64().unwrap();
    assert!((change - 0.03).abs() < 0.003, "{history}");
    assert!((0.02..change).contains(&history["at_least"].as_f64().unwrap()), "{history}");
    assert!(slowed["history_score"].as_f64().unwrap() > 5.0);
    let faster = &of_nodes(&found, "n05")["history"];
    assert_eq!((&faster["verdict"], &faster["since"]), (&json!("FASTER"), &json!("s4")), "{faster}");
    let bad = &of_nodes(&found, "n07")["history"];
    assert_eq!((&bad["verdict"], &bad["bad_sessions"]), (&json!("SAME"), &json!(["s3"])), "{bad}");
    let verdicts: Vec<&Value> =
        found["nodes"].as_array().unwrap().iter().map(|node| &node["history"]["verdict"]).collect();
    assert_eq!(verdicts.iter().filter(|verdict| **verdict == "SAME").count(), 10);

    let text = out(&report(&["report", path]));
    for line in [
        "none of 12 nodes is slower than its class",
        "n03 is 3.1 % (at least 2.",
        "n05 is 7.",
        "1 node was slow in earlier sessions: n07 (5.",
        "CHANGED ",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
    for format in ["md", "html", "openmetrics", "csv"] {
        assert!(out(&report(&["report", path, "--format", format])).contains("SLOWED"), "{format}");
    }
    assert_eq!(report(&["report", path, "--fail-on", "slow"]).status.code(), Some(3));
}

/// What concerns all nodes is the change of no node.
#[test]
fn healthy_nodes_are_the_same() {
    let folder = Folder::new();
    let file = folder.put("f.csv", fleet(|_, _| 1.0, |_, _| ""));
    let output = report(&["report", file.to_str().unwrap(), "--format", "json", "--fail-on", "suspect"]);
    assert_eq!(output.status.code(), Some(0));
    for node in json(&output)["nodes"].as_array().unwrap() {
        assert_eq!(node["history"]["verdict"], "SAME", "{node}");
    }
}

#[test]
fn one_session_says_so() {
    let folder = Folder::new();
    let csv = fleet(|_, _| 1.0, |_, _| "");
    let first: Vec<&str> =
        csv.lines().filter(|line| line.contains(",s1,") || line.starts_with("node")).collect();
    let file = folder.put("f.csv", first.join("\n"));
    let found = json(&report(&["report", file.to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &found);
    let node = &found["nodes"][0];
    assert_eq!((&node["history"]["verdict"], &node["history"]["sessions"]), (&Value::Null, &json!(1)));
    let reason = "the node has 1 session; a comparison with its own history needs 2";
    assert_eq!(node["null_reasons"]["history"], reason);
    assert!(!out(&report(&["report", file.to_str().unwrap()])).contains("HISTORY"));
}

/// After maintenance the history starts anew, and the report says what the maintenance changed: by a column, in an
/// archive, and by a list.
#[test]
fn maintenance_starts_a_history_anew() {
    let folder = Folder::new();
    let label = |node: usize, session: usize| match (node, session) {
        (3, 4) | (5, 3) => "dimm",
        _ => "",
    };
    let labelled = folder.put("labelled.csv", fleet(changing, label));
    let plain = folder.put("plain.csv", fleet(changing, |_, _| ""));
    let resets =
        folder.put("resets.csv", "node,when\nn03,2026-11-14\nn05,2026-11-12T20:00:00Z\nn99,2026-11-14\n");
    let archive = folder.path().join("archive");
    let [labelled, plain, resets, archive] =
        [&labelled, &plain, &resets, &archive].map(|path| path.to_str().unwrap());
    assert!(report(&["export", labelled, "-o", archive]).status.success());
    for paths in [&[labelled][..], &[archive], &[plain, "--resets", resets]] {
        let output = report(&[&["report", "--format", "json"], paths].concat());
        let found = json(&output);
        assert_valid("report", &found);
        for (node, since, sessions, change) in [("n03", "s5", 2, 0.03), ("n05", "s4", 3, 1.0 / 1.08 - 1.0)] {
            let history = &of_nodes(&found, node)["history"];
            assert_eq!((&history["verdict"], &history["sessions"]), (&json!("SAME"), &json!(sessions)));
            let maintenance = &history["maintenance"];
            assert_eq!((&maintenance["since"], &maintenance["is_certain"]), (&json!(since), &json!(true)));
            assert!((maintenance["change"].as_f64().unwrap() - change).abs() < 0.003, "{maintenance}");
        }
        assert!(of_nodes(&found, "n07")["history"]["maintenance"].is_null());
        let codes: Vec<&Value> =
            found["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
        assert_eq!(codes.contains(&&json!("unknown-reset")), paths.contains(&resets), "{codes:?}");
        let text = out(&report(&[&["report"], paths].concat()));
        assert!(
            text.contains("\nn05 has been 7.4 % faster since its maintenance (first session after it: s4)\n"),
            "{text}"
        );
    }
}

/// The input has a node even if none of its runs has a time.
#[test]
fn a_node_without_a_time_is_no_unknown_node() {
    let folder = Folder::new();
    let file = folder.put("f.csv", "node,run,elapsed_s\nn1,1,1\nn2,1,\n");
    let resets = folder.put("resets.csv", "node,when\nn2,2026-11-14\nn3,2026-11-14\n");
    let output = report(&["report", file.to_str().unwrap(), "--resets", resets.to_str().unwrap()]);
    let text = out(&output) + &err(&output);
    assert!(text.contains("--resets names 1 node without a time after the maintenance: n2"), "{text}");
    assert!(text.contains("--resets names 1 node that the input does not have: n3"), "{text}");
}

#[test]
fn a_wrong_list_of_maintenance_is_refused() {
    let folder = Folder::new();
    let file = folder.put("f.csv", fleet(|_, _| 1.0, |_, _| ""));
    let wrong = folder.put("resets.csv", "node,when\nn03,soon\n");
    for (resets, expected) in
        [(wrong.to_str().unwrap(), ":2: when: expected"), ("/nonexistent", "No such file")]
    {
        let output = report(&["report", file.to_str().unwrap(), "--resets", resets]);
        assert_eq!(output.status.code(), Some(2));
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
}

/// All nodes become 4 % slower from s4 on: no node is slower than its class, but the class is.
#[test]
fn a_class_that_moved_is_told() {
    let folder = Folder::new();
    // s4 is 5 % slower than the other sessions in any case.
    let slower = |_: usize, session: usize| if session > 3 { 1.05 } else { 1.0 };
    let file = folder.put("f.csv", fleet(slower, |_, _| ""));
    let path = file.to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &found);
    let class = &found["classes"][0];
    assert_eq!((&class["nodes"], &class["nodes_in_latest_session"]), (&json!(12), &json!(12)));
    let moved = &class["moved"];
    assert_eq!(
        (&moved["since"], &moved["until_date"], &moved["nodes"]),
        (&json!("s4"), &json!("2026-11-12"), &json!(12))
    );
    assert!((moved["change"].as_f64().unwrap() - 0.05).abs() < 0.003, "{moved}");
    let [low, high] = [0, 1].map(|end| moved["ci"][end].as_f64().unwrap());
    assert!(0.04 < low && low < high && high < 0.06, "{moved}");
    for node in found["nodes"].as_array().unwrap() {
        assert_eq!(node["history"]["verdict"], "SAME", "{node}");
    }
    let text = out(&report(&["report", path]));
    assert!(text.contains("\nclass 1 as a whole is 5.0 % slower than it was until 2026-11-12 ("), "{text}");
    let healthy = folder.put("healthy.csv", fleet(|_, _| 1.0, |_, _| ""));
    let found = json(&report(&["report", healthy.to_str().unwrap(), "--format", "json"]));
    assert!(found["classes"][0]["moved"].is_null(), "one slow session in the middle is no lasting change");
}

/// A user who waits for HISTORY or drift learns how many sessions they need.
#[test]
fn the_report_says_how_many_sessions_are_needed() {
    let folder = Folder::new();
    let whole = fleet(|_, _| 1.0, |_, _| "");
    let of = |sessions: &[&str], said: &str| {
        let is_in = |line: &&str| sessions.iter().any(|session| line.contains(&format!(",{session},")));
        let rows: Vec<&str> = whole
            .lines()
            .enumerate()
            .filter(|(at, line)| *at == 0 || is_in(line))
            .map(|(_, line)| line)
            .collect();
        let path = folder.put("fleet.csv", rows.join("\n"));
        let text = out(&report(&["report", path.to_str().unwrap()]));
        assert!(text.lines().any(|line| line == said), "{said}: {text}");
        let sessions =
            json(&report(&["report", "--format", "json", path.to_str().unwrap()]))["sessions"].clone();
        (sessions["most"].as_u64().unwrap(), sessions["drift_needs"].as_u64().unwrap())
    };
    assert_eq!(
        of(&["s1"], "a comparison with earlier sessions needs 2 sessions; no node has more than 1"),
        (1, 21)
    );
    assert_eq!(
        of(&["s1", "s2", "s4"], "a search for drift needs 21 sessions; no node has more than 3"),
        (3, 21)
    );
}

/// n03 was repaired before s3 and is slow again since s5; the repair of n05 before s5 did not help.
#[test]
fn repairs_have_their_own_effect() {
    let folder = Folder::new();
    let slower = |node: usize, session: usize| match (node, session) {
        (3, 1 | 4..) => 1.06,
        (5, 2..) => 1.05,
        _ => 1.0,
    };
    let label = |node: usize, session: usize| match (node, session) {
        (3, 2) | (5, 4) => "dimm",
        _ => "",
    };
    let file = folder.put("f.csv", fleet(slower, label));
    let found = json(&report(&["report", file.to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &found);
    let again = &of_nodes(&found, "n03")["history"];
    assert_eq!((&again["verdict"], &again["since"]), (&json!("SLOWED"), &json!("s5")), "{again}");
    let repair = &again["maintenance"];
    assert!((repair["change"].as_f64().unwrap() + 0.057).abs() < 0.004, "{repair}");
    assert!((repair["change_before"].as_f64().unwrap() - 0.06).abs() < 0.004, "{repair}");
    let text = out(&report(&["report", file.to_str().unwrap()]));
    for line in ["n03 has been 5.", "n05 had become 5."] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}");
    }
}

/// Exactly half of the nodes become slower, in two sessions and in six.
#[test]
fn half_of_the_nodes_may_become_slower() {
    let folder = Folder::new();
    for since in [1, 3, 5] {
        let all = fleet(|node, session| if node < 6 && session >= since { 1.08 } else { 1.0 }, |_, _| "");
        let last_two = |line: &&str| !["s1,", "s2,", "s3,", "s4,"].iter().any(|of| line.contains(of));
        let table =
            if since == 5 { all.lines().filter(last_two).collect::<Vec<_>>().join("\n") } else { all };
        let file = folder.put("half.csv", table);
        let found = json(&report(&["report", file.to_str().unwrap(), "--format", "json"]));
        for node in 0..12 {
            let history = &of_nodes(&found, &format!("n{node:02}"))["history"];
            assert_eq!(
                history["verdict"],
                if node < 6 { "SLOWED" } else { "SAME" },
                "{since} {node}: {history}"
            );
        }
        assert!(found["warnings"].as_array().unwrap().iter().all(|of| of["code"] != "class-moved"));
    }
}

/// The class became slower and n05 did not: its seconds are the same, and only next to its class is it faster.
#[test]
fn a_change_next_to_a_class_that_moved_is_called_so() {
    let folder = Folder::new();
    let slower = |node: usize, session: usize| if node != 5 && session >= 4 { 1.06 } else { 1.0 };
    let file = folder.put("f.csv", fleet_of(24, slower, |_, _| ""));
    let path = file.to_str().unwrap();
    let found = json(&report(&["report", path, "--format", "json"]));
    let history = &of_nodes(&found, "n05")["history"];
    assert_eq!(history["verdict"], "FASTER", "{history}");
    assert!((history["class_change"].as_f64().unwrap() - 0.06).abs() < 0.005, "{history}");
    let text = out(&report(&["report", path]));
    assert!(text.contains(" faster, relative to its class, than it was until 2026-11-13"), "{text}");
    assert!(text.contains("\nBEFORE is corrected for later changes of the whole class"), "{text}");
}

/// All three nodes of a class became slower: nothing shows whether the nodes or the work changed.
#[test]
fn nodes_are_not_avoided_because_of_their_work() {
    let folder = Folder::new();
    let slower = |_: usize, session: usize| if session >= 4 { 1.05 } else { 1.0 };
    let file = folder.put("f.csv", fleet_of(3, slower, |_, _| ""));
    let path = file.to_str().unwrap();
    let text = out(&report(&["report", path]));
    assert!(
        text.contains(
            "measured together, so the report cannot find out whether the node or the work changed"
        ),
        "{text}"
    );
    assert_eq!(out(&report(&["report", path, "--format", "exclude"])), "");
}

/// A node alone in its class is compared with its own earlier sessions: monitoring must not lose it.
#[test]
fn each_node_is_in_one_group_of_openmetrics() {
    let folder = Folder::new();
    let file = folder.put("f.csv", fleet_of(1, |_, _| 1.0, |_, _| ""));
    let text = out(&report(&["report", file.to_str().unwrap(), "--format", "openmetrics"]));
    let group =
        |line: &str| line.strip_prefix("pmmpi_nodes_accounted{")?.rsplit(' ').next()?.parse::<f64>().ok();
    assert_eq!(text.lines().filter_map(group).sum::<f64>(), 1.0, "{text}");
    assert!(text.contains("pmmpi_nodes_accounted{group=\"own_history\"} 1"), "{text}");
}
