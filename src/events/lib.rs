//! What counts mean: names of events, known errata, validation results, metrics, sums over ranks.
//!
//! This crate holds all that a user asks for by name, and all that is derived from counts. [`pmmpi::counters`]
//! opens and reads counters. The agent does not link this crate.
#![warn(missing_docs)]

mod core_kinds;
pub mod errata;
pub mod metrics;
pub mod names;
pub mod readings;
pub mod summary_line;
pub mod totals;
pub mod validation;
