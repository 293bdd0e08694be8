//! `pmmpi report`: a small case worked by hand, all kinds of files that are not runs, and what scripts rely on.

mod common;
#[path = "common/runs.rs"]
mod runs;

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
use std::process::Stdio;

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
fn every_file_that_is_no_run_is_named_and_the_others_are_reported() {
    let folder = Folder::new();
    let good = folder.write(&by_hand());
    let bytes = std::fs::read(&good).unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = to;
        bytes
    };
    folder.put("empty.pmr", "");
    folder.put("foreign.pmr", "rank,node\n");
    folder.put("newer.pmr", changed(8, pmmpi::record::run_file::VERSION as u8 + 1));
    folder.put("truncated.pmr", &bytes[..bytes.len() - 1]);
    folder.put("head.pmr", &bytes[..10]);
    folder.put("damaged.pmr", changed(bytes.len() - 5, 0xff));
    folder.put("longer.pmr", [&bytes[..], b"x"].concat());
    folder.put("huge-claim.pmr", changed(23, 0x7f));
    std::fs::create_dir(folder.path().join("folder.pmr")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.pmr")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("device.pmr")).unwrap();
    let output = report(&["report", folder.path().to_str().unwrap(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(report["runs"].as_array().unwrap().len(), 1);
    let warnings = report["warnings"].as_array().unwrap();
    let found = |file: &str, code: &str| {
        warnings
            .iter()
            .any(|warning| warning["code"] == code && warning["message"].as_str().unwrap().contains(file))
    };
    for (file, code) in [
        ("empty.pmr", "empty-file"),
        ("foreign.pmr", "foreign-file"),
        ("newer.pmr", "newer-file"),
        ("truncated.pmr", "truncated-file"),
        ("head.pmr", "truncated-file"),
        ("damaged.pmr", "damaged-file"),
        ("longer.pmr", "damaged-file"),
        ("huge-claim.pmr", "truncated-file"),
        ("folder.pmr", "foreign-file"),
        ("pipe.pmr", "foreign-file"),
        ("device.pmr", "foreign-file"),
    ] {
        assert!(found(file, code), "{file}: {warnings:#?}");
    }
    assert_valid("report", &report);
}

#[test]
fn nothing_to_report_is_wrong_usage() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for args in [
        vec!["report", "/nonexistent"],
        vec!["report", folder.path().to_str().unwrap()],
        vec!["report", "--what"],
        vec!["bounds"],
        vec!["bounds", "/nonexistent"],
        vec!["nonsense"],
        vec![],
    ] {
        let output = report(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
    let run = folder.write(&by_hand());
    let both = report(&["report", run.to_str().unwrap(), &path("absent")]);
    assert_eq!(both.status.code(), Some(1));
}

#[test]
fn a_run_given_twice_counts_once() {
    let (folder, other) = (Folder::new(), Folder::new());
    let path = folder.write(&by_hand());
    std::fs::copy(&path, other.path().join("copy.pmr")).unwrap();
    let folders = [folder.path().to_str().unwrap(), other.path().to_str().unwrap(), path.to_str().unwrap()];
    let twice = report(&["report", "--format", "json", folders[0], folders[1], folders[2]]);
    assert_eq!(twice.status.code(), Some(0), "{}", err(&twice));
    assert_eq!(json(&twice)["runs"].as_array().unwrap().len(), 1);
    let mut altered = by_hand();
    altered.gather_ns += 1;
    std::fs::rename(other.write(&altered), other.path().join("altered.pmr")).unwrap();
    let conflict = report(&["report", "--format", "json", folders[0], folders[1]]);
    assert_eq!(conflict.status.code(), Some(1));
    assert!(json(&conflict)["warnings"].to_string().contains("conflicting-run"));
}

#[test]
fn the_order_of_the_files_changes_nothing() {
    let folder = Folder::new();
    let paths: Vec<String> = (0..5)
        .map(|i| {
            let t = [0, 10, 1_000_000 + i, 1_000_020 + i];
            folder.write(&run(&format!("run-{i}"), &[("a", t), ("b", t)])).to_str().unwrap().to_owned()
        })
        .collect();
    let forth: Vec<&str> =
        ["report", "--format", "json"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let back: Vec<&str> =
        ["report", "--format", "json"].into_iter().chain(paths.iter().rev().map(String::as_str)).collect();
    assert_eq!(out(&report(&forth)), out(&report(&back)));
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
        "the clock of a ran 2000 ppm fast during the run; the bounds of the run allow for 2100 ppm"
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

#[test]
fn the_first_screen_answers() {
    let folder = Folder::new();
    for i in 0..30 {
        let t = [0, 10, 1_000_000_000 + i, 1_000_000_020 + i];
        let hosts: Vec<String> = (0..40).map(|host| format!("node{host:03}")).collect();
        let ranks: Vec<(&str, [i64; 4])> = hosts.iter().map(|host| (host.as_str(), t)).collect();
        folder.write(&run(&format!("20260101T000000.0000000{i:02}Z-0123456789abcdef"), &ranks));
    }
    let text = out(&report(&["report", folder.path().to_str().unwrap()]));
    assert!(text.starts_with("30 runs, 40 nodes, 30 files\n"), "{text}");
    let first: Vec<&str> = text.lines().take(24).collect();
    assert!(first.contains(&"none of 40 nodes stands out from its class"), "{text}");
    assert!(
        first.iter().any(|line| line.starts_with("node")) && first.iter().all(|line| line.len() <= 200),
        "{text}"
    );
    assert!(
        text.contains("... and 20 earlier runs (--top 0 shows all)") && text.contains("... and 30 more rows")
    );
    let all = out(&report(&["report", "--top", "0", folder.path().to_str().unwrap()]));
    assert_eq!(all.lines().filter(|line| line.starts_with("node")).count(), 40);
}

/// Anyone may have written a run file.
#[test]
fn hostile_names_and_numbers_do_no_harm() {
    let folder = Folder::new();
    let t = [0, 10, 1_000_000, 1_000_020];
    let mut hostile = run("hostile\x1b[2J", &[("a\x1b]0;b\x07\n", t)]);
    hostile.header.command = vec!["\r\x1b[31m".into()];
    (hostile.gather_ns, hostile.ranks[0].setup_ns) = (i64::MAX, i64::MAX);
    let bytes = std::fs::read(folder.write(&hostile)).unwrap();
    folder.put("hostile.pmr", bytes);
    let output = report(&["report", folder.path().join("hostile.pmr").to_str().unwrap()]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(!out(&output).chars().any(|c| c.is_control() && c != '\n'), "{:?}", out(&output));
    let mut long = run("long", &[("a", t)]);
    long.header.command = vec!["x".repeat(100_000)];
    let text = out(&report(&["report", folder.write(&long).to_str().unwrap()]));
    assert!(text.lines().all(|line| line.len() < 400) && text.contains("(1 of 1 ranks)"), "{text}");
    let mut endless = run("endless", &[("a", t)]);
    endless.size = u32::MAX;
    let endless = json(&report(&["report", folder.write(&endless).to_str().unwrap(), "--format", "json"]));
    assert_eq!(endless["runs"][0]["missing_ranks"].as_array().unwrap().len(), 4096);
    assert_eq!(endless["runs"][0]["missing_count"], u32::MAX - 1);
}

#[test]
fn results_arrive_whole_or_not_at_all() {
    let folder = Folder::new();
    let run = folder.write(&by_hand());
    let run = run.to_str().unwrap();
    let file = folder.path().join("report.json");
    assert!(report(&["report", run, "--format", "json", "-o", file.to_str().unwrap()]).status.success());
    let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_valid("report", &written);
    // Writes into a link's target and does not replace the link: the target may be a device.
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(report(&["report", run, "-o", link.to_str().unwrap()]).status.success());
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("1 run, "));
    let nowhere = report(&["report", run, "-o", "/nonexistent/report"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(err(&nowhere).contains("cannot write the result to"));
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let status = command(&["report", run]).stdout(full).output().unwrap();
    assert_eq!(status.status.code(), Some(1));
    assert!(err(&status).contains("cannot write the result to stdout"));
    // A reader that closes the pipe early.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = command(&["report", run]).stdout(writer).output().unwrap();
    assert_eq!((status.status.code(), err(&status)), (Some(0), String::new()));
}

#[test]
fn help_fits_a_screen() {
    for args in [&["report", "--help"][..], &["export", "--help"], &["bounds", "--help"], &["--help"]] {
        let text = out(&command(args).env("COLUMNS", "80").output().unwrap());
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains("pmmpi-report"), "{text}");
    }
}

/// A run that still runs has not failed.
#[test]
fn a_run_of_which_no_end_was_seen_may_still_run() {
    let folder = Folder::new();
    let (path, file, shared) = folder.begin("live", 2);
    let report_json = || json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    let codes = |run: &serde_json::Value| -> Vec<String> {
        let warnings = run["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
    };
    let live = report_json();
    assert_valid("report", &live);
    let run = &live["runs"][0];
    let reason = json!("pmmpi did not see the end: the program may still be running");
    assert!(run["end"].is_null() && run["lost_ranks"][0]["end"].is_null());
    assert_eq!(
        (&run["null_reasons"]["end"], &run["lost_ranks"][0]["null_reasons"]["end"]),
        (&reason, &reason)
    );
    assert_eq!(codes(run), ["incomplete-run", "node-unknown"]);
    let text = out(&report(&["report", folder.path().to_str().unwrap()]));
    assert!(
        text.contains("not complete: pmmpi did not see the end: the program may still be running"),
        "{text}"
    );
    // Now the process has ended.
    shared.live().set_end(End::Signaled(9), i64::MAX);
    runs::carry(&path, &shared);
    let ended = report_json();
    assert_valid("report", &ended);
    let run = &ended["runs"][0];
    assert_eq!(
        (run["end"].as_str(), run["lost_ranks"][0]["end"].as_str()),
        (Some("signal 9"), Some("signal 9"))
    );
    assert_eq!(codes(run), ["failed-run", "incomplete-run", "node-unknown"]);
    // The run is saved as a whole between listing and reading.
    let name = path.to_str().unwrap();
    std::fs::remove_file(file).unwrap();
    assert_eq!(report(&["report", name]).status.code(), Some(2));
    folder.write(&by_hand());
    std::fs::rename(
        folder.path().join(format!("{}.pmr", by_hand().header.run_id)),
        path.with_extension("pmr"),
    )
    .unwrap();
    assert!(report(&["report", name]).status.success());
}

/// A partial run that cannot be used gets its own message, and never "no rank began".
#[test]
fn what_is_left_of_a_run_of_another_version_is_named() {
    let folder = Folder::new();
    let changed = |id: &str, at: usize, to: u8| {
        let (path, node, _) = folder.begin(id, 1);
        let mut bytes = std::fs::read(&node).unwrap();
        bytes[at] = to;
        std::fs::write(node, bytes).unwrap();
        path
    };
    let said = |path: &std::path::Path, what: &str| {
        let output = report(&["report", path.to_str().unwrap()]);
        assert!(output.status.code() == Some(2) && err(&output).contains(what), "{what}: {}", err(&output));
    };
    let other = "was written by another version of pmmpi: use `pmmpi report` of that version";
    said(&changed("other", 7, 99), other);
    said(&changed("foreign", 0, b'X'), "is not a run file of pmmpi");
    said(&changed("newer", 8, 9), "has schema 9");
    // Older versions left a file about the run, and files per node that begin with a hole.
    let old = folder.path().join("old.partial");
    std::fs::create_dir(&old).unwrap();
    std::fs::write(old.join("run"), b"PMMPI\0\0\x07and so on").unwrap();
    std::fs::write(old.join("node0-0123456789abcdef.node"), [0; 65536]).unwrap();
    said(&old, other);
    let (path, ..) = folder.begin("renamed", 1);
    let to = folder.path().join("victim.partial");
    std::fs::rename(path, &to).unwrap();
    said(&to, "the folder of this run must have the name renamed.partial");
    let (path, node, _) = folder.begin("empty", 1);
    std::fs::write(node, "").unwrap();
    said(&path, "is empty");
    // No half-written file appears under its final name.
    let (path, ..) = folder.begin("whole", 1);
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().contains("tmp")));
}

/// A folder of run files is read only if the user names it. Results beside it are read.
#[test]
fn results_beside_a_folder_of_run_files_are_read() {
    let folder = Folder::new();
    let below = folder.path().join("pmmpi-results");
    std::fs::create_dir(&below).unwrap();
    std::fs::copy(folder.write(&by_hand()), below.join("run.pmr")).unwrap();
    let beside = folder.path().join("beside");
    std::fs::create_dir(&beside).unwrap();
    std::fs::rename(&below, beside.join("pmmpi-results")).unwrap();
    std::fs::write(beside.join("results.csv"), "node,run,elapsed_s\nn1,0,1.5\nn2,0,1.6\n").unwrap();
    let found = json(&report(&["report", beside.to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &found);
    let mut nodes: Vec<&str> =
        found["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["n1", "n2"], "{found:#}");
    assert!(found["runs"].as_array().unwrap().is_empty());
    let codes: Vec<&str> =
        found["warnings"].as_array().unwrap().iter().map(|of| of["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"no-run-files"), "{codes:?}");
}

/// A large job that was killed before most of its ranks began.
#[test]
fn a_large_job_of_which_few_ranks_began_is_reported() {
    let folder = Folder::new();
    folder.begin("large", 20_000);
    let report = json(&report(&["report", folder.path().to_str().unwrap(), "--format", "json"]));
    assert_valid("report", &report);
    let run = &report["runs"][0];
    assert_eq!((&run["ranks"], &run["missing_count"]), (&json!(1), &json!(20_000)));
    let missing: Vec<u64> =
        run["missing_ranks"].as_array().unwrap().iter().map(|r| r.as_u64().unwrap()).collect();
    assert_eq!(missing, (0..4096).collect::<Vec<u64>>());
    assert_eq!(
        run["warnings"][0]["message"],
        "0 of 20000 ranks reached the end barrier; 1 did not, but left data; 19999 left no data"
    );
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

/// A child process makes the report. A signal to parent or child ends both, and no process continues to read.
#[test]
fn no_child_is_left_behind() {
    use std::io::Write;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    // In the background of a script this process ignores SIGINT, and processes that it starts inherit that.
    // SAFETY: this sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    for (signal, is_from_a_terminal) in
        [(libc::SIGTERM, false), (libc::SIGKILL, false), (libc::SIGINT, false), (libc::SIGINT, true)]
    {
        let mut report = command(&["report", "-"]);
        report.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut report = report.spawn().unwrap();
        let mut stdin = report.stdin.take().unwrap();
        // More than a pipe holds, so a process must be reading.
        stdin.write_all(b"node,run,elapsed_s\n").unwrap();
        stdin.write_all(&b"a,1,1\n".repeat(1 << 17)).unwrap();
        let pid = report.id() as i32;
        // SAFETY: the process is a child that was not yet waited for, and no other process is in its group.
        unsafe { libc::kill(if is_from_a_terminal { -pid } else { pid }, signal) };
        assert_eq!(report.wait().unwrap().signal(), Some(signal));
        while stdin.write_all(b"a,1,1\n").is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
