//! Work that is a child process, round after round: what the launcher does alone on a laptop and what
//! the runner does on every rank of a job.
//!
//! [`process`] starts one program and learns how it ended, [`descendants`] are what that program started ([`proc_stat`]),
//! [`signals`] reach it (a witness says which do so without this process), [`plan`] is what the
//! launcher asks for, [`rounds`] does it on any fabric, [`saving`] keeps its runs, [`console`] is everything that is said about it
//! on stderr.

#![warn(missing_docs)]

pub mod console;
pub mod descendants;
mod failure;
mod held_signals;
pub mod plan;
pub mod proc_stat;
pub mod process;
pub mod rounds;
pub mod saving;
mod signal_ledger;
mod signal_witness;
pub mod signals;

pub use failure::Failure;
