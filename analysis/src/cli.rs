//! The command line of `pmmpi-report`, and what its process needs.

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
