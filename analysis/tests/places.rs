//! Counts by place: `report --by`, `export --places`, and where slow runs are slow.

#[expect(dead_code)]
mod common;
#[path = "places/sc18.rs"]
mod sc18;
#[path = "places/two_sockets.rs"]
mod two_sockets;

use common::{Folder, assert_valid, err, json, out, report};
use pmmpi::RankId;
use pmmpi::counters::counts::{CountRow, GroupCounts};
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::record::run_file;
use pmmpi_analysis::stats::random::Random;
use polars::prelude::*;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::ParquetWriter;
use serde_json::Value;
use std::fs::File;
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

/// A run of a node whose cores all do the same.
fn steady(run: usize, is_bound: bool) -> Like<'static> {
    Like {
        node: "n1",
        run,
        model: SKYLAKE,
        numbering: Numbering::Apart,
        seconds: 20.0,
        cycles: vec![2.1e9 * 20.0; CORES as usize],
        fills: vec![1e9; CORES as usize],
        evictions: vec![1e8; 2],
        reads: Vec::new(),
        is_bound,
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

/// With `--scope core`, all cores show what ran on their hardware threads: also those of cores with a bound rank.
#[test]
fn a_table_has_the_counts_of_one_scope() {
    let folder = Folder::new();
    let like = steady(0, true);
    let mut run = like.run();
    let events =
        ["cycles", "ref_cycles"].map(|name| (Event::counted(name, Encoding::new(kind::RAW, 0)), None));
    run.counts.sets.push(Set { scope: Scope::Core, events: events.into(), groups: vec![vec![0, 1]] });
    // The first hardware thread of a core is busy for half of the time, the second for a tenth.
    let ticks = 2.1e9 * 20.0;
    for cpu in 0..2 * CORES {
        let busy = ticks * if cpu < CORES { 0.5 } else { 0.1 };
        let counts = [1.2 * busy, busy].map(|count| count as u64).to_vec();
        let groups = vec![Some(GroupCounts { enabled_ns: 100, running_ns: 100, counts })];
        run.counts.rows.push(CountRow { rank: RankId(0), cpu: Some(cpu), set: 2, region: None, groups });
    }
    run_file::write(folder.path(), &run).unwrap();
    let path = folder.path().to_str().unwrap();
    for (by, number) in [("core", 48), ("socket", 2)] {
        let all = json(&report(&["report", path, "--by", by, "--format", "json"]));
        assert_valid("report", &all);
        let places = all["by_place"]["places"].as_array().unwrap();
        assert_eq!(places.len(), number);
        for place in places {
            let metrics = &place["metrics"];
            let utilisation = metrics["core_utilisation"].as_f64().unwrap();
            assert!((utilisation - 0.3).abs() < 1e-3, "{place}");
            assert!(metrics["busy_threads"].is_null() && metrics["ipc"].is_null(), "{place}");
        }
    }
    let all = json(&report(&["report", path, "--by", "thread", "--format", "json"]));
    assert_valid("report", &all);
    let threads = all["by_place"]["places"].as_array().unwrap();
    assert_eq!((threads.len(), &all["by_place"]["by"]), (96, &"thread".into()));
    for thread in threads {
        let expected = if thread["hardware_thread"].as_u64().unwrap() < 48 { 0.5 } else { 0.1 };
        let utilisation = thread["metrics"]["core_utilisation"].as_f64().unwrap();
        assert!((utilisation - expected).abs() < 1e-3, "{thread}");
    }
    let csv = out(&report(&["report", path, "--by", "thread", "--format", "csv"]));
    assert!(csv.lines().next().unwrap().ends_with(",value,hardware_thread"), "{csv}");
    let all = json(&report(&["report", path, "--by", "rank", "--format", "json"]));
    let ranks = all["by_place"]["places"].as_array().unwrap();
    let has = |name: &str| ranks.iter().all(|rank| rank["metrics"][name].is_f64());
    assert!(ranks.len() == 48 && has("utilisation") && has("ipc"), "{ranks:?}");
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

/// Unbound ranks are of no core. Where cores show their hardware threads, the work has no row of these ranks, but a region,
/// which has no counts of hardware threads, keeps its row.
#[test]
fn regions_of_unbound_ranks_stay() {
    let folder = Folder::new();
    let like = steady(0, false);
    let mut run = like.run();
    let of_region = run.counts.rows.iter().filter(|row| row.set == 0).cloned();
    let of_region: Vec<CountRow> = of_region.map(|row| CountRow { region: Some(0), ..row }).collect();
    run.counts.regions.push("solve".into());
    run.counts.rows.extend(of_region);
    let events = vec![(Event::counted("cycles", Encoding::new(kind::RAW, 0)), None)];
    run.counts.sets.push(Set { scope: Scope::Core, events, groups: vec![vec![0]] });
    for cpu in 0..2 * CORES {
        let groups = vec![Some(GroupCounts { enabled_ns: 100, running_ns: 100, counts: vec![1_000] })];
        run.counts.rows.push(CountRow { rank: RankId(0), cpu: Some(cpu), set: 2, region: None, groups });
    }
    run_file::write(folder.path(), &run).unwrap();
    let path = folder.path().to_str().unwrap();
    let all = json(&report(&["report", path, "--by", "core", "--format", "json"]));
    let places = all["by_place"]["places"].as_array().unwrap();
    let regions: Vec<&Value> = places.iter().filter(|place| place["region"] == "solve").collect();
    assert_eq!((places.len() - regions.len(), regions.len()), (48, 1), "{places:#?}");
    assert_eq!(regions[0]["events"]["cycles"].as_f64(), Some(2.1e9 * 20.0 * 48.0), "{}", regions[0]);
}

/// Runs with and without `--scope core` count two different things. A median has the counts of most runs only.
#[test]
fn runs_with_another_scope_are_not_in_the_table() {
    let folder = Folder::new();
    for number in 0..5 {
        let like = steady(number, true);
        let mut run = like.run();
        if number < 3 {
            let events = vec![(Event::counted("cycles", Encoding::new(kind::RAW, 0)), None)];
            run.counts.sets.push(Set { scope: Scope::Core, events, groups: vec![vec![0]] });
            for cpu in 0..2 * CORES {
                let counts = vec![5_000];
                let groups = vec![Some(GroupCounts { enabled_ns: 100, running_ns: 100, counts })];
                let row = CountRow { rank: RankId(0), cpu: Some(cpu), set: 2, region: None, groups };
                run.counts.rows.push(row);
            }
        }
        run_file::write(folder.path(), &run).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let archive = Folder::new();
    let to = archive.path().to_str().unwrap();
    assert!(report(&["export", "--places", path, "-o", to]).status.success());
    let message = |all: &Value| {
        let warnings = all["warnings"].as_array().unwrap().iter();
        let mixed = warnings.filter(|warning| warning["code"] == "mixed-scopes");
        mixed.map(|warning| warning["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for path in [path, to] {
        let all = json(&report(&["report", path, "--by", "core", "--format", "json"]));
        assert_valid("report", &all);
        let [told] = &message(&all)[..] else { panic!("{all:#}") };
        assert!(
            told.starts_with(
                "--by core: the counts of 2 of 5 runs are not in the table: these runs counted threads of ranks, but most \
                 runs counted hardware threads (--scope core) ("
            ),
            "{told}"
        );
        let places = all["by_place"]["places"].as_array().unwrap();
        assert_eq!(places.len(), CORES as usize);
        for place in places {
            let shown = (&place["scope"], &place["runs"], place["events"]["cycles"].as_f64());
            assert_eq!(shown, (&"core".into(), &3.into(), Some(10_000.0)), "{place}");
        }
        // All runs have counts of ranks.
        let all = json(&report(&["report", path, "--by", "rank", "--format", "json"]));
        assert_eq!(message(&all), Vec::<String>::new());
        let places = all["by_place"]["places"].as_array().unwrap();
        let is_of_five = |place: &Value| (&place["scope"], &place["runs"]) == (&"task".into(), &5.into());
        assert!(places.len() == CORES as usize && places.iter().all(is_of_five), "{places:?}");
    }
}

/// An archive with places answers like the run files, and a second export adds nothing.
#[test]
fn an_archive_keeps_places() {
    let folder = Folder::new();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    write_fleet(&runs, 6, SKYLAKE);
    let archive = folder.path().join("archive");
    let (runs, archive) = (runs.to_str().unwrap(), archive.to_str().unwrap());
    let export = |args: &[&str]| out(&report(&[&["export", runs, "-o", archive], args].concat()));
    assert!(export(&[]).starts_with("60 rows added"));
    let all =
        |path: &str, args: &[&str]| json(&report(&[&["report", path, "--format", "json"], args].concat()));
    let by = ["--by", "core"];
    let without = all(archive, &by);
    assert_eq!(without["by_place"]["places"].as_array().map(Vec::len), Some(0));
    assert!(
        without["warnings"].to_string().contains("60 runs of an archive have no counts by place"),
        "{without}"
    );
    let text = export(&["--places"]);
    assert!(
        text.contains("0 rows added")
            && text.contains("60 were already there; counts by place of 60 runs added"),
        "{text}"
    );
    assert!(export(&["--places"]).contains("; counts by place of 0 runs added"));
    let (of_files, of_archive) = (all(runs, &by), all(archive, &by));
    assert_valid("report", &of_archive);
    assert_eq!(of_archive["by_place"], of_files["by_place"]);
    assert_eq!(of_archive["slow_runs"], of_files["slow_runs"]);
    assert!(of_archive["slow_runs"][0]["places"].is_object());
    let csv = out(&report(&["report", archive, "--by", "core", "--format", "csv"]));
    let head = "class,node,socket,numa,core,rank,region,runs_are,runs,kind,name,unit,value\n";
    assert!(csv.starts_with(head) && csv.contains(",slow,1,metric,read_bandwidth,B/s,"), "{}", &csv[..2000]);

    assert!(csv.contains(",event,system_read_bytes,bytes,"));

    // From this archive, no other one gets places.
    let other = folder.path().join("other");
    let output = report(&["export", archive, "-o", other.to_str().unwrap(), "--places"]);
    assert!(err(&output).contains("of 60 runs, because their run files are missing"), "{}", err(&output));

    // A file that was damaged costs only its rows.
    let places = Path::new(archive).join("_places/month=2026-11");
    let file = std::fs::read_dir(&places).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let output = report(&["report", archive, "--by", "core", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(json(&output)["warnings"].to_string().contains("unread-places"));
    let output = report(&["export", runs, "-o", archive, "--places"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains(": remove it, and export the run files again"), "{}", err(&output));
    std::fs::remove_file(&file).unwrap();
    assert!(export(&["--places"]).contains("; counts by place of 60 runs added"));
    assert_eq!(all(archive, &by)["by_place"], of_files["by_place"]);

    // What is no folder is no empty folder.
    std::fs::remove_dir_all(&places).unwrap();
    std::fs::remove_dir(places.parent().unwrap()).unwrap();
    std::fs::write(places.parent().unwrap(), "").unwrap();
    assert!(all(archive, &by)["warnings"].to_string().contains("_places cannot be read"));
    let output = report(&["export", runs, "-o", archive, "--places"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
}

/// Other programs may write the files: what they changed is refused as a whole, and no run counts twice.
#[test]
fn rows_of_other_programs_are_read_once_or_refused() {
    let folder = Folder::new();
    let runs = folder.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    write_fleet(&runs, 2, SKYLAKE);
    let archive = folder.path().join("archive");
    let (runs, archive) = (runs.to_str().unwrap(), archive.to_str().unwrap());
    out(&report(&["export", runs, "-o", archive, "--places"]));
    let places = Path::new(archive).join("_places/month=2026-11");
    let file = std::fs::read_dir(&places).unwrap().next().unwrap().unwrap().path();
    let whole = ParquetReader::new(File::open(&file).unwrap()).finish().unwrap();
    let write = |path: &Path, frame: &mut DataFrame| {
        ParquetWriter::new(File::create(path).unwrap()).finish(frame).unwrap();
    };
    let by_node = || json(&report(&["report", archive, "--by", "node", "--format", "json"]));
    let expected = by_node()["by_place"].clone();
    assert_eq!(expected["places"][0]["runs"], 9);

    // A copy of the same runs counts for nothing.
    write(&places.join("z.parquet"), &mut whole.clone());
    assert_eq!(by_node()["by_place"], expected);

    let sorted = whole.sort(["event"], SortMultipleOptions::default()).unwrap();
    let mut negative = whole.clone();
    let values = negative.column("value").unwrap().f64().unwrap().apply_values(|value| -value);
    negative.with_column(values.into_column()).unwrap();
    let mut without = whole.clone();
    without = without.drop("region").unwrap();
    for (frame, reason) in [
        (sorted, "are not next to one another"),
        (negative, "the column `value` has -"),
        (without, "it has no column `region`"),
    ] {
        // The second file has all runs, so nothing is lost.
        write(&file, &mut frame.clone());
        let all = by_node();
        assert_valid("report", &all);
        assert_eq!(all["by_place"], expected, "{reason}");
        assert!(all["warnings"].to_string().contains(reason), "{}", all["warnings"]);
        assert!(!all["warnings"].to_string().contains("no counts by place"), "{}", all["warnings"]);
    }
}
