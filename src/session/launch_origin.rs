//! Which launch a process belongs to: a script may start an MPI job of its own below a measured rank.
//!
//! Everything below a rank inherits the agent. A launcher that starts ranks tells each who it is, in variables that
//! it sets anew. So a process whose variables still say what they said to pmmpi is of pmmpi's launch; where one says
//! something else, another launcher came in between, whose other ranks may not have the agent and must not be
//! waited for.

use std::ffi::OsString;

/// Rank, size and job, as launchers and process managers give them to each rank.
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

/// What an environment says of it: `;NAME=value` for each variable that is set, and `;`.
pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> String {
    let mut origin = String::new();
    for name in VARIABLES {
        if let Some(value) = variable(name) {
            origin += &format!(";{name}={}", value.to_string_lossy());
        }
    }
    origin + ";"
}

/// True where a process with these variables is of the launch that `origin` tells of. It may have lost some: a script
/// may unset what confuses its program.
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
