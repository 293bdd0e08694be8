//! Results of SuperBench.

use super::common::Folder;
use super::{assert_columns_agree, class, fixture, read, reasons, row, rows, session};
use pmmpi_analysis::input::importers::{FileFormat, ImportOptions, Results};
use proptest::prelude::*;

/// `class node/run` and time for each row.
fn times(results: &Results) -> Vec<(String, f64)> {
    let rows = rows(results).into_iter().enumerate();
    rows.map(|(row, (id, s))| (format!("{} {id}", class(results, row)), s)).collect()
}

#[test]
fn repetitions_are_runs() {
    let path = fixture("superbench/2026-11-21_21-20-00/results-summary.jsonl");
    let results =
        read(&path, &ImportOptions { metric: Some("_time_avg".into()), ..ImportOptions::default() });
    let class = "tcp-connectivity/127.0.0.1_time_avg";
    let expected = [(0, 3.37), (1, 0.31)].map(|(run, ms)| (format!("{class} vm/{run}"), ms / 1e3));
    assert_eq!(times(&results), expected);
    assert_eq!((session(&results, 0), results.rejected_rows), ("2026-11-21_21-20-00", 0));
    // Counts, rates, and times that were not requested, twice each.
    assert_eq!((results.unread.len(), results.unread.values().sum::<u64>()), (5, 10));
    assert_eq!(read(&path, &ImportOptions::default()).table.len(), 6);
}

#[test]
fn each_time_is_a_row_of_a_class_of_its_own() {
    let results = read(&fixture("superbench/by-hand.jsonl"), &ImportOptions::default());
    assert_eq!(results.sources[0].format, FileFormat::Superbench);
    let mut found = times(&results);
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        ("cpu-hpl/time sb-01/0", 12.5),
        ("cpu-hpl/time sb-01/1", 12.75),
        ("cpu-hpl/time sb-02/0", 13.0),
        ("kernel-launch/event_time sb-01/0:0", 0.0059 / 1e3),
        ("kernel-launch/event_time sb-01/0:1", 0.0061 / 1e3),
        ("kernel-launch/event_time sb-02/0:0", 0.006 / 1e3),
        ("model-benchmarks:gpt/pytorch-gpt2-large/fp16_train_step_time sb-01/0", 201.5 / 1e3),
        ("nccl-bw:nvlink/allreduce_8_time sb-01/0", 31.25 / 1e6),
    ];
    assert_eq!(found, expected.map(|(id, s)| (id.to_owned(), s)));
    let mut reasons = reasons(&results);
    reasons.sort();
    let expected = [
        (2, "cpu-hpl/1/time: `\"slow\"` is not a time"),
        (2, "kernel-launch/event_time:1: `null` is not a time"),
        (2, "mem-bw/return_code failed with return code 33"),
    ];
    assert_eq!(reasons, expected);
    // A rate is not a time, and neither is a temperature.
    let unread: Vec<&str> = results.unread.keys().map(String::as_str).collect();
    let expected = [
        "mem-bw/H2D_Mem_BW",
        "model-benchmarks:gpt/pytorch-gpt2-large/fp16_train_throughput",
        "monitor/gpu_temperature",
        "nccl-bw:nvlink/allreduce_8_busbw",
    ];
    assert_eq!(unread, expected);
    assert_eq!(session(&results, 0), "superbench");
    assert_columns_agree(&results);
}

#[test]
fn a_metric_may_be_chosen() {
    let options = ImportOptions { metric: Some("cpu-hpl/time".into()), ..ImportOptions::default() };
    let results = read(&fixture("superbench/by-hand.jsonl"), &options);
    assert_eq!(rows(&results), [row("sb-01/0", 12.5), row("sb-01/1", 12.75), row("sb-02/0", 13.0)]);
    assert_eq!(results.unread["kernel-launch/event_time"], 4);
}

proptest! {
    /// A damaged line is rejected as a whole, or its remaining values are read.
    #[test]
    fn damage_of_a_line_is_told(at in any::<usize>(), byte in any::<u8>()) {
        let line = r#"{"cpu-hpl/time": 12.5, "node": "sb-01"}"#;
        let mut bytes = line.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let content = [line.as_bytes(), b"\n", &bytes, b"\n"].concat();
        let folder = Folder::new();
        let results = read(&folder.put("r.jsonl", content), &ImportOptions::default());
        let told = results.table.len() as u64 + results.rejected_rows + results.unread.values().sum::<u64>();
        prop_assert!(told >= 2, "{:?}", String::from_utf8_lossy(&bytes));
        assert_columns_agree(&results);
    }
}
