//! What started this process: an MPI launcher, a batch system's, or nobody but the user.

use pmmpi::record::Job;
use std::ffi::OsString;

/// The MPI families that a job can be started with, as the runner is built for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    OpenMpi,
    /// MPICH and what is built from it.
    Mpich,
}

impl Family {
    /// As file names have it.
    pub fn name(self) -> &'static str {
        match self {
            Family::OpenMpi => "openmpi",
            Family::Mpich => "mpich",
        }
    }
}

/// What a launcher says in the environment of each rank. These are hints: the ranks that MPI gives
/// are what is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Who started this process; `None` where no launcher did.
    pub launcher: Option<&'static str>,
    /// Whose process manager waits for the ranks; `None` where none does.
    pub family: Option<Family>,
    /// Rank among all.
    pub rank: Option<u32>,
    /// Ranks in all.
    pub size: Option<u32>,
    /// Rank among those of this node.
    pub local_rank: Option<u32>,
    job_id: Option<String>,
    step_id: Option<String>,
}

const HYDRA: &str = "mpiexec (Hydra)";

/// Which variables a launcher is known by: rank, size and local rank, all three.
struct Signature {
    launcher: &'static str,
    variables: [&'static str; 3],
}

/// The innermost first: Open MPI's and Hydra's own daemons may be started by srun and hand its
/// variables down.
const SIGNATURES: [Signature; 3] = [
    Signature {
        launcher: "mpirun (Open MPI)",
        variables: ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
    },
    Signature { launcher: HYDRA, variables: ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"] },
    // SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: the latter is set in a batch script too.
    Signature { launcher: "srun", variables: ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"] },
];

impl Launch {
    /// From this process's environment.
    pub fn read() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    /// From any environment.
    pub fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
        let number = |name: &str| text(name).and_then(|value| value.parse().ok());
        let known = SIGNATURES.iter().find_map(|signature| {
            let [rank, size, local_rank] = signature.variables.map(number);
            Some((signature.launcher, rank?, size?, local_rank?))
        });
        let ids = Self {
            job_id: ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"].into_iter().find_map(text),
            step_id: text("SLURM_STEP_ID"),
            ..Self::default()
        };
        let Some((launcher, rank, size, local_rank)) = known else { return ids };
        let family = match launcher {
            "mpirun (Open MPI)" => Some(Family::OpenMpi),
            HYDRA => Some(Family::Mpich),
            _ if variable("PMIX_RANK").is_some() => Some(Family::OpenMpi),
            _ if variable("PMI_FD").is_some() || variable("PMI_RANK").is_some() => Some(Family::Mpich),
            _ => None,
        };
        let (rank, size, local_rank) = (Some(rank), Some(size), Some(local_rank));
        Self { launcher: Some(launcher), family, rank, size, local_rank, ..ids }
    }

    /// True for the one rank that speaks for all, and where there is only one.
    pub fn speaks(&self) -> bool {
        self.rank.unwrap_or(0) == 0
    }

    /// True for the one rank of a node that reads the node's record.
    pub fn reads_node(&self) -> bool {
        self.local_rank.unwrap_or(0) == 0
    }

    /// Tells MPICH's process manager to end the job with this status; every other one goes by the exit
    /// statuses of the ranks. Hydra lets the others wait for ever for a rank that never came to MPI_Init.
    /// For one that left without MPI_Finalize it kills them, and a launcher among the killed makes the
    /// status a matter of chance.
    pub fn end_job(&self, code: i32) {
        let connection = std::env::var("PMI_FD").ok().and_then(|fd| fd.parse::<i32>().ok());
        let Some(connection) = connection.filter(|_| self.launcher == Some(HYDRA)) else { return };
        // What was said on stderr is still on its way, and mpiexec does not wait for it.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let message = format!("cmd=abort exitcode={code}\n"); // PMI-1
        // SAFETY: the bytes live through the call. Nothing can be done about a manager that is gone.
        unsafe { libc::write(connection, message.as_ptr().cast(), message.len()) };
    }

    /// As it is stored.
    pub fn job(&self) -> Job {
        Job {
            launcher: self.launcher.map(str::to_owned),
            job_id: self.job_id.clone(),
            step_id: self.step_id.clone(),
            launched_ranks: self.size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(variables: &[(&str, &str)]) -> Launch {
        Launch::from(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
    }

    const SRUN: [(&str, &str); 4] =
        [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_LOCALID", "0"), ("SLURM_JOB_ID", "7")];

    #[test]
    fn nobody_started_a_program_in_a_shell() {
        assert_eq!(launch(&[]), Launch::default());
        assert!(launch(&[]).speaks() && launch(&[]).reads_node());
        let batch_script = launch(&[("SLURM_PROCID", "0"), ("SLURM_LOCALID", "0"), ("SLURM_NTASKS", "8")]);
        assert_eq!(batch_script.launcher, None);
    }

    #[test]
    fn mpirun_inside_a_slurm_step_is_mpirun() {
        let open_mpi = [
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
        ];
        let launch = launch(&[&SRUN[..], &open_mpi[..]].concat());
        assert_eq!((launch.launcher, launch.family), (Some("mpirun (Open MPI)"), Some(Family::OpenMpi)));
        assert_eq!((launch.rank, launch.size, launch.local_rank), (Some(3), Some(4), Some(1)));
        assert_eq!(launch.job().job_id.as_deref(), Some("7"));
    }

    #[test]
    fn the_process_manager_tells_the_family_under_srun() {
        let with = |extra: &[(&str, &str)]| launch(&[&SRUN[..], extra].concat()).family;
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("PMIX_RANK", "0")]), Some(Family::OpenMpi));
        assert_eq!(with(&[("PMI_FD", "9")]), Some(Family::Mpich));
    }
}
