//! The commands of `pmmpi-report`, each from its options to its result and exit status.
//!
//! The order of the steps of a command belongs here. What several commands need of the command line is in `cli`; what
//! they compute and show is in the library.

mod baseline;
pub mod bounds;
pub mod compare;
pub mod export;
mod findings;
pub mod report;
pub mod show_and_diff;
