//! Data of a run that do not come from its ranks: command, job, labels.

use crate::bounds::MaxDrift;
use serde::{Deserialize, Serialize};

/// The place of a run among several repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Shared by the runs that were started together.
    pub id: String,
    /// From 0.
    pub round: u32,
}

/// What started the ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// mpirun (Open MPI), mpiexec (Hydra), srun, ...
    pub launcher: Option<String>,
    /// The batch system's job id.
    pub job_id: Option<String>,
    /// Its step id.
    pub step_id: Option<String>,
    /// How many ranks the launcher reports to have started.
    pub launched_ranks: Option<u32>,
}

/// How the work was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// From inside an MPI program, between MPI_Init and MPI_Finalize.
    Mpi,
    /// Around a child process.
    Plain,
}

/// Data of a run that do not come from its ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// Sorts by start time; unique without coordination.
    pub run_id: String,
    /// The version of the tool that measured.
    pub pmmpi_version: String,
    /// The program and its arguments; bytes that are not UTF-8 are replaced.
    pub command: Vec<String>,
    /// How it was measured.
    pub mode: Mode,
    /// Set if the run is one of several.
    pub series: Option<Series>,
    /// The user's own keys and values.
    pub labels: Vec<(String, String)>,
    /// What started the ranks.
    pub job: Job,
    /// The text of MPI_Get_library_version; `None` without MPI.
    pub mpi_library: Option<String>,
    /// The environment variables known to change performance, as rank 0 had them.
    pub environment: Vec<(String, String)>,
    /// CLOCK_REALTIME when the measurement began, ns since 1970.
    pub started_unix_ns: i64,
    /// The user's limit on every clock's rate error.
    pub max_drift: MaxDrift,
}

impl RunHeader {
    /// A header with defaults for everything else.
    pub fn new(run_id: String, command: Vec<String>, mode: Mode, started_unix_ns: i64) -> Self {
        Self {
            run_id,
            pmmpi_version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            mode,
            series: None,
            labels: Vec::new(),
            job: Job::default(),
            mpi_library: None,
            environment: Vec::new(),
            started_unix_ns,
            max_drift: MaxDrift::DEFAULT,
        }
    }
}
