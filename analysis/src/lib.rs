//! From run files to answers: the bounds of each run, the median run and the slowdown of each node,
//! and what stands against believing them.
//!
//! [`input`] reads run files, and by [`results`] what other tools measured, into one [`table`]: how long each run took on
//! each node, and what was counted there ([`node_counters`]). [`verdicts`] says which [`nodes`] and runs are slow, and why,
//! by the mathematics of [`stats`], [`lateness`] which node a job waited for. [`report`] is the whole answer as a value,
//! with what [`about`] says against it; [`render`] and serde show it. [`export`] keeps the table, [`stamps_csv`] bounds
//! anybody's stamps. Links no MPI library.

#![warn(missing_docs)]

pub mod about;
pub mod class;
mod counters;
pub mod export;
pub mod input;
pub mod lateness;
mod metrics;
pub mod node_counters;
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
