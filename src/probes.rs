//! Probes: short sections of one thread, which a program names itself. They need no barrier. They need no system call
//! either, except when a thread uses a name for the first time.
//!
//! This module holds probes after the measurement. [`crate::session::live_probes`] measures them.

mod histogram;
mod totals;

pub use histogram::{BUCKETS, Times, bucket, limits};
pub use totals::{Discarded, MOST, ProbeTotals, Probes, Spread};
