//! From run files to answers: the bounds of each run, the median run and the slowdown of each node, and the warnings
//! that limit these results.
//!
//! Each step hands its result to the next, and none uses a later one:
//! 1. [`input`] reads run files, archives and other tools' results into one [`table`]: the time of each run on
//!    each node, and the node's counts.
//! 2. [`verdicts`] decides with the mathematics of [`stats`] which nodes and runs are slow, and why.
//! 3. [`report`] is the whole answer as a value.
//! 4. [`render`] says it in English and shows it in each format, and [`output`] writes it.
//!
//! Each step may add [`warnings`]: facts that limit the result, as data. [`render`] says these in English, too.
//!
//! Beside them, [`comparison`] compares two sets of runs, and [`export_archive`] keeps the table in an archive.
//! [`recorded`] shows what else a run records, and [`stamps_csv`] computes bounds from stamps of other programs. This
//! crate links no MPI library.

#![warn(missing_docs)]

pub mod comparison;
pub mod export_archive;
pub mod input;
mod memory;
pub mod output;
pub mod recorded;
pub mod render;
pub mod report;
pub mod stamps_csv;
pub mod stats;
pub mod table;
pub mod verdicts;
pub mod warnings;
