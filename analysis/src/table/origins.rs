//! The file and the line of each row.

/// The file and the line of each row. Most rows of a file have consecutive lines. Only the first row of such a stretch
/// is stored, because a stretch of an archive may have millions of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origins {
    stretches: Vec<Stretch>,
    rows: u32,
}

/// Rows of one file with consecutive lines.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    first_row: u32,
    source: u32,
    /// Line of the first row.
    line: u64,
}

impl Origins {
    /// Adds rows of a file, with consecutive lines from `line`.
    pub fn push(&mut self, source: u32, line: u64, rows: usize) {
        let follows = |last: &Stretch| {
            last.source == source && last.line + u64::from(self.rows - last.first_row) == line
        };
        if rows > 0 && !self.stretches.last().is_some_and(follows) {
            self.stretches.push(Stretch { first_row: self.rows, source, line });
        }
        self.rows += rows as u32;
    }

    /// The index of a row's file.
    pub fn source(&self, row: usize) -> u32 {
        self.stretch(row).source
    }

    /// A row's line in its file, counted from 1; in a JSON document, the number of the entry.
    pub fn line(&self, row: usize) -> u64 {
        let stretch = self.stretch(row);
        stretch.line + (row as u64 - u64::from(stretch.first_row))
    }

    /// The line of the last row; 0 if there is no row.
    pub(crate) fn last_line(&self) -> u64 {
        self.rows.checked_sub(1).map_or(0, |row| self.line(row as usize))
    }

    /// The index of each row's file.
    pub fn sources(&self) -> impl Iterator<Item = u32> {
        self.source_sizes().flat_map(|(source, rows)| std::iter::repeat_n(source, rows))
    }

    /// The index of each file that has rows, with the number of its rows; a file may come several times.
    pub fn source_sizes(&self) -> impl Iterator<Item = (u32, usize)> {
        self.with_sizes().map(|(stretch, rows)| (stretch.source, rows))
    }

    /// Keeps the rows for which `kept` is true.
    pub(crate) fn retain(&mut self, kept: &[bool]) {
        let mut left = Self::default();
        for (stretch, rows) in self.with_sizes() {
            let first = stretch.first_row as usize;
            for (line, _) in (stretch.line..).zip(&kept[first..first + rows]).filter(|(_, kept)| **kept) {
                left.push(stretch.source, line, 1);
            }
        }
        *self = left;
    }

    fn stretch(&self, row: usize) -> Stretch {
        let after = self.stretches.partition_point(|stretch| stretch.first_row as usize <= row);
        self.stretches[after - 1]
    }

    fn with_sizes(&self) -> impl Iterator<Item = (Stretch, usize)> {
        let ends = self.stretches.iter().skip(1).map(|next| next.first_row).chain([self.rows]);
        self.stretches.iter().zip(ends).map(|(stretch, end)| (*stretch, (end - stretch.first_row) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The same as two columns, whatever is added and removed.
        #[test]
        fn each_row_has_its_file_and_line(
            parts in proptest::collection::vec((0u32..3, 1u64..6, 0usize..5), 0..20),
            kept in proptest::collection::vec(any::<bool>(), 100)
        ) {
            let (mut origins, mut rows) = (Origins::default(), Vec::new());
            for (source, line, count) in parts {
                origins.push(source, line, count);
                rows.extend((line..).take(count).map(|line| (source, line)));
            }
            prop_assert_eq!(origins.last_line(), rows.last().map_or(0, |(_, line)| *line));
            let mut kept = kept;
            kept.truncate(rows.len());
            for is_retained in [false, true] {
                if is_retained {
                    origins.retain(&kept);
                    let mut kept = kept.iter();
                    rows.retain(|_| *kept.next().unwrap());
                }
                let found: Vec<(u32, u64)> =
                    (0..rows.len()).map(|row| (origins.source(row), origins.line(row))).collect();
                prop_assert_eq!(&found, &rows);
                prop_assert!(origins.sources().eq(rows.iter().map(|(source, _)| *source)));
                prop_assert_eq!(origins.source_sizes().map(|(_, rows)| rows).sum::<usize>(), rows.len());
            }
        }

        #[test]
        fn consecutive_lines_are_one_stretch(rows in 1usize..1000, at in 1usize..1000) {
            let mut origins = Origins::default();
            origins.push(0, 2, at);
            origins.push(0, 2 + at as u64, rows);
            prop_assert_eq!(origins.stretches.len(), 1);
        }
    }
}
