//! Rows of Parquet files, and of other files beside them.

use super::common::{self, Folder, command, err, json, report};
use super::runs::run;
use super::{export, fixture, read, rows, two_months};
use pmmpi_analysis::input::importers::{self, ImportOptions};
use serde_json::Value;
use std::path::Path;

#[test]
fn files_of_every_writer_say_the_same() {
    const NEVER: i64 = i64::MAX / 60_000_000_000;
    for writer in ["duckdb", "polars", "pandas"] {
        let results = read(&fixture(&format!("{writer}.parquet")));
        let expected = [
            ("n1/1", "mon", 10.0, 29_891_490),
            ("n1/2", "mon", 10.5, 29_891_500),
            ("a-node-with-a-long-name/1", "mon", 11.25, 29_891_530),
            ("n1/1", "tue", 9.5, NEVER),
        ];
        let expected =
            expected.map(|(id, session, s, started)| (id.to_owned(), session.to_owned(), s, started));
        assert_eq!(rows(&results), expected, "{writer}");
        let cycles = &results.table.counters["cycles"];
        assert!(cycles[0] == 100.0 && cycles[1].is_nan() && cycles[2..] == [300.0, 400.0], "{writer}");
        let reasons: Vec<_> = results.rejected.iter().map(|r| (r.line, r.reason.as_str())).collect();
        assert_eq!(
            reasons,
            [(5, "elapsed_s: NaN is not a time above zero"), (6, "node is empty")],
            "{writer}"
        );
        assert_eq!((results.rejected_rows, results.unread["note"]), (2, 6), "{writer}");
        let by = ImportOptions { class_by: "sku,class".parse().unwrap(), ..ImportOptions::default() };
        let results = importers::read(&[fixture(&format!("{writer}.parquet"))], &by);
        let classes: Vec<_> = (0..4).map(|row| results.table.class_name(row)).collect();
        assert_eq!(classes, ["sku=a", "sku=a", "sku=b", "sku=a"], "{writer}");
    }
}

/// A row with an invalid name says which one, and its node does not vanish; all other rows count.
#[test]
fn an_invalid_name_costs_one_row() {
    use polars::prelude::{Column, DataFrame};
    let folder = Folder::new();
    let path = folder.path().join("names.parquet");
    let columns = vec![
        Column::new("node".into(), ["n1", "n2", "n3", "n\u{7}4", "n5", "n6"]),
        Column::new("run".into(), ["1", "", "1", "1", "1", "1"]),
        Column::new("session".into(), ["s", "s", "s\u{7}", "s", "s", "s"]),
        Column::new("class".into(), ["x", "x", "x", "x", "x\u{7}", "x"]),
        Column::new("elapsed_s".into(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ];
    let mut frame = DataFrame::new(6, columns).unwrap();
    polars_io::parquet::write::ParquetWriter::new(std::fs::File::create(&path).unwrap())
        .finish(&mut frame)
        .unwrap();
    let results = read(&path);
    let times: Vec<f64> = rows(&results).into_iter().map(|(_, _, seconds, _)| seconds).collect();
    assert_eq!(times, [1.0, 6.0]);
    let reasons: Vec<_> = results.rejected.iter().map(|r| (r.line, r.reason.as_str())).collect();
    let expected = [
        (2, "run is empty"),
        (3, "session: `s?` contains a control character"),
        (4, "node: `n?4` contains a control character"),
        (5, "class: `x?` contains a control character"),
    ];
    assert_eq!(reasons, expected);
    let found = json(&report(&["report", "--format", "json", path.to_str().unwrap()]));
    assert_eq!(found["accounted"]["unmeasured"], 3, "{}", found["accounted"]);
    let archive = folder.path().join("archive").display().to_string();
    let added = export(&[path.to_str().unwrap()], &archive);
    assert!(common::out(&added).starts_with("5 rows added"), "{}", err(&added));
    let found = json(&report(&["report", "--format", "json", &archive]));
    assert_eq!(found["accounted"]["unmeasured"], 3, "{}", found["accounted"]);
}

#[test]
fn values_of_a_long_file_are_summed() {
    let results = read(&fixture("long.parquet"));
    let runs: Vec<String> = rows(&results).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(runs, ["n1/1", "n1/2", "a-node-with-a-long-name/1", "n1/1"]);
    assert_eq!(results.table.counters["cycles"], [7.0; 4]);
    assert_eq!(results.table.counters["tsc"], [5.0; 4]);
    assert_eq!(results.rejected_rows, 3);
}

/// The file claims columns of different lengths.
#[test]
fn columns_that_do_not_fit_together_are_no_rows() {
    let folder = Folder::new();
    let good = "node,run,elapsed_s\nZ0,1,1\nZ1,1,1\n";
    let good = folder.put("good.csv", good).display().to_string();
    for name in ["columns-of-different-lengths.parquet", "more-rows-than-values.parquet"] {
        let damaged = fixture(name).display().to_string();
        let output = report(&["report", "--format", "json", &damaged, &good]);
        let report = json(&output);
        let nodes: Vec<&Value> =
            report["nodes"].as_array().unwrap().iter().map(|node| &node["node"]).collect();
        assert_eq!((nodes, output.status.code()), (vec![&"Z0".into(), &"Z1".into()], Some(1)), "{name}");
        assert!(report["warnings"].to_string().contains("is damaged: its contents contradict one another"));
        assert_eq!(err(&output), "");
    }
}

/// A sum covers one file only. If a run is in two files, a sum would miss a part of it.
#[test]
fn a_run_in_two_long_files_has_no_sums() {
    let folder = Folder::new();
    let long = std::fs::read(fixture("long.parquet")).unwrap();
    folder.put("1.parquet", &long);
    folder.put("2.parquet", &long);
    let results = read(folder.path());
    assert_eq!((results.table.len(), results.table.counters.len()), (4, 0));
    // In each file three rows without a time, and all rows of the second file.
    assert_eq!(results.rejected_rows, 3 + 3 + 12);
    assert!(results.rejected.iter().any(|row| row.reason.ends_with("join the files")));
}

/// Rejected rows do not count for sessions. A node that was never compared appears with its latest session.
#[test]
fn sessions_are_those_of_rows_that_count() {
    let folder = Folder::new();
    let csv = "node,run,elapsed_s,session,started\n\
               a,1,10,new,2026-02-01T00:00:00Z\na,2,20,old,2026-01-01T00:00:00Z\na,3,never,undated,\n";
    let output = report(&["report", "--format", "json", folder.put("a.csv", csv).to_str().unwrap()]);
    let report = json(&output);
    assert_eq!(
        (&report["nodes"][0]["session"], &report["nodes"][0]["median_s"]),
        (&"new".into(), &10.0.into())
    );
    assert!(!report["warnings"].to_string().contains("undated-sessions"), "{}", report["warnings"]);
}

/// Results beside run files, and in subfolders.
#[test]
fn results_beside_run_files_are_read_or_told() {
    let folder = Folder::new();
    folder.write(&run("own", &[("n1", [0, 10, 5_000_000_010, 5_000_000_020])]));
    std::fs::create_dir(folder.path().join("below")).unwrap();
    folder.put("below/r.csv", "node,run,elapsed_s\na,1,1\n");
    folder.put("cut.json", "{\"results\": [{\"command\": ");
    folder.put("notes.txt", "hello");
    let output = report(&["report", "--format", "json", folder.path().to_str().unwrap()]);
    let report = json(&output);
    let nodes: Vec<&str> =
        report["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_str().unwrap()).collect();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    assert_eq!(output.status.code(), Some(1));
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("cut.json") && warnings.contains("notes.txt"), "{warnings}");
}

#[test]
fn other_files_are_told() {
    let folder = Folder::new();
    let whole = std::fs::read(fixture("duckdb.parquet")).unwrap();
    let reason = |name: &str, content: &[u8]| {
        let results = read(&folder.put(name, content));
        assert_eq!((results.table.len(), results.unusable.len()), (0, 1), "{name}");
        results.unusable[0].reason.clone()
    };
    assert!(reason("cut.parquet", &whole[..whole.len() / 2]).starts_with("is damaged: "));
    assert_eq!(reason("empty.parquet", b""), "is empty");
    assert!(reason("text.parquet", b"node,run,elapsed_s\na,1,2\n").starts_with("is damaged: "));
    let piped =
        command(&["report", "-"]).stdin(std::fs::File::open(fixture("duckdb.parquet")).unwrap()).output();
    assert!(err(&piped.unwrap()).contains("cannot be read through a pipe: save the data to a file first"));
}

/// The table is also a lazy frame: Polars' medians equal those of the report.
#[test]
fn the_table_can_be_queried() {
    use polars::prelude::*;
    let folder = Folder::new();
    let csv = two_months(&folder);
    let results = read(Path::new(&csv));
    let query = results.table.lazy().unwrap().filter(col("session").eq(lit("m11")));
    let medians = query
        .group_by([col("node")])
        .agg([col("elapsed_s").median(), col("cycles").count().alias("counted")])
        .sort(["node"], SortMultipleOptions::default())
        .collect()
        .unwrap();
    assert_eq!(medians.height(), 4);
    let output = json(&report(&["report", "--format", "json", &csv]));
    for node in output["nodes"].as_array().unwrap() {
        let row = node["node"].as_str().unwrap()[1..].parse::<usize>().unwrap();
        let median = medians.column("elapsed_s").unwrap().f64().unwrap().get(row).unwrap();
        // serde_json may change the last digit.
        assert!((node["median_s"].as_f64().unwrap() - median).abs() < 1e-12, "{node}");
        assert_eq!(medians.column("counted").unwrap().u32().unwrap().get(row), Some(4));
    }
    let types = results.table.lazy().unwrap().collect_schema().unwrap();
    assert_eq!(types.get("started").unwrap().to_string(), "datetime[ns]");
}
