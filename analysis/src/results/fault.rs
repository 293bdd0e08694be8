//! Why a file gives no results.

use super::Format;
use std::fmt;
use std::io;

/// What is wrong with a whole file.
#[derive(Debug)]
pub enum Fault {
    /// The system says why.
    Unreadable(io::Error),
    /// It has no content.
    Empty,
    /// It names its columns and has nothing else.
    NoRows,
    /// A folder without results; `files` in it were looked at.
    EmptyFolder {
        /// Looked at.
        files: usize,
    },
    /// No reader knows it.
    Unknown {
        /// What it looks like, if that is known.
        looks_like: Option<&'static str>,
    },
    /// A CSV file without columns that are needed.
    MissingColumns {
        /// Those.
        missing: Vec<&'static str>,
        /// What its first line says.
        found: String,
        /// What may be meant.
        hint: String,
    },
    /// Two columns of one name.
    TwoColumns(String),
    /// Its JSON ends early or is none.
    NoJson(serde_json::Error),
    /// It is JSON of another form; what is missing or wrong.
    OtherForm(String),
    /// A version of its format that is not known.
    OtherVersion {
        /// As it says.
        found: String,
        /// Known ones.
        known: &'static str,
    },
    /// Its path does not fit the pattern.
    OtherPath(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(e) => write!(f, "cannot be read: {e}"),
            Self::Empty => f.write_str("is empty"),
            Self::NoRows => f.write_str("has a header and no rows"),
            Self::EmptyFolder { files: 0 } => f.write_str("holds no files"),
            Self::EmptyFolder { files } => {
                write!(f, "holds no results: {files} files were looked at as {}", Format::all())
            }
            Self::Unknown { looks_like } => {
                write!(f, "is not known: it was looked at as {}", Format::all())?;
                match looks_like {
                    Some(what) => write!(f, "; it looks like {what}"),
                    None => Ok(()),
                }
            }
            Self::MissingColumns { missing, found, hint } => {
                let missing = missing.join(", ");
                write!(f, "has no column {missing} (expected: node,run,elapsed_s; it has: {found}){hint}")
            }
            Self::TwoColumns(name) => {
                write!(f, "has two columns {name}: rename or remove the one that is not meant")
            }
            Self::NoJson(e) => write!(f, "is no whole JSON: {e}"),
            Self::OtherForm(what) => write!(f, "has another form than expected: {what}"),
            Self::OtherVersion { found, known } => {
                write!(f, "has the version {found} of its format; known are {known}")
            }
            Self::OtherPath(pattern) => write!(f, "has a path that does not fit the pattern {pattern}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<io::Error> for Fault {
    fn from(e: io::Error) -> Self {
        Self::Unreadable(e)
    }
}
