//! The errors of pmmpi's own work. An error never marks a node.

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
    /// The file is not a journal that this pmmpi can use: what it is, and what to do.
    NoJournal(PathBuf, String),
    /// Another pmmpi is changing nodes.
    Held {
        /// The journal, which the other process has locked.
        path: PathBuf,
        /// The process that wrote the last line `begin`, if there is one.
        holder: Option<String>,
    },
}

/// A call of `scontrol` that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    /// The command line, as a shell reads it.
    pub command: String,
    /// Why it failed.
    pub why: ScontrolFailure,
}

/// Why a call of `scontrol` failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScontrolFailure {
    /// No folder in PATH has scontrol.
    Missing,
    /// The system could not start scontrol.
    NotStarted(String),
    /// scontrol did not end within this time, and pmmpi killed it.
    TooLong(Duration),
    /// scontrol ended with an error, and printed this.
    Failed(String),
    /// pmmpi does not understand what scontrol printed.
    Unreadable(String),
}

impl ToolError {
    /// True if the next call will probably fail, too. Then pmmpi changes no more nodes.
    pub(crate) fn is_general(&self) -> bool {
        matches!(
            self.why,
            ScontrolFailure::Missing | ScontrolFailure::NotStarted(_) | ScontrolFailure::TooLong(_)
        )
    }
}

impl ScontrolFailure {
    /// In a few words, without what to do.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Missing => "it is in no folder of PATH".to_owned(),
            Self::NotStarted(why) => format!("cannot start: {}", one_line(why)),
            Self::TooLong(limit) => format!("it did not end within {} s", limit.as_secs_f64()),
            Self::Failed(why) | Self::Unreadable(why) => one_line(why),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = &self.command;
        match &self.why {
            ScontrolFailure::Missing => write!(
                f,
                "{command} is in no folder of PATH; run pmmpi on a host with Slurm's commands, or add their folder to PATH"
            ),
            ScontrolFailure::NotStarted(why) => {
                write!(f, "cannot start `{command}`: {why}; check the permissions of the file")
            }
            ScontrolFailure::TooLong(limit) => write!(
                f,
                "`{command}` did not end within {} s, and pmmpi ended it; check with `scontrol ping` that Slurm's \
                 controller answers",
                limit.as_secs_f64()
            ),
            ScontrolFailure::Failed(message) => write!(
                f,
                "`{command}` failed: {}; run this command by hand to find the problem. The command needs Slurm's \
                 controller. To change a node, it also needs the rights of root, of SlurmUser or of a Slurm administrator \
                 (AdminLevel Admin)",
                one_line(message)
            ),
            ScontrolFailure::Unreadable(what) => write!(
                f,
                "pmmpi does not understand the output of `{command}`: {}; run this command by hand, and send its \
                 output to the developers of pmmpi",
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
                "cannot {what} the log {}: {reason}; pmmpi changes no node without a log. If the disk is full, \
                 free some space; otherwise name another file with --log",
                path.display()
            ),
            Error::NoJournal(path, why) => write!(f, "cannot use {} as log: {why}", path.display()),
            Error::Held { path, holder } => {
                write!(f, "another pmmpi is changing nodes and has locked the log {}", path.display())?;
                if let Some(holder) = holder {
                    write!(f, ": {holder}")?;
                }
                write!(
                    f,
                    "; wait until that pmmpi ends (on its host, `fuser {}` shows the processes that use the log)",
                    path.display()
                )
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

/// A text of another program, safe for a terminal and in one line.
pub(crate) fn one_line(text: &str) -> String {
    pmmpi::text::printable(&text.trim().replace('\n', " "))
}
