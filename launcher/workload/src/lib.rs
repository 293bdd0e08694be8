//! Measures a child process in several rounds: `pmmpi` does this for a single program, the runner on every rank of a
//! job.
//!
//! [`rounds`] executes the [`plan`] of `pmmpi` on any fabric; [`screen_rounds`] does so for several kernels, each in a
//! [`kernel_process`] (`kernel_output` has what it prints, `kernel_fault` its hardware exceptions, `kernel_instructions`
//! the expected number of instructions) or, between nodes, in the ranks themselves (`net`). In each round [`process`]
//! starts the program and gets its end, [`saving`] saves the run, and [`console`] prints the messages;
//! [`series_summary`] has the last of them. Meanwhile [`signals`] passes signals on to the program; a witness process
//! shows which signals reach it anyway. [`descendants`] finds the processes that the program started ([`proc_stat`]).
//! [`health_watch`] reads the node before and after the program.
//!
//! The `pmmpi` process of rank 0 supervises a screen: [`screen_messages`] has what it hears from the runner of rank 0,
//! and [`rank_watch`] its connections to all ranks.

#![warn(missing_docs)]

pub mod console;
pub mod descendants;
mod failure;
pub mod health_watch;
mod held_signals;
mod kernel_fault;
mod kernel_instructions;
mod kernel_output;
pub mod kernel_process;
mod messages;
mod net;
mod one_round;
pub mod plan;
pub mod proc_stat;
pub mod process;
mod progress;
pub mod rank_watch;
pub mod rounds;
pub mod runner_plan;
pub mod saving;
mod screen_console;
pub mod screen_messages;
pub mod screen_plan;
pub mod screen_report;
pub mod screen_rounds;
pub mod series_summary;
mod signal_ledger;
mod signal_witness;
pub mod signals;

pub use failure::Failure;
