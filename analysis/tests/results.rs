//! Results of other tools: files that those tools wrote, files that people write by hand, and damaged files.

#[expect(dead_code)]
mod common;
#[path = "results/csv.rs"]
mod csv;
#[path = "results/files.rs"]
mod files;
#[path = "results/hpl.rs"]
mod hpl;
#[path = "results/hyperfine.rs"]
mod hyperfine;
#[path = "results/perf.rs"]
mod perf;
#[path = "results/reframe.rs"]
mod reframe;
#[path = "results/superbench.rs"]
mod superbench;

use common::Folder;
use pmmpi_analysis::input::importers::{self, FileFormat, ImportOptions, Results};
use pmmpi_analysis::table::UNDATED;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn read(path: &Path, options: &ImportOptions) -> Results {
    importers::read(&[path.to_owned()], options)
}

fn read_csv(content: impl AsRef<[u8]>) -> Results {
    let folder = Folder::new();
    let options = ImportOptions { format: Some(FileFormat::Csv), ..ImportOptions::default() };
    read(&folder.put("results.csv", content), &options)
}

/// `node/run` and time for each row.
fn rows(results: &Results) -> Vec<(String, f64)> {
    (0..results.table.len()).map(|row| (results.table.run_id(row), results.table.elapsed_s[row])).collect()
}

fn row(id: &str, elapsed_s: f64) -> (String, f64) {
    (id.to_owned(), elapsed_s)
}

/// Line and reason of each rejected row.
fn reasons(results: &Results) -> Vec<(u64, &str)> {
    results.rejected.iter().map(|rejected| (rejected.line, rejected.reason.as_str())).collect()
}

fn class(results: &Results, row: usize) -> &str {
    results.table.classes.get(results.table.class.at(row)).unwrap()
}

fn session(results: &Results, row: usize) -> &str {
    results.table.sessions.get(results.table.session.at(row)).unwrap()
}

fn counter(results: &Results, name: &str) -> Vec<Option<f64>> {
    results.table.counters[name].iter().map(|value| Some(*value).filter(|value| !value.is_nan())).collect()
}

fn started(results: &Results) -> Vec<Option<i64>> {
    results.table.started_unix_ns.iter().map(|ns| Some(*ns).filter(|ns| *ns != UNDATED)).collect()
}

/// File and line of each row.
fn origins(results: &Results) -> Vec<(u32, u64)> {
    let origins = &results.table.origins;
    (0..results.table.len()).map(|row| (origins.source(row), origins.line(row))).collect()
}

fn assert_columns_agree(results: &Results) {
    let rows = results.table.len();
    let lengths = [
        results.table.origins.sources().count(),
        results.table.node.len(),
        results.table.run.len(),
        results.table.class.len(),
        results.table.session.len(),
        results.table.started_unix_ns.len(),
    ];
    assert_eq!(lengths, [rows; 6]);
    assert!(results.table.counters.values().all(|values| values.len() == rows));
    assert_eq!(results.sources.iter().map(|source| source.rows).sum::<u64>(), rows as u64);
    assert_eq!(results.sources.iter().map(|s| s.rejected_rows).sum::<u64>(), results.rejected_rows);
    assert!(results.table.elapsed_s.iter().all(|s| s.is_finite() && *s > 0.0));
    assert!(results.table.node.iter().all(|node| results.table.nodes.get(node).is_some()));
}
