//! A table before it has a format.

use super::cells::shortened;
use crate::stats::verdict_rule::Verdict;

/// Headings and rows.
#[derive(Default)]
pub struct Table {
    /// A line above the table.
    pub before: Option<String>,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// A remark about rows that are not shown.
    pub more: Option<String>,
    /// Lines below the table.
    pub notes: Vec<String>,
}

pub struct Column {
    pub title: &'static str,
    /// True for numbers: they are right-aligned.
    pub is_right: bool,
}

pub enum Cell {
    /// A name from a file that anyone may have made; long names are shortened.
    Name(String),
    /// Text with names from such a file.
    Text(String),
    /// Text of the tool itself.
    Words(String),
    Verdict(Option<Verdict>),
}

pub fn left(title: &'static str) -> Column {
    Column { title, is_right: false }
}

pub fn right(title: &'static str) -> Column {
    Column { title, is_right: true }
}

pub fn name(name: &str) -> Cell {
    Cell::Name(shortened(name))
}

pub fn words(words: impl ToString) -> Cell {
    Cell::Words(words.to_string())
}

/// "-" if there is no value.
pub fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> Cell {
    Cell::Words(value.map_or("-".to_owned(), show))
}
