//! The measurement itself. This crate uses no data frames and, without the feature `mpi`, no MPI library.
//!
//! A [`session::RankSession`] on a [`transport::fabric::Fabric`] takes a rank's [`bounds::Stamps`] around the work
//! and records them in its [`session::live_record::LiveRecord`]. The ranks' parts are gathered into a
//! [`record::Run`]. [`record::runfile`] stores the run. [`bounds`] turns it into the two durations between which
//! the job's elapsed time must lie, whatever the clocks do.
//!
//! Invariants that all crates rely on:
//! - The clocks of two nodes are never subtracted: [`bounds::Stamps`] does not allow it.
//! - Between t1 and t2 the tool does nothing.
//! - Raw values are stored, everything else is derived later. What was not measured is absent, never 0.
//!
//! This crate never prints, never ends the process, and never starts one.

#![warn(missing_docs)]

pub mod bounds;
pub mod clock;
pub mod counters;
pub mod node;
pub mod partial;
pub mod record;
pub mod regions;
#[cfg(feature = "mpi")]
pub mod rsmpi;
pub mod session;
pub mod text;
pub mod transport;

#[cfg(feature = "mpi")]
pub use rsmpi::Session;
