//! Adds runs to an archive of Parquet files, with one folder per month. No run in an archive is ever changed or
//! removed; [`medians`] keeps the archive's table of medians. pmmpi reads the archive like any other input. Every tool
//! that reads Parquet can read it, too.

pub mod medians;
pub mod places;

use crate::input::importers::{Decoding, Results};
use crate::table::{RunTable, UNDATED, WithoutTime};
use pmmpi::record::{civil_from_days, temporary};
use pmmpi::text::count;
use polars::prelude::{DataFrame, PolarsError, PolarsResult, Schema};
use polars_io::parquet::write::{
    BatchedWriter, KeyValueMetadata, ParquetCompression, ParquetWriter, StatisticsOptions,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Rows that are prepared at a time; also the number of rows in a row group of a file.
const ROWS_AT_A_TIME: usize = 1 << 18;

/// What [`export`] wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Files; each is complete.
    pub files: Vec<PathBuf>,
    /// Rows in these files.
    pub rows: usize,
}

/// Writes the rows that come from none of the first `archived` sources. Creates `folder` if it does not exist and
/// leaves existing files as they are. After an error it removes the incomplete file.
pub fn export(
    results: &Results,
    archived: usize,
    folder: &Path,
    decoding: &Decoding,
) -> io::Result<Exported> {
    let table = &results.table;
    let mut months: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for row in &results.order.rows {
        let is_new = table.origins.source(*row as usize) as usize >= archived;
        if is_new && table.median_of(*row as usize).is_none() {
            months.entry(month(table.started_unix_ns[*row as usize])).or_default().push(*row);
        }
    }
    let mut exported = Exported::default();
    for (month, rows) in months {
        let folder = folder.join(format!("month={month}"));
        let file =
            create(&folder).and_then(|()| write(table, &rows, &folder)).map_err(|e| match exported.rows {
                0 => e,
                rows => io::Error::new(e.kind(), format!("{e}; pmmpi had added {}", count(rows, "row"))),
            })?;
        exported.files.push(file);
        exported.rows += rows.len();
    }
    without_time(table, archived, folder, &mut exported)?;
    medians::update(results, archived, &exported.files, folder, decoding).map_err(|e| {
        let done = "all runs were added, but the medians of the archive are not up to date";
        io::Error::new(e.kind(), format!("{done}: {e}"))
    })?;
    Ok(exported)
}

/// Writes the runs without a usable time to files of their own, so that the files of all other runs need no columns for
/// them.
fn without_time(table: &RunTable, archived: usize, folder: &Path, exported: &mut Exported) -> io::Result<()> {
    let mut months: BTreeMap<String, Vec<&WithoutTime>> = BTreeMap::new();
    for entry in table.without_time.iter().filter(|entry| entry.source as usize >= archived) {
        months.entry(month(entry.started_unix_ns)).or_default().push(entry);
    }
    for (month, entries) in months {
        let folder = folder.join(format!("month={month}"));
        create(&folder)?;
        let frame = table.frame_without_time(&entries).map_err(io_error)?;
        let path = new_file(&folder);
        temporary::replace(&path, 0o666, |file| write_batches(file, std::iter::once(Ok(frame))))?;
        File::open(&folder)?.sync_all()?;
        exported.files.push(path);
        exported.rows += entries.len();
    }
    Ok(())
}

/// Creates a folder and its missing parents, and syncs each to disk.
fn create(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create(above)?;
    match std::fs::create_dir(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => File::open(above)?.sync_all(),
    }
}

/// Writes a file under a unique name. The file appears complete or not at all: until then it is hidden, and readers
/// ignore hidden files.
fn write(table: &RunTable, rows: &[u32], folder: &Path) -> io::Result<PathBuf> {
    let path = new_file(folder);
    temporary::replace(&path, 0o666, |file| write_rows(table, rows, file))?;
    File::open(folder)?.sync_all()?;
    Ok(path)
}

/// The path of a new file with a unique name.
fn new_file(folder: &Path) -> PathBuf {
    let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    folder.join(format!("{}.parquet", temporary::name(&format!("pmmpi-{now_ns}-"))))
}

fn write_rows(table: &RunTable, rows: &[u32], file: &File) -> io::Result<()> {
    let filled = table.filled(rows);
    write_batches(file, rows.chunks(ROWS_AT_A_TIME).map(|rows| table.frame(rows, &filled)))
}

/// Writes frames of equal columns, and syncs the file. Each frame is a row group.
fn write_batches(file: &File, frames: impl Iterator<Item = PolarsResult<DataFrame>>) -> io::Result<()> {
    let mut batches = Batches::new(file);
    for frame in frames {
        batches.write(&frame.map_err(io_error)?)?;
    }
    batches.finish()
}

/// A Parquet file that is being written.
struct Batches<'a> {
    file: &'a File,
    /// `None` until the first frame, which gives the columns.
    writer: Option<BatchedWriter<File>>,
}

impl<'a> Batches<'a> {
    fn new(file: &'a File) -> Self {
        Self { file, writer: None }
    }

    /// Adds a row group.
    fn write(&mut self, frame: &DataFrame) -> io::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            free => free.insert(open(self.file.try_clone()?, frame.schema())?),
        };
        writer.write_batch(frame).map_err(io_error)
    }

    /// Ends the file, and syncs it.
    fn finish(self) -> io::Result<()> {
        if let Some(writer) = self.writer {
            writer.finish().map_err(io_error)?;
        }
        self.file.sync_all()
    }
}

fn open(file: File, schema: &Schema) -> io::Result<BatchedWriter<File>> {
    let by = ("pmmpi".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    ParquetWriter::new(file)
        .with_compression(ParquetCompression::Zstd(None))
        .with_statistics(StatisticsOptions::full())
        .with_key_value_metadata(Some(KeyValueMetadata::from_static(vec![by])))
        .batched(schema)
        .map_err(io_error)
}

fn io_error(error: PolarsError) -> io::Error {
    match error {
        PolarsError::IO { error, .. } => io::Error::new(error.kind(), error.to_string()),
        other => io::Error::other(own_words(&other.to_string())),
    }
}

/// The system's message, without the names of the libraries through which it came.
fn own_words(error: &str) -> &str {
    error.rsplit_once("underlying IO error: ").map_or(error, |(_, system)| system)
}

/// Month in UTC, as 2026-11.
fn month(started_unix_ns: i64) -> String {
    if started_unix_ns == UNDATED {
        return "unknown".to_owned();
    }
    let (year, month, _) = civil_from_days(started_unix_ns.div_euclid(86_400_000_000_000));
    format!("{year:04}-{month:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_in_the_systems_words() {
        let full = "No space left on device (os error 28)";
        let wrapped = format!("parquet: File out of specification: underlying IO error: {full}");
        assert_eq!([own_words(&wrapped), own_words(full)], [full; 2]);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        const DAY_NS: i64 = 86_400_000_000_000;
        for (days, expected) in [
            (0, "1970-01"),
            (-1, "1969-12"),
            (30, "1970-01"),
            (31, "1970-02"),
            (58, "1970-02"),
            (59, "1970-03"),
            (11_016, "2000-02"),
            (11_017, "2000-03"),
            (20_778, "2026-11"),
            (20_788, "2026-12"),
        ] {
            assert_eq!(month(days * DAY_NS), expected, "{days}");
            assert_eq!(month(days * DAY_NS + DAY_NS - 1), expected, "{days}");
        }
        assert_eq!(month(UNDATED), "unknown");
    }
}
