//! One measurement of one rank: open, start, stop, gather. [`RankSession`] has the order of the steps.
//!
//! This module holds what a rank does and records during the measurement. [`crate::transport`] connects ranks;
//! [`crate::record`] and [`crate::partial`] have what is stored on disk.

mod barriers_and_stamps;
pub mod launch_check;
pub mod launch_origin;
pub mod launcher_request;
pub mod live_probes;
pub mod live_record;
pub mod live_regions;
pub mod shared_memory;

pub use barriers_and_stamps::{Beginning, OfNode, RankMemory, RankSession, Work, timeval_ns};
