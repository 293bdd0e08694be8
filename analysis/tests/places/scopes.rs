//! Counts by place of runs with and without `--scope core`.

use super::SKYLAKE;
use super::common::{Folder, assert_valid, json, out, report};
use super::two_sockets::{CORES, Like, Numbering};
use pmmpi::RankId;
use pmmpi::counters::counts::{CountRow, GroupCounts};
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi::record::run_file;
use serde_json::Value;

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
