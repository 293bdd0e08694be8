//! An archive that has more than the times of earlier screens: sessions that began later, and run files of other screens.

use super::common::*;
use super::made::*;
use serde_json::Value;
use std::ops::Range;
use std::path::{Path, PathBuf};

fn screen(day: i64, nodes: Range<u32>) -> Screen {
    Screen { nodes, rounds: 0..7, ..Screen::of(day, 0) }
}

/// n03 is slow on day 5.
fn n03_is_slow(at: At<'_>) -> Outcome {
    Outcome::Times(if at.node == 3 && at.day == 5 { 1.3 } else { 1.0 })
}

fn archive_screen(folder: &Folder, screen: &Screen, outcome: impl Fn(At<'_>) -> Outcome) -> PathBuf {
    let archive = folder.path().join("archive");
    let files = screen.write(&folder.path().join(format!("day{}", screen.day)), outcome);
    let added = report(&words(&["export", "--output", archive.to_str().unwrap()], &files));
    assert!(added.status.success(), "{}", err(&added));
    archive
}

/// The screen of day 5.
fn of_day_5(folder: &Path) -> Vec<String> {
    screen(5, 0..6).write(folder, n03_is_slow)
}

fn found(files: &[String], more: &Path, args: &[&str]) -> Value {
    let inputs = [files, &[more.display().to_string()]].concat();
    let found = json(&screen_report(&inputs, &[args, &["--format", "json"]].concat()));
    assert_valid("report", &found);
    found
}

/// The messages about sessions that began later.
fn told(found: &Value) -> Vec<&str> {
    let all = found["warnings"].as_array().unwrap().iter();
    let of_code = all.filter(|warning| warning["code"] == "later-sessions");
    of_code.map(|warning| warning["message"].as_str().unwrap()).collect()
}

#[test]
fn sessions_that_began_after_the_screen_do_not_count() {
    let folder = Folder::new();
    for day in 0..3 {
        archive_screen(&folder, &screen(day, 0..6), n03_is_slow);
    }
    let archive = folder.path().join("archive");
    let now = of_day_5(&folder.path().join("now"));
    let before = found(&now, &archive, &[]);
    let slow = &before["screened"][0];
    assert_eq!((&slow["node"], &slow["suggests_drain"]), (&"n03".into(), &true.into()), "{slow:#}");
    assert!(told(&before).is_empty(), "{}", before["warnings"]);
    // A job on other nodes, and a screen of the same nodes whose clock was ahead.
    archive_screen(&folder, &screen(7, 10..20), n03_is_slow);
    archive_screen(&folder, &screen(9, 0..6), |at| match at.node {
        2 => Outcome::IsWrong,
        4 => Outcome::Fails,
        _ => Outcome::Times(1.0),
    });
    let after = found(&now, &archive, &[]);
    for key in ["screened", "suggestions", "wrong", "accounted", "sessions"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    let said = "the input has 2 sessions that began after this screen: the report does not use them";
    assert_eq!(told(&after), [said]);
    // A report on all runs counts all sessions.
    let all = [now.as_slice(), &[archive.display().to_string()]].concat();
    let all = json(&report(&words(&["report", "--format", "json"], &all)));
    assert!(told(&all).is_empty() && !all["wrong"].as_array().unwrap().is_empty(), "{}", all["wrong"]);
}

/// The folder of the archive is also the folder of run files of another job, which began later.
#[test]
fn run_files_in_the_archive_are_no_rounds_of_the_screen() {
    let folder = Folder::new();
    let archive = archive_screen(&folder, &screen(0, 0..6), n03_is_slow);
    let now = of_day_5(&folder.path().join("now"));
    let before = found(&now, &archive, &[]);
    assert_eq!(before["screened"][0]["node"], "n03");
    let others = screen(7, 0..6).write(&archive, n03_is_slow);
    let is_same = |found: &Value| {
        assert_eq!(before["screened"], found["screened"]);
        let mut runs = found["runs"].as_array().unwrap().iter();
        assert!(runs.all(|run| run["run_id"].as_str().unwrap().starts_with("day5-")), "{}", found["runs"]);
    };
    is_same(&found(&now, &archive, &[]));
    // The same folder by another path.
    let by_another_path = others.iter().map(|file| {
        let name = Path::new(file).file_name().unwrap();
        archive.join("..").join("archive").join(name).display().to_string()
    });
    let inputs: Vec<String> = now.iter().cloned().chain(by_another_path).collect();
    is_same(&found(&inputs, &archive, &[]));
    let inputs = [now.as_slice(), &[archive.display().to_string()]].concat();
    let suspects = out(&screen_report(&inputs, &["--suspects"]));
    assert!(suspects.lines().any(|line| line == "triad\tn03"), "{suspects}");
    // All run files are in the archive: only the id can tell.
    let there = of_day_5(&archive);
    is_same(&found(&there, &archive, &["--series", "series5"]));
}

/// `pmmpi screen` names its series: a folder for a first screen may have run files of other jobs.
#[test]
fn the_series_decides_which_runs_are_the_screen() {
    let folder = Folder::new();
    let other = folder.path().join("other");
    let now = of_day_5(&folder.path().join("now"));
    let alone = json(&screen_report(&now, &["--format", "json"]));
    assert_eq!(alone["screened"][0]["node"], "n03");
    screen(7, 0..6).write(&other, n03_is_slow);
    assert_eq!(found(&now, &other, &["--series", "series5"])["screened"], alone["screened"]);
    // Without it, the latest screen is shown.
    assert_ne!(found(&now, &other, &[])["screened"], alone["screened"]);
    let none = screen_report(&now, &["--series", "series6"]);
    assert!(none.status.code() == Some(2) && err(&none).contains("no screen in "), "{}", err(&none));
}

/// The gate of n01 and n09, of which the archive never had n09: the exit status, the nodes that passed, and the text.
fn gate_of_n01_and_n09(folder: &Folder, now: &Screen, archive: &Path) -> (Option<i32>, Value, String) {
    let files = Folder::new();
    let now = now.write(files.path(), |_| Outcome::Times(1.0));
    let inputs = [now.as_slice(), &[archive.display().to_string()]].concat();
    let findings = folder.path().join("findings.json");
    let asked = ["--gate", "n01,n09", "--findings", findings.to_str().unwrap()];
    let output = screen_report(&inputs, &asked);
    let text = std::fs::read_to_string(&findings).unwrap();
    let passed = serde_json::from_str::<Value>(&text).unwrap()["passed"].clone();
    (output.status.code(), passed, out(&output))
}

/// The clock of n00 is behind, so that sessions of the archive are in the future: here by decades, whenever this test
/// runs. An old session that seems to be earlier is not the whole history.
#[test]
fn a_gate_without_the_whole_history_of_its_node_leaves_it_open() {
    let folder = Folder::new();
    let healthy = |_: At<'_>| Outcome::Times(1.0);
    let archive = archive_screen(&folder, &screen(30_000, 0..9), healthy);
    for old in [None, Some(0)] {
        if let Some(day) = old {
            archive_screen(&folder, &screen(day, 0..9), healthy);
        }
        let (status, passed, text) = gate_of_n01_and_n09(&folder, &screen(3, 0..10), &archive);
        let why = "n01: UNDECIDED: the archive has sessions of n01 that began after this screen. By the clock \
        of the host that makes this report, these sessions began in the future, so a clock is wrong. If the clock of \
                   n00 is wrong, correct this clock and repeat the screen. Otherwise use another archive";
        assert!(text.lines().any(|line| line == why), "{text}");
        assert_eq!((status, passed), (Some(4), serde_json::json!(["n09"])), "{text}");
    }
}

/// Weeks later, the archive has sessions after the screen, and no clock is wrong.
#[test]
fn the_report_on_a_gate_can_be_made_again() {
    let folder = Folder::new();
    let healthy = |_: At<'_>| Outcome::Times(1.0);
    archive_screen(&folder, &screen(-290, 0..9), healthy);
    let archive = archive_screen(&folder, &screen(-280, 0..9), healthy);
    let (status, passed, text) = gate_of_n01_and_n09(&folder, &screen(-300, 0..10), &archive);
    assert_eq!((status, passed), (Some(0), serde_json::json!(["n01", "n09"])), "{text}");
}

/// The session `weekly` also has an earlier screen of other nodes. The session of day 3 is not a later one.
#[test]
fn sessions_between_two_screens_of_a_session_are_earlier_ones() {
    let folder = Folder::new();
    let weekly = |day, nodes| Screen { session: Some("weekly"), ..screen(day, nodes) };
    archive_screen(&folder, &weekly(1, 6..12), n03_is_slow);
    let archive = archive_screen(&folder, &screen(3, 0..6), n03_is_slow);
    let now = weekly(5, 0..6).write(&folder.path().join("now"), n03_is_slow);
    let found = found(&now, &archive, &["--series", "series5"]);
    assert!(told(&found).is_empty(), "{}", found["warnings"]);
    assert_eq!(found["sessions"]["most"], 2);
    assert_n03_is_slow(&found);
}

/// Sessions without a start are in the order of names, and `day5` is the first of them.
#[test]
fn an_undated_session_does_not_make_another_session_the_latest() {
    let folder = Folder::new();
    let named = Screen { session: Some("zz"), ..screen(3, 0..6) };
    let archive = archive_screen(&folder, &named, n03_is_slow);
    let mut inputs = of_day_5(&folder.path().join("now"));
    let undated = folder.put("undated.csv", "node,run,elapsed_s,session\nx,1,1.0,s1\n");
    inputs.push(undated.display().to_string());
    let found = found(&inputs, &archive, &["--series", "series5"]);
    let mut codes = found["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]);
    assert!(codes.any(|code| code == "undated-sessions"), "{}", found["warnings"]);
    assert_n03_is_slow(&found);
}

fn assert_n03_is_slow(found: &Value) {
    let slow = &found["screened"][0];
    assert_eq!(slow["node"], "n03", "{slow:#}");
    assert!(slow["slowdown"].as_f64().is_some_and(|slowdown| slowdown > 0.2), "{slow:#}");
}
