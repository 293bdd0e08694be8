//! The command line of `pmmpi-report`: the options of all commands, what they read and where the result goes, exit
//! statuses and failures, and what the process needs (allocator, restart after a crash).
//!
//! What several commands share belongs here. What a single command does belongs in `commands`; what its result
//! contains and how it looks belongs in the library (`report`, `comparison`, `render`).

pub mod allocator;
pub mod compare_status;
pub mod ended_early;
pub mod exit_statuses;
pub mod failure;
pub mod inputs;
pub mod nagios;
pub mod options;
pub mod outputs;
pub mod progress_line;
pub mod restart_after_crash;
pub mod usage;
pub mod verdict_status;
