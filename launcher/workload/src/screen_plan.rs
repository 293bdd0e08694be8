//! The validated plan of `pmmpi screen`, and what rank 0 has at the end of the screen.

use crate::plan::RoundsPlan;
use crate::rank_watch::WatchAddress;
use crate::screen_messages::RoundsEnd;
use fastrand::Rng;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

/// Rounds of kernels, or of the user's own program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScreenPlan {
    /// What all works share: environment, warm-ups, events, folder, header. Its `runs` are the rounds of all nodes.
    pub rounds: RoundsPlan,
    /// At least one.
    pub works: Vec<ScreenWork>,
    /// True if the stdout of the works goes to stderr, because the report on stdout is for a program.
    pub output_to_stderr: bool,
    /// Further rounds of the suspects.
    pub more_rounds: u32,
    /// The warm-up rounds last at least so long.
    pub soak: Duration,
    /// Seed of the order of works.
    pub seed: u64,
    /// `pmmpi-report screen` and its options. Rank 0 starts it in the end.
    pub report: Vec<OsString>,
    /// The archive of earlier screens. Rank 0 adds the runs to it in the end.
    pub archive: Option<PathBuf>,
    /// `pmmpi screen-act` and its options. Rank 0 starts it after the report.
    pub act: Option<Vec<OsString>>,
    /// If this process has a launcher that supervises it: the pipe on which that hears [`crate::screen_messages`].
    pub told_on: Option<RawFd>,
    /// Where all ranks connect; only rank 0 has it from its launcher.
    pub watch: Option<WatchAddress>,
}

/// A kernel, or the user's own program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScreenWork {
    /// The name for messages.
    pub name: String,
    /// What it is.
    pub kind: WorkKind,
    /// The path of the program's file.
    pub program: PathBuf,
    /// Its argument vector, starting with the name.
    pub argv: Vec<OsString>,
}

/// Who does a work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkKind {
    /// The user's own program.
    Program,
    /// A kernel in a process of its own: see [`crate::kernel_process`].
    Kernel,
    /// The kernel `net`, in the ranks themselves: see `net.rs`. Its program does not run.
    Net,
}

impl WorkKind {
    /// True for a kernel of pmmpi.
    pub fn is_kernel(self) -> bool {
        self != Self::Program
    }
}

impl ScreenPlan {
    /// The works in the order of round `round`: random, the same on all ranks, another one in each round. So neither
    /// time nor heat looks like a kernel.
    pub fn order(&self, round: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.works.len()).collect();
        Rng::with_seed(self.seed.wrapping_add(u64::from(round))).shuffle(&mut order);
        order
    }

    /// The id that all runs of the screen share.
    pub fn series(&self) -> &str {
        let header = &self.rounds.header;
        header.series.as_ref().map_or(header.run_id.as_str(), |series| series.id.as_str())
    }

    /// The file beside the runs that says why the screen ended early. `pmmpi-report screen` reads it.
    pub fn ended_file(&self) -> Option<PathBuf> {
        let id = self.series();
        self.rounds.out.as_ref().map(|folder| folder.join(format!("{id}.ended")))
    }

    /// Up to `wanted` of these ranks, chosen at random.
    pub fn choose(&self, mut ranks: Vec<u32>, wanted: usize) -> Vec<u32> {
        Rng::with_seed(!self.seed).shuffle(&mut ranks);
        ranks.truncate(wanted);
        ranks
    }
}

/// An option of another program as one word, `--NAME=VALUE`. As two words, a VALUE that begins with `-` would be an
/// option of its own.
pub fn one_word(option: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(option);
    word.push("=");
    word.push(value);
    word
}

/// What rank 0 knows in the end.
#[derive(Debug, Default)]
pub struct ScreenOutcome {
    /// The run files, in the order of the runs.
    pub files: Vec<PathBuf>,
    /// How they ended.
    pub ending: RoundsEnd,
}
