//! The columns of the results CSV in Parquet, from any writer; and what `pmmpi export` wrote.
//!
//! With the columns `event` and `value` the file is long: a run has many rows, whose values are summed event by
//! event. A file is read some row groups at a time and may be larger than memory; the table must not be.

mod columns;
mod names;
mod rows;

use super::building::Building;
use super::{Fault, Options};
use columns::Columns;
use polars::prelude::PolarsError;
use polars_io::SerReader;
use polars_io::parquet::read::{FileMetadata, ParquetReader};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Once};

/// Rows that are decoded at a time: enough to give each column to a thread.
const ROWS_AT_A_TIME: usize = 1 << 19;
/// Key of the file's metadata that says who exported it.
pub(crate) const EXPORTED_BY: &str = "pmmpi";
/// Reads rows until the end.
pub(super) fn read(path: &Path, options: &Options, building: &mut Building) -> Result<(), Fault> {
    if path == Path::new("-") || !std::fs::metadata(path)?.is_file() {
        return Err(Fault::Pipe);
    }
    quiet();
    // A damaged file may be a panic in the library. What was read before it stays.
    let read = catch_unwind(AssertUnwindSafe(|| read_all(path, options, building)));
    read.unwrap_or_else(|_| Err(Fault::Damaged("its content contradicts itself".to_owned())))
}

fn read_all(path: &Path, options: &Options, building: &mut Building) -> Result<(), Fault> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut reader = ParquetReader::new(file.try_clone()?);
    let metadata = reader.get_metadata().map_err(damaged)?.clone();
    let schema = reader.schema().map_err(damaged)?;
    let exported = metadata.key_value_metadata.iter().flatten().any(|pair| pair.key == EXPORTED_BY);
    if exported {
        building.is_exported();
    }
    let place = options.place(path)?;
    let mut columns = Columns::find(&schema, metadata.num_rows as u64, &place, options, building)?;
    if metadata.num_rows == 0 {
        return Err(Fault::NoRows);
    }
    let mut told = 0;
    for (first, rows) in slices(&metadata) {
        let mut reader = ParquetReader::new(file.try_clone()?)
            .with_slice(Some((first, rows)))
            .with_projection(Some(columns.projection()));
        reader.set_metadata(metadata.clone());
        let frame = reader.finish().map_err(damaged)?;
        rows::add(&frame, first as u64, &mut columns, building).map_err(damaged)?;
        let done = (bytes as u128 * (first + rows) as u128 / metadata.num_rows as u128) as u64;
        building.progress().add(done - told);
        told = done;
    }
    columns.finish(building);
    Ok(())
}

/// Row groups, several of small ones; first row and number of rows of each slice.
fn slices(metadata: &Arc<FileMetadata>) -> Vec<(usize, usize)> {
    let mut slices: Vec<(usize, usize)> = Vec::new();
    let mut end = 0;
    for group in &metadata.row_groups {
        let rows = group.num_rows();
        match slices.last_mut() {
            Some((_, before)) if *before + rows <= ROWS_AT_A_TIME => *before += rows,
            _ => slices.push((end, rows)),
        }
        end += rows;
    }
    slices
}

fn damaged(error: PolarsError) -> Fault {
    Fault::Damaged(error.to_string())
}

/// A panic over a damaged file is an error that is told, once.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.location().is_some_and(|place| place.file().contains("polars")) {
                tell(panic);
            }
        }));
    });
}
