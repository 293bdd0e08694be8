//! Verdicts on nodes that run the same kernel round by round.

use super::common::*;
use super::made::*;
use pmmpi::RankId;
use serde_json::Value;

fn of(files: &[String]) -> Value {
    let output = screen_report(files, &["--format", "json"]);
    serde_json::from_str(&out(&output)).expect("a report")
}

fn node<'a>(report: &'a Value, name: &str) -> &'a Value {
    let nodes = report["screened"].as_array().expect("nodes");
    nodes.iter().find(|node| node["node"] == name).expect("the node")
}

/// The rounds differ by 6 %, the same on all nodes, and change slowly: without a correction, successive runs of a node look
/// alike, as if seven runs were one.
#[test]
fn a_slow_node_is_found_whatever_the_rounds_have_in_common() {
    let folder = Folder::new();
    let in_common = [0.749, 0.752, 0.761, 0.776, 0.785, 0.791, 0.794];
    let screen = Screen { rounds: 0..7, ..Screen::of(0, 5) };
    let times = |at: At<'_>| in_common[at.round as usize] * if at.node == 2 { 2.27 } else { 1.0 };
    let report = of(&screen.write(folder.path(), |at| Outcome::Times(times(at))));
    let slow = node(&report, "n02");
    assert_eq!((&slow["verdict"], &slow["suggests_drain"]), (&"SLOW-TAIL".into(), &true.into()), "{slow:#}");
    assert!(slow["slower_by_at_least"].as_f64() > Some(1.2), "{slow:#}");
    for other in ["n00", "n01", "n03", "n04"] {
        assert_eq!(node(&report, other)["verdict"], "OK");
    }
}

#[test]
fn a_failure_or_a_wrong_result_in_any_round_decides() {
    let folder = Folder::new();
    let outcome = |at: At<'_>| match (at.node, at.round) {
        (4, 1) => Outcome::Fails,
        (1, 5) => Outcome::IsWrong,
        _ => Outcome::Times(1.0),
    };
    let files = Screen { rounds: 0..7, ..Screen::of(0, 6) }.write(folder.path(), outcome);
    let report = of(&files);
    let (of_failed, of_wrong) = (node(&report, "n04"), node(&report, "n01"));
    assert_eq!((&of_failed["verdict"], &of_failed["suggests_drain"]), (&"FAILED".into(), &false.into()));
    assert_eq!((&of_wrong["verdict"], &of_wrong["suggests_drain"]), (&"WRONG".into(), &true.into()));
    assert_eq!(of_failed["kernels"]["triad"]["failed_runs"], 1);
    let suggestions = report["suggestions"].as_array().expect("suggestions");
    assert_eq!(suggestions.len(), 1);
    assert_eq!(suggestions[0]["node"], "n01");
    assert!(
        suggestions[0]["reason"].as_str().is_some_and(|why| why.starts_with("pmmpi: wrong-result: triad "))
    );
    for other in ["n00", "n02", "n03", "n05"] {
        assert_eq!(node(&report, other)["verdict"], "OK");
    }
    for node in report["nodes"].as_array().expect("nodes") {
        assert_eq!(node["suggests_drain"], node["node"] == "n01", "{node:#}");
    }
    assert_eq!(drained_in_metrics(&files), ["n01"]);
    let rows = out(&super::common::report(&words(&["report", "--format", "csv"], &files)));
    let to_drain: Vec<&str> = rows.lines().filter(|row| row.contains(",true,")).collect();
    assert!(to_drain.len() == 1 && to_drain[0].starts_with("n01,"), "{rows}");
}

/// The nodes with the advice to drain them, in the format for monitoring.
fn drained_in_metrics(files: &[String]) -> Vec<String> {
    let text = out(&super::common::report(&words(&["report", "--format", "openmetrics"], files)));
    let of_line = |line: &str| {
        let labels = line.strip_prefix("pmmpi_node_suggests_drain{node=\"")?.strip_suffix(" 1.0")?;
        Some(labels.split('"').next()?.to_owned())
    };
    text.lines().filter_map(of_line).collect()
}

/// A node that never had a time must not be missing in the metric that asks for a drain.
#[test]
fn a_node_with_wrong_results_only_is_drained_in_metrics() {
    let folder = Folder::new();
    let outcome = |at: At<'_>| if at.node == 2 { Outcome::IsWrong } else { Outcome::Times(1.0) };
    let files = Screen { rounds: 0..7, ..Screen::of(0, 6) }.write(folder.path(), outcome);
    assert_eq!(drained_in_metrics(&files), ["n02"]);
}

/// 24 nodes run three rounds; n03 and n07 take `suspects[0]` as long as the others. These two run four more rounds together
/// with five other nodes; there they take `suspects[1]` as long. All nodes take `times` as long in these four rounds.
fn with_further_rounds(times: f64, suspects: [f64; 2]) -> Value {
    let folder = Folder::new();
    let is_suspect = |at: At<'_>| [3, 7].contains(&at.node);
    let first = Screen::of(0, 24)
        .write(folder.path(), |at| Outcome::Times(if is_suspect(at) { suspects[0] } else { 1.0 }));
    let further = Screen { nodes: 3..10, rounds: 3..7, ..Screen::of(0, 24) };
    let outcome = |at: At<'_>| Outcome::Times(times * if is_suspect(at) { suspects[1] } else { 1.0 });
    let further = further.write_changed(folder.path(), outcome, |run| {
        run.screened.as_mut().expect("a screen").suspects = vec![RankId(0), RankId(4)];
    });
    of(&[first, further].concat())
}

/// Fewer nodes run, so all of them may be faster; or another job starts, and all are slower.
#[test]
fn what_further_rounds_have_in_common_is_no_verdict_on_the_suspects() {
    for times in [0.96, 1.04] {
        let healthy = with_further_rounds(times, [1.02, 1.0]);
        let slow = with_further_rounds(times, [1.06, 1.06]);
        for name in ["n03", "n07"] {
            assert_eq!(node(&healthy, name)["verdict"], "OK", "{times}: {:#}", node(&healthy, name));
            assert_eq!(node(&slow, name)["verdict"], "SLOW", "{times}: {:#}", node(&slow, name));
        }
        for name in ["n04", "n05", "n20"] {
            assert_eq!(node(&healthy, name)["verdict"], "OK", "{times}");
        }
    }
}
