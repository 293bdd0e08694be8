use std::fmt;

/// Why pmmpi itself, not the workload, ends with an error.
#[derive(Debug)]
pub struct Failure {
    /// The exit status (docs/exit-status.md): 125, 126 or 127 as env(1) has them; 2 for wrong usage of a command that
    /// starts no program.
    pub code: i32,
    /// What, where, and what to do about it.
    pub message: String,
}

impl Failure {
    /// pmmpi cannot do what it was asked to.
    pub fn own(message: impl fmt::Display) -> Self {
        Self { code: 125, message: message.to_string() }
    }

    /// A command that starts no program was asked for something that makes no sense.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, message: message.to_string() }
    }

    /// The exit status for a program whose exec failed: 127 where there is none, else 126.
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
