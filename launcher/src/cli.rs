//! The command line: as it is typed (`options`), and as it is meant (`settings`, `launches`, `selection`).
//!
//! Here belongs every check of an option's value. Not here: what a command does.

pub mod command_line;
pub mod launches;
pub mod options;
mod selection;
pub mod settings;
