//! What counts mean: names of events, known errata, validation results, metrics, sums over ranks.
//!
//! From a name that a user types to an answer:
//! 1. [`names`] resolves it to an event, and [`pmmpi::counters`] opens and counts the event.
//! 2. [`readings`] gives each event of a rank's counts its value and quality.
//! 3. [`totals`] sums readings over ranks.
//! 4. [`validation`] and [`errata`] say how far an event can be trusted.
//! 5. [`metrics`] computes metrics from the sums and that trust. [`summary_line`] prints the most important ones.
//!
//! The agent does not link this crate.
#![warn(missing_docs)]

mod core_kinds;
pub mod errata;
pub mod metrics;
pub mod names;
pub mod readings;
pub mod summary_line;
pub mod totals;
pub mod validation;
