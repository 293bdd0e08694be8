//! Counts by place: `report --by`, `export --places`, and where slow runs are slow.

#[expect(dead_code)]
mod common;
#[path = "places/in_archives.rs"]
mod in_archives;
#[path = "places/sc18.rs"]
mod sc18;
#[path = "places/scopes.rs"]
mod scopes;
#[path = "places/tables.rs"]
mod tables;
#[path = "places/two_sockets.rs"]
mod two_sockets;

use common::{Folder, assert_valid, json, out, report};
use pmmpi::record::run_file;
use pmmpi_analysis::stats::random::Random;
use serde_json::Value;
use std::path::Path;
use two_sockets::{CORES, Like, Numbering, SOCKETS};

/// A slow run of SC18: its cores have 1.5 to 2.2 times as many L2 fills.
fn is_slow(node: usize, run: usize) -> bool {
    (node * 10 + run).is_multiple_of(13)
}

/// The cores that evictions hit: some of one socket, in each slow run others.
fn hit(node: usize, run: usize) -> Vec<u32> {
    let socket = (node + run) as u32 % SOCKETS;
    let first = (node * 7 + run) as u32 % 20;
    (0..3 + node as u32 % 3).map(|at| socket * 24 + (first + at) % 24).collect()
}

fn write_fleet(folder: &Path, nodes: usize, model: (&str, u32, u32)) {
    let mut random = Random::new(180);
    for node in 0..nodes {
        let name = format!("n{node:03}");
        let level: Vec<f64> = (0..CORES).map(|_| 1e9 * (0.2 * random.normal()).exp()).collect();
        for run in 0..10 {
            let slow = is_slow(node, run);
            let seconds = 20.0 * (1.0 + 0.001 * random.normal()) * if slow { 1.07 } else { 1.0 };
            let mut fills: Vec<f64> =
                level.iter().map(|level| level * (1.0 + 0.01 * random.normal())).collect();
            let mut evictions = vec![1e8, 1e8];
            if slow {
                for core in hit(node, run) {
                    // The other cores wait for these at barriers, and wait busily.
                    let by = 15.0 + 7.0 * random.uniform();
                    evictions[core as usize / 24] += 0.8 * (by - 1.0) * fills[core as usize];
                    fills[core as usize] *= by;
                }
            }
            let like = Like {
                node: &name,
                run,
                model,
                numbering: if node % 2 == 0 { Numbering::Adjacent } else { Numbering::Apart },
                seconds,
                cycles: vec![2.1e9 * seconds; CORES as usize],
                fills,
                evictions,
                reads: Vec::new(),
                is_bound: true,
            };
            run_file::write(folder, &like.run()).unwrap();
        }
    }
}

const SKYLAKE: (&str, u32, u32) = ("GenuineIntel", 6, 85);

const ROME: (&str, u32, u32) = ("AuthenticAMD", 23, 49);

#[test]
fn slow_runs_name_their_cores() {
    let folder = Folder::new();
    write_fleet(folder.path(), 40, SKYLAKE);
    let path = folder.path().to_str().unwrap();
    let all = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &all);
    let runs = all["slow_runs"].as_array().unwrap();
    let expected = (0..400).filter(|at| is_slow(at / 10, at % 10)).count();
    assert_eq!(runs.len(), expected);
    let (mut named, mut wrong, mut missed) = (0, 0, 0);
    for run in runs {
        assert_eq!(run["cause"], "cpi/snoop-filter", "{run}");
        let places = &run["places"];
        assert_eq!(
            (&places["by"], &places["measure"]),
            (&"core".into(), &"system_read_bytes".into()),
            "{run}"
        );
        assert_eq!((&places["compared"], &places["sockets"]), (&48.into(), &2.into()));
        let (node, at) = node_and_run(run);
        let found: Vec<u32> = places["places"]
            .as_array()
            .unwrap()
            .iter()
            .map(|place| place["core"].as_u64().unwrap() as u32)
            .collect();
        let truth = hit(node, at);
        named += found.len();
        wrong += found.iter().filter(|core| !truth.contains(core)).count();
        missed += truth.iter().filter(|core| !found.contains(core)).count();
        for place in places["places"].as_array().unwrap() {
            assert_eq!(place["socket"].as_u64(), Some(place["core"].as_u64().unwrap() / 24), "{place}");
        }
    }
    assert_eq!(missed, 0);
    // The false discovery rate is 1 %.
    assert!(wrong * 50 <= named, "{wrong} of {named}");
    // The picture shows the first eight runs: a column per core, and the slow cores in another colour.
    let page = out(&report(&["report", path, "--format", "html"]));
    let (_, picture) = page.split_once("<figcaption>Slow places").expect("a picture");
    let (picture, _) = picture.split_once("</figure>").unwrap();
    assert_eq!(picture.matches("<rect ").count(), 8 * 48);
    let slow = runs[..8].iter().map(|run| run["places"]["places"].as_array().unwrap().len());
    assert_eq!(picture.matches("<rect class=\"slow\"").count(), slow.sum::<usize>());
    assert!(picture.contains("(the first 8 of 31)"), "{picture}");
    let text = out(&report(&["report", path]));
    let line = text.lines().find(|line| line.starts_with("cpi/snoop-filter: at ")).expect(&text);
    assert!(
        line.starts_with("cpi/snoop-filter: at 3 to 5 of 48 cores, bytes into the L2 cache are 1"),
        "{line}"
    );
    assert!(line.contains(" times the usual value (31 runs; most often core "), "{line}");
}

fn node_and_run(run: &Value) -> (usize, usize) {
    let node = run["node"].as_str().unwrap()[1..].parse().unwrap();
    (node, run["run_id"].as_str().unwrap()[9..11].parse().unwrap())
}

/// A node with a slow core is slower than its class, and the report names the core.
#[test]
fn slow_nodes_name_their_cores() {
    let folder = Folder::new();
    let mut random = Random::new(5);
    for node in 0..12 {
        for run in 0..7 {
            let is_slow = node == 4;
            let seconds = 20.0 * (1.0 + 0.001 * random.normal()) * if is_slow { 1.08 } else { 1.0 };
            let mut cycles: Vec<f64> =
                (0..CORES).map(|_| 2.1e9 * seconds * (1.0 + 0.001 * random.normal())).collect();
            if is_slow {
                // All cores wait for socket 1: they are busy for as long, but its clock is slower.
                cycles[24..].iter_mut().for_each(|cycles| *cycles /= 1.2);
            }
            let like = Like {
                node: &format!("n{node:02}"),
                run,
                model: SKYLAKE,
                numbering: Numbering::Apart,
                seconds,
                cycles,
                fills: vec![1e9; CORES as usize],
                evictions: vec![1e8; 2],
                reads: Vec::new(),
                is_bound: true,
            };
            run_file::write(folder.path(), &like.run()).unwrap();
        }
    }
    let path = folder.path().to_str().unwrap();
    let all = json(&report(&["report", path, "--format", "json"]));
    assert_valid("report", &all);
    let node = &all["nodes"][0];
    assert_eq!(
        (&node["node"], &node["verdict"], &node["cause"]),
        (&"n04".into(), &"SLOW-TAIL".into(), &"frequency".into())
    );
    let places = node["places"]["places"].as_array().unwrap();
    assert_eq!((places.len(), &node["places"]["compared"]), (24, &48.into()));
    assert!(places.iter().all(|place| place["socket"] == 1 && place["core"].as_u64() >= Some(24)));
    assert!(all["nodes"].as_array().unwrap()[1..].iter().all(|node| node.get("places").is_none()));
    for format in ["text", "md"] {
        let text = out(&report(&["report", path, "--format", format]));
        assert!(text.contains("frequency: at 24 of 48 cores of socket 1, the frequency is 0.83"), "{text}");
    }
}

/// AMD's Rome has no event for evictions of a snoop filter, and its L2 fills are another event.
#[test]
fn an_amd_fleet_has_no_snoop_filter() {
    let folder = Folder::new();
    write_fleet(folder.path(), 12, ROME);
    let output = report(&["report", folder.path().to_str().unwrap(), "--format", "json"]);
    let runs = json(&output)["slow_runs"].clone();
    let causes: Vec<&Value> = runs.as_array().unwrap().iter().map(|run| &run["cause"]).collect();
    assert!(!causes.is_empty() && causes.iter().all(|cause| **cause == "cpi"), "{causes:?}");
    assert!(!out(&output).contains("snoop-filter"));
}
