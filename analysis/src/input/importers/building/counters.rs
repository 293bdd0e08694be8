//! Counters of rows that are in the table: each has a column of its own.

use super::super::text_columns::UnusedColumn;
use super::Building;
use crate::table::node_class;
use crate::table::{FACTS_COLUMN, MAINTENANCE_LABEL, NO_TIME_COLUMNS};

/// More counters than this are a mistake: each counter may need memory for every row.
const MOST_COUNTERS: usize = 4096;
/// Names that a counter cannot have: they have another meaning in files that pmmpi reads or exports.
const COLUMNS: [&str; 14] = [
    "node",
    "run",
    "elapsed_s",
    "class",
    "session",
    MAINTENANCE_LABEL,
    "started",
    "measured_by_pmmpi",
    "event",
    "value",
    "month",
    FACTS_COLUMN,
    NO_TIME_COLUMNS[0],
    NO_TIME_COLUMNS[1],
];

impl Building {
    /// Index of the counter of this name. `None` if the caller did not ask for it, if its name is that of a column
    /// with another meaning, or if there are too many counters. Capital and small letters are equal, as in column
    /// names.
    pub fn counter(&mut self, name: &str) -> Option<usize> {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let key = name.to_ascii_lowercase();
        let known = self.slots.get(&key).copied().flatten();
        let slot = known.or_else(|| {
            let is_column = COLUMNS.contains(&key.as_str()) || node_class::is_column(&key);
            let is_counter = !is_column && !name.is_empty() && self.counters.len() < MOST_COUNTERS;
            (is_counter && self.wants(name)).then(|| {
                self.counters.push((name.to_owned(), Vec::new()));
                self.counters.len() - 1
            })
        });
        // A file may have any number of names. That a name is no counter is kept only where a later spelling replaces it.
        if self.slots.len() < 2 * MOST_COUNTERS && (slot.is_some() || name == key) {
            self.slots.insert(name.to_owned(), slot);
        }
        if slot.is_some() {
            self.slots.insert(key, slot);
        }
        slot
    }

    /// True if the caller asked for this counter.
    pub fn wants(&self, counter: &str) -> bool {
        self.wanted.is_none_or(|wanted| wanted.contains(&counter))
    }

    /// The run of this row is a round of `pmmpi screen`: see [`RunTable::screens`](crate::table::RunTable::screens).
    /// `is_suspect`: the node looked slow before.
    pub fn in_screen(&mut self, row: usize, is_suspect: bool) {
        let table = &mut self.results.table;
        let run = table.run.at(row);
        table.screens.insert(run);
        if is_suspect {
            table.suspects.insert([run, table.node.at(row)]);
        }
    }

    /// Sets a value of an added row. If the name cannot be a counter's, the value counts as unread.
    pub fn set_by_name(&mut self, name: &str, row: usize, value: f64) {
        match self.counter(name) {
            Some(slot) => self.set(slot, row, value),
            None if self.wants(name) => self.unread(name, 1),
            None => {}
        }
    }

    /// Sets a value of an added row.
    pub fn set(&mut self, slot: usize, row: usize, value: f64) {
        if let Some((_, values)) = self.counters.get_mut(slot) {
            if values.len() <= row {
                values.resize(row + 1, f64::NAN);
            }
            values[row] = value;
        }
    }

    /// Adds to a value of an added row. If one value is not finite, the sum is absent.
    pub fn sum(&mut self, slot: usize, row: usize, value: f64) {
        let Some((_, values)) = self.counters.get_mut(slot) else { return };
        if values.len() <= row {
            values.resize(row + 1, f64::NAN);
        }
        let sum = &mut values[row];
        *sum = match value.is_finite() {
            true if sum.is_nan() => value,
            true => *sum + value,
            false => f64::INFINITY,
        };
    }

    /// The row of a run in long files; the key is node, run, class and session.
    pub fn long_run(&self, key: [u32; 4]) -> Option<usize> {
        self.long_runs.get(&key).copied()
    }

    pub fn set_long_run(&mut self, key: [u32; 4], row: usize) {
        self.long_runs.insert(key, row);
    }

    /// True if a row comes from another file than the current one.
    pub fn is_of_another_file(&self, row: usize) -> bool {
        row < self.first_row
    }

    /// Marks all sums of a row as absent.
    pub fn withdraw(&mut self, row: usize) {
        for value in self.counters.iter_mut().filter_map(|(_, values)| values.get_mut(row)) {
            *value = if value.is_nan() { *value } else { f64::INFINITY };
        }
    }

    /// Removes this counter's values of the current file.
    pub fn unset(&mut self, slot: usize) {
        let rows = self.results.sources.last().map_or(0, |source| source.rows as usize);
        let first = self.results.table.len().saturating_sub(rows);
        if let Some((_, values)) = self.counters.get_mut(slot) {
            values.truncate(first);
        }
    }

    /// Keeps the values of a column that no reader asked for, if it has text.
    pub fn unused(&mut self, column: UnusedColumn) {
        let name = of_one_line(&column.name);
        if let Some(values) = column.values() {
            self.results.unused_text.entry(name).or_default().add(values);
        }
    }

    /// Counts values that the reader understood but that have no place in the table.
    pub fn unread(&mut self, name: &str, values: u64) {
        *self.results.unread.entry(of_one_line(name)).or_default() += values;
    }
}

fn of_one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
