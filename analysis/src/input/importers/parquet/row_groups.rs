//! Which row groups of a file are read, and how many rows at a time.

use super::columns::Columns;
use crate::table::selection::{LabelValue, RunSelection};
use polars::prelude::{ArrowDataType, ArrowSchema, ArrowTimeUnit};
use polars_io::parquet::read::FileMetadata;

/// Rows that are decoded at a time: enough to give each column a thread of its own.
const ROWS_AT_A_TIME: usize = 1 << 18;
/// The most rows of one row group that are decoded at a time.
const MOST_ROWS_AT_A_TIME: usize = 1 << 21;

/// Combines small row groups and divides large ones. Returns first row and number of rows of each slice. `needed` says
/// which row groups are read.
pub(super) fn slices(metadata: &FileMetadata, needed: &[bool]) -> Vec<(usize, usize)> {
    let mut slices: Vec<(usize, usize)> = Vec::new();
    let mut end = 0usize;
    for (group, is_needed) in metadata.row_groups.iter().zip(needed) {
        let rows = group.num_rows().min(u32::MAX as usize);
        match slices.last_mut() {
            _ if !is_needed => {}
            Some((first, before)) if *first + *before == end && *before + rows <= ROWS_AT_A_TIME => {
                *before += rows
            }
            // The library reads the start of a row group again for each of its parts, so there are few parts.
            _ if rows > MOST_ROWS_AT_A_TIME => {
                let parts = (0..rows).step_by(ROWS_AT_A_TIME);
                slices.extend(parts.map(|at| (end.saturating_add(at), ROWS_AT_A_TIME.min(rows - at))));
            }
            _ => slices.push((end, rows)),
        }
        end = end.saturating_add(rows);
    }
    slices
}

/// For each row group, false if its statistics show that the selection has none of its rows. A group without statistics is
/// needed.
pub(super) fn needed(
    metadata: &FileMetadata,
    schema: &ArrowSchema,
    columns: &Columns,
    selection: &RunSelection,
) -> Vec<bool> {
    let groups = 0..metadata.row_groups.len();
    if selection.is_all() {
        return groups.map(|_| true).collect();
    }
    let file = File { metadata, schema };
    groups.map(|group| file.may_match(group, columns, selection)).collect()
}

/// The least and the greatest text of a column in each row group. `None` if it is not known, or if some are missing.
pub(super) fn texts(
    metadata: &FileMetadata,
    schema: &ArrowSchema,
    column: &str,
) -> Vec<Option<[Vec<u8>; 2]>> {
    let file = File { metadata, schema };
    (0..metadata.row_groups.len()).map(|group| file.texts(group, column)).collect()
}

struct File<'a> {
    metadata: &'a FileMetadata,
    schema: &'a ArrowSchema,
}

impl File<'_> {
    fn may_match(&self, group: usize, columns: &Columns, selection: &RunSelection) -> bool {
        let in_time = || {
            let range = columns.started.as_deref().and_then(|name| self.instants(group, name));
            range.is_none_or(|[first, last]| match columns.medians {
                Some(_) => selection.may_have_earlier(first),
                None => selection.may_have_starts(first, last),
            })
        };
        let has_label = |label: &LabelValue| {
            let column =
                columns.class.iter().find(|column| label.names(&column.key) && !column.has_all_facts);
            let range = column.and_then(|column| self.texts(group, &column.name));
            range.is_none_or(|[first, last]| label.may_be_in(&first, &last))
        };
        in_time() && selection.labels.iter().all(has_label)
    }

    /// The first and the last instant of a column (ns since 1970). `None` if it is not known, or if some are missing.
    fn instants(&self, group: usize, name: &str) -> Option<[i64; 2]> {
        let unit_ns = match self.schema.get(name)?.dtype() {
            ArrowDataType::Timestamp(ArrowTimeUnit::Second, _) => 1_000_000_000,
            ArrowDataType::Timestamp(ArrowTimeUnit::Millisecond, _) => 1_000_000,
            ArrowDataType::Timestamp(ArrowTimeUnit::Microsecond, _) => 1_000,
            ArrowDataType::Timestamp(ArrowTimeUnit::Nanosecond, _) => 1,
            _ => return None,
        };
        let group = &self.metadata.row_groups[group];
        let column =
            group.parquet_columns().iter().find(|column| column.descriptor().path_in_schema == [name])?;
        let statistics = column.statistics(&self.metadata.footer_buf)?.ok()?.into_int64()?;
        let is_whole = statistics.null_count == Some(0);
        let range = [statistics.min_value?, statistics.max_value?];
        let [first, last] = range.map(|value| value.checked_mul(unit_ns));
        Some([first?, last?]).filter(|_| is_whole)
    }

    /// The first and the last text of a column. `None` if it is not known, or if some are missing.
    fn texts(&self, group: usize, name: &str) -> Option<[Vec<u8>; 2]> {
        let group = &self.metadata.row_groups[group];
        let column =
            group.parquet_columns().iter().find(|column| column.descriptor().path_in_schema == [name])?;
        let statistics = column.statistics(&self.metadata.footer_buf)?.ok()?.into_binary()?;
        let is_whole = statistics.null_count == Some(0);
        Some([statistics.min_value?, statistics.max_value?]).filter(|_| is_whole)
    }
}
