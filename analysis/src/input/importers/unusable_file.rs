//! Why a file cannot be used.

use super::FileFormat;
use super::building::shown;
use pmmpi::text::count;
use std::fmt;
use std::io;

/// Columns that a table of results must have.
const REQUIRED: [&str; 3] = ["node", "run", "elapsed_s"];

/// What is wrong with a whole file.
#[derive(Debug)]
pub enum ImportFault {
    /// The system's error.
    Unreadable(io::Error),
    /// It has no content.
    Empty,
    /// It has column names but no rows.
    NoRows,
    /// A folder without results; `files` files in it were examined.
    EmptyFolder {
        /// Number of examined files.
        files: usize,
    },
    /// No reader recognizes it.
    Unknown {
        /// What it looks like, if known.
        looks_like: Option<&'static str>,
    },
    /// A CSV file that lacks required columns.
    MissingColumns {
        /// The missing columns.
        missing: Vec<&'static str>,
        /// The first line of the file.
        found: String,
        /// Which column the user may have meant.
        hint: String,
    },
    /// Another module reads run files.
    OwnRun,
    /// The reader reads the file more than once, and a pipe allows one reading.
    Pipe,
    /// The message of the library that reads it.
    Damaged(String),
    /// Two columns have this name.
    TwoColumns(String),
    /// It is not JSON, or its JSON ends early.
    NoJson(serde_json::Error),
    /// JSON with another structure; the text says what is missing or wrong.
    OtherForm(String),
    /// A version of the format that the reader does not know.
    OtherVersion {
        /// The version in the file.
        found: String,
        /// The known versions.
        known: &'static str,
    },
    /// Its path does not match the pattern.
    OtherPath(String),
}

impl fmt::Display for ImportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(e) => write!(f, "cannot be read: {e}"),
            Self::Empty => f.write_str("is empty"),
            Self::NoRows => f.write_str("contains no rows of results"),
            Self::EmptyFolder { files: 0 } => f.write_str("contains no files"),
            Self::EmptyFolder { files } => {
                write!(
                    f,
                    "contains no results: {}, none in a format that pmmpi reads ({})",
                    count(*files, "file"),
                    FileFormat::all()
                )
            }
            Self::Unknown { looks_like } => {
                write!(f, "matches no format that pmmpi reads ({})", FileFormat::all())?;
                match looks_like {
                    Some(what) => write!(f, "; it looks like {what}"),
                    None => Ok(()),
                }
            }
            Self::MissingColumns { missing, found, hint } => {
                let missing = missing.join("`, `");
                write!(f, "has no column `{missing}` (expected: node,run,elapsed_s; found: {found}){hint}")
            }
            Self::OwnRun => {
                f.write_str("is a run file of pmmpi: name this file or its folder on the command line")
            }
            Self::Pipe => f.write_str("cannot be read through a pipe: save the data to a file first"),
            Self::Damaged(what) => write!(f, "is damaged: {what}"),
            Self::TwoColumns(name) => {
                write!(f, "has two columns `{name}`: rename or remove one of these columns")
            }
            Self::NoJson(e) => write!(f, "is not valid JSON: {e}"),
            Self::OtherForm(what) => write!(f, "does not have the expected form: {what}"),
            Self::OtherVersion { found, known } => {
                write!(f, "has the format version {found}, but pmmpi reads only {known}")
            }
            Self::OtherPath(pattern) => write!(f, "has a path that does not match the pattern {pattern}"),
        }
    }
}

impl ImportFault {
    /// `given` tells which required columns exist; the header has `names`.
    pub(super) fn missing_columns(given: [bool; 3], names: &[impl AsRef<str>]) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let missing =
            REQUIRED.into_iter().zip(given).filter(|(_, given)| !given).map(|(name, _)| name).collect();
        Self::MissingColumns { missing, found: shown(names.join(",").as_bytes()), hint: hint(&names) }
    }
}

/// A hint for a column that may be `elapsed_s` under another name, and for a first line that is not a header.
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
            format!(
                "; if the column `{}` contains the time, write this time in seconds into a column `elapsed_s`",
                shown(name.as_bytes())
            )
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
