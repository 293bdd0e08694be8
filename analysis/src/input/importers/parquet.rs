//! Reads Parquet files with the columns of the results CSV, from any writer, and archives of `pmmpi export`.
//!
//! A file with the columns `event` and `value` is long: a run has many rows, and the reader sums their values per
//! event. The reader reads a few row groups at a time. The file may be larger than memory; the table may not.

mod classes;
mod columns;
mod names;
mod row_groups;
mod rows;

use super::building::Building;
use super::{Decoding, ImportFault, ImportOptions};
use columns::Columns;
use polars::prelude::{ArrowSchema, DataFrame, PolarsError};
use polars_io::SerReader;
use polars_io::parquet::read::{FileMetadata, ParquetReader};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Once};

/// Number of files that any thread reads now.
static READING: AtomicUsize = AtomicUsize::new(0);
/// Reads rows until the end.
pub(super) fn read(path: &Path, options: &ImportOptions, building: &mut Building) -> Result<(), ImportFault> {
    if path == Path::new("-") || !std::fs::metadata(path)?.is_file() {
        return Err(ImportFault::Pipe);
    }
    guarded(path, &options.decoding, || read_all(path, options, building))
}

/// Calls `read`, which decodes a file. A damaged file can make the library panic or crash the process. A panic ends here, and
/// what was read before it stays.
fn guarded(
    path: &Path,
    decoding: &Decoding,
    read: impl FnOnce() -> Result<(), ImportFault>,
) -> Result<(), ImportFault> {
    quiet();
    READING.fetch_add(1, Ordering::Relaxed);
    let read =
        decoding.of(path, || catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(contradiction())));
    READING.fetch_sub(1, Ordering::Relaxed);
    read
}

/// Gives the row groups of a file to `take`, in order. Leaves out a row group if `is_needed` is false for the least and the
/// greatest text of `column` in it. `is_alone`: decodes only this column.
pub(crate) fn row_groups(
    path: &Path,
    decoding: &Decoding,
    (column, is_alone): (&str, bool),
    is_needed: impl Fn(&[u8], &[u8]) -> bool,
    mut take: impl FnMut(DataFrame) -> Result<(), ImportFault>,
) -> Result<(), ImportFault> {
    guarded(path, decoding, || {
        let opened = Opened::open(path)?;
        let ranges = row_groups::texts(&opened.metadata, &opened.schema, column);
        let columns = is_alone.then(|| opened.schema.index_of(column).into_iter().collect::<Vec<usize>>());
        let needed =
            ranges.into_iter().map(|range| range.is_none_or(|[first, last]| is_needed(&first, &last)));
        for slice in row_groups::slices(&opened.metadata, &needed.collect::<Vec<bool>>()) {
            take(opened.decode(slice, columns.clone())?)?;
        }
        Ok(())
    })
}

/// A file whose rows are not decoded yet.
struct Opened {
    file: File,
    metadata: Arc<FileMetadata>,
    schema: Arc<ArrowSchema>,
}

impl Opened {
    fn open(path: &Path) -> Result<Self, ImportFault> {
        let file = File::open(path)?;
        let mut reader = ParquetReader::new(file.try_clone()?);
        let metadata = reader.get_metadata().map_err(damaged)?.clone();
        let schema = reader.schema().map_err(damaged)?;
        if metadata.num_rows > 0 {
            check(&metadata)?;
        }
        Ok(Self { file, metadata, schema })
    }

    /// So many rows from the first one; all columns, or those with these indices.
    fn decode(
        &self,
        (first, rows): (usize, usize),
        columns: Option<Vec<usize>>,
    ) -> Result<DataFrame, ImportFault> {
        let mut reader = ParquetReader::new(self.file.try_clone()?)
            .with_slice(Some((first, rows)))
            .with_projection(columns);
        reader.set_metadata(self.metadata.clone());
        let frame = reader.finish().map_err(damaged)?;
        let is_whole = frame.columns().iter().all(|column| column.len() == rows);
        if is_whole && frame.height() == rows { Ok(frame) } else { Err(contradiction()) }
    }
}

fn read_all(path: &Path, options: &ImportOptions, building: &mut Building) -> Result<(), ImportFault> {
    let opened = Opened::open(path)?;
    let bytes = opened.file.metadata()?.len();
    let Opened { metadata, schema, .. } = &opened;
    let place = options.place(path)?;
    let mut columns = Columns::find(schema, metadata.num_rows as u64, &place, options, building)?;
    if metadata.num_rows == 0 {
        return Err(ImportFault::NoRows);
    }
    let projection = columns.projection();
    let needed = row_groups::needed(metadata, schema, &columns, &options.selection);
    let slices = row_groups::slices(metadata, &needed);
    let rows: usize = slices.iter().map(|(_, rows)| rows).sum();
    building.expect_rows(rows, columns.medians.is_some());
    if columns.medians.is_none() {
        building.leave_out(metadata.num_rows.saturating_sub(rows));
    }
    let decode = |slice: &(usize, usize)| opened.decode(*slice, Some(projection.clone()));
    let mut told = 0;
    std::thread::scope(|scope| {
        // A thread decodes the next part while this thread reads the current part.
        let (sender, frames) = sync_channel(0);
        let (slices, decode) = (&slices, &decode);
        let decoding = scope.spawn(move || {
            slices.iter().map(decode).try_for_each(|frame| sender.send(frame)).unwrap_or_default();
        });
        for ((first, rows), frame) in slices.iter().zip(&frames) {
            let added = frame
                .and_then(|frame| rows::add(&frame, *first as u64, &mut columns, building).map_err(damaged));
            if added.is_err() {
                // The caller counts one more rejected row, with the reason.
                building.reject_unnamed((metadata.num_rows as u64).saturating_sub(*first as u64 + 1));
                return added;
            }
            let done = (bytes as u128 * (first + rows) as u128 / metadata.num_rows as u128) as u64;
            building.progress().add(done - told);
            told = done;
        }
        // The thread ends early if it panics, or if this thread stops receiving.
        drop(frames);
        decoding.join().map_err(|_| contradiction())
    })?;
    columns.finish(building);
    Ok(())
}

/// Checks the row counts in a file, because they decide how much memory the reader requests.
fn check(metadata: &FileMetadata) -> Result<(), ImportFault> {
    let mut left = metadata.num_rows;
    for group in &metadata.row_groups {
        left = left.checked_sub(group.num_rows()).ok_or_else(contradiction)?;
        for column in group.parquet_columns() {
            let is_flat = column.descriptor().descriptor.max_rep_level == 0;
            if is_flat && u64::try_from(column.num_values()) != Ok(group.num_rows() as u64) {
                return Err(contradiction());
            }
        }
    }
    if left == 0 { Ok(()) } else { Err(contradiction()) }
}

fn contradiction() -> ImportFault {
    ImportFault::Damaged("its contents contradict one another".to_owned())
}

fn damaged(error: PolarsError) -> ImportFault {
    ImportFault::Damaged(error.to_string())
}

/// Suppresses the panic message while a file is read: the reader reports the damage as an error.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if READING.load(Ordering::Relaxed) == 0 {
                tell(panic);
            }
        }));
    });
}
