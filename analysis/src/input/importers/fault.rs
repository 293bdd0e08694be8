//! Why a file gives no results.

use super::FileFormat;
use super::building::shown;
use std::fmt;
use std::io;

/// Columns of a table of results.
const REQUIRED: [&str; 3] = ["node", "run", "elapsed_s"];

/// What is wrong with a whole file.
#[derive(Debug)]
pub enum ImportFault {
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
    /// Run files are read elsewhere.
    OwnRun,
    /// It must be looked at more than once.
    Pipe,
    /// What its library says.
    Damaged(String),
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

impl fmt::Display for ImportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(e) => write!(f, "cannot be read: {e}"),
            Self::Empty => f.write_str("is empty"),
            Self::NoRows => f.write_str("has a header and no rows"),
            Self::EmptyFolder { files: 0 } => f.write_str("holds no files"),
            Self::EmptyFolder { files } => {
                write!(f, "holds no results: {files} files were looked at as {}", FileFormat::all())
            }
            Self::Unknown { looks_like } => {
                write!(f, "is not known: it was looked at as {}", FileFormat::all())?;
                match looks_like {
                    Some(what) => write!(f, "; it looks like {what}"),
                    None => Ok(()),
                }
            }
            Self::MissingColumns { missing, found, hint } => {
                let missing = missing.join(", ");
                write!(f, "has no column {missing} (expected: node,run,elapsed_s; it has: {found}){hint}")
            }
            Self::OwnRun => f.write_str("is a run file: give its name or its folder"),
            Self::Pipe => f.write_str("cannot be read through a pipe: save it to a file first"),
            Self::Damaged(what) => write!(f, "is damaged: {what}"),
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

impl ImportFault {
    /// Of the columns that are needed, which are `given`; the header has `names`.
    pub(super) fn missing_columns(given: [bool; 3], names: &[impl AsRef<str>]) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let missing =
            REQUIRED.into_iter().zip(given).filter(|(_, given)| !given).map(|(name, _)| name).collect();
        Self::MissingColumns { missing, found: shown(names.join(",").as_bytes()), hint: hint(&names) }
    }
}

/// What is near to `elapsed_s`, and headers that are none.
fn hint(names: &[&str]) -> String {
    const OTHER_UNITS: [&str; 12] = [
        "ns",
        "us",
        "ms",
        "min",
        "h",
        "time",
        "elapsed",
        "seconds",
        "duration",
        "runtime",
        "wall",
        "wallclock",
    ];
    if names.iter().all(|name| name.parse::<f64>().is_ok() || name.is_empty()) {
        return "; the first line must name the columns".to_owned();
    }
    let near = |name: &&&str| {
        let name = name.to_ascii_lowercase();
        !REQUIRED.contains(&name.as_str())
            && name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| OTHER_UNITS.contains(&part))
    };
    match names.iter().find(near) {
        Some(name) if !names.iter().any(|name| name.eq_ignore_ascii_case("elapsed_s")) => {
            format!("; if {} is the time, give it in seconds as elapsed_s", shown(name.as_bytes()))
        }
        _ => String::new(),
    }
}

impl std::error::Error for ImportFault {}

impl From<io::Error> for ImportFault {
    fn from(e: io::Error) -> Self {
        Self::Unreadable(e)
    }
}
