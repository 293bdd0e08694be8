//! The table of medians of an archive: one row per node, class, session and work. A report of the latest runs reads it in
//! place of the runs of earlier sessions.
//!
//! A file holds the sessions that began in one month. An export computes again all rows of the sessions to which it adds
//! runs, and replaces the files with these sessions. A file beside them names the files whose runs are
//! in the table.

use super::{create, io_error, month, write_batches};
use crate::input::archive_medians::{COVERED, covered, is_of_medians, listed, name_in};
use crate::input::importers::{Decoding, ImportFault, MEDIANS_FOLDER, Results};
use crate::table::node_class::{Key, Parts};
use crate::table::{RunTable, UNDATED};
use pmmpi::record::temporary;
use polars::prelude::*;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Locked while an export brings the table up to date.
const LOCK: &str = ".lock";
/// The table's files have this name, each in the folder of a month.
const FILE: &str = "medians.parquet";

/// Brings the table up to date. `results` has all runs of the archive, and the runs that the export added. The first
/// `archived` sources are files that were there before.
pub(super) fn update(
    results: &Results,
    archived: usize,
    added: &[PathBuf],
    archive: &Path,
    decoding: &Decoding,
) -> io::Result<()> {
    let table = &results.table;
    let folder = archive.join(MEDIANS_FOLDER);
    create(&folder)?;
    // Held until the end: another export may bring the medians up to date at the same time.
    let lock = File::create(folder.join(LOCK))?;
    lock.lock()?;
    let before = covered(archive);
    let known: Vec<Option<&str>> = results
        .sources
        .iter()
        .map(|source| name_in(archive, &source.path).filter(|name| before.contains(*name)))
        .collect();
    let is_behind = |source: usize| source >= archived || known[source].is_none();
    let mut touched = vec![false; table.sessions.len()];
    for (session, source) in table.session.iter().zip(table.origins.sources()) {
        touched[session as usize] |= is_behind(source as usize);
    }
    let is_touched = touched.contains(&true);
    // Files of which no run has a time change no median, but the list has them, too.
    let is_listed = |file: &Path| name_in(archive, file).is_none_or(|name| before.contains(name));
    let all_listed = || {
        results.sources[..archived].iter().map(|source| &source.path).chain(added).all(|file| is_listed(file))
    };
    if !is_touched && all_listed() {
        return Ok(());
    }
    let rows: Vec<usize> = (0..table.len()).filter(|row| touched[table.session.at(*row) as usize]).collect();
    let mut medians = of_rows(table, &rows).map_err(io_error)?;
    let names: HashSet<&str> = (0..touched.len() as u32)
        .filter(|session| touched[*session as usize])
        .filter_map(|session| table.sessions.get(session))
        .collect();
    // Medians outlive the runs that were deleted from the archive. The list keeps their files.
    let is_lost = |line: &String| !is_of_medians(line) && !archive.join(line).is_file();
    let lost: BTreeSet<String> = listed(archive).into_iter().filter(is_lost).collect();
    let mut old = earlier(&folder, decoding)?;
    for frame in old.values_mut() {
        *frame = staying(frame, &names, &mut medians, table, !lost.is_empty()).map_err(io_error)?;
    }
    let mut months: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (at, started) in medians.started_unix_ns.iter().enumerate().filter(|(at, _)| medians.is_new[*at]) {
        months.entry(month(*started)).or_default().push(at as u32);
    }
    let all: BTreeSet<String> = months.keys().chain(old.keys()).cloned().collect();
    let mut lines: BTreeSet<String> = lost;
    for month in all {
        let new = medians.frame(table, &months.remove(&month).unwrap_or_default()).map_err(io_error)?;
        let frame = match old.remove(&month) {
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
        lines.extend(name_in(archive, &path).map(str::to_owned));
    }
    // Files that another export added in the meantime may have runs of the same sessions: the next export computes the
    // sessions of all these files again.
    let own = || {
        results.sources[..archived]
            .iter()
            .map(|source| source.path.as_path())
            .chain(added.iter().map(PathBuf::as_path))
    };
    let own: BTreeSet<&str> = own().filter_map(|file| name_in(archive, file)).collect();
    let has_others = run_files(archive)?.iter().any(|file| !own.contains(file.as_str()));
    let is_sure = |name: &&str| {
        !has_others
            || before.contains(*name) && !added.iter().any(|file| name_in(archive, file) == Some(*name))
    };
    lines.extend(own.into_iter().filter(is_sure).map(str::to_owned));
    temporary::replace(&folder.join(COVERED), 0o666, |file| {
        lines.iter().try_for_each(|name| writeln!(file, "{name}"))?;
        file.sync_all()
    })?;
    File::open(folder)?.sync_all()
}

/// The files of runs in an archive, relative to it.
fn run_files(archive: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for month in std::fs::read_dir(archive)? {
        let month = month?.path();
        let is_month = month.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"month="));
        if is_month && month.is_dir() {
            for file in std::fs::read_dir(month)? {
                let file = file?;
                let is_hidden = file.file_name().as_encoded_bytes().starts_with(b".");
                files.extend(name_in(archive, &file.path()).filter(|_| !is_hidden).map(str::to_owned));
            }
        }
    }
    Ok(files)
}

/// The rows of earlier exports, by month.
fn earlier(folder: &Path, decoding: &Decoding) -> io::Result<BTreeMap<String, DataFrame>> {
    let mut months = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path().join(FILE);
        let Some(month) = name.strip_prefix("month=").filter(|_| path.is_file()) else { continue };
        let frame = decoding.of(&path, || {
            let frame = ParquetReader::new(File::open(&path)?).finish();
            frame.map_err(|e| ImportFault::Damaged(e.to_string()))
        });
        let frame = frame.map_err(|e| {
            let advice = "move the folder `_medians` out of the archive, and export again; medians of runs that you \
                          deleted from the archive are then missing";
            io::Error::other(format!("{} {e}: {advice}", path.display()))
        })?;
        months.insert(month.to_owned(), frame);
    }
    Ok(months)
}

/// The rows of an earlier export that stay: the rows of sessions that are not in `touched`. If runs were deleted from
/// the archive (`has_lost`), rows with more runs than the archive has now also stay. They are then no longer new in
/// `medians`.
fn staying(
    old: &DataFrame,
    touched: &HashSet<&str>,
    medians: &mut Medians,
    table: &RunTable,
    has_lost: bool,
) -> PolarsResult<DataFrame> {
    let texts = |name: &str| -> PolarsResult<StringChunked> {
        Ok(old.column(name)?.cast(&DataType::String)?.str()?.clone())
    };
    let sessions = texts("session")?;
    let is_touched: Vec<bool> =
        sessions.iter().map(|session| touched.contains(session.unwrap_or_default())).collect();
    let mut stays: Vec<bool> = is_touched.iter().map(|touched| !touched).collect();
    if has_lost && is_touched.contains(&true) {
        let new: HashMap<String, usize> =
            (0..medians.node.len()).map(|at| (medians.identity(table, at), at)).collect();
        let is_key =
            |name: &&PlSmallStr| !["started", "runs", "median_s", "deviation_s"].contains(&name.as_str());
        let mut names: Vec<&PlSmallStr> = old.get_column_names().into_iter().filter(is_key).collect();
        names.sort();
        let columns: Vec<(&PlSmallStr, StringChunked)> =
            names.into_iter().map(|name| Ok((name, texts(name)?))).collect::<PolarsResult<_>>()?;
        let runs = old.column("runs")?.cast(&DataType::UInt32)?;
        let runs = runs.u32()?;
        for row in (0..old.height()).filter(|row| is_touched[*row]) {
            let values =
                columns.iter().map(|(name, values)| (name.as_str(), values.get(row).unwrap_or_default()));
            match new.get(&identity(values)) {
                None => stays[row] = true,
                Some(at) if runs.get(row) > Some(medians.runs[*at]) => {
                    (stays[row], medians.is_new[*at]) = (true, false);
                }
                Some(_) => {}
            }
        }
    }
    old.filter(&stays.into_iter().map(Some).collect::<BooleanChunked>())
}

/// Equal for rows of the same node, session, class and work. The values are in the order of the columns' names.
fn identity<'a>(values: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let known = values.filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| format!("{name}\0{value}\0")).collect()
}

/// The rows of both. A column that one of them lacks is null there.
fn joined(mut old: DataFrame, mut new: DataFrame) -> PolarsResult<DataFrame> {
    old.rechunk_mut();
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
    let mut all = old.vstack(&new.select(order)?)?;
    // The writer needs columns with equal parts.
    all.rechunk_mut();
    Ok(all)
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
    /// False if the row of an earlier export stays.
    is_new: Vec<bool>,
}

/// The medians of these rows. Polars groups them.
fn of_rows(table: &RunTable, rows: &[usize]) -> PolarsResult<Medians> {
    let numbers = |name: &str, of: &dyn Fn(usize) -> u32| {
        Column::new(name.into(), rows.iter().map(|row| of(*row)).collect::<Vec<u32>>())
    };
    let frame = DataFrame::new(
        rows.len(),
        vec![
            numbers("node", &|row| table.node.at(row)),
            numbers("session", &|row| table.session.at(row)),
            numbers("class", &|row| table.class.at(row)),
            numbers("parts", &|row| table.parts.get(row).copied().unwrap_or(0)),
            numbers("is_own", &|row| u32::from(table.is_own(row))),
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
        is_new: vec![true; medians.height()],
        started_unix_ns: medians.column("started")?.i64()?.iter().map(|ns| ns.unwrap_or(UNDATED)).collect(),
    })
}

impl Medians {
    /// See [`identity`].
    fn identity(&self, table: &RunTable, at: usize) -> String {
        let parts = table.all_parts.get(self.parts[at] as usize);
        let parts = parts
            .into_iter()
            .flat_map(Parts::iter)
            .filter_map(|(key, text)| Some((key.column()?, text.to_owned())));
        let name = |name: Option<&str>| name.unwrap_or_default().to_owned();
        let fixed = [
            ("node".to_owned(), name(table.nodes.get(self.node[at]))),
            ("session".to_owned(), name(table.sessions.get(self.session[at]))),
            ("class".to_owned(), name(table.classes.get(self.class[at]))),
            ("measured_by_pmmpi".to_owned(), self.is_own[at].to_string()),
        ];
        let mut values: Vec<(String, String)> = parts.chain(fixed).collect();
        values.sort();
        identity(values.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

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
