//! Which launch a process belongs to: a script may start an MPI job of its own below a measured rank.
//!
//! All processes below a rank inherit the agent. A launcher of ranks sets environment variables that identify each
//! rank. If a process has the same values as pmmpi had, it belongs to pmmpi's launch. If a value differs, another
//! launcher started the process: its other ranks may not have the agent, so the agent must not wait for them.

use std::ffi::OsString;

/// Variables in which launchers and process managers give each rank its rank, size and job.
const VARIABLES: [&str; 26] = [
    "ALPS_APP_PE",
    "FLUX_JOB_ID",
    "FLUX_TASK_RANK",
    "JSM_NAMESPACE_RANK",
    "JSM_NAMESPACE_SIZE",
    "MP_CHILD",
    "MPIRUN_RANK",
    "MPISPAWN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PALS_APID",
    "PALS_RANKID",
    "PMI_FD",
    "PMI_ID",
    "PMI_JOBID",
    "PMI_PORT",
    "PMI_RANK",
    "PMI_SIZE",
    "PMI2_FD",
    "PMIX_NAMESPACE",
    "PMIX_RANK",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_TASK_PID",
];

/// The launch of an environment as text: `;NAME=value` for each variable that is set, and `;`.
pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> String {
    let mut origin = String::new();
    for name in VARIABLES {
        if let Some(value) = variable(name) {
            origin += &format!(";{name}={}", value.to_string_lossy());
        }
    }
    origin + ";"
}

/// True if a process with these variables belongs to the launch `origin`. Variables may be missing: a script may
/// unset those that confuse its program.
pub fn is_same(origin: &str, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    of(variable).split(';').all(|said| said.is_empty() || origin.contains(&format!(";{said};")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment<'a>(all: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        |name| all.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    }

    #[test]
    fn another_launcher_is_seen() {
        let step = [("SLURM_PROCID", "1"), ("SLURM_STEP_ID", "0"), ("PATH", "/bin")];
        let origin = of(environment(&step));
        assert_eq!(origin, ";SLURM_PROCID=1;SLURM_STEP_ID=0;");
        assert!(is_same(&origin, environment(&step)));
        assert!(is_same(&origin, environment(&step[..1])) && is_same(&origin, environment(&[])));
        assert!(!is_same(&origin, environment(&[("SLURM_PROCID", "1"), ("SLURM_STEP_ID", "10")])));
        assert!(!is_same(&origin, environment(&[&step[..], &[("PMIX_RANK", "0")]].concat())));
        assert!(is_same(&of(environment(&[])), environment(&[])));
        assert!(!is_same(&of(environment(&[])), environment(&[("OMPI_COMM_WORLD_RANK", "0")])));
    }
}
