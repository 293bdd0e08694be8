//! Adds to an archive what runs counted at each place: one row per run, node, place, region and event. Reports read
//! these rows in place of the run files. Every tool that reads Parquet can read them, too.
//!
//! The files are in folders of months, as those of the runs. All rows of a run are in one file, next to one another.

use super::{Batches, ROWS_AT_A_TIME, create, io_error, month, new_file};
use crate::input::importers::{Decoding, ImportFault, PLACES_FOLDER, parquet};
use crate::input::place_source::{PlaceSource, files_of};
use crate::table::place_table::{PlaceTable, RUN_ID, RunOfRows};
use crate::warnings::{InputWarning, Warning};
use pmmpi::record::temporary;
use pmmpi_events::validation::Trust;
use polars::prelude::PolarsError;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What [`add`] wrote.
#[derive(Debug, Default)]
pub struct AddedPlaces {
    /// Number of runs.
    pub runs: usize,
    /// Run files that could not be read, and runs without one.
    pub warnings: Vec<Warning>,
}

/// Adds the rows of these runs that the archive does not have by place. A run has its file, and its start (ns since 1970).
/// `without_file` are runs that came from another archive.
pub fn add(
    runs: &BTreeMap<String, (PathBuf, i64)>,
    without_file: &BTreeSet<String>,
    archive: &Path,
    trust: &Trust,
    decoding: &Decoding,
) -> io::Result<AddedPlaces> {
    let known = known(archive, decoding)?;
    let mut months: BTreeMap<String, BTreeMap<String, PathBuf>> = BTreeMap::new();
    for (run, (file, started)) in runs.iter().filter(|(run, _)| !known.contains(*run)) {
        months.entry(month(*started)).or_default().insert(run.clone(), file.clone());
    }
    let lacking: Vec<&String> = without_file.iter().filter(|run| !known.contains(*run)).collect();
    let mut added = AddedPlaces::default();
    if let Some(first) = lacking.first() {
        let warning = InputWarning::NoPlacesAdded { runs: lacking.len(), first: (*first).clone() };
        added.warnings.push(warning.into());
    }
    for (month, files) in months {
        let folder = archive.join(PLACES_FOLDER).join(format!("month={month}"));
        create(&folder)?;
        added.runs += files.len();
        let source = PlaceSource::of_files(files);
        temporary::replace(&new_file(&folder), 0o666, |file| {
            let unread = write(&source, trust, file)?;
            added.runs = added.runs.saturating_sub(unread.len());
            added.warnings.extend(unread);
            Ok(())
        })?;
        File::open(&folder)?.sync_all()?;
    }
    Ok(added)
}

/// Writes all rows of a source. A row group has the rows of whole runs.
fn write(source: &PlaceSource, trust: &Trust, file: &File) -> io::Result<Vec<Warning>> {
    let mut batches = Batches::new(file);
    let mut rows = PlaceTable::default();
    let mut written = Ok(());
    let whole = |rows: &PlaceTable| Ok::<PlaceTable, PolarsError>(rows.clone());
    let warnings = source.read_each(
        &source.runs(),
        |_, _| true,
        trust,
        whole,
        |of_run| {
            if written.is_ok() {
                written = rows.append(of_run).map_err(io_error);
            }
            if written.is_ok() && rows.len() >= ROWS_AT_A_TIME {
                written = batches.write(std::mem::take(&mut rows).frame());
            }
        },
    );
    written?;
    // Also without a row: a file without columns would count as damaged.
    if !rows.is_empty() || batches.writer.is_none() {
        let empty = RunOfRows { run_id: "", started_unix_ns: 0 };
        rows.append(PlaceTable::of_run(empty, &[]).map_err(io_error)?).map_err(io_error)?;
        batches.write(rows.frame())?;
    }
    batches.finish()?;
    Ok(warnings)
}

/// The runs of which the archive has rows by place. A file that a report could not read is an error: otherwise its runs could
/// never be added again.
fn known(archive: &Path, decoding: &Decoding) -> io::Result<HashSet<String>> {
    let advice = "remove it, and export the run files again";
    let files = files_of(archive).map_err(|(folder, e)| {
        io::Error::new(e.kind(), format!("{} cannot be read: {e}: {advice}", folder.display()))
    })?;
    let mut known = HashSet::new();
    for file in files {
        let is_first = Cell::new(true);
        let checked = |frame| PlaceTable::checked(frame).map(|_| ()).map_err(ImportFault::Damaged);
        let columns =
            || parquet::row_groups(&file, decoding, (RUN_ID, false), |_, _| is_first.replace(false), checked);
        let runs = |known: &mut HashSet<String>| {
            parquet::row_groups(
                &file,
                decoding,
                (RUN_ID, true),
                |_, _| true,
                |frame| {
                    known.extend(PlaceTable::run_ids(&frame).map_err(ImportFault::Damaged)?);
                    Ok(())
                },
            )
        };
        let read = columns().and_then(|()| runs(&mut known));
        read.map_err(|fault| io::Error::other(format!("{} {fault}: {advice}", file.display())))?;
    }
    Ok(known)
}
