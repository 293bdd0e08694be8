//! Regions: parts of a program's work that it names itself.
//!
//! This module holds regions after the measurement. [`crate::session::live_regions`] has the memory in which a rank
//! records them while it runs.

mod totals;
mod whereabouts;

pub use totals::{MOST, RegionBounds, RegionTotals, Regions};
pub use whereabouts::{At, Whereabouts};
