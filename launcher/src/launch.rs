//! What started this process: an MPI launcher, the launcher of a batch system, or the user directly.
//!
//! What the environment and the parent processes show of the launch belongs here. The kind of the program is in
//! `program`; `run/choose_mode.rs` decides from both how to measure.

mod known_launchers;
mod starter;

use known_launchers::{JobEndCause, Manager, Signature};
use pmmpi::record::Job;
use pmmpi_workload::Failure;
use pmmpi_workload::console::say;
use starter::Starter;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// The MPI families for which the build makes a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunnerFamily {
    OpenMpi,
    /// MPICH and the MPI libraries derived from it.
    Mpich,
}

impl RunnerFamily {
    /// The family's name in file names.
    pub fn name(self) -> &'static str {
        match self {
            RunnerFamily::OpenMpi => "openmpi",
            RunnerFamily::Mpich => "mpich",
        }
    }
}

/// What the launcher sets in the environment of a rank. These values are hints: run files store the ranks that MPI
/// reports.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The launcher that started this process; `None` if no launcher did.
    pub launcher: Option<&'static str>,
    /// The family whose process manager serves the ranks; `None` if there is none.
    pub family: Option<RunnerFamily>,
    /// Rank in the job.
    pub rank: Option<u32>,
    /// Ranks of the job.
    pub size: Option<u32>,
    /// Rank among the ranks of this node.
    pub local_rank: Option<u32>,
    /// Ranks on this node.
    pub local_size: Option<u32>,
    job_id: Option<String>,
    step_id: Option<String>,
    row: Option<&'static Signature>,
    /// The values that name the job together; empty if the launcher sets none.
    job_name: Vec<String>,
    /// The variables that identified the launcher, with their values.
    marks: Vec<(&'static str, OsString)>,
    starter: OnceLock<Option<Starter>>,
}

impl Launch {
    /// Reads this process's environment.
    pub fn read() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    /// Reads any environment.
    pub fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let number = |name: &str| text(name).and_then(|value| value.parse::<u32>().ok());
        let is_set = |name: &str| variable(name).is_some();
        let ids = Self {
            job_id: ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"].into_iter().find_map(text),
            step_id: text("SLURM_STEP_ID"),
            ..Self::default()
        };
        let is_of_another = known_launchers::contradicts_srun(text, number);
        let started_by = |row: &&Signature| {
            row.marks.iter().all(|mark| is_set(mark))
                && [row.rank, row.local_rank].into_iter().flatten().all(|name| number(name).is_some())
                && !(row.launcher == known_launchers::SRUN && is_of_another)
        };
        let Some(row) = known_launchers::ROWS.iter().chain(&known_launchers::UNKNOWN).find(started_by) else {
            return ids;
        };
        Self {
            launcher: Some(row.launcher),
            family: match row.manager {
                Manager::Of(family) => Some(family),
                Manager::ByVariables => known_launchers::manager_of(is_set),
                Manager::None => None,
            },
            rank: row.rank.and_then(number).map(|rank| rank.saturating_sub(row.first_rank)),
            size: row.size.and_then(number),
            local_rank: row.local_rank.and_then(number),
            local_size: row.local_size.and_then(text).and_then(|text| ranks_of_node(&text)),
            row: Some(row),
            job_name: row.job.iter().copied().filter_map(text).collect(),
            marks: row.marks.iter().filter_map(|mark| Some((*mark, variable(mark)?))).collect(),
            ..ids
        }
    }

    /// True for the rank that prints messages for the whole job: rank 0, or a process without a launcher. If the
    /// launcher sets no rank numbers, this is one process per node, the one that `leads`.
    pub fn speaks(&self, leads: bool) -> bool {
        self.rank.map_or(leads, |rank| rank == 0)
    }

    /// True for the first rank of a node; `None` if the launcher sets no local rank.
    pub fn is_first_of_node(&self) -> Option<bool> {
        self.local_rank.map(|rank| rank == 0)
    }

    /// Identifies the job among this user's jobs on this node. All processes of the job have the same text. `None` if
    /// this process is a job of its own, or if its job is unknown.
    pub fn job_key(&self) -> Option<String> {
        let launcher = self.launcher?;
        let job = match &self.job_name[..] {
            [] => self.starter()?.identity(),
            names => names.join(" "),
        };
        Some(format!("{launcher} {job}"))
    }

    /// True if the launcher itself started this process, without a shell or wrapper in between.
    pub fn is_direct(&self) -> bool {
        self.starter().is_some_and(|starter| starter.is_parent)
    }

    fn starter(&self) -> Option<&Starter> {
        let find = || Starter::find(self.row?.daemons, &self.marks);
        self.starter.get_or_init(find).as_ref()
    }

    /// The variable that identified an unknown launcher; `None` if pmmpi knows the launcher.
    pub fn unknown_by(&self) -> Option<&'static str> {
        let row = self.row.filter(|row| row.launcher == known_launchers::UNKNOWN_LAUNCHER)?;
        row.marks.first().copied()
    }

    /// Tells the process manager to end the job with this status, if exit statuses of ranks do not make it do so.
    pub fn end_job(&self, code: i32) {
        let by_message = self.row.is_some_and(|row| row.ending == JobEndCause::PmiAbort);
        let connection = std::env::var("PMI_FD").ok().and_then(|fd| fd.parse::<i32>().ok());
        let Some(connection) = connection.filter(|_| by_message) else { return };
        // Messages on stderr may still be on their way, and mpiexec does not wait for them.
        std::thread::sleep(Duration::from_millis(200));
        let message = format!("cmd=abort exitcode={code}\n"); // PMI-1
        // SAFETY: the bytes live through the call. An error means that the manager has ended: ignore it.
        unsafe { libc::write(connection, message.as_ptr().cast(), message.len()) };
    }

    /// Prints why this rank runs no program, and ends the job if other ranks would wait for this one forever. Gives the
    /// exit status. If a script started this process, the job does not end, because the script may continue.
    pub fn refuse(&self, failure: &Failure) -> i32 {
        say(failure);
        if self.is_direct() {
            self.end_job(failure.code);
        }
        failure.code
    }

    /// True if the other ranks wait for this one until one rank of the job calls MPI_Abort.
    pub fn ends_by_mpi_abort(&self) -> bool {
        let others = self.size.is_none_or(|size| size > 1);
        others && self.is_direct() && self.row.is_some_and(|row| row.ending == JobEndCause::MpiAbort)
    }

    /// The description of the job for run files.
    pub fn job(&self) -> Job {
        Job {
            launcher: self.launcher.map(str::to_owned),
            job_id: self.job_id.clone(),
            step_id: self.step_id.clone(),
            launched_ranks: self.size,
        }
    }
}

/// The number of ranks on each node: `4`, or `4(x8)` in Slurm if 8 nodes have 4 ranks each. `None` if nodes have different
/// numbers.
fn ranks_of_node(text: &str) -> Option<u32> {
    text.split('(').next()?.parse().ok().filter(|_| !text.contains(','))
}

/// File names of programs that start ranks, each with the command that starts ranks if the program has several.
const LAUNCHERS: &[(&str, Option<&str>)] = &[
    ("mpirun", None),
    ("mpiexec", None),
    ("orterun", None),
    ("prterun", None),
    ("prun", None),
    ("mpirun_rsh", None),
    ("mpiexec_mpt", None),
    ("srun", None),
    ("flux", Some("run")),
    ("jsrun", None),
    ("lrun", None),
    ("ibrun", None),
    ("aprun", None),
    ("blaunch", None),
    ("pbsdsh", None),
];

/// The number of words that name the launcher at the start of a command line: 1 for mpirun or mpirun.openmpi, 2 for
/// flux run, 0 if there is no launcher.
pub fn words_of_launcher(argv: &[OsString]) -> usize {
    let Some(name) = argv.first().map(|word| file_name(word)) else { return 0 };
    let is_it = |(launcher, command): &&(&str, Option<&str>)| {
        is_named(&name, &[launcher])
            && command.is_none_or(|command| argv.get(1).is_some_and(|word| word == command))
    };
    LAUNCHERS.iter().find(is_it).map_or(0, |(_, command)| 1 + usize::from(command.is_some()))
}

pub fn file_name(word: &OsStr) -> String {
    Path::new(word).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// True if `name` is NAME or NAME.SUFFIX for one of `names`.
fn is_named(name: &str, names: &[&str]) -> bool {
    names.iter().any(|wanted| {
        name.strip_prefix(wanted).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
    })
}

#[cfg(test)]
mod tests;
