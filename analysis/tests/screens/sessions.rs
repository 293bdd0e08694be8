//! Screens that share the label `session`.

use super::common::*;
use super::made::*;
use serde_json::Value;
use std::path::Path;

fn weekly(day: i64) -> Screen {
    Screen { session: Some("weekly"), rounds: 0..7, ..Screen::of(day, 6) }
}

fn healthy(_: At<'_>) -> Outcome {
    Outcome::Times(1.0)
}

/// n03 is slow in this screen only.
fn n03_is_slow(at: At<'_>) -> Outcome {
    Outcome::Times(if at.node == 3 { 1.3 } else { 1.0 })
}

fn export(files: &[String], archive: &Path) -> String {
    let added = report(&words(&["export", "--output", archive.to_str().unwrap()], files));
    assert!(added.status.success(), "{}", err(&added));
    err(&added)
}

fn found(inputs: &[String]) -> Value {
    let found = json(&screen_report(inputs, &["--format", "json"]));
    assert_valid("report", &found);
    found
}

fn verdicts(found: &Value) -> Vec<(&str, Option<&str>)> {
    let nodes = found["screened"].as_array().unwrap().iter();
    nodes.map(|node| (node["node"].as_str().unwrap(), node["verdict"].as_str())).collect()
}

fn warnings(found: &Value) -> Vec<&str> {
    let all = found["warnings"].as_array().unwrap().iter();
    all.filter(|warning| warning["code"] == "repeated-session")
        .map(|warning| warning["message"].as_str().unwrap())
        .collect()
}

/// One session would have 21 runs of n03, most of which are fast.
#[test]
fn screens_with_the_same_label_are_sessions_of_their_own() {
    let folder = Folder::new();
    let archive = folder.path().join("archive");
    let mut all = Vec::new();
    for day in 0..3 {
        let files = weekly(day).write(&folder.path().join(day.to_string()), healthy);
        let told = export(&files, &archive);
        assert_eq!(told.contains("repeated-session"), day > 0, "{told}");
        all.extend(files);
    }
    let now = weekly(3).write(&folder.path().join("now"), n03_is_slow);
    let with_archive = [now.clone(), vec![archive.display().to_string()]].concat();
    let run_files = [all, now].concat();
    for inputs in [&with_archive, &run_files] {
        let found = found(inputs);
        let of = verdicts(&found);
        assert_eq!(of[0], ("n03", Some("SLOWED")), "{of:?}");
        assert!(of.len() == 6 && of[1..].iter().all(|(_, verdict)| *verdict == Some("OK")), "{of:?}");
        let node = &found["screened"][0];
        assert_eq!((&node["kernels"]["triad"]["runs"], &node["suggests_drain"]), (&7.into(), &true.into()));
        let [told] = &warnings(&found)[..] else { panic!("{}", found["warnings"]) };
        assert!(
            told.contains(" the same label session=weekly as ") && told.contains("weekly series3"),
            "{told}"
        );
        // Each earlier screen is a session of the history.
        assert_eq!(found["sessions"]["most"], 4);
    }
    // The user selects run files by their label.
    let selected =
        json(&report(&words(&["report", "--format", "json", "--where", "session=weekly"], &run_files)));
    assert_eq!(selected["sessions"]["most"], 4);
    let text = out(&screen_report(&with_archive, &[]));
    assert!(
        text.contains(
            "warning: 1 screen has the same label session=weekly as earlier screens in the archive"
        ),
        "{text}"
    );
}

/// A wrong result or a failure of an earlier screen is not one of this screen.
#[test]
fn failures_stay_in_their_screen() {
    let folder = Folder::new();
    let before = weekly(0).write(&folder.path().join("before"), |at| match at.node {
        2 => Outcome::IsWrong,
        3 => Outcome::Fails,
        _ => Outcome::Times(1.0),
    });
    let now = weekly(1).write(&folder.path().join("now"), |at| match at.node {
        4 => Outcome::IsWrong,
        _ => Outcome::Times(1.0),
    });
    let found = found(&[before, now].concat());
    let of = verdicts(&found);
    assert_eq!(of[0], ("n04", Some("WRONG")), "{of:?}");
    assert!(of[1..].iter().all(|(_, verdict)| *verdict == Some("OK")), "{of:?}");
    let wrong: Vec<(&str, &str, u64)> = found["wrong"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| {
            (of["node"].as_str().unwrap(), of["session"].as_str().unwrap(), of["results"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(wrong, [("n04", "weekly series1", 7), ("n02", "weekly", 7)]);
}

/// One job per node, all with the same label: the nodes are compared as if one screen had measured them.
#[test]
fn screens_of_different_nodes_share_a_session() {
    let folder = Folder::new();
    let mut files = Vec::new();
    for node in 0..6 {
        let of_node = Screen { nodes: node..node + 1, ..weekly(0) };
        files.extend(of_node.write_changed(&folder.path().join(node.to_string()), n03_is_slow, |run| {
            run.header.run_id += &format!("-{node}");
            run.header.series.as_mut().unwrap().id += &format!("-{node}");
        }));
    }
    let found = json(&report(&words(&["report", "--format", "json"], &files)));
    assert!(warnings(&found).is_empty(), "{}", found["warnings"]);
    let nodes = found["nodes"].as_array().unwrap();
    assert_eq!((&nodes[0]["node"], &nodes[0]["verdict"]), (&"n03".into(), &"SLOW-TAIL".into()), "{nodes:?}");
    assert!(nodes.iter().all(|node| node["session"] == "weekly"), "{nodes:?}");
}
