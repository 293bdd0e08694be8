//! From run files to answers: the bounds of each run, the median run and the slowdown of each node,
//! and what stands against believing them.
//!
//! [`input`] reads run files, and by [`results`] what other tools measured; [`table`] has how long each run took on each
//! node, which is what [`verdicts`] are made of. [`verdicts`] says which [`nodes`] and runs are slow, by the mathematics of [`stats`];
//! [`report`] is the whole answer as a value, with what [`about`] says against it, and [`render`] and serde show it. [`stamps_csv`] bounds anybody's stamps, [`results`] reads what other tools measured. Links no MPI
//! library.

#![warn(missing_docs)]

pub mod about;
pub mod class;
mod counters;
pub mod export;
pub mod input;
mod metrics;
pub mod node_rows;
pub mod nodes;
pub mod output;
mod places;
pub mod progress;
pub mod regions;
pub mod render;
pub mod report;
pub mod results;
pub mod stamps_csv;
pub mod stats;
pub mod table;
pub mod verdicts;
pub mod warning;
