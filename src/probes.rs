//! Probes: short sections of one thread that a program names itself, without a barrier and without a system call.
//!
//! This module holds probes after the measurement. [`crate::session::live_probes`] measures them.

mod histogram;
mod totals;

pub use histogram::{BUCKETS, Times, bucket, limits};
pub use totals::{Discarded, MOST, ProbeTotals, Probes, Spread};
