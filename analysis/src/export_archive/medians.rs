//! The table of medians of an archive: one row per node, class, session and work. A report of the latest runs reads it in
//! place of the runs of earlier sessions.
//!
//! A file holds the sessions that began in one month. An export computes again all rows of the sessions to which it adds
//! runs, and replaces the files with these sessions. [`COVERED`] has the names of the files of runs that are in the table.

use super::{create, io_error, month, write_batches};
use crate::input::archive_medians::{COVERED, name_in, not_covered};
use crate::input::importers::{Decoding, ImportFault, MEDIANS_FOLDER, Results};
use crate::table::node_class::{Key, Parts};
use crate::table::{RunTable, UNDATED};
use pmmpi::record::temporary;
use polars::prelude::*;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The table's files have this name, each in the folder of a month.
const FILE: &str = "medians.parquet";

/// Brings the table up to date. `results` has all runs of the archive, of which the first `archived` sources are files
/// that were there before, and the runs that the export added.
pub(super) fn update(
    results: &Results,
    archived: usize,
    added: &[PathBuf],
    archive: &Path,
    decoding: &Decoding,
) -> io::Result<()> {
    let table = &results.table;
    let files = || results.sources[..archived].iter().map(|source| source.path.as_path());
    let behind: HashSet<&Path> = not_covered(archive, files()).into_iter().collect();
    let is_behind: Vec<bool> = results
        .sources
        .iter()
        .enumerate()
        .map(|(source, file)| source >= archived || behind.contains(file.path.as_path()))
        .collect();
    let mut touched = vec![false; table.sessions.len()];
    for (session, source) in table.session.iter().zip(&table.source) {
        touched[*session as usize] |= is_behind[*source as usize];
    }
    if !touched.contains(&true) {
        return Ok(());
    }
    let rows: Vec<usize> = (0..table.len()).filter(|row| touched[table.session[*row] as usize]).collect();
    let medians = of_rows(table, &rows).map_err(io_error)?;
    let mut months: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (at, started) in medians.started_unix_ns.iter().enumerate() {
        months.entry(month(*started)).or_default().push(at as u32);
    }
    let folder = archive.join(MEDIANS_FOLDER);
    let names: HashSet<&str> = (0..touched.len() as u32)
        .filter(|session| touched[*session as usize])
        .filter_map(|session| table.sessions.get(session))
        .collect();
    let mut before = earlier(&folder, &names, &months, decoding)?;
    let all: BTreeSet<String> = months.keys().chain(before.keys()).cloned().collect();
    for month in all {
        let new = months.remove(&month).unwrap_or_default();
        let new = medians.frame(table, &new).map_err(io_error)?;
        let frame = match before.remove(&month) {
            None => new,
            Some(old) => joined(old, new).map_err(io_error)?,
        };
        let folder = folder.join(format!("month={month}"));
        let path = folder.join(FILE);
        if frame.height() == 0 {
            std::fs::remove_file(path)?;
            continue;
        }
        create(&folder)?;
        temporary::replace(&path, 0o666, |file| write_batches(file, std::iter::once(Ok(frame))))?;
        File::open(folder)?.sync_all()?;
    }
    let covered: BTreeSet<&str> =
        files().chain(added.iter().map(PathBuf::as_path)).filter_map(|file| name_in(archive, file)).collect();
    temporary::replace(&folder.join(COVERED), 0o666, |file| {
        covered.iter().try_for_each(|name| writeln!(file, "{name}"))?;
        file.sync_all()
    })?;
    File::open(folder)?.sync_all()
}

/// The rows of earlier exports that stay, by month; only of files that change: they have a session in `touched`, or `new`
/// has rows of their month.
fn earlier(
    folder: &Path,
    touched: &HashSet<&str>,
    new: &BTreeMap<String, Vec<u32>>,
    decoding: &Decoding,
) -> io::Result<BTreeMap<String, DataFrame>> {
    let mut months = BTreeMap::new();
    let entries = match std::fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(months),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path().join(FILE);
        let Some(month) = name.strip_prefix("month=").filter(|_| path.is_file()) else { continue };
        let frame = decoding.of(&path, || {
            let frame = ParquetReader::new(File::open(&path)?).finish();
            frame.map_err(|e| ImportFault::Damaged(e.to_string()))
        });
        let frame = frame.map_err(|e| {
            let advice = "remove the folder with all medians, and export again";
            io::Error::other(format!("{} {e}: {advice}", path.display()))
        })?;
        let sessions = frame.column("session").and_then(|column| column.str().cloned()).map_err(io_error)?;
        let stays: BooleanChunked =
            sessions.iter().map(|session| Some(!touched.contains(session.unwrap_or_default()))).collect();
        if !stays.all() || new.contains_key(month) {
            months.insert(month.to_owned(), frame.filter(&stays).map_err(io_error)?);
        }
    }
    Ok(months)
}

/// The rows of both. A column that one of them lacks is null there.
fn joined(mut old: DataFrame, mut new: DataFrame) -> PolarsResult<DataFrame> {
    let fill = |frame: &mut DataFrame, other: &DataFrame| -> PolarsResult<()> {
        for column in other.columns() {
            if frame.column(column.name()).is_err() {
                frame.with_column(Column::full_null(
                    column.name().clone(),
                    frame.height(),
                    column.dtype(),
                ))?;
            }
        }
        Ok(())
    };
    fill(&mut old, &new)?;
    fill(&mut new, &old)?;
    let order: Vec<PlSmallStr> = old.get_column_names_owned();
    old.vstack(&new.select(order)?)
}

/// Medians, with the numbers of the table.
struct Medians {
    node: Vec<u32>,
    session: Vec<u32>,
    class: Vec<u32>,
    parts: Vec<u32>,
    is_own: Vec<bool>,
    runs: Vec<u32>,
    median_s: Vec<f64>,
    deviation_s: Vec<f64>,
    started_unix_ns: Vec<i64>,
}

/// The medians of these rows. Polars groups them.
fn of_rows(table: &RunTable, rows: &[usize]) -> PolarsResult<Medians> {
    let numbers = |name: &str, of: &dyn Fn(usize) -> u32| {
        Column::new(name.into(), rows.iter().map(|row| of(*row)).collect::<Vec<u32>>())
    };
    let frame = DataFrame::new(
        rows.len(),
        vec![
            numbers("node", &|row| table.node[row]),
            numbers("session", &|row| table.session[row]),
            numbers("class", &|row| table.class[row]),
            numbers("parts", &|row| table.parts.get(row).copied().unwrap_or(0)),
            numbers("is_own", &|row| u32::from(table.is_own[row])),
            Column::new("elapsed_s".into(), rows.iter().map(|row| table.elapsed_s[*row]).collect::<Vec<_>>()),
            Column::new(
                "started".into(),
                rows.iter().map(|row| table.started_unix_ns[*row]).collect::<Vec<_>>(),
            ),
        ],
    )?;
    let key = ["session", "class", "node", "parts", "is_own"].map(col);
    let middle = col("elapsed_s").median();
    let difference = col("elapsed_s") - middle.clone();
    let size =
        when(difference.clone().lt(lit(0.0))).then(lit(0.0) - difference.clone()).otherwise(difference);
    let medians = frame
        .lazy()
        .group_by(key.clone())
        .agg([
            middle.alias("median_s"),
            size.median().alias("deviation_s"),
            len().cast(DataType::UInt32).alias("runs"),
            col("started").min(),
        ])
        .sort_by_exprs(key, SortMultipleOptions::default())
        .collect()?;
    let numbers = |name: &str| -> PolarsResult<Vec<u32>> {
        Ok(medians.column(name)?.u32()?.iter().map(Option::unwrap_or_default).collect())
    };
    let reals = |name: &str| -> PolarsResult<Vec<f64>> {
        Ok(medians.column(name)?.f64()?.iter().map(|value| value.unwrap_or(f64::NAN)).collect())
    };
    Ok(Medians {
        node: numbers("node")?,
        session: numbers("session")?,
        class: numbers("class")?,
        parts: numbers("parts")?,
        is_own: numbers("is_own")?.into_iter().map(|own| own > 0).collect(),
        runs: numbers("runs")?,
        median_s: reals("median_s")?,
        deviation_s: reals("deviation_s")?,
        started_unix_ns: medians.column("started")?.i64()?.iter().map(|ns| ns.unwrap_or(UNDATED)).collect(),
    })
}

impl Medians {
    /// A data frame of these medians.
    ///
    /// | column | type | |
    /// |---|---|---|
    /// | node | str | |
    /// | measured_by_pmmpi | bool | |
    /// | class, session | str | null if there is none |
    /// | started | datetime, ns, UTC | start of the first run; null if unknown |
    /// | runs | u32 | number of runs |
    /// | median_s | f64 | their median |
    /// | deviation_s | f64 | the median of their absolute deviations from the median |
    /// | one per part of classes | str | null if unknown |
    fn frame(&self, table: &RunTable, rows: &[u32]) -> PolarsResult<DataFrame> {
        let at = |row: &u32| *row as usize;
        let texts = |name: &str, text: &dyn Fn(usize) -> Option<String>| {
            Column::new(name.into(), rows.iter().map(|row| text(at(row))).collect::<Vec<Option<String>>>())
        };
        let owned = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let started = rows.iter().map(|row| Some(self.started_unix_ns[at(row)]).filter(|ns| *ns != UNDATED));
        let utc = DataType::Datetime(TimeUnit::Nanoseconds, None);
        let reals = |name: &str, values: &[f64]| {
            Column::new(name.into(), rows.iter().map(|row| values[at(row)]).collect::<Vec<f64>>())
        };
        let parts_of = |row: &u32| table.all_parts.get(self.parts[at(row)] as usize);
        let numbers: BTreeSet<u32> = rows.iter().map(|row| self.parts[at(row)]).collect();
        let of_number = |number: &u32| table.all_parts.get(*number as usize);
        let keys: BTreeSet<&Key> =
            numbers.iter().filter_map(of_number).flat_map(Parts::iter).map(|(key, _)| key).collect();
        let mut columns = vec![
            texts("node", &|row| owned(table.nodes.get(self.node[row]))),
            Column::new(
                "measured_by_pmmpi".into(),
                rows.iter().map(|row| self.is_own[at(row)]).collect::<Vec<bool>>(),
            ),
            texts("class", &|row| owned(table.classes.get(self.class[row]))),
            texts("session", &|row| owned(table.sessions.get(self.session[row]))),
            Column::new("started".into(), started.collect::<Vec<Option<i64>>>()).cast(&utc)?,
            Column::new("runs".into(), rows.iter().map(|row| self.runs[at(row)]).collect::<Vec<u32>>()),
            reals("median_s", &self.median_s),
            reals("deviation_s", &self.deviation_s),
        ];
        for key in keys {
            let Some(column) = key.column() else { continue };
            let values: Vec<Option<&str>> =
                rows.iter().map(|row| parts_of(row).and_then(|parts| parts.get(key))).collect();
            columns.push(Column::new(column.into(), values));
        }
        DataFrame::new(rows.len(), columns)
    }
}
