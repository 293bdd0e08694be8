//! Screens with the kernel net in which data arrive wrong at some nodes.

use super::common::*;
use super::made::*;
use pmmpi::RankId;
use pmmpi::record::{Link, Run};
use pmmpi::slow_links::Score;
use pmmpi::wrong_data::{self, Notice};
use serde_json::{Value, json};

/// Each node exchanges data with all others. In a round, data from a node to another one arrive wrong if `is_wrong`.
fn write(folder: &Folder, nodes: u32, is_wrong: impl Fn(u32, u32, u32) -> bool) -> Vec<String> {
    let screen = Screen { kernels: vec!["net"], ..Screen::of(0, nodes) };
    screen.write_changed(folder.path(), |_| Outcome::Times(1.0), |run| exchange(run, &is_wrong))
}

fn exchange(run: &mut Run, is_wrong: &impl Fn(u32, u32, u32) -> bool) {
    let round = run.header.series.as_ref().map_or(0, |series| series.round);
    let names: Vec<String> = run.nodes.iter().map(|node| node.key.hostname.clone()).collect();
    let seconds: Vec<f32> = run.ranks.iter().map(|rank| rank.stamps.inner_ns() as f32 / 1e9).collect();
    let screened = run.screened.as_mut().unwrap();
    for result in &mut screened.results {
        let (own, times) = (result.rank.0, seconds[result.rank.index()]);
        let mut notices = Vec::new();
        for (partner, hostname) in (0..).zip(&names).filter(|(partner, _)| *partner != own) {
            let rank = RankId(partner);
            if is_wrong(round, partner, own) {
                notices.push(Notice { hostname, rank, received: Some("a message of 8 bytes") });
            } else if is_wrong(round, own, partner) {
                notices.push(Notice { hostname, rank, received: None });
            } else {
                let (latency_ns, gigabytes_per_s) = (1500.0 * times, 12.0 / times);
                result.links.push(Link { partner: rank, latency_ns, gigabytes_per_s });
            }
        }
        result.wrong = wrong_data::text(&notices);
        let score = Score::of(&result.links).filter(|_| result.wrong.is_none());
        result.values = score.iter().map(|score| score.gigabytes_per_s).collect();
        result.seconds = score.map(|score| score.seconds);
    }
}

fn of(files: &[String]) -> Value {
    let report = json(&screen_report(files, &["--format", "json"]));
    assert_valid("report", &report);
    report
}

/// Each node's verdict. Drains are suggested for nodes that are WRONG, and for no other node.
fn verdicts(report: &Value) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    for node in report["screened"].as_array().unwrap() {
        assert_eq!(node["suggests_drain"], node["verdict"] == "WRONG", "{node:#}");
        all.push((node["node"].as_str().unwrap().to_owned(), node["verdict"].clone()));
    }
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn with_verdict(report: &Value, verdict: &str) -> Vec<String> {
    let found = verdicts(report).into_iter().filter(|(_, of)| of == verdict);
    found.map(|(name, _)| name).collect()
}

#[test]
fn of_nine_nodes_only_the_faulty_one_is_wrong() {
    let folder = Folder::new();
    let report = of(&write(&folder, 9, |_, from, to| from == 4 || to == 4));
    assert_eq!(with_verdict(&report, "WRONG"), ["n04"]);
    assert_eq!(with_verdict(&report, "OK").len(), 8, "{:?}", verdicts(&report));
    assert_eq!(report["suggestions"].as_array().unwrap().len(), 1);
    assert_eq!((&report["wrong_links"], &report["accounted"]["wrong"]), (&json!([]), &json!(1)));
    // The exchanges with the other partners count.
    for node in report["screened"].as_array().unwrap().iter().filter(|node| node["node"] != "n04") {
        let net = &node["kernels"]["net"];
        assert_eq!((&net["runs"], &net["failed_runs"]), (&json!(3), &json!(0)), "{node:#}");
        assert!(net["value"].as_f64().is_some_and(|value| value > 11.0), "{node:#}");
    }
}

#[test]
fn a_faulty_link_is_named_and_drains_no_node() {
    let folder = Folder::new();
    let files = write(&folder, 9, |_, from, to| (from, to) == (5, 2));
    let report = of(&files);
    assert_eq!(with_verdict(&report, "FAILED"), ["n02", "n05"]);
    assert_eq!(with_verdict(&report, "OK").len(), 7, "{:?}", verdicts(&report));
    assert_eq!(report["suggestions"], json!([]));
    assert_eq!(report["wrong_links"], json!([{ "from": "n05", "to": "n02" }]));
    assert_eq!(report["accounted"]["wrong"], 0);
    let text = out(&screen_report(&files, &[]));
    let sentence = "wrong data from n05 to n02: the link or one of its two nodes is faulty";
    assert!(text.contains(sentence), "{text}");
    assert!(text.contains("took too long or exchanged wrong data: n02 in net, n05 in net"), "{text}");
}

#[test]
fn of_two_nodes_none_is_drained() {
    let folder = Folder::new();
    let report = of(&write(&folder, 2, |_, from, _| from == 0));
    assert_eq!(with_verdict(&report, "FAILED"), ["n00", "n01"]);
    assert_eq!(report["wrong_links"], json!([{ "from": "n00", "to": "n01" }]));
}

/// In each round, data from the faulty node arrive wrong at two other partners, so no single round shows whose fault it is.
#[test]
fn all_rounds_together_show_the_faulty_node() {
    let folder = Folder::new();
    let report = of(&write(&folder, 9, |round, from, to| from == 4 && [round, round + 5].contains(&to)));
    assert_eq!(with_verdict(&report, "WRONG"), ["n04"]);
    assert_eq!(with_verdict(&report, "FAILED"), Vec::<String>::new());
    assert_eq!(report["wrong_links"], json!([]));
}
