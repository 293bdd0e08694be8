//! Why a command failed, what it says then, and its exit status.

use super::exit_statuses::USAGE;
use super::progress_line;
use pmmpi::text::printable;
use std::io::{self, Write};

/// Why a command has no result.
pub struct Failure {
    /// The exit status.
    pub code: u8,
    /// What, where, and what to do.
    pub message: String,
}

impl Failure {
    /// A command line that is not valid, or no usable input.
    pub fn usage(message: impl ToString) -> Self {
        Self { code: USAGE, message: message.to_string() }
    }
}

/// The exit status of a command; says why it failed.
pub fn code(done: Result<u8, Failure>) -> u8 {
    done.unwrap_or_else(|failure| {
        say(&failure.message);
        failure.code
    })
}

/// Prints a message for the user.
pub fn say(message: &str) {
    progress_line::clear();
    // If stderr is closed, there is nothing to do.
    let _ = writeln!(io::stderr(), "pmmpi: {}", printable(message));
}
