//! Measures a child process in several rounds: the launcher does this for a single program, the runner on every rank of
//! a job.
//!
//! [`process`] starts a program and gets its end. [`descendants`] finds the processes that the program started
//! ([`proc_stat`]). [`signals`] passes signals on to it; a witness process shows which signals reach it anyway.
//! [`plan`] is the launcher's plan, [`rounds`] executes it on any fabric, [`saving`] saves the runs, [`console`]
//! prints the messages.

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
