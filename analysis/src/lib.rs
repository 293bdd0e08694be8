//! From run files to answers: the bounds of each run, the median run and the slowdown of each node,
//! and what stands against believing them.
//!
//! Read in this order, which no module reaches back in: [`input`] reads run files, archives and other tools' results
//! into one [`table`]: how long each run took on each node, and what was counted there. [`verdicts`] says which nodes and
//! runs are slow, and why, by the mathematics of [`stats`]. [`report`] is the whole answer as a value; [`render`] and serde
//! show it. [`export`] keeps the table, [`stamps_csv`] bounds anybody's stamps. Links no MPI library.

#![warn(missing_docs)]

pub mod export;
pub mod input;
pub mod output;
pub mod render;
pub mod report;
pub mod stamps_csv;
pub mod stats;
pub mod table;
pub mod verdicts;
pub mod warning;
