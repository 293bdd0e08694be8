//! Nodes in several sessions: since when a node is slow, and which session decides.

use super::common::{Folder, json, out, report};
use super::{SLOW, codes, csv, fleet, nodes, reported, session};
use serde_json::json;

#[test]
fn a_node_that_grows_slower_is_named_with_its_session() {
    let mut runs = Vec::new();
    for session in 0..30 {
        // Not in the order of their names.
        let name = format!("s{:02}", (session * 7) % 30);
        let slower = move |node, _| {
            if node == 3 && session >= 24 { 1.02 } else { 1.0 + 0.0005 * f64::from((session * 3) % 5) }
        };
        runs.extend(fleet(&name, 1_000 * i64::from(session), &nodes(6, 3, slower)));
    }
    let (report, _) = reported(&runs, &[]);
    let drift = report["drift"].as_array().unwrap();
    assert_eq!(drift.len(), 1, "{drift:#?}");
    assert_eq!(
        (&drift[0]["node"], &drift[0]["since"]),
        (&json!("n003"), &json!(format!("s{:02}", (24 * 7) % 30)))
    );
    assert!((drift[0]["change"].as_f64().unwrap() - 0.02).abs() < 0.005, "{drift:#?}");
    let node = report["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n003").unwrap();
    // Only the latest session.
    assert_eq!((&node["session"], &node["runs"]), (&json!(format!("s{:02}", (29 * 7) % 30)), &json!(3)));
    assert!(node["history_score"].as_f64().unwrap() > 3.0, "{node}");
}

/// Monitoring shows what is true now.
#[test]
fn the_drift_of_a_node_that_is_gone_is_no_metric() {
    for (sessions, is_there) in [(30, true), (33, false)] {
        let folder = Folder::new();
        for session in 0..sessions {
            let slower = move |node, _| {
                if node == 3 && session >= 24 { 1.02 } else { 1.0 + 0.0005 * f64::from((session * 3) % 5) }
            };
            let mut measured = nodes(6, 3, slower);
            if session >= 30 {
                measured.remove(3);
            }
            let runs = fleet(&format!("s{session:02}"), 1_000 * i64::from(session), &measured);
            runs.iter().for_each(|run| _ = folder.write(run));
        }
        let path = folder.path().to_str().unwrap();
        assert_eq!(json(&report(&["report", path, "--format", "json"]))["drift"][0]["node"], "n003");
        let metrics = out(&report(&["report", path, "--format", "openmetrics"]));
        let text = out(&report(&["report", path]));
        assert_eq!(metrics.contains("\npmmpi_node_drift_ratio{node=\"n003\""), is_there, "{metrics}");
        assert!(is_there || !text.contains("n003 has become"), "{text}");
    }
}

/// A slow node that is tested again on its own keeps its verdict, and does not drift.
#[test]
fn a_node_alone_in_a_session_is_judged_by_the_one_before() {
    let folder = Folder::new();
    let rows = [session("s1", &SLOW), session("s2", &[("d", 1.2)])].concat();
    let output =
        report(&["report", "--format", "json", "--fail-on", "slow", &csv(&folder, "again.csv", &rows)]);
    assert_eq!(output.status.code(), Some(3));
    let found = json(&output);
    assert_eq!((&found["nodes"][0]["node"], &found["nodes"][0]["session"]), (&json!("d"), &json!("s1")));
    let names: Vec<String> = (0..40).map(|number| format!("s{number}")).collect();
    let nodes = [("a", 0.97), ("b", 1.0), ("c", 1.001)];
    let of = |(number, name)| session(name, if number < 24 { &nodes[..] } else { &nodes[..1] });
    let rows: Vec<_> = names.iter().map(String::as_str).enumerate().flat_map(of).collect();
    let found = json(&report(&["report", "--format", "json", &csv(&folder, "alone.csv", &rows)]));
    assert_eq!(found["drift"], json!([]));
}

/// Sessions without dates are in the order of their names, s9 before s10, and a warning says so.
#[test]
fn sessions_without_dates_are_in_the_order_of_their_names() {
    let folder = Folder::new();
    let mended = [("a", 1.0), ("b", 1.001), ("c", 1.002), ("d", 1.003)];
    let rows = [session("s9", &SLOW), session("s10", &mended)].concat();
    let output =
        report(&["report", "--format", "json", "--fail-on", "slow", &csv(&folder, "mended.csv", &rows)]);
    assert_eq!(output.status.code(), Some(0));
    assert!(codes(&json(&output)).contains(&"undated-sessions"));
}
