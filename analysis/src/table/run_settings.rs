//! Settings of a run: what the user chose beside the command and the labels. The table keeps them together with the facts
//! of the node, because nearly all runs of a class have the same.

use pmmpi::node::CpuSet;
use pmmpi::record::Run;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// The prefix of environment variables.
const VARIABLE: &str = "env.";
/// The other settings.
const OTHERS: [&str; 4] = ["launcher", "mpi_library", "ranks_bound_to", PMMPI_VERSION];
/// Every run that has settings has this one.
const PMMPI_VERSION: &str = "pmmpi_version";
/// The value of a variable that is not set.
const NOT_SET: &str = "not set";

/// Variables that tell where a job ran, or that launchers, batch systems and networks give each job or node anew.
const OF_ONE_JOB: [&str; 9] = [
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_PARTITION",
    "SLURM_CPU_BIND",
    "FI_CXI_DEFAULT_VNI",
    "I_MPI_HYDRA_HOST_FILE",
    "I_MPI_HYDRA_UUID",
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
    "OMPI_MCA_plm_rsh_agent",
];
const LIST_OF_NODES: &str = "_NODELIST";

/// The settings of a run, by name: `env.OMP_NUM_THREADS`, `launcher`, `mpi_library`, `ranks_bound_to`, `pmmpi_version`.
pub fn of_run(run: &Run) -> BTreeMap<String, String> {
    if is_of_kernel(run) {
        return BTreeMap::new();
    }
    let header = &run.header;
    let is_of_one_job = |name: &str| OF_ONE_JOB.contains(&name) || name.ends_with(LIST_OF_NODES);
    let variables = header.environment.iter().filter(|(name, _)| !is_of_one_job(name));
    let variables = variables.map(|(name, value)| (format!("{VARIABLE}{name}"), Some(value.clone())));
    // The rest of MPICH's text has its build.
    let library = header.mpi_library.as_ref().and_then(|text| text.trim().lines().next());
    let library = library.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let others =
        [header.job.launcher.clone(), library, run.ranks_are_bound_to(), Some(header.pmmpi_version.clone())];
    let others = OTHERS.into_iter().map(str::to_owned).zip(others);
    variables.chain(others).filter_map(|(name, value)| Some((name, value?))).collect()
}

/// True for a kernel of pmmpi: no setting of a job changes its speed.
fn is_of_kernel(run: &Run) -> bool {
    run.screened.as_ref().is_some_and(|screened| screened.kernel.is_some())
}

/// The fact with the hardware threads of a node on which its ranks may run, each of `allowed`; `None` if these are unknown.
pub fn allowed_hardware_threads(run: &Run, allowed: &[&CpuSet]) -> Option<(&'static str, String)> {
    let is_known = !allowed.is_empty() && !allowed.iter().any(|set| set.0.is_empty());
    (is_known && !is_of_kernel(run))
        .then(|| (HARDWARE_THREADS, CpuSet::union(allowed.iter().copied()).to_string()))
}

/// True if a fact of this name is a setting of the run, and no property of the node.
pub fn is_setting(name: &str) -> bool {
    name.starts_with(VARIABLE) || OTHERS.contains(&name)
}

/// Facts of the first MPI process, or of the ranks, and no properties of the node. MPI libraries open connections, and load components for
/// them, when a process first needs them.
const OF_PROCESS: [&str; 7] = [
    "transports",
    "mpi_components",
    "memory_policy",
    "allowed_numa_nodes",
    HARDWARE_THREADS,
    "stack_limit",
    "scheduling",
];
const HARDWARE_THREADS: &str = "allowed_hardware_threads";

/// True if equal nodes may differ in this. Examples are a setting, the place in the network, and facts of processes.
pub fn may_differ_between_nodes(name: &str) -> bool {
    is_setting(name) || name == "switch" || OF_PROCESS.contains(&name)
}

/// True if a difference in this setting may make runs slower or faster.
pub fn may_change_speed(name: &str) -> bool {
    is_setting(name) && name != PMMPI_VERSION
}

/// True for a fact of a node that somebody may change between two runs of a session, and that may make runs slower or
/// faster. Runs on different nodes may differ in it: then a node is odd.
pub fn may_change_between_runs(name: &str) -> bool {
    const FACTS: [&str; 13] = [
        "transparent_hugepage",
        "hugepages",
        "other_hugepages",
        "governor",
        "other_governors",
        "frequency_limits",
        "other_frequency_limits",
        "power_limits",
        "turbo",
        "smt",
        "hardware_threads",
        "numa_balancing",
        "clocksource",
    ];
    FACTS.contains(&name) || (OF_PROCESS.contains(&name) && name != "mpi_components")
}

/// True if these facts have the settings of their run: those of older versions, and of other tools, do not.
pub fn are_known<N: Ord + Borrow<str>>(facts: &BTreeMap<N, String>) -> bool {
    facts.contains_key(PMMPI_VERSION)
}

/// The value of a fact or a setting. A variable without a value is not set, if settings are known.
pub fn value<'a, N: Ord + Borrow<str>>(facts: &'a BTreeMap<N, String>, name: &str) -> Option<&'a str> {
    let not_set = || (name.starts_with(VARIABLE) && are_known(facts)).then_some(NOT_SET);
    facts.get(name).map(String::as_str).or_else(not_set)
}

/// "env.OMP_NUM_THREADS=8", or "env.OMP_NUM_THREADS not set".
pub fn described(name: &str, value: &str) -> String {
    if value == NOT_SET { format!("{name} {NOT_SET}") } else { format!("{name}={value}") }
}
