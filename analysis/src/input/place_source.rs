//! Reads what was counted at each place, for the runs that a report asks for: from their run files, and from the table of
//! places of an archive. It reads a few runs at a time, because the rows of a fleet do not fit into memory.

use super::archive_medians;
use super::files::read_one;
use super::importers::{Decoding, FileFormat, ImportFault, PLACES_FOLDER, Results, parquet};
use super::place_rows;
use crate::table::place_table::{PlaceError, PlaceTable, RUN_ID};
use crate::warnings::{InputWarning, Warning};
use pmmpi_events::validation::Trust;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Run files that are decoded at a time, in parallel.
const FILES_AT_A_TIME: usize = 16;
/// Rows that are reduced together: a query costs more than its rows.
const ROWS_AT_A_TIME: usize = 1 << 16;

/// Where the rows of runs are.
#[derive(Clone, Debug, Default)]
pub struct PlaceSource {
    /// The file of each run that was read from a run file.
    run_files: BTreeMap<String, PathBuf>,
    /// Runs that were read from an archive.
    archived: BTreeSet<String>,
    archives: Vec<PathBuf>,
    decoding: Decoding,
}

/// What was read.
#[derive(Debug)]
pub struct ReadPlaces<T> {
    /// One per part of the rows; all rows of a run are in one part.
    pub parts: Vec<T>,
    /// Files that could not be read, and runs without rows.
    pub warnings: Vec<Warning>,
}

impl PlaceSource {
    /// The source of all runs of pmmpi in `results`.
    pub fn of(results: &Results, decoding: &Decoding) -> Self {
        let table = &results.table;
        let mut source = Self {
            archives: archive_medians::archives(&results.sources),
            decoding: decoding.clone(),
            ..Self::default()
        };
        let mut last = None;
        for row in (0..table.len()).filter(|row| table.is_own(*row) && table.median_of(*row).is_none()) {
            // Most rows are of the same run as the row before.
            let run = Some((table.origins.source(row), table.run.at(row)));
            if std::mem::replace(&mut last, run) == run {
                continue;
            }
            let Some(file) = results.sources.get(table.origins.source(row) as usize) else { continue };
            match file.format {
                FileFormat::Run => {
                    _ = source.run_files.entry(table.run_id(row)).or_insert_with(|| file.path.clone())
                }
                _ => _ = source.archived.insert(table.run_id(row)),
            }
        }
        source
    }

    /// The source of these run files, by run.
    pub fn of_files(run_files: BTreeMap<String, PathBuf>) -> Self {
        Self { run_files, ..Self::default() }
    }

    /// The same without these runs.
    pub fn without<'a>(&self, runs: impl IntoIterator<Item = &'a str>) -> Self {
        let mut others = self.clone();
        for run in runs {
            others.run_files.remove(run);
            others.archived.remove(run);
        }
        others
    }

    /// True if the run may have rows by place.
    pub fn has(&self, run: &str) -> bool {
        self.run_files.contains_key(run) || self.archived.contains(run)
    }

    /// All runs of the source.
    pub fn runs(&self) -> BTreeSet<&str> {
        self.run_files.keys().chain(&self.archived).map(String::as_str).collect()
    }

    /// Calls `reduce` for all rows of these runs, in parts.
    pub fn read<T: Send>(
        &self,
        runs: &BTreeSet<&str>,
        trust: &Trust,
        reduce: impl Fn(&PlaceTable) -> Result<T, PlaceError> + Sync,
    ) -> ReadPlaces<T> {
        let mut parts = Vec::new();
        let warnings = self.read_each(runs, |_, _| true, trust, reduce, |part| parts.push(part));
        ReadPlaces { parts, warnings }
    }

    /// Like [`Self::read`], but keeps nothing: calls `each` for each part, in the order of the runs' ids. `is_wanted` tells for
    /// run and host whether the caller needs the rows; those of archives come in any case.
    pub fn read_each<T: Send>(
        &self,
        runs: &BTreeSet<&str>,
        is_wanted: impl Fn(&str, &str) -> bool + Sync,
        trust: &Trust,
        reduce: impl Fn(&PlaceTable) -> Result<T, PlaceError> + Sync,
        mut each: impl FnMut(T),
    ) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let files: Vec<(&str, &Path)> = self
            .run_files
            .iter()
            .filter(|(run, _)| runs.contains(run.as_str()))
            .map(|(run, file)| (run.as_str(), file.as_path()))
            .collect();
        let all_files = files.len();
        let mut together = PlaceTable::default();
        for (number, files) in files.chunks(FILES_AT_A_TIME).enumerate() {
            let of_file = |(id, file): &(&str, &Path)| {
                let run = read_one(file).map_err(|e| e.to_string())?;
                place_rows::of(&run, &trust.of_run(&run), |host| is_wanted(id, host))
                    .map_err(|e| e.to_string())
            };
            let read: Vec<Result<PlaceTable, String>> = files.par_iter().map(of_file).collect();
            for (rows, (_, file)) in read.into_iter().zip(files) {
                let added = rows.and_then(|rows| together.append(rows).map_err(|e| e.to_string()));
                warnings.extend(added.err().map(|reason| unread(file, reason)));
            }
            let is_last = (number + 1) * FILES_AT_A_TIME >= all_files;
            if !together.is_empty() && (is_last || together.len() >= ROWS_AT_A_TIME) {
                let file = files[0].1;
                match reduce(&std::mem::take(&mut together)) {
                    Ok(part) => each(part),
                    Err(e) => warnings.push(unread(file, e.to_string())),
                }
            }
        }
        let mut left: BTreeSet<&str> =
            self.archived.iter().map(String::as_str).filter(|run| runs.contains(run)).collect();
        let mut is_whole = true;
        for archive in &self.archives {
            if left.is_empty() {
                break;
            }
            let files = files_of(archive).unwrap_or_else(|(folder, e)| {
                warnings.push(unread(&folder, format!("cannot be read: {e}")));
                is_whole = false;
                Vec::new()
            });
            for file in files {
                if let Err(fault) = self.archive_file(&file, &mut left, &reduce, &mut each) {
                    warnings.push(unread(&file, fault.to_string()));
                    is_whole = false;
                }
            }
        }
        // Otherwise the other warnings say what to do.
        if let Some(first) = left.first().filter(|_| is_whole) {
            let first = (*first).to_owned();
            warnings.push(InputWarning::NoPlacesArchived { runs: left.len(), first }.into());
        }
        warnings
    }

    /// Reads the rows of the runs that are `left` from a file of an archive, and removes the runs that it gives to `each` from
    /// `left`, also if the file turns out to be damaged later: no run is read from two files. The rows of a run must be next
    /// to one another, but may be in several row groups.
    fn archive_file<T>(
        &self,
        file: &Path,
        left: &mut BTreeSet<&str>,
        reduce: impl Fn(&PlaceTable) -> Result<T, PlaceError>,
        each: &mut impl FnMut(T),
    ) -> Result<(), ImportFault> {
        let damaged = |e: PlaceError| ImportFault::Damaged(e.to_string());
        let wanted: Vec<&str> = left.iter().copied().collect();
        // The texts of statistics may be cut, which only makes the range larger at its lower end.
        let is_needed = |first: &[u8], last: &[u8]| {
            wanted.iter().any(|run| {
                run.as_bytes() >= first && (run.as_bytes() <= last || run.as_bytes().starts_with(last))
            })
        };
        check_order(file, &self.decoding, is_needed)?;
        let mut open = PlaceTable::default();
        let mut done: BTreeSet<String> = BTreeSet::new();
        let mut finish = |rows: PlaceTable| {
            if !rows.is_empty() {
                each(reduce(&rows).map_err(damaged)?);
                done.extend(rows.runs().map_err(damaged)?);
            }
            Ok::<(), ImportFault>(())
        };
        let read = parquet::row_groups(file, &self.decoding, (RUN_ID, false), is_needed, |frame| {
            let rows = PlaceTable::checked(frame).map_err(ImportFault::Damaged)?;
            open.append(rows.of_runs(&wanted).map_err(damaged)?).map_err(damaged)?;
            let (whole, last) = open.without_last_run().map_err(damaged)?;
            open = last;
            finish(whole)
        });
        // After a fault, the last run may lack rows.
        let read = read.and_then(|()| finish(std::mem::take(&mut open)));
        left.retain(|run| !done.contains(*run));
        read
    }
}

/// An error if the rows of a run are not next to one another: another program may have sorted them.
fn check_order(
    file: &Path,
    decoding: &Decoding,
    is_needed: impl Fn(&[u8], &[u8]) -> bool,
) -> Result<(), ImportFault> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut last: Option<String> = None;
    parquet::row_groups(file, decoding, (RUN_ID, true), is_needed, |frame| {
        for run in PlaceTable::run_ids(&frame).map_err(ImportFault::Damaged)? {
            if last.as_ref() != Some(&run) && !known.insert(run.clone()) {
                let reason = format!("the rows of run {run} are not next to one another");
                return Err(ImportFault::Damaged(reason));
            }
            last = Some(run);
        }
        Ok(())
    })
}

/// The files with rows by place of an archive, in order; or the folder that cannot be read. An archive without places has none.
pub(crate) fn files_of(archive: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let entries = |folder: &Path| -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
        let fault = |e| (folder.to_owned(), e);
        let entries =
            std::fs::read_dir(folder).map_err(fault)?.collect::<io::Result<Vec<_>>>().map_err(fault)?;
        let mut paths: Vec<PathBuf> = entries
            .iter()
            .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
            .map(std::fs::DirEntry::path)
            .collect();
        paths.sort();
        Ok(paths)
    };
    let folder = archive.join(PLACES_FOLDER);
    if std::fs::symlink_metadata(&folder).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for month in entries(&folder)?.iter().filter(|month| month.is_dir()) {
        files.extend(
            entries(month)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "parquet")),
        );
    }
    Ok(files)
}

fn unread(path: &Path, reason: String) -> Warning {
    InputWarning::UnreadPlaces { path: path.to_owned(), reason }.into()
}
