//! Nodes next to their own earlier screens, of which an archive has the times. The kernels of a slowed node reach 97 % of
//! what they reached before.

use super::common::*;
use super::made::*;
use serde_json::Value;
use std::path::PathBuf;

const KERNELS: [&str; 4] = ["triad", "dgemm", "latency", "spin"];
const SLOWED: f64 = 1.0 / 0.97;

/// An archive of five screens of so many nodes, on five days.
struct Archive {
    folder: Folder,
    path: PathBuf,
}

impl Archive {
    fn of(nodes: u32, times: impl Fn(At<'_>) -> f64) -> Self {
        Self::of_outcomes(nodes, |at| Outcome::Times(times(at)))
    }

    fn of_outcomes(nodes: u32, outcome: impl Fn(At<'_>) -> Outcome) -> Self {
        let folder = Folder::new();
        let path = folder.path().join("archive");
        for day in 0..5 {
            let screen = Screen { kernels: KERNELS.to_vec(), rounds: 0..7, ..Screen::of(day, nodes) };
            let files = screen.write(&folder.path().join(format!("day{day}")), &outcome);
            let added = report(&words(&["export", "--output", path.to_str().unwrap()], &files));
            assert!(added.status.success(), "{}", err(&added));
        }
        Self { folder, path }
    }

    /// Files of the sixth screen, and the archive.
    fn then(&self, name: &str, nodes: u32, times: impl Fn(At<'_>) -> f64) -> Vec<String> {
        let screen = Screen { kernels: KERNELS.to_vec(), ..Screen::of(5, nodes) };
        let mut inputs = screen.write(&self.folder.path().join(name), |at| Outcome::Times(times(at)));
        inputs.push(self.path.display().to_string());
        inputs
    }
}

fn screened(inputs: &[String]) -> Value {
    let found = json(&screen_report(inputs, &["--format", "json"]));
    assert_valid("report", &found);
    found
}

/// The verdict of each node, by name.
fn verdicts(inputs: &[String]) -> Vec<(String, String)> {
    let found = screened(inputs);
    let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
    let nodes = found["screened"].as_array().unwrap().iter();
    let mut nodes: Vec<_> = nodes.map(|node| (text(&node["node"]), text(&node["verdict"]))).collect();
    nodes.sort();
    nodes
}

fn n00_slower(at: At<'_>) -> f64 {
    if at.node == 0 { SLOWED } else { 1.0 }
}

#[test]
fn one_node_is_judged_by_its_own_archive() {
    let archive = Archive::of(1, |_| 1.0);
    let slowed = archive.then("slowed", 1, n00_slower);
    assert_eq!(verdicts(&slowed), [("n00".to_owned(), "SLOWED".to_owned())]);
    let text = out(&screen_report(&slowed, &[]));
    assert!(text.contains("1 of 1 node is slower than in earlier screens: n00 in "), "{text}");
    assert_eq!(screen_report(&slowed, &["--fail-on", "slow"]).status.code(), Some(3));
    let healthy = archive.then("healthy", 1, |_| 1.0);
    assert_eq!(verdicts(&healthy), [("n00".to_owned(), "OK".to_owned())]);
    assert_eq!(screen_report(&healthy, &["--fail-on", "slow"]).status.code(), Some(0));
}

#[test]
fn a_node_that_slowed_down_among_others_is_found() {
    let archive = Archive::of(21, |_| 1.0);
    let found = verdicts(&archive.then("slowed", 21, n00_slower));
    assert_eq!(found[0].1, "SLOWED", "{found:?}");
    assert!(found.len() == 21 && found[1..].iter().all(|(_, verdict)| verdict == "OK"), "{found:?}");
}

/// The archive has screens of more nodes: this one cannot tell whether the room was warmer, but it has an answer.
#[test]
fn one_node_is_judged_by_an_archive_of_larger_screens() {
    for nodes in [2, 4, 6, 21] {
        let archive = Archive::of(nodes, |_| 1.0);
        let slowed = archive.then("slowed", 1, n00_slower);
        let found = screened(&slowed);
        let node = &found["screened"][0];
        assert_eq!((&node["node"], &node["verdict"]), (&"n00".into(), &"SLOWED".into()), "{nodes}: {node:#}");
        assert!(node["slowdown"].as_f64().is_some_and(|by| (0.02..0.045).contains(&by)), "{node:#}");
        let kernels = found["kernels"].as_array().unwrap();
        assert!(
            kernels.iter().all(|kernel| kernel["nodes"] == 1 && kernel["median_s"].is_f64()),
            "{kernels:?}"
        );
        assert!(node["kernels"].as_object().unwrap().values().all(|kernel| kernel["runs"] == 3), "{node:#}");
        assert_eq!(screen_report(&slowed, &["--fail-on", "slow"]).status.code(), Some(3), "{nodes}");
        let healthy = archive.then("healthy", 1, |_| 1.0);
        assert_eq!(verdicts(&healthy), [("n00".to_owned(), "OK".to_owned())], "{nodes}");
        assert_eq!(screen_report(&healthy, &["--fail-on", "slow"]).status.code(), Some(0), "{nodes}");
        let text = out(&report(&words(&["report"], &slowed)));
        assert!(text.contains("1 of 1 node is slower than in earlier screens: n00 in "), "{text}");
        assert!(!text.contains("HISTORY ignores the latest session"), "{text}");
    }
}

/// All nodes of the third and the fifth screen were 2 % slower or faster: a single node that is 2 % slower now may be in such
/// a screen.
#[test]
fn what_screens_change_for_all_nodes_is_no_change_of_one_node() {
    let archive = Archive::of(21, |at| match at.day {
        2 => 1.02,
        4 => 0.98,
        _ => 1.0,
    });
    assert_eq!(verdicts(&archive.then("as-others", 1, |_| 1.02)), [("n00".to_owned(), "OK".to_owned())]);
    assert_eq!(verdicts(&archive.then("slowed", 1, |_| 1.15)), [("n00".to_owned(), "SLOWED".to_owned())]);
}

/// No verdict on a node can show a change of all nodes: a sentence names the kernel.
#[test]
fn a_kernel_that_all_nodes_slowed_down_in_is_named() {
    let archive = Archive::of(21, |_| 1.0);
    let slower = archive.then("slower", 21, |at| if at.kernel == "triad" { 1.05 } else { 1.0 });
    let text = out(&screen_report(&slower, &[]));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" as a whole is ")).collect();
    let [line] = lines[..] else { panic!("{text}") };
    assert!(
        line.starts_with("the class of triad (21 nodes) as a whole is 5.0 % slower than it was until "),
        "{line}"
    );
    assert!(out(&report(&words(&["report"], &slower))).contains(line), "{line}");
    let same = archive.then("same", 21, |_| 1.0);
    assert!(!out(&screen_report(&same, &[])).contains("as a whole"));
}

/// A node that is as slow as it was is not healthy.
#[test]
fn a_slow_node_stays_slow_when_it_is_measured_alone() {
    let archive = Archive::of(21, |at| if at.node == 0 { 1.2 } else { 1.0 });
    let alone = |name, times: f64| verdicts(&archive.then(name, 1, move |_| times));
    let [as_before] = &alone("as-before", 1.2)[..] else { panic!("one node") };
    assert!(["SLOW", "SLOW-TAIL"].contains(&as_before.1.as_str()), "{as_before:?}");
    let still_slower = alone("slower", 1.3);
    assert_eq!(still_slower[0].1, "SLOWED");
    // Whether it is fast enough now, only its class can tell.
    assert_eq!(alone("repaired", 1.0)[0].1, "null");
}

/// Each screen checks the results again. Of an earlier screen with a wrong result, only the times count.
#[test]
fn a_node_that_was_wrong_is_judged_by_its_times_when_it_is_measured_alone() {
    let verdict = |before: f64, now: f64| {
        let archive = Archive::of_outcomes(21, |at| match at {
            At { day: 4, node: 0, kernel: "triad", round: 6 } => Outcome::IsWrong,
            At { node: 0, .. } => Outcome::Times(before),
            _ => Outcome::Times(1.0),
        });
        verdicts(&archive.then("now", 1, |_| now))[0].1.clone()
    };
    assert_eq!(verdict(1.0, 0.8), "OK");
    let as_before = verdict(1.2, 1.2);
    assert!(["SLOW", "SLOW-TAIL"].contains(&as_before.as_str()), "{as_before}");
    assert_eq!(verdict(1.2, 1.0), "null");
}

/// The slow node of an earlier screen is not a node of this one.
#[test]
fn only_the_nodes_of_the_screen_count() {
    let archive = Archive::of(21, |at| if at.node == 7 { 1.2 } else { 1.0 });
    let alone = archive.then("alone", 1, |_| 1.0);
    assert_eq!(screen_report(&alone, &["--fail-on", "slow"]).status.code(), Some(0));
    assert_eq!(report(&words(&["report", "--fail-on", "slow"], &alone)).status.code(), Some(3));
}

/// With so few nodes, nothing tells a node that became slower from a room that became warmer.
#[test]
fn few_nodes_that_slowed_down_together_are_not_avoided() {
    for nodes in [2, 4] {
        let archive = Archive::of(nodes, |_| 1.0);
        let list = |name, times: fn(At<'_>) -> f64| {
            let list = screen_report(&archive.then(name, nodes, times), &["--format", "exclude"]);
            (out(&list), err(&list))
        };
        let (one, why) = list("one", n00_slower);
        assert_eq!(one, "n00\n", "{why}");
        let (together, why) = list("together", |_| SLOWED);
        assert_eq!(together, "", "{why}");
        let said = format!(
            "on {nodes} of {nodes} nodes, triad is slower than in earlier screens, perhaps because of \
             something that all nodes share: the list ignores this slowdown"
        );
        assert!(why.contains(&said), "{why}");
    }
}
