//! What is to be done, validated: the launcher makes it, the same for every rank.

use pmmpi::counters::selection::Selection;
use pmmpi::record::{RunHeader, Series};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The runner's one argument, where it is to end the job and nothing else.
pub const ABORT: &str = "--abort";

/// What to do when a round's program fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Do not start the next round.
    Stop,
    /// Go on; the exit status is that of the first failure.
    Continue,
}

/// Rounds of a plain program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundsPlan {
    /// The program's file, found in PATH already.
    pub program: PathBuf,
    /// Its argument vector, the name first.
    pub argv: Vec<OsString>,
    /// Its environment: what the launcher was given, without what an MPI library would take for an
    /// invitation to join the job.
    pub environment: Vec<(OsString, OsString)>,
    /// Rounds that are kept, at least 1.
    pub runs: u32,
    /// Rounds before them that are not.
    pub warmup: u32,
    /// What to do when the program fails.
    pub on_failure: OnFailure,
    /// What a round may take, if there is a limit.
    pub timeout: Option<Duration>,
    /// Pings with rank 0 before and after each.
    pub pings: bool,
    /// What is counted.
    pub selection: Selection,
    /// Where run files go; `None` keeps none.
    pub out: Option<PathBuf>,
    /// Print no line of the tool's own.
    pub quiet: bool,
    /// The descriptor that keeps this process the leader of its node, where it is: no program inherits it.
    pub leads_by: Option<i32>,
    /// What is known of every round before it begins.
    pub header: RunHeader,
}

impl RoundsPlan {
    /// Rounds in all.
    pub fn rounds(&self) -> u32 {
        self.warmup.saturating_add(self.runs)
    }

    /// The header of the kept round `number` (from 0) that began at `started_unix_ns`.
    pub fn header_of(&self, number: u32, started_unix_ns: i64) -> RunHeader {
        let in_series = |series: Series| Series { round: series.round + number, ..series };
        RunHeader {
            run_id: pmmpi::record::new_run_id(started_unix_ns),
            started_unix_ns,
            series: self.header.series.clone().map(in_series),
            ..self.header.clone()
        }
    }
}
