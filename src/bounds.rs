//! Bounds of durations between nodes, from the stamps of ranks: what they prove, whatever the clocks do.
//!
//! Here belong stamps, pings and the mathematics on them. Not here: how ranks take them ([`crate::session`]), and what
//! is made of the bounds of many runs (the analysis).

mod drift;
mod elapsed;
mod lateness;
mod ping_bounds;
mod pings;
mod slew;
mod stamps;

pub use drift::MaxDrift;
pub use elapsed::{ElapsedBounds, JobStamps, NO_RATE_PPM};
pub use lateness::NodeLateness;
pub use ping_bounds::Anchors;
pub use pings::{Ping, Pings};
pub use slew::RawClock;
pub use stamps::{NodeStamps, StampOutOfRange, Stamps};
