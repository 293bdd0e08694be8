//! How `pmmpi report` uses the results of `pmmpi validate`.

#[expect(dead_code)]
mod common;
#[path = "common/runs.rs"]
#[expect(dead_code)]
mod runs;

use common::*;
use pmmpi::RankId;
use pmmpi::counters::counts::{CountRow, GroupCounts};
use pmmpi::counters::event::{Encoding, Event, kind};
use pmmpi::counters::open_counters::{Scope, Set};
use pmmpi_events::validation;
use serde_json::{Value, json};

const S: i64 = 1_000_000_000;

/// One rank per node, which counted instructions, cycles and page faults for one second.
fn counted(hosts: &[(&str, u32)]) -> pmmpi::record::Run {
    let ranks: Vec<_> = hosts.iter().map(|(host, _)| (*host, [0, S, 2 * S, 3 * S])).collect();
    let mut run = runs::run("20260101T000000.000000000Z-1", &ranks);
    for (node, (_, stepping)) in run.nodes.iter_mut().zip(hosts) {
        node.facts.as_mut().unwrap().hardware.cpu_stepping = Some(*stepping);
    }
    let event = |name: &str, kind, config| (Event::counted(name, Encoding::new(kind, config)), None);
    let events = vec![
        event("cycles", kind::HARDWARE, 0),
        event("instructions", kind::HARDWARE, 1),
        event("by_another_name", kind::RAW, 0xc0),
        event("page_faults", kind::SOFTWARE, 2),
    ];
    let counts = GroupCounts { enabled_ns: S as u64, running_ns: S as u64, counts: vec![4, 8, 8, 100] };
    run.counts.sets = vec![Set { scope: Scope::Task, events, groups: vec![vec![0, 1, 2, 3]] }];
    let row = |rank| CountRow { rank, cpu: None, set: 0, region: None, groups: vec![Some(counts.clone())] };
    run.counts.rows = (0..hosts.len() as u32).map(RankId).map(row).collect();
    run
}

/// Writes what `pmmpi validate` would write for the processor of the run's node.
fn keep(folder: &Folder, run: &pmmpi::record::Run, node: usize, cycles: &str) {
    let cpu = validation::cpu_name(&run.nodes[node].facts.as_ref().unwrap().hardware);
    let verdict = |name: &str, verdict: &str, deviation: f64| json!({"name": name, "verdict": verdict, "deviation": deviation});
    let kept = json!({
        "schema_version": 1, "cpu": {"name": cpu},
        "mappings": [{"event": "vendor", "kind": 4, "config": "0xc0", "stands_for": "itself"}],
        "events": [
            verdict("cycles", cycles, 0.4), verdict("instructions", "trusted", 0.0),
            verdict("vendor", "unusable", 9.0), verdict("page_faults", "within", 0.05),
        ],
    });
    validation::keep(folder.path(), &cpu, kept.to_string().as_bytes()).unwrap();
}

fn reported(folder: &Folder, run: &pmmpi::record::Run) -> Value {
    let path = folder.write(run);
    let mut command = command(&["report", path.to_str().unwrap(), "--format", "json"]);
    let report = json(&command.env("PMMPI_TRUST", folder.path()).output().unwrap());
    assert_valid("report", &report);
    report
}

fn words(report: &Value) -> Vec<&str> {
    let counters = report["runs"][0]["counters"].as_array().unwrap();
    counters.iter().map(|counter| counter["trust"].as_str().unwrap()).collect()
}

fn metric<'a>(report: &'a Value, name: &str) -> &'a Value {
    let metrics = report["runs"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == name).unwrap()
}

fn codes(warnings: &Value) -> Vec<&str> {
    warnings.as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[test]
fn a_counter_that_failed_supports_nothing() {
    let (folder, run) = (Folder::new(), counted(&[("a", 4)]));
    keep(&folder, &run, 0, "unusable");
    let report = reported(&folder, &run);
    assert_eq!(words(&report), ["unusable", "trusted", "unusable", "within"]);
    let ipc = metric(&report, "ipc");
    assert_eq!((&ipc["value"], &ipc["supports_verdict"]), (&json!(2.0), &json!(false)));
    assert!(ipc["reason"].as_str().unwrap().starts_with("cycles: unusable"), "{ipc}");
    assert!(codes(&report["runs"][0]["warnings"]).contains(&"unusable-counters"), "{report:#}");
    keep(&folder, &run, 0, "trusted");
    let report = reported(&folder, &run);
    assert_eq!(words(&report)[0], "trusted");
    assert_eq!(metric(&report, "ipc")["supports_verdict"], true);
}

/// The worst processor decides, and nothing is known of a processor without validation.
#[test]
fn a_run_is_worth_what_its_worst_processor_is() {
    let (folder, run) = (Folder::new(), counted(&[("a", 4), ("b", 7)]));
    assert_eq!(words(&reported(&folder, &run)), ["unknown"; 4]);
    keep(&folder, &run, 0, "trusted");
    assert_eq!(words(&reported(&folder, &run)), ["unknown", "unknown", "unusable", "unknown"]);
    keep(&folder, &run, 1, "unusable");
    assert_eq!(words(&reported(&folder, &run)), ["unusable", "trusted", "unusable", "within"]);
}

#[test]
fn a_file_that_says_nothing_is_named() {
    let (folder, run) = (Folder::new(), counted(&[("a", 4)]));
    folder.put("trust-x.json", "{");
    let report = reported(&folder, &run);
    assert_eq!(words(&report), ["unknown"; 4]);
    assert!(codes(&report["warnings"]).contains(&"trust-file"), "{report:#}");
    assert_eq!(metric(&report, "ipc")["supports_verdict"], true);
}
