//! What counts mean: names of events, known errata, validation results, metrics, sums over ranks.
//!
//! Belongs here: all that a user asks for by name, and all that is derived from counts.
//! Does not: to open and to read counters ([`pmmpi::counters`]). The agent links no line of this crate.
#![warn(missing_docs)]

mod core_kinds;
pub mod errata;
pub mod metrics;
pub mod names;
pub mod readings;
pub mod summary_line;
pub mod totals;
pub mod validation;
