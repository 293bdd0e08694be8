//! A measurement that is ready to start: what all ways of measuring share.

use super::kept_variables;
use crate::cli::options::{self, OnMismatch};
use crate::cli::settings::Settings;
use crate::launch::{Launch, RunnerFamily};
use crate::own_files;
use crate::program::is_mpi_program;
use pmmpi::clock;
use pmmpi::counters::open_counters::Scope;
use pmmpi::counters::selection::Selection;
use pmmpi::record::{Mode, RunHeader, Series};
use pmmpi::session::launch_check::Expectation;
use pmmpi::transport::node_election::{Duty, Role};
use pmmpi_workload::plan::RoundsPlan;
use std::path::PathBuf;

pub struct Task<'a> {
    pub settings: &'a Settings,
    /// What started this process.
    pub launch: Launch,
    /// The program's file.
    pub program: PathBuf,
    pub way: Way,
    /// The key of its job on this node ([`Launch::job_key`]); `None` if it does not meet other ranks.
    pub job: Option<String>,
    /// The role of this process among the processes of its job on this node.
    pub role: Role,
    /// When pmmpi started to work (CLOCK_MONOTONIC, ns).
    pub began_ns: i64,
}

/// Who measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The agent in an MPI program.
    Inside,
    /// The runner of this family, around plain programs on all ranks.
    Together(RunnerFamily),
    /// This process, around a plain program of its own.
    Alone,
}

impl Way {
    /// A launched process and its descendants have only one MPI_Init, and the runner uses it. Therefore the runner
    /// starts only if the launcher itself started this process, or with `--mode ranks`: a script may start an MPI
    /// program next.
    fn choose(mode: Mode, settings: &Settings, launch: &Launch) -> Self {
        match (mode, launch.family) {
            (Mode::Mpi, _) => Way::Inside,
            (Mode::Plain, Some(family)) if settings.mode == options::ModeArg::Ranks || launch.is_direct() => {
                Way::Together(family)
            }
            (Mode::Plain, _) => Way::Alone,
        }
    }

    /// The key of the job whose processes on this node elect one of them. A rank that is measured alone is a separate
    /// run. It takes part only if the launcher sets no rank numbers, to choose the process that prints messages.
    fn job(self, launch: &Launch) -> Option<String> {
        let meets = self != Way::Alone || launch.rank.is_none();
        meets.then(|| launch.job_key()).flatten()
    }

    /// The role of this process on its node. If the job has no key (a PID namespace around each rank), the launcher's
    /// local ranks decide.
    fn role(self, launch: &Launch, job: Option<&str>) -> Role {
        match (job, launch.local_rank) {
            (None, Some(rank)) if self != Way::Alone => Role::by_local_rank(rank),
            _ => Role::enter(Duty::Read, job),
        }
    }
}

impl<'a> Task<'a> {
    /// Chooses the way of measuring for a program of this mode, and the role of this process on its node.
    pub fn new(settings: &'a Settings, launch: Launch, program: PathBuf, mode: Mode, began_ns: i64) -> Self {
        let way = Way::choose(mode, settings, &launch);
        let job = way.job(&launch);
        let role = way.role(&launch, job.as_deref());
        Self { settings, launch, program, way, job, role, began_ns }
    }

    /// True for the one rank that prints messages for the job.
    pub fn speaks(&self) -> bool {
        self.launch.speaks(self.role.leads())
    }

    /// Why the agent may not see its program.
    pub fn unseen(&self) -> &'static str {
        is_mpi_program::unseen(&self.program)
    }

    /// The expected MPI_COMM_WORLD; `None` without a launcher.
    pub fn expectation(&self) -> Option<Expectation> {
        let settings = self.settings;
        Some(Expectation {
            launcher: self.launch.launcher?.to_owned(),
            ranks: self.launch.size,
            rank: self.launch.rank.unwrap_or(0),
            speaks: self.speaks(),
            job: self.job.clone().filter(|_| !settings.quiet),
            quiet: settings.quiet && settings.on_mismatch != OnMismatch::Abort,
            abort: settings.on_mismatch == OnMismatch::Abort,
        })
    }

    /// What this rank counts. Only one rank per node counts the scopes core and socket.
    pub fn selection(&self) -> Selection {
        let mut selection = self.settings.selection.clone();
        if self.way != Way::Alone && !self.role.leads() {
            selection.sets.retain(|wanted| wanted.scope == Scope::Task);
        }
        selection
    }

    /// The plan for rounds of a plain program with this environment.
    pub fn plan(&self, environment: Vec<(std::ffi::OsString, std::ffi::OsString)>) -> RoundsPlan {
        let settings = self.settings;
        RoundsPlan {
            program: self.program.clone(),
            argv: settings.argv.clone(),
            environment,
            runs: settings.runs,
            warmup: settings.warmup,
            on_failure: settings.on_failure,
            timeout: settings.timeout,
            pings: settings.extras.pings,
            selection: self.selection(),
            out: settings.out.clone(),
            quiet: settings.quiet,
            gpus: own_files::gpus(),
            leads_by: None,
            header: self.header(Mode::Plain),
        }
    }

    /// The header of a run that starts now.
    pub fn header(&self, mode: Mode) -> RunHeader {
        let started_unix_ns = clock::realtime_ns();
        let run_id = pmmpi::record::new_run_id(started_unix_ns);
        let several = self.settings.runs > 1;
        RunHeader {
            series: self
                .settings
                .series
                .clone()
                .or_else(|| several.then(|| Series { id: run_id.clone(), round: 0 })),
            run_id,
            pmmpi_version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.settings.argv.iter().map(|arg| arg.to_string_lossy().into_owned()).collect(),
            mode,
            labels: self.settings.labels.clone(),
            job: self.launch.job(),
            mpi_library: None,
            environment: kept_variables::remembered(std::env::vars_os()),
            started_unix_ns,
            max_drift: self.settings.max_drift,
        }
    }
}
