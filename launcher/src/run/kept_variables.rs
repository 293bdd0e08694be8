//! Which environment variables a run file keeps, and which a plain program under MPI keeps.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

type Variable = (OsString, OsString);

/// Variables that change performance. A run file stores no others, because an environment may contain secrets. A name
/// that ends with an underscore is a prefix.
const REMEMBERED: [&str; 50] = [
    "OMP_",
    "GOMP_",
    "KMP_",
    "MKL_",
    "OPENBLAS_",
    "BLIS_",
    "OMPI_MCA_",
    "PMIX_MCA_",
    // Open MPI 5: binding and mapping.
    "PRTE_MCA_hwloc_",
    "PRTE_MCA_rmaps_",
    "MPICH_",
    "MPIR_CVAR_",
    "I_MPI_",
    "MV2_",
    "UCX_",
    "FI_",
    "PSM2_",
    "PSM3_",
    "NCCL_",
    "RCCL_",
    "HCOLL_",
    "SHARP_",
    "MLX5_",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    // Huge pages: libhugetlbfs, and Intel's HPL.
    "HUGETLB_",
    "HPL_",
    "MALLOC_",
    "GLIBC_TUNABLES",
    // A library for memory or for huge pages may be loaded this way.
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "SLURM_CPU_BIND",
    "SLURM_CPU_FREQ_REQ",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_HET_SIZE",
    "SLURM_HINT",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_MEM_BIND",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_THREADS_PER_CORE",
];

/// Settings that users make, although their names begin like [`PLUMBING`].
const OF_USERS: [&str; 3] = [
    "OMPI_MCA_hwloc_base_binding_policy",
    "OMPI_MCA_hwloc_base_cpu_list",
    "OMPI_MCA_hwloc_base_mem_alloc_policy",
];

/// Addresses and keys by which Open MPI's daemons find each other, and what mpirun itself sets for its processes.
const PLUMBING: [&str; 9] = [
    "OMPI_MCA_ess",
    "OMPI_MCA_pmix",
    "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
    "OMPI_MCA_orte_",
    "OMPI_MCA_ess_",
    "OMPI_MCA_pmix_",
    "OMPI_MCA_prte_",
    "OMPI_MCA_hwloc_base_",
    "OMPI_MCA_initial_wdir",
];

/// Variables by which a process finds its process manager. With them, a plain program that calls MPI would join the
/// runner's job or wait for it forever; without them, it is a job of one rank. The rank's number does not lead to the
/// manager, so the program keeps it.
const CONNECTION: [&str; 12] = [
    // PMIx: without the namespace, no MPI library looks for a server.
    "PMIX_NAMESPACE",
    "PMIX_SERVER_",
    "PMIX_ID",
    // PMI-1 and PMI-2: a descriptor or a port. HPE Cray's library has its own port.
    "PMI_FD",
    "PMI_PORT",
    "PMI_CONTROL_",
    "PMI_SPAWNED",
    "HYDI_CONTROL_FD",
    "SLURM_PMI_",
    "SLURM_PMIX_",
    "SLURM_PMIXP_",
    // Open MPI 4: mpirun does not start if this is set.
    "OMPI_UNIVERSE_SIZE",
];

/// The variables for the run file, sorted by name.
pub fn remembered(variables: impl IntoIterator<Item = Variable>) -> Vec<(String, String)> {
    let wanted = |(name, _): &Variable| {
        matches(name, &OF_USERS) || matches(name, &REMEMBERED) && !matches(name, &PLUMBING)
    };
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let kept = variables.into_iter().filter(wanted).map(|(name, value)| (text(name), text(value)));
    let mut kept: Vec<_> = kept.collect();
    kept.sort();
    kept
}

/// The environment for a plain program that a rank starts.
pub fn without_connection(variables: impl IntoIterator<Item = Variable>) -> Vec<Variable> {
    let connects = |name: &OsStr| matches(name, &PLUMBING) || matches(name, &CONNECTION);
    variables.into_iter().filter(|(name, _)| !connects(name)).collect()
}

fn matches(name: &OsStr, patterns: &[&str]) -> bool {
    let name = name.as_bytes();
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_bytes();
        if pattern.ends_with(b"_") { name.starts_with(pattern) } else { name == pattern }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(names: &[&str]) -> Vec<Variable> {
        names.iter().map(|name| (name.into(), "v".into())).collect()
    }

    #[test]
    fn what_changes_performance_is_remembered_and_no_secret() {
        let all =
            ["OMP_NUM_THREADS", "AWS_SECRET", "UCX_TLS", "OMPI_MCA_btl", "OMPI_MCA_orte_hnp_uri", "OMP"];
        let names: Vec<String> = remembered(variables(&all)).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["OMPI_MCA_btl", "OMP_NUM_THREADS", "UCX_TLS"]);
        assert_eq!(
            remembered(variables(&["OMPI_MCA_hwloc_base_mem_alloc_policy", "OMPI_MCA_hwloc_base_x"])).len(),
            1
        );
        assert_eq!(remembered(variables(&["SLURM_NTASKS", "SLURM_JOB_USER"])).len(), 1);
    }

    #[test]
    fn a_plain_program_knows_its_rank_and_not_its_manager() {
        let all = [
            "PATH",
            "PMIX_RANK",
            "PMIX_NAMESPACE",
            "PMIX_SERVER_URI41",
            "OMPI_COMM_WORLD_RANK",
            "OMPI_MCA_btl",
            "OMPI_MCA_ess_base_jobid",
            "OMPI_MCA_orte_hnp_uri",
            "PMI_FD",
            "PMI_PORT",
            "PMI_RANK",
            "PMI_SIZE",
            "MPI_LOCALRANKID",
            "SLURM_PROCID",
            "SLURM_PMIX_MAPPING_SERV",
            "SLURM_PMIXP_ABORT_AGENT_PORT",
        ];
        let kept = without_connection(variables(&all));
        let names: Vec<_> = kept.into_iter().map(|(name, _)| name.into_string().unwrap()).collect();
        let expected = [
            "PATH",
            "PMIX_RANK",
            "OMPI_COMM_WORLD_RANK",
            "OMPI_MCA_btl",
            "PMI_RANK",
            "PMI_SIZE",
            "MPI_LOCALRANKID",
            "SLURM_PROCID",
        ];
        assert_eq!(names, expected);
    }
}
