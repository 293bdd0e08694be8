//! The report as people and programs read it: a module for each format, and what several of them say alike.
//!
//! Names come from files that anybody may have made, so each format escapes all that it did not write itself.
//! What a format means by its columns and names is in docs/report.md, and a contract.

mod answer;
mod cells;
pub mod csv;
pub mod first_warnings;
pub mod html;
pub mod markdown;
pub mod openmetrics;
mod tables;
pub mod text;

use pmmpi::text::printable;

/// `text` without what would begin a line, steer a terminal or turn text around: that is shown as `?`.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "?")
}

/// Rows that are shown of `all`, and how many are not; 0: all are.
fn shown(all: usize, top: usize) -> (usize, usize) {
    let shown = if top == 0 { all } else { all.min(top) };
    (shown, all - shown)
}

/// What is said of rows that are not shown.
fn more(hidden: usize, what: &str) -> Option<String> {
    (hidden > 0).then(|| format!("... and {hidden} {what} (--top 0 shows all)"))
}
