//! The command line: as typed (`options`, `screen_options`), and after the checks (`settings`, `launches`, `selection`).
//!
//! These modules check every option's value. What a command does belongs elsewhere.

pub mod command_line;
pub mod launches;
pub mod options;
mod selection;
pub mod settings;
