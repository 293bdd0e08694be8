//! Adds to an archive what runs counted at each place: one row per run, node, place, region and event. Reports read it in
//! place of the run files, and so does every tool that reads Parquet.
//!
//! The files are in folders of months, as those of the runs. All rows of a run are in one file, next to one another.

use super::{Batches, ROWS_AT_A_TIME, create, io_error, month, new_file};
use crate::input::importers::{Decoding, ImportFault, PLACES_FOLDER, parquet};
use crate::input::place_source::{PlaceSource, files_of};
use crate::table::place_table::{PlaceTable, RUN_ID};
use crate::warning_codes::Warning;
use pmmpi::record::temporary;
use pmmpi_events::validation::Trust;
use polars::prelude::PolarsError;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What [`add`] wrote.
#[derive(Debug, Default)]
pub struct AddedPlaces {
    /// Number of runs.
    pub runs: usize,
    /// Run files that could not be read.
    pub warnings: Vec<Warning>,
}

/// Adds the rows of these runs that the archive does not have by place. A run has its file, and its start (ns since 1970).
pub fn add(
    runs: &BTreeMap<String, (PathBuf, i64)>,
    archive: &Path,
    trust: &Trust,
    decoding: &Decoding,
) -> io::Result<AddedPlaces> {
    let known = known(archive, decoding)?;
    let mut months: BTreeMap<String, BTreeMap<String, PathBuf>> = BTreeMap::new();
    for (run, (file, started)) in runs.iter().filter(|(run, _)| !known.contains(*run)) {
        months.entry(month(*started)).or_default().insert(run.clone(), file.clone());
    }
    let mut added = AddedPlaces::default();
    for (month, files) in months {
        let folder = archive.join(PLACES_FOLDER).join(format!("month={month}"));
        create(&folder)?;
        added.runs += files.len();
        let source = PlaceSource::of_files(files);
        temporary::replace(&new_file(&folder), 0o666, |file| {
            added.warnings.extend(write(&source, trust, file)?);
            Ok(())
        })?;
        File::open(&folder)?.sync_all()?;
    }
    added.runs = added.runs.saturating_sub(added.warnings.len());
    Ok(added)
}

/// Writes all rows of a source. A row group has the rows of whole runs.
fn write(source: &PlaceSource, trust: &Trust, file: &File) -> io::Result<Vec<Warning>> {
    let mut batches = Batches::new(file);
    let mut rows = PlaceTable::default();
    let mut written = Ok(());
    let whole = |rows: &PlaceTable| Ok::<PlaceTable, PolarsError>(rows.clone());
    let warnings = source.read_each(&source.runs(), trust, whole, |of_run| {
        if written.is_ok() {
            written = rows.append(of_run).map_err(io_error);
        }
        if written.is_ok() && rows.len() >= ROWS_AT_A_TIME {
            written = batches.write(std::mem::take(&mut rows).frame());
        }
    });
    written?;
    if !rows.is_empty() {
        batches.write(rows.frame())?;
    }
    batches.finish()?;
    Ok(warnings)
}

/// The runs of which the archive has rows by place.
fn known(archive: &Path, decoding: &Decoding) -> io::Result<HashSet<String>> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for file in files_of(archive) {
        let all = |_: &[u8], _: &[u8]| true;
        let read = parquet::row_groups(&file, decoding, (RUN_ID, true), all, |frame| {
            let ids = frame.column(RUN_ID).and_then(|column| column.str().cloned());
            let ids = ids.map_err(|e| ImportFault::Damaged(e.to_string()))?;
            known.extend(ids.iter().flatten().map(str::to_owned));
            Ok(())
        });
        read.map_err(|fault| {
            io::Error::other(format!(
                "{} {fault}: remove the file, and export the run files again",
                file.display()
            ))
        })?;
    }
    Ok(known.into_iter().collect())
}
