//! The launchers that pmmpi knows: what each of them sets in a rank, and how its jobs are ended.

use super::RunnerFamily;

/// One launcher.
#[derive(Debug)]
pub struct Signature {
    /// As messages and run files have it.
    pub launcher: &'static str,
    /// It is known where these are set. All that have a meaning below are numbers.
    pub marks: &'static [&'static str],
    /// The rank among all.
    pub rank: Option<&'static str>,
    /// Of the first rank: most launchers count from 0.
    pub first_rank: u32,
    /// How many ranks there are.
    pub size: Option<&'static str>,
    /// The rank among those of its node.
    pub local_rank: Option<&'static str>,
    /// How many ranks its node has. No number where the launcher says it of several nodes at once.
    pub local_size: Option<&'static str>,
    /// These name the job among all of this user on this node, together. Where none is set, the process that started
    /// the ranks does.
    pub job: &'static [&'static str],
    /// Its processes that start ranks; NAME stands for NAME.SUFFIX, too.
    pub daemons: &'static [&'static str],
    /// Whose MPI programs it starts.
    pub manager: Manager,
    /// How all other ranks are ended where one cannot begin.
    pub ending: Ending,
}

/// How a launcher's ranks find one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// As this family does.
    Of(RunnerFamily),
    /// The variables of the rank tell: see [`manager_of`].
    ByVariables,
    /// They do not, or in a way that no runner is built for.
    None,
}

/// How a launcher learns that its job is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// From the exit status of a rank.
    ExitStatus,
    /// From the PMI-1 command `abort`. Hydra and gforker let the other ranks wait for ever for one that never came to
    /// MPI_Init. For one that left without MPI_Finalize Hydra kills them, and a launcher among the killed makes the
    /// status a matter of chance.
    PmiAbort,
    /// From MPI_Abort. Unless it was told otherwise (-K), srun lets the other ranks wait for one that left before MPI_Init.
    MpiAbort,
}

const NO_ROW: Signature = Signature {
    launcher: "",
    marks: &[],
    rank: None,
    first_rank: 0,
    size: None,
    local_rank: None,
    local_size: None,
    job: &[],
    daemons: &[],
    manager: Manager::ByVariables,
    ending: Ending::ExitStatus,
};

/// The namespace alone will not do: Open MPI 4 makes it from 16 bits of a hash. The server's address has its port.
const PMIX_JOB: &[&str] = &["PMIX_NAMESPACE", "PMIX_SERVER_URI2"];
/// PRRTE's, and those that Open MPI 4 has in their place.
const PRTE_DAEMONS: &[&str] = &["mpirun", "mpiexec", "orterun", "orted", "prterun", "prte", "prted"];

/// The innermost first: mpirun's daemons may be started by srun, and hand its variables down.
pub const ROWS: &[Signature] = &[
    // Spectrum MPI, which is an Open MPI. Its ranks have Open MPI's variables, too.
    // PyTorch Lightning's LSFEnvironment; HPCToolkit's OSUtil.c.
    Signature {
        launcher: "jsrun",
        marks: &["JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK"],
        rank: Some("JSM_NAMESPACE_RANK"),
        size: Some("JSM_NAMESPACE_SIZE"),
        local_rank: Some("JSM_NAMESPACE_LOCAL_RANK"),
        local_size: Some("JSM_NAMESPACE_LOCAL_SIZE"),
        job: PMIX_JOB,
        daemons: &["jsmd"],
        manager: Manager::Of(RunnerFamily::OpenMpi),
        ..NO_ROW
    },
    // docs.open-mpi.org, "Environment variables set for MPI applications". Spectrum MPI's mpirun, too.
    Signature {
        launcher: "mpirun (Open MPI)",
        marks: &["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
        rank: Some("OMPI_COMM_WORLD_RANK"),
        size: Some("OMPI_COMM_WORLD_SIZE"),
        local_rank: Some("OMPI_COMM_WORLD_LOCAL_RANK"),
        local_size: Some("OMPI_COMM_WORLD_LOCAL_SIZE"),
        job: PMIX_JOB,
        daemons: PRTE_DAEMONS,
        manager: Manager::Of(RunnerFamily::OpenMpi),
        ..NO_ROW
    },
    // Fujitsu MPI is an Open MPI. Job scripts on Fugaku read these.
    Signature {
        launcher: "mpiexec (Fujitsu)",
        marks: &["PMIX_RANK", "PLE_RANK_ON_NODE"],
        rank: Some("PMIX_RANK"),
        local_rank: Some("PLE_RANK_ON_NODE"),
        job: PMIX_JOB,
        manager: Manager::Of(RunnerFamily::OpenMpi),
        ..NO_ROW
    },
    // PRRTE, src/mca/odls/base: set in each process that it starts. Without Open MPI's own mpirun, that is all.
    Signature {
        launcher: "prterun",
        marks: &["PMIX_RANK", "PRTE_LAUNCHED"],
        rank: Some("PMIX_RANK"),
        job: PMIX_JOB,
        daemons: PRTE_DAEMONS,
        manager: Manager::Of(RunnerFamily::OpenMpi),
        ..NO_ROW
    },
    // ParaStation's psmgmt, plugins/.../kvsspawner: PS_JOB_SIZE and MPI_LOCALRANKID whatever the manager. Its MPI is an
    // MPICH; PMI_ID is the job's token.
    Signature {
        launcher: "mpiexec (ParaStation)",
        marks: &["PMI_RANK", "PS_JOB_SIZE", "MPI_LOCALRANKID"],
        rank: Some("PMI_RANK"),
        size: Some("PS_JOB_SIZE"),
        local_rank: Some("MPI_LOCALRANKID"),
        job: &["PMI_ID"],
        daemons: &["psid"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ..NO_ROW
    },
    Signature {
        launcher: "mpiexec (ParaStation)",
        marks: &["PMIX_RANK", "PS_JOB_SIZE", "MPI_LOCALRANKID"],
        rank: Some("PMIX_RANK"),
        size: Some("PS_JOB_SIZE"),
        local_rank: Some("MPI_LOCALRANKID"),
        job: PMIX_JOB,
        daemons: &["psid"],
        manager: Manager::ByVariables,
        ..NO_ROW
    },
    // MPICH, src/pm/hydra/proxy. Intel MPI's is one, too.
    Signature {
        launcher: "mpiexec (Hydra)",
        marks: &["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
        rank: Some("PMI_RANK"),
        size: Some("PMI_SIZE"),
        local_rank: Some("MPI_LOCALRANKID"),
        local_size: Some("MPI_LOCALNRANKS"),
        daemons: &["hydra_pmi_proxy"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ending: Ending::PmiAbort,
        ..NO_ROW
    },
    // MVAPICH2's user guide, "MPIRUN_RSH Parameters"; PMI_ID and PMI_PORT of its mpispawn.
    Signature {
        launcher: "mpirun_rsh",
        marks: &["MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"],
        rank: Some("MV2_COMM_WORLD_RANK"),
        size: Some("MV2_COMM_WORLD_SIZE"),
        local_rank: Some("MV2_COMM_WORLD_LOCAL_RANK"),
        local_size: Some("MV2_COMM_WORLD_LOCAL_SIZE"),
        daemons: &["mpispawn"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ..NO_ROW
    },
    // MVAPICH 3 and later.
    Signature {
        launcher: "mpirun_rsh",
        marks: &["MVP_COMM_WORLD_RANK", "MVP_COMM_WORLD_SIZE", "MVP_COMM_WORLD_LOCAL_RANK"],
        rank: Some("MVP_COMM_WORLD_RANK"),
        size: Some("MVP_COMM_WORLD_SIZE"),
        local_rank: Some("MVP_COMM_WORLD_LOCAL_RANK"),
        local_size: Some("MVP_COMM_WORLD_LOCAL_SIZE"),
        daemons: &["mpispawn"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ..NO_ROW
    },
    // HPE MPT. LAMMPS's manual, "Command-line options". Its processes find one another in a way of their own.
    Signature {
        launcher: "mpirun (HPE MPT)",
        marks: &["MPT_LRANK"],
        local_rank: Some("MPT_LRANK"),
        manager: Manager::None,
        ..NO_ROW
    },
    // flux-core, src/shell/task.c: not set in a batch script.
    Signature {
        launcher: "flux run",
        marks: &["FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"],
        rank: Some("FLUX_TASK_RANK"),
        size: Some("FLUX_JOB_SIZE"),
        local_rank: Some("FLUX_TASK_LOCAL_ID"),
        // An instance in a job of another one numbers its own jobs.
        job: &["FLUX_JOB_ID", "FLUX_URI"],
        daemons: &["flux-shell"],
        ..NO_ROW
    },
    // MPICH, src/pm/gforker and src/pm/util/process.c. All ranks are on its own machine. Before srun:
    // it hands down what it finds.
    Signature {
        launcher: "mpiexec (gforker)",
        marks: &["PMI_RANK", "PMI_SIZE", "MPI_APPNUM", "MPI_UNIVERSE_SIZE"],
        rank: Some("PMI_RANK"),
        size: Some("PMI_SIZE"),
        local_rank: Some("PMI_RANK"),
        local_size: Some("PMI_SIZE"),
        daemons: &["mpiexec.gforker"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ending: Ending::PmiAbort,
        ..NO_ROW
    },
    // srun(1), "Output environment variables". SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: the latter is set in a batch
    // script, too.
    Signature {
        launcher: SRUN,
        marks: &["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"],
        rank: Some("SLURM_PROCID"),
        size: Some("SLURM_STEP_NUM_TASKS"),
        local_rank: Some("SLURM_LOCALID"),
        local_size: Some("SLURM_STEP_TASKS_PER_NODE"),
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        daemons: &["slurmstepd"],
        ending: Ending::MpiAbort,
        ..NO_ROW
    },
    // HPE's pals.h. Slurm's and Flux's plugins for the same machines set these, too.
    Signature {
        launcher: "mpiexec (PALS)",
        marks: &["PALS_RANKID", "PALS_LOCAL_RANKID"],
        rank: Some("PALS_RANKID"),
        size: Some("PMI_SIZE"),
        local_rank: Some("PALS_LOCAL_RANKID"),
        job: &["PALS_APID"],
        daemons: &["palsd"],
        ..NO_ROW
    },
    // Slurm's src/plugins/task/cray_aries names them. With PALS, aprun is a script that sets them, too.
    Signature {
        launcher: "aprun",
        marks: &["ALPS_APP_PE"],
        rank: Some("ALPS_APP_PE"),
        job: &["ALPS_APP_ID"],
        daemons: &["apinit"],
        ..NO_ROW
    },
    // LSF counts the tasks that blaunch starts from 1 (PRRTE, src/mca/ess/lsf). They know nothing of one another.
    Signature {
        launcher: "blaunch",
        marks: &["LSF_PM_TASKID", "LSB_JOBID"],
        rank: Some("LSF_PM_TASKID"),
        first_rank: 1,
        job: &["LSB_JOBID", "LSB_JOBINDEX"],
        manager: Manager::None,
        ..NO_ROW
    },
];

/// What a rank of a launcher that is not in the table has nevertheless: PMIx's and PMI's own.
pub const UNKNOWN: [Signature; 2] = [
    Signature {
        launcher: UNKNOWN_LAUNCHER,
        marks: &["PMIX_RANK"],
        rank: Some("PMIX_RANK"),
        job: PMIX_JOB,
        ..NO_ROW
    },
    Signature {
        launcher: UNKNOWN_LAUNCHER,
        marks: &["PMI_RANK"],
        rank: Some("PMI_RANK"),
        size: Some("PMI_SIZE"),
        ..NO_ROW
    },
];

/// As messages and run files have it.
pub const SRUN: &str = "srun";

/// True where a launcher that the table has not started a rank within a step of srun, whose variables it hands down: PMIx's
/// name of the job is not Slurm's, or PMI has more ranks than the step. (Fewer may be left of a step around this one, and in a
/// heterogeneous step PMI counts the ranks of all components.) All ranks of a job have the same answer.
pub fn contradicts_srun(text: impl Fn(&str) -> Option<String>, number: impl Fn(&str) -> Option<u32>) -> bool {
    // Slurm's src/plugins/mpi/pmix/pmixp_info.c
    let is_named = text("PMIX_NAMESPACE").is_some_and(|name| !name.is_empty() && !name.starts_with("slurm."));
    let has_more = || {
        number("PMI_SIZE").is_some_and(|size| number("SLURM_STEP_NUM_TASKS").is_some_and(|own| size > own))
    };
    is_named || number("SLURM_HET_SIZE").is_none() && has_more()
}

/// As messages and run files have it.
pub const UNKNOWN_LAUNCHER: &str = "an unknown launcher";

/// Whose process manager a rank with these variables has.
pub fn manager_of(is_set: impl Fn(&str) -> bool) -> Option<RunnerFamily> {
    if is_set("PMIX_RANK") {
        return Some(RunnerFamily::OpenMpi);
    }
    ["PMI_FD", "PMI_RANK"].into_iter().any(is_set).then_some(RunnerFamily::Mpich)
}
