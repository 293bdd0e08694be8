//! The node that others waited for, as `pmmpi report` shows it.

#[expect(dead_code)]
mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use pmmpi::record::Run;
use pmmpi::regions::{RegionTotals, Regions};
use pmmpi::{NodeId, RankId};
use pmmpi_analysis::report::lateness;
use proptest::prelude::*;
use runs::run;
use serde_json::{Value, json};

const MS: i64 = 1_000_000;
const HOUR: i64 = 3_600_000_000_000;

/// Barriers of 1 ms around the work of each rank, in ms; clocks are hours apart.
fn job(run_id: &str, ranks: &[(&str, i64)]) -> Run {
    let longest = ranks.iter().map(|(_, ms)| *ms).max().unwrap();
    let stamps = |(host, ms): &(&'static str, i64)| {
        let offset = HOUR * host.bytes().map(i64::from).sum::<i64>();
        (*host, [0, MS, MS + ms * MS, 2 * MS + longest * MS].map(|t| t + offset))
    };
    let ranks: Vec<(&'static str, i64)> = ranks.iter().map(|(host, ms)| (name(host), *ms)).collect();
    run(run_id, &ranks.iter().map(stamps).collect::<Vec<_>>())
}

fn name(host: &str) -> &'static str {
    ["a", "b", "c", "d"].into_iter().find(|known| *known == host).unwrap()
}

fn reported(runs: &[Run], format: &str) -> String {
    let folder = Folder::new();
    runs.iter().for_each(|run| _ = folder.write(run));
    let output = report(&["report", folder.path().to_str().unwrap(), "--format", format]);
    assert!(output.status.success(), "{}", err(&output));
    out(&output)
}

fn reported_json(runs: &[Run]) -> Value {
    let report = serde_json::from_str(&reported(runs, "json")).unwrap();
    assert_valid("report", &report);
    report
}

/// b's rank 3 works 300 ms, the others 100, 110, 120 and 90 ms. With barriers of 1 ms on both sides, in ms: L = 110,
/// 300 and 90, P = L + 1, w = 191, 1 and 211, L0 = 300, U0 = 302. Others after b: min(111 - 300, 1) = -189; b after
/// others: min(301 - 110, 1 + 191) = 191.
#[test]
fn a_small_case_is_as_worked_by_hand() {
    let run = job("late", &[("a", 100), ("a", 110), ("b", 120), ("b", 300), ("c", 90)]);
    let report = reported_json(std::slice::from_ref(&run));
    let said = &report["runs"][0];
    // 180 ms between b's two ranks, on one clock.
    let expected = json!({
        "node": "b", "rank": 3, "sure": true,
        "lateness_s": [0.189, 0.191], "rank_lateness_s": [0.18, 0.18], "behind_median_s": [0.189, 0.191],
        // 301 ms at most; the ranks waited 201 + 191 + 181 + 1 + 211 of 5 x 301.
        "share": 0.189 / 0.301, "waiting_share": 785.0 / 1505.0,
        "null_reasons": {}
    });
    let close = |found: &Value, expected: &Value| match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() < 1e-9,
        _ => found == expected,
    };
    for (key, expected) in expected.as_object().unwrap() {
        assert!(close(&said["waited_for"][key], expected), "{key}: {} {expected}", said["waited_for"][key]);
    }
    let nodes = said["node_waits"].as_array().unwrap();
    let in_short: Vec<_> = nodes.iter().map(|n| (n["node"].as_str().unwrap(), &n["lateness_s"])).collect();
    assert_eq!(
        in_short,
        [("b", &json!([0.189, 0.191])), ("a", &json!([-0.191, -0.189])), ("c", &json!([-0.211, -0.209]))]
    );
    assert_eq!(
        (&nodes[1]["work_s"], &nodes[1]["wait_s"]),
        (&json!([0.1, 0.1, 0.11]), &json!([0.191, 0.191, 0.201]))
    );
    assert_eq!((&nodes[1]["ranks"], &nodes[1]["last_rank"]), (&json!(2), &json!(1)));
    let warning = said["warnings"].as_array().unwrap().iter().find(|w| w["code"] == "late-node").unwrap();
    let message = warning["message"].as_str().unwrap();
    let expected = "the other 2 nodes waited at least 0.1890 s (62.8 % of the elapsed time) for b; rank 3 of this node came last";
    assert_eq!(message, expected);
    let text = reported(&[run], "text");
    assert!(
        text.contains("b came last, and rank 3 was the last rank of this node; the ranks spent 52.2 % of their time waiting"),
        "{text}"
    );
    let row = text.lines().find(|line| line.starts_with("c  ") && line.contains(" to ")).unwrap();
    assert!(row.ends_with("0.09000    0.21100  -0.2110 to -0.2090"), "{text}");
}

#[test]
fn long_names_stay_in_their_column() {
    let mut run = job("long", &[("a", 100), ("b", 300)]);
    for (node, cabinet) in run.nodes.iter_mut().zip(["003", "004"]) {
        node.key.hostname = format!("{0}-cabinet-{cabinet}-of-{0}", "a-cluster-with-a-long-name");
    }
    let text = reported(&[run], "text");
    let mut lines = text.lines().skip_while(|line| !line.starts_with("WAITED FOR"));
    let later = lines.next().unwrap().find("LATER THAN").unwrap();
    for (row, node) in lines.zip(["004", "003"]) {
        assert!(row[..later].contains(node) && row[..later].ends_with("  "), "{text}");
        assert!(row[later..].contains(" to ") && !row[later..].starts_with(' '), "{text}");
    }
}

/// 3 ms of a second: proved, but too little for a table.
#[test]
fn a_little_late_is_a_line() {
    let run = job("little", &[("a", 1000), ("b", 1004)]);
    let text = reported(&[run], "text");
    assert!(
        text.contains(
            "\nin the latest run with several nodes, b came last to the end barrier, at least 0.00300 s \
             after all other nodes; "
        ),
        "{text}"
    );
    assert!(!text.contains("WAITED FOR") && !text.contains("late-node"), "{text}");
}

#[test]
fn equal_nodes_are_not_told_apart() {
    let run = job("equal", &[("a", 100), ("b", 100), ("c", 100)]);
    let report = reported_json(std::slice::from_ref(&run));
    let said = &report["runs"][0];
    assert_eq!(
        (&said["waited_for"]["sure"], &said["waited_for"]["lateness_s"]),
        (&json!(false), &json!([-0.001, 0.001]))
    );
    assert!(said["warnings"].as_array().unwrap().iter().all(|warning| warning["code"] != "late-node"));
    assert!(reported(&[run], "text").contains(
        "\nin the latest run with several nodes, the stamps do not prove which node came last to the end \
         barrier; the ranks spent 1.0 % of"
    ));
}

/// Each rank is last in one of two entries: their work is equal, and yet they wait.
#[test]
fn waiting_in_regions_is_seen_where_times_are_equal() {
    let mut run = job("regions", &[("a", 500), ("b", 500)]);
    let totals = |region: u32, rank: u32, inner: i64, wait: i64| RegionTotals {
        rank: RankId(rank),
        region,
        entries: 2,
        which: 7,
        start_barrier_ns: 2 * MS,
        inner_ns: inner * MS,
        end_barrier_ns: wait * MS,
        shortest_ns: inner * MS / 4,
        longest_ns: inner * MS * 3 / 4,
    };
    run.regions = Regions {
        names: vec!["in turns".into(), "always b".into()],
        totals: vec![totals(0, 0, 80, 20), totals(0, 1, 80, 20), totals(1, 0, 50, 51), totals(1, 1, 100, 1)],
        ..Regions::default()
    };
    let report = reported_json(&[run]);
    let regions = report["runs"][0]["regions"].as_array().unwrap();
    let shares: Vec<_> =
        regions.iter().map(|region| (&region["balance"], &region["waiting_share"])).collect();
    assert_eq!(shares, [(&json!(1.0), &json!(0.2)), (&json!(0.75), &json!(26.0 / 101.0))]);
    assert_eq!(regions[1]["slowest_node"], "b");
}

#[test]
fn where_nobody_else_waits_it_is_said_why() {
    let reason = |run: &Run| {
        let said = reported_json(std::slice::from_ref(run))["runs"][0].take();
        assert!(said["waited_for"].is_null());
        assert!(!reported(std::slice::from_ref(run), "text").contains("WAITED FOR"));
        let nodes = said["node_waits"].as_array().unwrap().clone();
        assert!(
            nodes
                .iter()
                .all(|node| node["lateness_s"].is_null() && node["null_reasons"]["lateness_s"].is_string())
        );
        (said["null_reasons"]["waited_for"].as_str().unwrap().to_owned(), nodes.len())
    };
    assert_eq!(
        reason(&job("one-rank", &[("a", 100)])),
        ("the run has only one rank, so no other rank waits".into(), 1)
    );
    let one_node = job("one-node", &[("a", 100), ("a", 200)]);
    assert_eq!(reason(&one_node), ("the run has only one node, so no other node waits".into(), 1));
    let mut incomplete = job("incomplete", &[("a", 100), ("b", 200)]);
    incomplete.size = 3;
    assert_eq!(reason(&incomplete), ("not every rank completed the measurement".into(), 0));
    let mut stepped = job("stepped", &[("a", 100), ("b", 200)]);
    stepped.ranks[0].stamps = [0, 1, 5, 6].map(|s| s * 1000 * MS).try_into().unwrap();
    assert_eq!(reason(&stepped), ("the stamps of the nodes contradict one another".into(), 0));
}

/// c is last in nine of ten runs; a and b alternate, in runs of another command; d is last once.
#[test]
fn a_node_that_is_waited_for_again_and_again_is_named() {
    let late = |number: usize, late: &str, command: &str| {
        let work = |host: &'static str| (host, if host == late { 150 } else { 100 });
        let mut run = job(&format!("{command}-{number}"), &["a", "b", "c"].map(work));
        run.header.command = vec![command.into()];
        run
    };
    let mut runs: Vec<Run> = (0..10).map(|n| late(n, if n == 3 { "a" } else { "c" }, "often")).collect();
    runs.extend((0..10).map(|n| late(n, if n % 2 == 0 { "a" } else { "b" }, "in-turns")));
    runs.push(job("alone", &[("c", 100), ("d", 200)]));
    let report = reported_json(&runs);
    let often = report["waited_for"].as_array().unwrap();
    assert_eq!(often.len(), 1, "{often:?}");
    let c = &often[0];
    assert_eq!((&c["node"], &c["command"], &c["nodes"]), (&json!("c"), &json!(["often"]), &json!(3)));
    assert_eq!((&c["runs"], &c["last"], &c["lateness_s"]), (&json!(10), &json!(9), &json!(0.049)));
    // (10 x 2 + 1) / 3^10, for eight nodes: 3, 3 and 2.
    assert!((c["p_value"].as_f64().unwrap() - 21.0 / 59049.0).abs() < 1e-12, "{c}");
    assert!((c["p_adjusted"].as_f64().unwrap() - 8.0 * 21.0 / 59049.0).abs() < 1e-12, "{c}");
    let text = reported(&runs, "text");
    assert!(
        text.contains(
            "\nother nodes often waited for 1 node: c in 9 of 10 runs (in the median of these runs, for at \
             least 32.5 % of the elapsed time)\n"
        ),
        "{text}"
    );
    // In any order of runs.
    runs.iter_mut().enumerate().for_each(|(number, run)| run.header.run_id = format!("{:03}", 999 - number));
    assert_eq!(reported_json(&runs)["waited_for"], report["waited_for"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Neither the order of ranks nor that of clocks changes the result.
    #[test]
    fn order_does_not_matter(
        ranks in proptest::collection::vec((0usize..4, 90i64..110), 2..12), turn in 0usize..12)
    {
        let ranks: Vec<_> = ranks.into_iter().map(|(host, ms)| (["a", "b", "c", "d"][host], ms)).collect();
        let run = job("run", &ranks);
        let mut turned = run.clone();
        turned.ranks.rotate_left(turn % ranks.len());
        let clocks = turned.nodes.len() as u32;
        turned.nodes.rotate_left(1);
        turned.ranks.iter_mut().for_each(|rank| rank.node = NodeId((rank.node.0 + clocks - 1) % clocks));
        let (found, again) = (lateness::of(&run, 64), lateness::of(&turned, 64));
        prop_assert_eq!(format!("{found:?}"), format!("{again:?}"));
        if let Ok(waited_for) = found.waited_for {
            // The truth: all ranks enter and leave at the same time.
            let last = |own: bool| {
                let ranks = ranks.iter().filter(|(host, _)| (*host == waited_for.node) == own);
                ranks.map(|(_, ms)| *ms).max().unwrap()
            };
            let (own, others) = (last(true), last(false));
            let truth = (own - others) as f64 / 1e3;
            let [least, most] = waited_for.lateness_s;
            prop_assert!(least <= truth && truth <= most, "{truth} {waited_for:?}");
            prop_assert_eq!(waited_for.sure, own > others + 1);
        }
    }
}
