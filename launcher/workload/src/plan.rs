//! The validated plan of the rounds. `pmmpi` makes it, the same for every rank.

use pmmpi::counters::selection::Selection;
use pmmpi::record::{RunHeader, Series};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The runner's only argument if it must only end the job.
pub const ABORT: &str = "--abort";

/// What to do after a failed round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Do not start the next round.
    Stop,
    /// Continue; the exit status is that of the first failure.
    Continue,
}

/// Rounds of a plain program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundsPlan {
    /// The path of the program's file.
    pub program: PathBuf,
    /// Its argument vector, starting with the name.
    pub argv: Vec<OsString>,
    /// Its environment: that of the launcher, under MPI without the variables by which an MPI library would join
    /// the job.
    pub environment: Vec<(OsString, OsString)>,
    /// Measured rounds, at least 1.
    pub runs: u32,
    /// Warm-up rounds before them.
    pub warmup: u32,
    /// What to do after a failed round.
    pub on_failure: OnFailure,
    /// Time limit of a round; `None` for no limit.
    pub timeout: Option<Duration>,
    /// True for pings with rank 0 before and after each round.
    pub pings: bool,
    /// The events to count.
    pub selection: Selection,
    /// The program that reads the node's GPUs, if it is installed.
    pub gpus: Option<PathBuf>,
    /// Folder for run files; `None` saves none.
    pub out: Option<PathBuf>,
    /// True to print only errors.
    pub quiet: bool,
    /// If this process leads its node: the descriptor that keeps it the leader. The program must not inherit it.
    pub leads_by: Option<i32>,
    /// The header that all rounds share.
    pub header: RunHeader,
}

impl RoundsPlan {
    /// Number of warm-up and measured rounds.
    pub fn rounds(&self) -> u32 {
        self.warmup.saturating_add(self.runs)
    }

    /// The header of measured round `number` (from 0) that began at `started_unix_ns`.
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
