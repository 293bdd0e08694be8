//! The launchers that pmmpi knows: the variables that each sets in a rank, and how to end its jobs.

use super::RunnerFamily;

#[derive(Debug)]
pub struct Signature {
    /// Its name in messages and run files.
    pub launcher: &'static str,
    /// The launcher is this one if all these variables are set and `rank` and `local_rank` are numbers.
    pub marks: &'static [&'static str],
    /// Variable of the rank in the job.
    pub rank: Option<&'static str>,
    /// Number of the first rank: most launchers count from 0.
    pub first_rank: u32,
    /// Variable of the number of ranks.
    pub size: Option<&'static str>,
    /// Variable of the rank among the ranks of its node.
    pub local_rank: Option<&'static str>,
    /// Variable of the number of ranks on the node. Its value is not a number if the launcher lists several nodes
    /// in it.
    pub local_size: Option<&'static str>,
    /// Variables that together identify the job among this user's jobs on this node. If none is set, the process that
    /// started the ranks identifies it.
    pub job: &'static [&'static str],
    /// Its processes that start ranks; NAME includes NAME.SUFFIX.
    pub daemons: &'static [&'static str],
    /// The MPI family whose programs it starts.
    pub manager: Manager,
    /// How to end all other ranks if one cannot start.
    pub ending: JobEndCause,
}

/// How a launcher's ranks find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// Through the process manager of this family.
    Of(RunnerFamily),
    /// The variables of the rank decide: see [`manager_of`].
    ByVariables,
    /// They do not find each other, or in a way that no runner supports.
    None,
}

/// What makes a launcher end its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEndCause {
    /// The exit status of a rank.
    ExitStatus,
    /// The PMI-1 command `abort`. With Hydra and gforker, the other ranks wait forever for a rank that never calls
    /// MPI_Init. If a rank leaves without MPI_Finalize, Hydra kills the others; if it kills a launcher among them, the
    /// exit status is random.
    PmiAbort,
    /// MPI_Abort. Without -K, srun lets the other ranks wait for a rank that left before MPI_Init.
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
    ending: JobEndCause::ExitStatus,
};

/// The namespace alone is not unique: Open MPI 4 makes it from 16 bits of a hash. The server's address includes its
/// port.
const PMIX_JOB: &[&str] = &["PMIX_NAMESPACE", "PMIX_SERVER_URI2"];
/// The daemons of PRRTE and, for Open MPI 4, of ORTE.
const PRTE_DAEMONS: &[&str] = &["mpirun", "mpiexec", "orterun", "orted", "prterun", "prte", "prted"];

/// Order: a launcher that another one may start comes first. For example, srun may start mpirun's daemons, and the
/// ranks then inherit srun's variables.
pub const ROWS: &[Signature] = &[
    // Spectrum MPI, a variant of Open MPI. Its ranks have Open MPI's variables, too.
    // Sources: PyTorch Lightning's LSFEnvironment; HPCToolkit's OSUtil.c.
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
    // docs.open-mpi.org, "Environment variables set for MPI applications". Also Spectrum MPI's mpirun.
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
    // Fujitsu MPI is a variant of Open MPI. Job scripts on Fugaku read these variables.
    Signature {
        launcher: "mpiexec (Fujitsu)",
        marks: &["PMIX_RANK", "PLE_RANK_ON_NODE"],
        rank: Some("PMIX_RANK"),
        local_rank: Some("PLE_RANK_ON_NODE"),
        job: PMIX_JOB,
        manager: Manager::Of(RunnerFamily::OpenMpi),
        ..NO_ROW
    },
    // PRRTE sets these in each process that it starts (src/mca/odls/base). Without Open MPI's own mpirun, a rank has
    // no others.
    Signature {
        launcher: "prterun",
        marks: &["PMIX_RANK", "PRTE_LAUNCHED"],
        rank: Some("PMIX_RANK"),
        job: PMIX_JOB,
        daemons: PRTE_DAEMONS,
        manager: Manager::Of(RunnerFamily::OpenMpi),
        ..NO_ROW
    },
    // ParaStation's psmgmt, plugins/.../kvsspawner: it sets PS_JOB_SIZE and MPI_LOCALRANKID with every process manager.
    // Its MPI is a variant of MPICH; PMI_ID is the job's token.
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
    // MPICH, src/pm/hydra/proxy. Intel MPI's launcher is a Hydra, too.
    Signature {
        launcher: "mpiexec (Hydra)",
        marks: &["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
        rank: Some("PMI_RANK"),
        size: Some("PMI_SIZE"),
        local_rank: Some("MPI_LOCALRANKID"),
        local_size: Some("MPI_LOCALNRANKS"),
        daemons: &["hydra_pmi_proxy"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ending: JobEndCause::PmiAbort,
        ..NO_ROW
    },
    // MVAPICH2's user guide, "MPIRUN_RSH Parameters". Its mpispawn sets PMI_ID and PMI_PORT.
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
    // HPE MPT (LAMMPS's manual, "Command-line options"). Its processes find each other by a protocol of HPE's own.
    Signature {
        launcher: "mpirun (HPE MPT)",
        marks: &["MPT_LRANK"],
        local_rank: Some("MPT_LRANK"),
        manager: Manager::None,
        ..NO_ROW
    },
    // flux-core, src/shell/task.c: a batch script does not have these.
    Signature {
        launcher: "flux run",
        marks: &["FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID"],
        rank: Some("FLUX_TASK_RANK"),
        size: Some("FLUX_JOB_SIZE"),
        local_rank: Some("FLUX_TASK_LOCAL_ID"),
        // A Flux instance inside a job of another instance numbers its own jobs.
        job: &["FLUX_JOB_ID", "FLUX_URI"],
        daemons: &["flux-shell"],
        ..NO_ROW
    },
    // MPICH, src/pm/gforker and src/pm/util/process.c. All ranks are on its own machine. It must come before srun,
    // because its ranks inherit srun's variables.
    Signature {
        launcher: "mpiexec (gforker)",
        marks: &["PMI_RANK", "PMI_SIZE", "MPI_APPNUM", "MPI_UNIVERSE_SIZE"],
        rank: Some("PMI_RANK"),
        size: Some("PMI_SIZE"),
        local_rank: Some("PMI_RANK"),
        local_size: Some("PMI_SIZE"),
        daemons: &["mpiexec.gforker"],
        manager: Manager::Of(RunnerFamily::Mpich),
        ending: JobEndCause::PmiAbort,
        ..NO_ROW
    },
    // srun(1), "Output environment variables". SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: a batch script has the latter,
    // too.
    Signature {
        launcher: SRUN,
        marks: &["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"],
        rank: Some("SLURM_PROCID"),
        size: Some("SLURM_STEP_NUM_TASKS"),
        local_rank: Some("SLURM_LOCALID"),
        local_size: Some("SLURM_STEP_TASKS_PER_NODE"),
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
        daemons: &["slurmstepd"],
        ending: JobEndCause::MpiAbort,
        ..NO_ROW
    },
    // HPE's pals.h. The plugins of Slurm and Flux for these machines set the same variables.
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
    // Slurm's src/plugins/task/cray_aries lists these variables. With PALS, aprun is a script that sets them, too.
    Signature {
        launcher: "aprun",
        marks: &["ALPS_APP_PE"],
        rank: Some("ALPS_APP_PE"),
        job: &["ALPS_APP_ID"],
        daemons: &["apinit"],
        ..NO_ROW
    },
    // LSF numbers blaunch's tasks from 1 (PRRTE, src/mca/ess/lsf). The tasks do not find each other.
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

/// Ranks of a launcher that is not in the table: they have only the variables of PMIx or PMI.
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

pub const SRUN: &str = "srun";

/// True if an unknown launcher started this rank inside a step of srun and the rank inherited srun's variables. Signs
/// of this: the PMIx namespace is not Slurm's, or PMI reports more ranks than the step has. Fewer ranks are no sign,
/// because PMI_SIZE may come from an outer step. In a heterogeneous step, the number is no sign either, because PMI
/// counts the ranks of all components. All ranks of a job get the same answer.
pub fn contradicts_srun(text: impl Fn(&str) -> Option<String>, number: impl Fn(&str) -> Option<u32>) -> bool {
    // Slurm's src/plugins/mpi/pmix/pmixp_info.c
    let is_named = text("PMIX_NAMESPACE").is_some_and(|name| !name.is_empty() && !name.starts_with("slurm."));
    let has_more = || {
        number("PMI_SIZE").is_some_and(|size| number("SLURM_STEP_NUM_TASKS").is_some_and(|own| size > own))
    };
    is_named || number("SLURM_HET_SIZE").is_none() && has_more()
}

pub const UNKNOWN_LAUNCHER: &str = "an unknown launcher";

/// The family of the process manager, from the variables of a rank.
pub fn manager_of(is_set: impl Fn(&str) -> bool) -> Option<RunnerFamily> {
    if is_set("PMIX_RANK") {
        return Some(RunnerFamily::OpenMpi);
    }
    ["PMI_FD", "PMI_RANK"].into_iter().any(is_set).then_some(RunnerFamily::Mpich)
}
