//! Tables of `report --by`: each place has its own counts.

use super::SKYLAKE;
use super::common::{Folder, assert_valid, json, out, report};
use super::two_sockets::{CORES, Like, Numbering};
use pmmpi::record::run_file;
use pmmpi_analysis::stats::random::Random;
use serde_json::Value;

/// One run of 6 nodes; a rank has its own core's counts, whatever the kernel calls its hardware threads.
#[test]
fn each_core_has_its_own_counts() {
    for numbering in [Numbering::Adjacent, Numbering::Apart] {
        let folder = Folder::new();
        let like = Like {
            node: "n1",
            run: 0,
            model: SKYLAKE,
            numbering,
            seconds: 20.0,
            cycles: (0..CORES).map(|core| 1e10 + f64::from(core) * 1e8).collect(),
            fills: (0..CORES).map(|core| f64::from(core + 1) * 1e6).collect(),
            evictions: vec![20.0, 40.0],
            reads: Vec::new(),
            is_bound: true,
        };
        run_file::write(folder.path(), &like.run()).unwrap();
        let by = |level: &str| {
            let all = json(&report(&[
                "report",
                folder.path().to_str().unwrap(),
                "--by",
                level,
                "--format",
                "json",
            ]));
            assert_valid("report", &all);
            all["by_place"].clone()
        };
        let cores = by("core");
        let places = cores["places"].as_array().unwrap();
        assert_eq!(places.len(), 48, "{numbering:?}");
        for place in places {
            let core = place["core"].as_u64().unwrap();
            assert_eq!(place["socket"].as_u64(), Some(core / 24));
            assert_eq!(place["events"]["cycles"].as_f64(), Some(1e10 + core as f64 * 1e8));
            assert_eq!(place["events"]["system_read_bytes"].as_f64(), Some((core + 1) as f64 * 64e6));
            let metric = |name: &str| place["metrics"][name].as_f64().unwrap();
            assert!((metric("read_bandwidth") - (core + 1) as f64 * 64e6 / 20.0).abs() < 1.0);
            assert!((metric("ipc") - 4e10 / (1e10 + core as f64 * 1e8)).abs() < 1e-9);
            // One busy thread per core: its utilisation is its own, not a share of the node.
            assert!((metric("utilisation") - 1.0).abs() < 1e-6, "{place}");
            assert!((metric("busy_threads") - 1.0).abs() < 1e-6, "{place}");
            // Counts of a socket belong to no core.
            assert!(place["events"].get("snoop_filter_evictions").is_none());
        }
        let sockets = by("socket");
        let evictions: Vec<f64> = sockets["places"]
            .as_array()
            .unwrap()
            .iter()
            .map(|place| place["metrics"]["snoop_filter_eviction_rate"].as_f64().unwrap())
            .collect();
        assert_eq!(evictions, [1.0, 2.0]);
        let sum = |places: &Value, event: &str| -> f64 {
            places["places"]
                .as_array()
                .unwrap()
                .iter()
                .map(|place| place["events"][event].as_f64().unwrap())
                .sum()
        };
        let node = by("node");
        for event in ["cycles", "instructions", "l2_lines_in"] {
            let whole = node["places"][0]["events"][event].as_f64().unwrap();
            for level in [&cores, &sockets, &by("numa"), &by("rank")] {
                assert_eq!(sum(level, event), whole, "{event}");
            }
        }
        assert_eq!(node["places"][0]["metrics"]["snoop_filter_eviction_rate"].as_f64(), Some(1.5));
    }
}

/// Ranks that may run everywhere have no core; they can still be told apart.
#[test]
fn unbound_ranks_have_no_core() {
    let folder = Folder::new();
    for run in 0..10 {
        let slow = run == 6;
        let mut random = Random::new(run as u64);
        let mut fills: Vec<f64> = (0..CORES).map(|_| 1e9 * (1.0 + 0.01 * random.normal())).collect();
        if slow {
            (fills[7], fills[30]) = (2e10, 3e10);
        }
        let seconds = 20.0 * (1.0 + 0.0005 * random.normal()) * if slow { 1.1 } else { 1.0 };
        let like = Like {
            node: "n1",
            run,
            model: SKYLAKE,
            numbering: Numbering::Apart,
            seconds,
            cycles: vec![2.1e9 * seconds; CORES as usize],
            fills,
            evictions: vec![1e8, if slow { 4e10 } else { 1e8 }],
            reads: Vec::new(),
            is_bound: false,
        };
        run_file::write(folder.path(), &like.run()).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let all = json(&report(&["report", path, "--by", "core", "--format", "json"]));
    assert_valid("report", &all);
    let places = all["by_place"]["places"].as_array().unwrap();
    assert_eq!((places.len(), &places[0]["core"], &places[0]["runs"]), (1, &Value::Null, &9.into()));
    assert!(places[0]["null_reasons"]["core"].as_str().unwrap().contains("several cores"));
    assert_eq!(places[0]["slow"]["runs"], 1);
    let slow = &all["slow_runs"][0]["places"];
    let ranks: Vec<u64> =
        slow["places"].as_array().unwrap().iter().map(|place| place["rank"].as_u64().unwrap()).collect();
    assert_eq!((&slow["by"], ranks), (&"rank".into(), vec![7, 30]), "{slow}");
    let text = out(&report(&["report", path, "--by", "rank"]));
    assert!(text.contains("cpi/snoop-filter: at ranks 7, 30, bytes into the L2 cache are "), "{text}");
    assert!(text.contains("read_bandwidth x "), "{text}");
}
