//! Errors of pmmpi itself, each with its exit status.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;

/// An error of pmmpi itself, not of the program.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The exit status (docs/exit-status.md): 125, 126 or 127 as in env(1); 2 for a usage error of a command that
    /// starts no program; 1 if such a command could not write its result.
    pub code: i32,
    /// What happened, where, and what to do.
    pub message: String,
}

impl Failure {
    /// A failure of pmmpi: status 125.
    pub fn own(message: impl fmt::Display) -> Self {
        Self { code: 125, message: message.to_string() }
    }

    /// A usage error of a command that starts no program: status 2.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// The result of a command that starts no program could not be written to stdout: status 1.
    pub fn unwritten(error: &io::Error) -> Self {
        Self { code: 1, message: format!("cannot write the result to stdout: {error}") }
    }

    /// The exit status for a failed exec: 127 if there is no such program, else 126.
    pub fn not_started(errno: i32) -> i32 {
        if errno == libc::ENOENT || errno == libc::ENOTDIR { 127 } else { 126 }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
