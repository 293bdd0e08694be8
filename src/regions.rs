//! Regions: parts of a program's work that it names itself.
//!
//! Here belongs what ranks did in them, once it is measured. Not here: the memory in which a rank keeps them while it
//! runs ([`crate::session::live_regions`]).

mod totals;
mod whereabouts;

pub use totals::{MOST, RegionBounds, RegionTotals, Regions};
pub use whereabouts::{At, Whereabouts};
