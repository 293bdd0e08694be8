//! The command line of `pmmpi-report`, and what its process needs.

pub mod allocator;
pub mod compare_status;
pub mod options;
pub mod progress_line;
pub mod supervise;
pub mod verdict_status;
