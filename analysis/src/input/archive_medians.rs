//! The medians of an archive: they stand for the runs of earlier sessions, so that a report of the latest runs need not
//! read these.

use crate::input::importers::{FileFormat, MEDIANS_FOLDER, Results, SourceFile};
use crate::table::Order;
use crate::table::selection::RunSelection;
use crate::table::{MedianOf, RunTable};
use crate::warnings::{FirstFew, InputWarning, Warning};
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Lists the files of runs whose runs are in the medians, and the files of the medians, one per line, relative to the
/// archive. Readers ignore hidden files.
pub(crate) const COVERED: &str = ".covered-files";

/// The archives of these files.
pub(super) fn archives(sources: &[SourceFile]) -> Vec<PathBuf> {
    let archive = |source: &SourceFile| {
        let month = source.path.parent()?;
        let is_month = month.file_name()?.as_encoded_bytes().starts_with(b"month=");
        let archive =
            month.parent().filter(|_| source.is_own && source.format == FileFormat::Parquet && is_month)?;
        (!archive.ends_with(MEDIANS_FOLDER)).then(|| archive.to_owned())
    };
    let archives: BTreeSet<PathBuf> = sources.iter().filter_map(archive).collect();
    archives.into_iter().collect()
}

/// The folder with the medians of an archive. `None` if there is none.
pub(super) fn of_archive(archive: &Path) -> Option<PathBuf> {
    Some(archive.join(MEDIANS_FOLDER)).filter(|folder| folder.is_dir())
}

/// The lines of [`COVERED`].
pub(crate) fn listed(archive: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(archive.join(MEDIANS_FOLDER).join(COVERED)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The lines of [`COVERED`]; none if a file of the medians is missing.
pub(crate) fn covered(archive: &Path) -> BTreeSet<String> {
    let lines = listed(archive);
    let is_there = |line: &String| !is_of_medians(line) || archive.join(line).is_file();
    if lines.iter().all(is_there) { lines } else { BTreeSet::new() }
}

/// True for a line of [`COVERED`] that names a file of the medians.
pub(crate) fn is_of_medians(line: &str) -> bool {
    Path::new(line).starts_with(MEDIANS_FOLDER)
}

/// The name of a file in the list of covered files.
pub(crate) fn name_in<'a>(archive: &Path, file: &'a Path) -> Option<&'a str> {
    file.strip_prefix(archive).ok()?.to_str()
}

/// Warns of files of the archive that its medians do not cover.
pub(super) fn behind(archive: &Path, results: &Results) -> Option<Warning> {
    let covered = covered(archive);
    let own = results.sources.iter().filter(|source| source.is_own).map(|source| source.path.as_path());
    let is_missing = |path: &&Path| {
        name_in(archive, path).is_some_and(|name| !is_of_medians(name) && !covered.contains(name))
    };
    let files = FirstFew::of(own.filter(is_missing), 1, Path::to_owned);
    (files.all > 0).then(|| InputWarning::MediansBehind { archive: archive.to_owned(), files }.into())
}

/// Removes the medians of sessions whose runs are in the table, and medians that were read twice. A session is judged
/// by its runs alone: a median would stand for runs that were not selected.
pub(super) fn settle(results: &mut Results, selection: &RunSelection) -> Option<Warning> {
    let table = &results.table;
    if table.medians.is_empty() {
        return None;
    }
    let groups = results.order.groups();
    let is_run = |row: &u32| table.median_of(*row as usize).is_none();
    let of = |rows: &[u32]| [table.class.at(rows[0] as usize), table.session.at(rows[0] as usize)];
    let measured: HashSet<[u32; 2]> =
        groups.iter().filter(|rows| rows.iter().any(is_run)).map(|rows| of(rows)).collect();
    let mut kept = vec![true; table.len()];
    let mut cut = BTreeSet::new();
    for rows in groups {
        let has_runs = measured.contains(&of(rows));
        if rows.len() == 1 && !has_runs {
            continue;
        }
        let mut known: HashSet<[u64; 4]> = HashSet::new();
        for row in rows.iter().filter(|row| !is_run(row)) {
            kept[*row as usize] = !has_runs && known.insert(content(table, *row as usize));
            cut.extend(table.session_name(*row as usize).filter(|_| has_runs).map(str::to_owned));
        }
    }
    if kept.contains(&false) {
        results.table.retain(&kept);
        results.order = Order::of(&results.table);
    }
    let session = cut.into_iter().next().filter(|_| selection.since.is_some())?;
    Some(InputWarning::CutSession { session }.into())
}

/// Equal for rows that say the same.
fn content(table: &RunTable, row: usize) -> [u64; 4] {
    let MedianOf { runs, deviation } = table.median_of(row).unwrap_or(MedianOf::RUN);
    let started = table.started_unix_ns[row] as u64;
    [table.elapsed_s[row].to_bits(), runs.into(), deviation.to_bits().into(), started]
}
