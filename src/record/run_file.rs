//! Run files: `<run_id>.pmr`, one complete run each.
//!
//! | bytes | holds |
//! |---|---|
//! | 8 | "PMMPIRUN" |
//! | 4 | version of the schema, little endian |
//! | 4 | CRC-32 (IEEE) of the payload, little endian |
//! | 8 | length of the payload, little endian |
//! | rest | the payload |
//!
//! The payload of schema N is parts 1 to N in wire form, one after the other. Each schema appends what it adds.
//!
//! | part | holds |
//! |---|---|
//! | 1 | a [`Run`] without the following |
//! | 2 | its `starting_ns`, `sync` and `regions` |
//! | 3 | its `counts` |
//! | 4 | the crystals of its nodes, if known |
//! | 5 | the options that asked for events beside the default set |
//! | 6 | the inventories of its nodes, and what their Linux kernels counted, if known |
//! | 7 | what `pmmpi screen` adds to a round; then, if the run has any, what `--expect` gives, and its probes; then, if known, the counts of a region without content |

mod encoding;
mod reserved_place;

pub use encoding::from_bytes;
pub use reserved_place::{Slot, reserved_bytes, reserved_bytes_alone};

use super::run::Run;
use super::{temporary, wire};
use encoding::{HEADER_BYTES, MAGIC};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The schema that this version writes. It reads older schemas, and refuses newer ones with their number.
pub const VERSION: u32 = 7;

/// The file name extension of a complete run.
pub const EXTENSION: &str = "pmr";

/// The default folder of run files: PMMPI_OUT, else `pmmpi-results` in the working directory.
pub fn default_folder() -> PathBuf {
    let named = std::env::var_os("PMMPI_OUT").filter(|folder| !folder.is_empty());
    named.map_or_else(|| PathBuf::from("pmmpi-results"), PathBuf::from)
}

/// Why a file gave no run.
#[derive(Debug)]
pub enum RunFileError {
    /// It could not be opened or read.
    Unreadable(io::Error),
    /// It is empty.
    Empty,
    /// It is not a run file.
    Foreign,
    /// A later version of pmmpi wrote it.
    Newer {
        /// Its schema.
        version: u32,
    },
    /// Another version of pmmpi kept it, as a partial run, in its own form.
    OtherVersion,
    /// It ends too early.
    Truncated {
        /// Bytes that its header promises.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// Its bytes have changed, or contradict each other.
    Damaged(String),
}

impl fmt::Display for RunFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(e) => write!(f, "cannot be read: {e}"),
            Self::Empty => f.write_str("is empty"),
            Self::Foreign => f.write_str("is not a run file of pmmpi"),
            Self::Newer { version } => {
                write!(
                    f,
                    "has schema {version}, but this pmmpi reads only schemas up to {VERSION}: use a newer \
                     pmmpi"
                )
            }
            Self::OtherVersion => {
                f.write_str("was written by another version of pmmpi: use `pmmpi report` of that version")
            }
            Self::Truncated { expected, found } => write!(f, "is truncated: {found} of {expected} bytes"),
            Self::Damaged(what) => write!(f, "is damaged: {what}"),
        }
    }
}

impl std::error::Error for RunFileError {}

/// Writes `<directory>/<run_id>.pmr` as [`Slot::store`] does.
pub fn write(directory: &Path, run: &Run) -> io::Result<PathBuf> {
    Slot::take(directory)?.store(run)
}

/// The run in the file at `path`.
pub fn read(path: &Path) -> Result<Run, RunFileError> {
    // O_NONBLOCK: opening a pipe that has no writer must not wait for one.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(RunFileError::Unreadable)?;
    let metadata = file.metadata().map_err(RunFileError::Unreadable)?;
    if !metadata.is_file() {
        return Err(RunFileError::Foreign);
    }
    let limit = (wire::LIMIT_BYTES + HEADER_BYTES) as u64;
    let mut bytes = Vec::new();
    // Reads only the first bytes of a file of another kind, which may be large.
    (&file).take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(RunFileError::Unreadable)?;
    if bytes.starts_with(MAGIC) {
        // All at once: a vector that grows is copied several times.
        let room = bytes.try_reserve_exact(metadata.len().min(limit) as usize);
        room.map_err(|e| RunFileError::Unreadable(e.into()))?;
        file.take(limit + 1).read_to_end(&mut bytes).map_err(RunFileError::Unreadable)?;
    }
    if bytes.len() as u64 > limit {
        return Err(RunFileError::Damaged(format!("it is larger than the limit of {limit} bytes")));
    }
    from_bytes(&bytes)
}
