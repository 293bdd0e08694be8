//! The measurement itself. This crate uses no data frames and, without the feature `mpi`, no MPI library.
//!
//! From top to bottom, each step hands its result to the next:
//! 1. [`session::RankSession`] takes a rank's [`Stamps`] around the work, on a [`transport::fabric::Fabric`], and
//!    records them in the rank's [`session::live_record::LiveRecord`].
//! 2. [`transport::gather`] joins the ranks' [`record::Part`]s on rank 0.
//! 3. [`Run::assemble`] makes one [`Run`] of them.
//! 4. [`record::run_file`] stores the run. If the job ends badly, [`partial`] has what is left of it.
//! 5. [`Run::elapsed`] computes the two durations between which the job's elapsed time must lie, for any offsets
//!    of the clocks: [`ElapsedBounds`], by the mathematics of [`bounds`].
//!
//! Invariants that all crates rely on:
//! - The clocks of two nodes are never subtracted: [`bounds::Stamps`] does not allow it.
//! - Between t1 and t2 a rank does only its own work and two snapshots of its counters, except what the program asks
//!   for: regions and probes.
//! - Raw values are stored, everything else is derived later. What was not measured is absent, never 0.
//!
//! This crate never prints, never ends the process, and never starts one.

#![warn(missing_docs)]

pub mod bounds;
pub mod clock;
pub mod counters;
pub mod ids;
pub mod node;
pub mod order_statistics;
pub mod partial;
pub mod probes;
pub mod record;
pub mod regions;
#[cfg(feature = "mpi")]
pub mod rsmpi;
pub mod session;
pub mod slow_links;
pub mod text;
pub mod transport;
pub mod wrong_data;

pub use bounds::{ElapsedBounds, Stamps};
pub use ids::{NodeId, RankId};
pub use record::Run;
#[cfg(feature = "mpi")]
pub use rsmpi::Session;
