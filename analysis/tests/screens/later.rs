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
    let said = "the input has 2 sessions that began after this screen: the report does not count them";
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
    screen(7, 0..6).write(&archive, n03_is_slow);
    let is_same = |found: &Value| {
        assert_eq!(before["screened"], found["screened"]);
        let mut runs = found["runs"].as_array().unwrap().iter();
        assert!(runs.all(|run| run["run_id"].as_str().unwrap().starts_with("day5-")), "{}", found["runs"]);
    };
    is_same(&found(&now, &archive, &[]));
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
