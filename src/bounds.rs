//! Bounds of durations across nodes, derived from the stamps of ranks. They hold for any offsets of the clocks, if
//! no clock's rate error exceeds the limit (`--max-drift-ppm`).
//!
//! This module holds stamps, pings and the mathematics on them. [`crate::session`] takes the stamps; the analysis
//! evaluates the bounds of many runs.

mod drift;
mod elapsed;
mod interval;
mod lateness;
mod ping_bounds;
mod pings;
mod slew;
mod stamps;

pub use drift::MaxDrift;
pub use elapsed::{ElapsedBounds, JobStamps, NO_RATE_PPM};
pub use interval::Interval;
pub use lateness::NodeLateness;
pub use ping_bounds::Anchors;
pub use pings::{Ping, Pings};
pub use slew::RawClock;
pub use stamps::{NodeStamps, StampOutOfRange, Stamps};
