//! The command line: as typed (`options`, `measurement_options`, `screen_options`), and after the checks
//! (`settings`, `repeat_command`, `selection`).
//!
//! These modules check every option's value. What a command does belongs elsewhere.

pub mod command_line;
pub mod options;
pub mod repeat_command;
mod selection;
pub mod settings;
