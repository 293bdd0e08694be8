//! The report for people and programs: one module per format, and their common parts.
//!
//! Anyone may have made the files that names come from, so each format escapes every text that it did not write
//! itself. docs/report.md defines each format's columns and names; they are a contract.

pub mod against_baseline;
mod aligned;
pub mod answer;
pub mod by_place;
mod cells;
pub mod comparison;
pub mod csv;
pub mod first_warnings;
mod goes_with_slowness;
pub mod html;
pub mod json;
mod last_run;
pub mod markdown;
mod md_and_html_tables;
mod nhc;
pub mod node_list;
mod node_names;
pub mod openmetrics;
pub mod origin;
mod probes;
pub mod recorded;
mod run_spread;
mod run_table;
pub mod screen;
pub mod sentences;
mod tables_of_last_run;
mod tabular;
pub mod text;
mod where_slow;

use pmmpi::text::{count, printable};

/// Replaces line ends, control characters and characters that change the direction of text by `?`.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "?")
}

/// How many of `all` rows are shown, and how many are not. With `top` 0 all are shown.
fn shown(all: usize, top: usize) -> (usize, usize) {
    let shown = if top == 0 { all } else { all.min(top) };
    (shown, all - shown)
}

/// The remark about rows that are not shown; `noun` is what one row is: "more node".
fn more(hidden: usize, noun: &str) -> Option<String> {
    (hidden > 0).then(|| format!("... and {} (--top 0 shows all)", count(hidden, noun)))
}
