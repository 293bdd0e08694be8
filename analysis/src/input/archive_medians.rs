//! The medians of an archive: they stand for the runs of earlier sessions, so that a report of the latest runs need not
//! read these.

use crate::input::importers::{MEDIANS_FOLDER, Results};
use crate::table::{MedianOf, Order, RunTable};
use crate::warning_codes::{Warning, WarningCode};
use pmmpi::text::count;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Lists the files of runs whose runs are in the medians, one per line, relative to the archive. Readers ignore hidden files.
pub(crate) const COVERED: &str = ".covered-files";

/// The folder with the medians of an archive. `None` if `path` has none.
pub(super) fn of_archive(path: &Path) -> Option<PathBuf> {
    Some(path.join(MEDIANS_FOLDER)).filter(|folder| folder.is_dir())
}

/// The files of runs in an archive that its medians do not cover.
pub(crate) fn not_covered<'a>(archive: &Path, files: impl Iterator<Item = &'a Path>) -> Vec<&'a Path> {
    let text = std::fs::read_to_string(archive.join(MEDIANS_FOLDER).join(COVERED)).unwrap_or_default();
    let covered: HashSet<&str> = text.lines().collect();
    let is_covered = |file: &&Path| name_in(archive, file).is_some_and(|name| covered.contains(name));
    files.filter(|file| !is_covered(file)).collect()
}

/// The name of a file in the list of covered files.
pub(crate) fn name_in<'a>(archive: &Path, file: &'a Path) -> Option<&'a str> {
    file.strip_prefix(archive).ok()?.to_str()
}

/// Warns of files of the archive that its medians do not cover.
pub(super) fn behind(archive: &Path, results: &Results) -> Option<Warning> {
    let is_run = |path: &&Path| path.starts_with(archive) && !path.starts_with(archive.join(MEDIANS_FOLDER));
    let files = results.sources.iter().filter(|source| source.is_own).map(|source| source.path.as_path());
    let missing = not_covered(archive, files.filter(is_run));
    let first = missing.first()?;
    let message = format!(
        "the medians of {} lack the runs of {}: {}{}",
        archive.display(),
        count(missing.len(), "file"),
        first.display(),
        if missing.len() > 1 { ", ..." } else { "" }
    );
    Some(Warning::new(WarningCode::MediansBehind, message))
}

/// Removes medians of runs that are in the table, and medians that were read twice.
pub(super) fn settle(results: &mut Results) {
    let table = &results.table;
    if table.medians.is_empty() {
        return;
    }
    let mut kept = vec![true; table.len()];
    for rows in results.order.groups() {
        let is_run = |row: &u32| table.median_of(*row as usize).is_none();
        if rows.len() == 1 {
            continue;
        }
        let has_runs = rows.iter().any(is_run);
        let medians = rows.iter().filter(|row| !is_run(row));
        let mut known: HashSet<[u64; 4]> = HashSet::new();
        for row in medians {
            kept[*row as usize] = !has_runs && known.insert(content(table, *row as usize));
        }
    }
    if kept.contains(&false) {
        results.table.retain(&kept);
        results.order = Order::of(&results.table);
    }
}

/// Equal for rows that say the same.
fn content(table: &RunTable, row: usize) -> [u64; 4] {
    let MedianOf { runs, deviation } = table.median_of(row).unwrap_or(MedianOf::RUN);
    let started = table.started_unix_ns[row] as u64;
    [table.elapsed_s[row].to_bits(), runs.into(), deviation.to_bits().into(), started]
}
