//! The file of the program to measure: where it is, what it links, and whether it may be an MPI program.
//!
//! These modules use only what files show. `run/choose_mode.rs` combines this with the user's options.

mod find;
pub mod is_mpi_program;
pub mod linked_libraries;

pub use find::{failure, find, find_as};
