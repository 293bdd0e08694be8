//! The command line of `pmmpi-report`, and what its process needs.

pub mod allocator;
pub mod compare_status;
pub mod ended_early;
pub mod nagios;
pub mod options;
pub mod progress_line;
pub mod restart_after_crash;
pub mod verdict_status;

/// --fail-on found what it looks for.
const FOUND: u8 = 3;
/// Nothing was found, but not everything could be judged.
const COULD_NOT_JUDGE: u8 = 4;
