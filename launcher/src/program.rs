//! The program to be measured, by its file: where it is, what it links, and whether it may be an MPI program.
//!
//! Here belongs what files tell. Not here: what the user says of the program (`run/choice.rs` decides between them).

pub mod elf;
mod find;
pub mod nature;

pub use find::{failure, find, find_as};
