//! What a measurement is. This crate knows no data frames and, without the feature `mpi`, no MPI library.
//!
//! One measurement: a [`session::RankSession`] on a [`transport::fabric::Fabric`] takes a rank's [`bounds::Stamps`]
//! around the work and records them in its [`session::live_record::LiveRecord`]; the ranks' parts are gathered into a
//! [`record::Run`], which [`record::runfile`] stores and [`bounds`] turns into the two durations that the job's
//! elapsed time must lie between, whatever the clocks do.
//!
//! Invariants that all crates rely on:
//! - The clocks of two nodes are never subtracted: [`bounds::Stamps`] has no way to.
//! - Between t1 and t2 the tool does nothing.
//! - Raw values are stored, everything else is derived later. What was not measured is absent, never 0.
//!
//! It never prints, never ends the process, and never starts one.

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
