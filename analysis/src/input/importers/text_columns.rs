//! Columns with text that make up no class: the report compares runs with different values, as if they had done the same
//! work on the same kind of node.

use super::building::shown;
use std::collections::HashSet;

/// A column with more values names single runs or moments, and no kinds of work or nodes.
const MOST_VALUES: usize = 64;

/// Columns that say what a node or its work is, even if their values are numbers.
const FACTS: [&str; 7] = ["cpu", "microcode", "memory", "kernel", "command", "ranks", "threads"];

/// The values of such a column, in all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextValues {
    /// At most [`MOST_VALUES`] + 1.
    values: HashSet<Box<[u8]>>,
    rows: u64,
}

impl TextValues {
    /// Adds the values of another file.
    pub fn add(&mut self, other: Self) {
        let room = (MOST_VALUES + 1).saturating_sub(self.values.len());
        self.values.extend(other.values.into_iter().take(room));
        self.rows += other.rows;
    }

    /// The values in order. `None` if they do not divide the runs into kinds: all values are equal, or a value belongs
    /// to fewer than two runs on average.
    pub fn of_kinds(&self) -> Option<Vec<String>> {
        let is_kind = (2..=MOST_VALUES).contains(&self.values.len());
        if !is_kind || self.rows < 2 * self.values.len() as u64 {
            return None;
        }
        let mut values: Vec<&[u8]> = self.values.iter().map(|value| &**value).collect();
        values.sort_unstable();
        Some(values.into_iter().map(shown).collect())
    }
}

/// A column of one file that no reader asked for.
#[derive(Debug)]
pub(crate) struct UnusedColumn {
    pub at: usize,
    pub name: String,
    found: TextValues,
    last: Vec<u8>,
    has_numbers: bool,
    /// The name is that of a fact: its numbers are no counter.
    is_fact: bool,
}

impl UnusedColumn {
    pub fn new(at: usize, name: String) -> Self {
        let is_fact = FACTS.iter().any(|fact| name.eq_ignore_ascii_case(fact));
        Self { at, name, found: TextValues::default(), last: Vec::new(), has_numbers: false, is_fact }
    }

    /// Adds the field of one row; `is_number` tells whether a field is a number. One number makes the column a counter.
    pub fn add(&mut self, field: &[u8], is_number: impl Fn(&[u8]) -> bool) {
        if self.has_numbers {
            return;
        }
        self.found.rows += 1;
        // Successive rows are often alike.
        if field == self.last && self.found.rows > 1 {
            return;
        }
        if self.found.values.is_empty() && !self.is_fact && is_number(field) {
            self.has_numbers = true;
            return;
        }
        if self.found.values.len() <= MOST_VALUES {
            self.found.values.insert(field.into());
        }
        self.last.clear();
        self.last.extend_from_slice(field);
    }

    /// The values; `None` if the column has numbers.
    pub fn values(self) -> Option<TextValues> {
        (!self.has_numbers).then_some(self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::{TextValues, UnusedColumn};

    fn of(fields: &[&str]) -> Option<TextValues> {
        of_column("blas", fields)
    }

    fn of_column(name: &str, fields: &[&str]) -> Option<TextValues> {
        let mut column = UnusedColumn::new(0, name.to_owned());
        let is_number = |field: &[u8]| str::from_utf8(field).is_ok_and(|text| text.parse::<f64>().is_ok());
        fields.iter().for_each(|field| column.add(field.as_bytes(), is_number));
        column.values()
    }

    #[test]
    fn few_values_of_many_rows_are_kinds() {
        let kinds = |fields: &[&str]| of(fields).and_then(|values| values.of_kinds());
        assert_eq!(
            kinds(&["mkl", "mkl", "openblas", "mkl"]),
            Some(vec!["mkl".to_owned(), "openblas".to_owned()])
        );
        assert_eq!(kinds(&["mkl", "mkl"]), None); // all are of one kind
        assert_eq!(kinds(&["a", "b", "c"]), None); // a name of each run
        assert_eq!(kinds(&["1", "2", "1", "2"]), None); // a counter
        let memory = of_column("Memory", &["128", "96", "128", "96"]).and_then(|values| values.of_kinds());
        assert_eq!(memory, Some(vec!["128".to_owned(), "96".to_owned()]));
        let many: Vec<String> = (0..200).map(|at| format!("k{}", at % 100)).collect();
        assert_eq!(kinds(&many.iter().map(String::as_str).collect::<Vec<_>>()), None);
    }

    #[test]
    fn files_of_one_kind_each_are_kinds_together() {
        let mut all = of(&["mkl", "mkl"]).unwrap();
        all.add(of(&["openblas", "openblas"]).unwrap());
        assert_eq!(all.of_kinds().map(|kinds| kinds.len()), Some(2));
    }
}
