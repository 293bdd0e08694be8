//! What can go wrong in pmmpi's own work. No error marks a node.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// pmmpi acted on no node.
#[derive(Debug)]
pub enum Error {
    /// A setting that pmmpi cannot use: what, and what to do.
    Setting(String),
    /// Slurm's state could not be read.
    Tool(ToolError),
    /// The journal cannot be read or written.
    Journal {
        /// The journal's file.
        path: PathBuf,
        /// What pmmpi could not do.
        what: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
    /// The file is no journal that this pmmpi can use: what it is, and what to do.
    NoJournal(PathBuf, String),
    /// Another pmmpi is acting.
    Held {
        /// The journal, which the other process has locked.
        path: PathBuf,
        /// The process that last wrote that it begins, if one did.
        holder: Option<String>,
    },
}

/// A call of `scontrol` that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The command line, as a shell reads it.
    pub command: String,
    /// Why it failed.
    pub why: Why,
}

/// Why a call of `scontrol` failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No folder in PATH has it.
    Missing,
    /// The system could not start it.
    NotStarted(String),
    /// It did not end within this time, and pmmpi killed it.
    TooLong(Duration),
    /// It ended with an error, and printed this.
    Failed(String),
    /// pmmpi does not understand what it printed.
    Unreadable(String),
}

impl ToolError {
    /// True if the next call will probably fail, too: then pmmpi acts on no more nodes.
    pub(crate) fn is_general(&self) -> bool {
        matches!(self.why, Why::Missing | Why::NotStarted(_) | Why::TooLong(_))
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = &self.command;
        match &self.why {
            Why::Missing => write!(
                f,
                "{command} is in no folder of PATH; run pmmpi on a host with Slurm's commands, or add their folder to PATH"
            ),
            Why::NotStarted(why) => write!(f, "cannot start `{command}`: {why}; check the file's rights"),
            Why::TooLong(limit) => write!(
                f,
                "`{command}` did not end within {} s, and pmmpi ended it; check with `scontrol ping` that Slurm's \
                 controller answers",
                limit.as_secs_f64()
            ),
            Why::Failed(message) => write!(
                f,
                "`{command}` failed: {}; run this command by hand: it needs Slurm's controller, and to change a node \
                 the rights of a Slurm operator",
                one_line(message)
            ),
            Why::Unreadable(what) => write!(
                f,
                "pmmpi does not understand `{command}`: {}; run this command by hand, and report its output",
                one_line(what)
            ),
        }
    }
}

impl std::error::Error for ToolError {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Setting(text) => f.write_str(text),
            Error::Tool(error) => error.fmt(f),
            Error::Journal { path, what, reason } => write!(
                f,
                "cannot {what} the log {}: {reason}; pmmpi changes no node without a log: make room or name another file",
                path.display()
            ),
            Error::NoJournal(path, why) => write!(f, "cannot use {} as log: {why}", path.display()),
            Error::Held { path, holder } => {
                write!(f, "another pmmpi is acting on nodes and holds the log {}", path.display())?;
                if let Some(holder) = holder {
                    write!(f, ": {holder}")?;
                }
                write!(f, "; wait until it ends (`fuser {}` shows its processes)", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Tool(error) => Some(error),
            Error::Journal { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Error::Tool(error)
    }
}

/// A foreign text for a terminal, in one line.
pub(crate) fn one_line(text: &str) -> String {
    pmmpi::text::printable(&text.trim().replace('\n', " "))
}
