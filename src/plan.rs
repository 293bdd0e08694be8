//! What a launcher asks a runner to do.

use crate::record::RunHeader;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// What to do when a round's program fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Do not start the next round.
    Stop,
    /// Go on; the exit status is that of the first failure.
    Continue,
}

/// Rounds of a plain program, validated: the same for every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The program's file, found in PATH already.
    pub program: PathBuf,
    /// Its argument vector, the name first.
    pub argv: Vec<OsString>,
    /// Rounds that are kept, at least 1.
    pub runs: u32,
    /// Rounds before them that are not.
    pub warmup: u32,
    /// What to do when the program fails.
    pub on_failure: OnFailure,
    /// Where run files go; `None` keeps none.
    pub out: Option<PathBuf>,
    /// Print no line of the tool's own.
    pub quiet: bool,
    /// What is known of every round; its run id and start are set a round.
    pub header: RunHeader,
}
