//! `pmmpi report`: a small case worked by hand, all kinds of files that are not runs, and what scripts rely on.

mod common;
#[path = "report/input_files.rs"]
mod input_files;
#[path = "report/output.rs"]
mod output;
#[path = "common/runs.rs"]
mod runs;
#[path = "report/unfinished_runs.rs"]
mod unfinished_runs;

use common::*;
use pmmpi::RankId;
use pmmpi::bounds::{MaxDrift, RawClock};
use pmmpi::counters::counts::{CountRow, Counts, GroupCounts};
use pmmpi::counters::event::{Encoding, Event};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::node::{HwThread, Topology};
use pmmpi::record::{End, Run};
use proptest::prelude::*;
use runs::run;
use serde_json::json;

const HOUR: i64 = 3_600_000_000_000;

/// Two nodes, clocks an hour apart. By hand, in s: node a: a = 1, b = 2, c = 12, d = 14;
/// b: a = 0.5, b = 2.5, c = 12.5, d = 13.5.
/// L0 = max(10, 10) = 10, U0 = min(13, 13) = 13, P = (11, 12), Q = (12, 11);
/// UB = the largest min(13, P_m, Q_n) over m != n: (a, b): min(11, 11) = 11, (b, a): min(12, 12) = 12.
fn by_hand() -> Run {
    let s = 1_000_000_000;
    let b = |t: i64| t + HOUR;
    run(
        "20260101T000000.000000000Z-1",
        &[
            ("a", [0, 2 * s, 11 * s, 14 * s]),
            ("a", [s, 3 * s, 12 * s, 15 * s]),
            ("b", [b(s / 2), b(5 * s / 2), b(25 * s / 2), b(27 * s / 2)]),
        ],
    )
}

#[test]
fn a_small_case_is_as_worked_by_hand() {
    let folder = Folder::new();
    let path = folder.write(&by_hand());
    let output = report(&["report", path.to_str().unwrap(), "--format", "json"]);
    assert!(output.status.success(), "{}", err(&output));
    let report = json(&output);
    assert_valid("report", &report);
    let run = &report["runs"][0];
    assert_eq!(
        run["elapsed"],
        json!({
            "lower_ns": 10_000_000_000i64, "upper_ns": 12_000_000_000i64,
            "rank_lower_ns": 10_000_000_000i64, "rank_upper_ns": 13_000_000_000i64,
            "consistent": true, "rho_min_ppm": 0.0, "suspects": []
        })
    );
    assert_eq!((&run["ranks"], &run["nodes"], &run["end"]), (&json!(3), &json!(2), &json!("finalized")));
    assert_eq!(run["labels"], json!({"build": "O3"}));
    assert_eq!(run["null_reasons"]["series"], "the run belongs to no series");
    // Set-up 7, the shortest start barrier 2 s, the shortest end barrier 1 s, gather 3.
    assert_eq!(run["overhead_ns"], json!(3_000_000_010i64));
    let codes: Vec<_> =
        run["warnings"].as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["wide-bounds", "overhead"]);
    // a: 12 - 2 = 10 s with two of three ranks; b: 10 s with one rank. The classes differ, so there is nothing to
    // compare.
    let nodes = report["nodes"].as_array().unwrap();
    let times: Vec<_> =
        nodes.iter().map(|n| (n["node"].as_str().unwrap(), n["median_s"].as_f64().unwrap())).collect();
    assert_eq!(times, [("a", 10.0), ("b", 10.0)]);
    assert!(
        nodes.iter().all(|node| node["slowdown"].is_null() && node["null_reasons"]["slowdown"].is_string())
    );
    assert!(
        nodes.iter().all(|node| node["verdict"].is_null() && node["null_reasons"]["verdict"].is_string())
    );
}

/// Two cores with two hardware threads and one core with one: the counts of each, and the mean over cores.
#[test]
fn siblings_are_shown_each_and_their_bounds_of_all_cores() {
    let mut run = by_hand();
    let thread = |(cpu, core)| HwThread { cpu, core, socket: 0, numa: 0, last_level_cache: None };
    let threads = [(0, 0), (1, 1), (2, 0), (3, 1), (4, 2)].map(thread).to_vec();
    run.topologies = vec![Topology { threads, ..Topology::default() }];
    run.nodes[0].topology = Some(0);
    run.ranks[0].tsc = Some([1_000, 2_000]);
    let set = |name| Set {
        scope: Scope::Core,
        events: vec![(Event::counted(name, Encoding::new(0, 9)), None)],
        groups: vec![vec![0]],
    };
    let row = |(cpu, set, count)| {
        let group = GroupCounts { enabled_ns: 5, running_ns: 5, counts: vec![count] };
        CountRow { rank: RankId(0), cpu: Some(cpu), set, region: None, groups: vec![Some(group)] }
    };
    run.counts = Counts {
        sets: vec![set("ref_cycles_a"), set("ref_cycles_b")],
        rows: [(0, 0, 800), (1, 0, 100), (4, 0, 900), (2, 1, 600), (3, 1, 300)].map(row).to_vec(),
        ..Counts::default()
    };
    let folder = Folder::new();
    folder.write(&run);
    let report = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &report);
    let run = &report["runs"][0];
    let places: Vec<_> = run["places"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| {
            (place["hardware_thread"].as_u64().unwrap(), place["core"].as_u64().unwrap(), &place["values"])
        })
        .collect();
    let (a, b) = (|n: f64| json!({"ref_cycles_a": n}), |n: f64| json!({"ref_cycles_b": n}));
    let values = [a(800.0), a(100.0), b(600.0), b(300.0), a(900.0)];
    let expected = [(0, 0), (1, 1), (2, 0), (3, 1), (4, 2)];
    assert!(places.iter().map(|(cpu, core, _)| (*cpu, *core)).eq(expected), "{places:?}");
    assert!(places.iter().map(|(.., values)| *values).eq(&values), "{places:?}");
    let metric = |name: &str| {
        run["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).expect(name).clone()
    };
    // Between 400 and 600 of 1000 cycles, and between 0 and 100.
    for (name, expected) in [("smt_both_lower", 0.2), ("smt_both_upper", 0.35)] {
        let metric = metric(name);
        assert!((metric["value"].as_f64().unwrap() - expected).abs() < 1e-9, "{metric}");
        assert_eq!(metric["quality"], "partial");
        let reason = metric["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("1 of 3 cores is left out; this is core 2 of a: ref_cycles_b"),
            "{reason}"
        );
    }
    assert!(metric("smt_both")["value"].is_null() && metric("smt_both")["quality"] == "unsupported");
}

#[test]
fn keys_come_in_the_order_of_the_contract() {
    let folder = Folder::new();
    folder.write(&by_hand());
    let text = out(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    let mut last = 0;
    let keys = [
        "schema_version",
        "runs",
        "run_id",
        "command",
        "series",
        "labels",
        "job_id",
        "started_unix_ns",
        "ranks",
        "nodes",
        "end",
        "elapsed",
        "lower_ns",
        "upper_ns",
        "rank_lower_ns",
        "rank_upper_ns",
        "consistent",
        "rho_min_ppm",
        "suspects",
        "missing_ranks",
        "overhead_ns",
        "warnings",
        "node",
        "class",
        "median_run_id",
        "median_s",
        "ci_s",
        "slowdown",
        "score",
        "p_value",
        "verdict",
        "cause",
        "terms",
        "slow_runs",
        "drift",
    ];
    for key in keys {
        let at = text[last..]
            .find(&format!("\"{key}\":"))
            .unwrap_or_else(|| panic!("{key} is missing or too early"));
        last += at;
    }
}

#[test]
fn failed_and_inconsistent_runs_count_for_no_node() {
    let folder = Folder::new();
    let t = [0, 10, 1_000_000, 1_000_020];
    folder.write(&run("good", &[("a", t), ("b", t)]));
    let mut failed = run("failed", &[("a", [0, 10, 9_000_000, 9_000_020]), ("b", t)]);
    failed.ranks[1].end = End::Signaled(9);
    folder.write(&failed);
    // c's clock was stepped by one second at the end.
    let stepped = [0, 10, 1_001_000_000, 1_001_000_020];
    folder.write(&run("stepped", &[("a", t), ("b", t), ("c", stepped)]));
    let report_on = report;
    let report = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &report);
    let names: Vec<_> =
        report["nodes"].as_array().unwrap().iter().map(|n| n["node"].as_str().unwrap()).collect();
    assert!(!names.contains(&"c"), "{names:?}");
    let run = |id: &str| report["runs"].as_array().unwrap().iter().find(|run| run["run_id"] == id).unwrap();
    assert_eq!(run("stepped")["elapsed"]["suspects"], json!(["c"]));
    assert_eq!(run("stepped")["warnings"][0]["code"], "inconsistent-clocks");
    let shown = |id: &str| {
        let file = folder.path().join(format!("{id}.pmr"));
        let text = out(&report_on(&["show", file.to_str().unwrap()]));
        text.lines().find(|line| line.trim().starts_with("elapsed ")).unwrap_or_default().to_owned()
    };
    assert!(shown("stepped").ends_with("unknown: the stamps of the nodes contradict one another"));
    assert!(shown("good").contains(" between "), "{}", shown("good"));
    assert_eq!(run("failed")["end"], "signal 9");
    assert_eq!(run("failed")["warnings"][0]["code"], "failed-run");
    let a = report["nodes"].as_array().unwrap().iter().filter(|node| node["node"] == "a");
    assert!(a.clone().all(|node| node["runs"] == 1) && a.count() == 2);
}

/// 10.02 s of work on a clock that its time service makes 2000 ppm fast. By the oscillator it is 10 s, and the
/// oscillator may be off by the user's limit, 100 ppm.
#[test]
fn a_slewed_clock_is_named_and_widens_the_bounds() {
    let ms = 1_000_000;
    let mut slewed = run("slewed", &[("a", [0, 0, 10_020 * ms, 10_020 * ms])]);
    slewed.header.max_drift = MaxDrift::DEFAULT;
    slewed.ranks[0].raw = RawClock { elapsed_ns: 10_000 * ms, slack_ns: ms };
    let mut steady = slewed.clone();
    steady.header.run_id = "steady".into();
    steady.ranks[0].raw = RawClock { elapsed_ns: 10_020 * ms, slack_ns: 900 * ms };
    let folder = Folder::new();
    folder.write(&slewed);
    folder.write(&steady);
    let report = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &report);
    let runs = report["runs"].as_array().unwrap();
    let run = |id: &str| runs.iter().find(|run| run["run_id"] == id).unwrap();
    // 10.02 / 1.0021 and 10.02 / 0.9979
    let elapsed = &run("slewed")["elapsed"];
    assert_eq!(
        (&elapsed["lower_ns"], &elapsed["upper_ns"]),
        (&json!(9_999_002_095i64), &json!(10_041_086_282i64))
    );
    let warning = &run("slewed")["warnings"][0];
    assert_eq!(warning["code"], "slewed-clock");
    assert_eq!(
        warning["message"],
        "the clock of a was 2000 ppm too fast during the run; the bounds of the run are valid for rate errors of up \
         to 2100 ppm"
    );
    // 10.02 / 1.0001
    assert_eq!(run("steady")["elapsed"]["lower_ns"], json!(10_018_998_100i64));
    assert_eq!(run("steady")["warnings"], json!([]));
}

#[test]
fn a_slow_node_is_on_top() {
    let folder = Folder::new();
    for i in 0..7i64 {
        let fast = [0, 0, 1_000_000_000 + i, 1_200_000_000];
        let slow = [0, 0, 1_100_000_000 + i, 1_200_000_000];
        folder.write(&run(&format!("run-{i}"), &[("n0", fast), ("n1", fast), ("n2", slow), ("n3", fast)]));
    }
    let args = ["report", folder.path().to_str().unwrap()];
    let report_json = json(&report(&[args[0], args[1], "--format", "json"]));
    let top = &report_json["nodes"][0];
    assert_eq!((top["node"].as_str(), top["runs"].as_u64()), (Some("n2"), Some(7)));
    assert_eq!(top["median_run_id"], "run-3");
    assert!((top["slowdown"].as_f64().unwrap() - 0.1).abs() < 1e-6);
    assert_eq!(top["ci_s"], json!([1.1, 1.100000006]));
    let text = out(&report(&args));
    assert!(text.lines().any(|line| line.starts_with("n2") && line.contains("+10.00 %")), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours where nobody asked for them");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The median run, its interval and the slowdown equal those from sorting by hand.
    #[test]
    fn nodes_are_what_sorting_says(times in proptest::collection::vec(
        proptest::collection::vec(1_000_000i64..2_000_000, 3), 1..12))
    {
        let hosts = ["n0", "n1", "n2"];
        let runs: Vec<_> = times.iter().enumerate().map(|(i, row)| {
            let ranks: Vec<_> = hosts.iter().zip(row).map(|(host, work)| (*host, [0, 0, *work, 3_000_000])).collect();
            run(&format!("run-{i:02}"), &ranks)
        }).collect();
        let results = pmmpi_analysis::report::of_runs(&runs, &Default::default(), &Default::default()).results;
        let nodes =
            pmmpi_analysis::verdicts::judge(&results.table, &results.order, &Default::default()).nodes;
        let mut medians: Vec<(&str, f64)> = Vec::new();
        for (host, name) in hosts.iter().enumerate() {
            let mut column: Vec<(i64, String)> =
                times.iter().enumerate().map(|(i, row)| (row[host], format!("run-{i:02}"))).collect();
            column.sort();
            let (work, run_id) = &column[(column.len() - 1) / 2];
            let found = nodes.iter().find(|node| *node.node == **name).unwrap();
            prop_assert_eq!(&*found.median_run_id, run_id);
            prop_assert_eq!(found.runs, times.len());
            prop_assert_eq!(found.ci_s.is_some(), times.len() >= 5);
            if let Some([low, high]) = found.ci_s {
                prop_assert!(low <= found.median_s && found.median_s <= high, "{low} {high}");
            }
            // For an even number, the geometric mean of the middle two.
            let other = column[column.len() / 2].0;
            let median = (*work as f64 * other as f64).sqrt();
            prop_assert!((found.median_s - median / 1e9).abs() < 1e-12, "{} {}", found.median_s, median);
            medians.push((*name, median));
        }
        for node in &nodes {
            let own = medians.iter().find(|(name, _)| **name == *node.node).unwrap().1;
            let others: f64 = medians.iter().filter(|(name, _)| **name != *node.node).map(|(_, time)| time).product();
            prop_assert!((node.slowdown.unwrap() - (own / others.sqrt() - 1.0)).abs() < 1e-9);
        }
    }
}
