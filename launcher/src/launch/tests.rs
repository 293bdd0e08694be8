use super::*;

fn launch(variables: &[(&str, &str)]) -> Launch {
    Launch::from(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
}

const SRUN: [(&str, &str); 5] = [
    ("SLURM_PROCID", "0"),
    ("SLURM_STEP_NUM_TASKS", "1"),
    ("SLURM_LOCALID", "0"),
    ("SLURM_JOB_ID", "7"),
    ("SLURM_STEP_ID", "0"),
];

#[test]
fn nobody_started_a_program_in_a_shell() {
    let nobody = launch(&[]);
    assert_eq!((nobody.launcher, nobody.family, nobody.job_key()), (None, None, None));
    assert!(nobody.speaks(true) && nobody.is_first_of_node().is_none() && nobody.unknown_by().is_none());
    let batch_script = [("SLURM_PROCID", "0"), ("SLURM_LOCALID", "0"), ("SLURM_NTASKS", "8")];
    assert_eq!(launch(&batch_script).launcher, None);
    // Variables of Flux's, LSF's and PBS's batch scripts.
    for script in [("FLUX_JOB_ID", "f1"), ("LSB_JOBID", "3"), ("PBS_TASKNUM", "1")] {
        assert_eq!(launch(&[script]).launcher, None);
    }
}

#[test]
fn mpirun_inside_a_slurm_step_is_mpirun() {
    let open_mpi =
        [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_RANK", "1")];
    let launch = launch(&[&SRUN[..], &open_mpi[..]].concat());
    assert_eq!((launch.launcher, launch.family), (Some("mpirun (Open MPI)"), Some(RunnerFamily::OpenMpi)));
    assert_eq!((launch.rank, launch.size, launch.local_rank), (Some(3), Some(4), Some(1)));
    assert_eq!(launch.job().job_id.as_deref(), Some("7"));
}

#[test]
fn the_process_manager_tells_the_family_under_srun() {
    let with = |extra: &[(&str, &str)]| launch(&[&SRUN[..], extra].concat()).family;
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[("PMIX_RANK", "0")]), Some(RunnerFamily::OpenMpi));
    assert_eq!(with(&[("PMI_FD", "9")]), Some(RunnerFamily::Mpich));
}

/// The launcher's name, the variables of a rank, and the expected family, rank, size and local rank.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    (Option<RunnerFamily>, Option<u32>, Option<u32>, Option<u32>),
);

const OPEN_MPI: Option<RunnerFamily> = Some(RunnerFamily::OpenMpi);
const MPICH: Option<RunnerFamily> = Some(RunnerFamily::Mpich);

/// One rank of each launcher, with other variables that it has besides the marks.
const CASES: &[Case] = &[
    (
        "jsrun",
        &[
            ("JSM_NAMESPACE_RANK", "5"),
            ("JSM_NAMESPACE_SIZE", "8"),
            ("JSM_NAMESPACE_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("PMIX_RANK", "5"),
            ("PMIX_NAMESPACE", "2"),
            ("LSB_JOBID", "77"),
        ],
        (OPEN_MPI, Some(5), Some(8), Some(1)),
    ),
    (
        "mpiexec (Fujitsu)",
        &[("PMIX_RANK", "3"), ("PLE_RANK_ON_NODE", "3"), ("PMIX_NAMESPACE", "1")],
        (OPEN_MPI, Some(3), None, Some(3)),
    ),
    (
        "prterun",
        &[("PMIX_RANK", "1"), ("PRTE_LAUNCHED", "1"), ("PMIX_NAMESPACE", "prterun-vm-9@1")],
        (OPEN_MPI, Some(1), None, None),
    ),
    (
        "mpiexec (ParaStation)",
        &[
            ("PMI_RANK", "2"),
            ("PMI_SIZE", "4"),
            ("PS_JOB_SIZE", "4"),
            ("MPI_LOCALRANKID", "0"),
            ("PMI_ID", "x"),
        ],
        (MPICH, Some(2), Some(4), Some(0)),
    ),
    (
        "mpiexec (ParaStation)",
        &[("PMIX_RANK", "2"), ("PS_JOB_SIZE", "4"), ("MPI_LOCALRANKID", "0"), ("PMIX_NAMESPACE", "y")],
        (OPEN_MPI, Some(2), Some(4), Some(0)),
    ),
    (
        "mpirun_rsh",
        &[
            ("MV2_COMM_WORLD_RANK", "1"),
            ("MV2_COMM_WORLD_SIZE", "2"),
            ("MV2_COMM_WORLD_LOCAL_RANK", "1"),
            ("PMI_ID", "1"),
            ("PMI_PORT", "node0:4444"),
        ],
        (MPICH, Some(1), Some(2), Some(1)),
    ),
    (
        "mpirun_rsh",
        &[("MVP_COMM_WORLD_RANK", "1"), ("MVP_COMM_WORLD_SIZE", "2"), ("MVP_COMM_WORLD_LOCAL_RANK", "1")],
        (MPICH, Some(1), Some(2), Some(1)),
    ),
    ("mpirun (HPE MPT)", &[("MPT_LRANK", "3")], (None, None, None, Some(3))),
    (
        "flux run",
        &[
            ("FLUX_TASK_RANK", "6"),
            ("FLUX_JOB_SIZE", "8"),
            ("FLUX_TASK_LOCAL_ID", "2"),
            ("FLUX_JOB_ID", "f2"),
            ("PMI_RANK", "6"),
            ("PMI_SIZE", "8"),
            ("PMI_FD", "20"),
            // From the Slurm step in which the Flux instance runs.
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_LOCALID", "0"),
        ],
        (MPICH, Some(6), Some(8), Some(2)),
    ),
    (
        "srun",
        &[
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_STEP_ID", "0"),
            // From Slurm's plugin for HPE Cray machines.
            ("PALS_RANKID", "1"),
            ("PALS_LOCAL_RANKID", "1"),
            ("PALS_APID", "70000"),
        ],
        (None, Some(1), Some(2), Some(1)),
    ),
    (
        "mpiexec (PALS)",
        &[
            ("PALS_RANKID", "4"),
            ("PALS_LOCAL_RANKID", "0"),
            ("PALS_APID", "a-b"),
            ("PMI_RANK", "4"),
            ("PMI_SIZE", "8"),
            ("ALPS_APP_PE", "4"),
        ],
        (MPICH, Some(4), Some(8), Some(0)),
    ),
    ("aprun", &[("ALPS_APP_PE", "4"), ("ALPS_APP_ID", "12")], (None, Some(4), None, None)),
    (
        "mpiexec (gforker)",
        &[
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "2"),
            ("PMI_FD", "8"),
            ("MPI_APPNUM", "0"),
            ("MPI_UNIVERSE_SIZE", "-1"),
        ],
        (MPICH, Some(1), Some(2), Some(1)),
    ),
    ("blaunch", &[("LSF_PM_TASKID", "3"), ("LSB_JOBID", "88")], (None, Some(2), None, None)),
    (
        "an unknown launcher",
        &[("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "n")],
        (OPEN_MPI, Some(1), None, None),
    ),
    ("an unknown launcher", &[("PMI_RANK", "1"), ("PMI_SIZE", "3")], (MPICH, Some(1), Some(3), None)),
];

#[test]
fn each_launcher_is_known_by_its_variables() {
    for (launcher, variables, expected) in CASES {
        let found = launch(variables);
        assert_eq!(found.launcher, Some(*launcher), "{variables:?}");
        assert_eq!((found.family, found.rank, found.size, found.local_rank), *expected, "{launcher}");
        assert_eq!(found.unknown_by().is_some(), *launcher == "an unknown launcher");
    }
    let not_tried = known_launchers::ROWS
        .iter()
        .filter(|row| CASES.iter().all(|(launcher, ..)| *launcher != row.launcher));
    let not_tried: Vec<_> = not_tried.map(|row| row.launcher).collect();
    // End-to-end tests cover these with the real launchers.
    assert_eq!(not_tried, ["mpirun (Open MPI)", "mpiexec (Hydra)"]);
}

/// Without one of its marks, the launcher is another known one, an unknown one, or none.
#[test]
fn every_mark_is_needed() {
    for (launcher, variables, _) in CASES.iter().filter(|(launcher, ..)| *launcher != "an unknown launcher") {
        let row = launch(variables).row.unwrap();
        for mark in row.marks {
            let others: Vec<_> = variables.iter().copied().filter(|(name, _)| name != mark).collect();
            let found = launch(&others);
            assert!(found.row.is_none_or(|found| !std::ptr::eq(found, row)), "{launcher} without {mark}");
        }
    }
}

#[test]
fn a_launcher_that_is_not_known_inside_a_slurm_step_is_not_srun() {
    let with = |extra: &[(&str, &str)]| launch(&[extra, &SRUN[..]].concat());
    let unknown = with(&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]);
    assert_eq!(
        (unknown.launcher, unknown.rank, unknown.size),
        (Some("an unknown launcher"), Some(0), Some(4))
    );
    let unknown = with(&[("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "grid-7")]);
    assert_eq!((unknown.launcher, unknown.rank), (Some("an unknown launcher"), Some(0)));
    // Slurm's own values, also those of a heterogeneous step.
    for own in [
        &[("PMI_RANK", "0"), ("PMI_SIZE", "1")][..],
        &[("PMI_RANK", "3"), ("PMI_SIZE", "4"), ("SLURM_HET_SIZE", "2")],
        &[("PMIX_RANK", "3"), ("PMIX_NAMESPACE", "slurm.pmix.7.0")],
        // From the outer step of a shell in which the user typed srun.
        &[("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")],
    ] {
        assert_eq!(with(own).launcher, Some("srun"), "{own:?}");
    }
}

#[test]
fn what_is_no_number_is_no_rank() {
    assert_eq!(launch(&[("PMI_RANK", "first"), ("PMI_SIZE", "2")]).launcher, None);
    // A singleton of Open MPI in a Slurm batch script.
    assert_eq!(launch(&[("PMIX_RANK", ""), ("SLURM_JOB_ID", "3")]).launcher, None);
}

#[test]
fn a_job_has_the_name_that_its_launcher_gives() {
    let key = |job: &str, step: &str| {
        let ids = [("SLURM_JOB_ID", job), ("SLURM_STEP_ID", step)];
        launch(&[&SRUN[..3], &ids].concat()).job_key().unwrap()
    };
    assert_eq!(key("7", "0"), key("7", "0"));
    assert!(
        key("7", "0") != key("7", "1") && key("7", "0") != key("8", "0") && key("1", "23") != key("12", "3")
    );
}

/// The parent of this test does not have these variables, so it counts as the starter.
#[test]
fn a_job_without_a_name_has_that_of_its_starter() {
    let of = |rank: &'static str| launch(&[("PMI_RANK", rank), ("PMI_SIZE", "2"), ("MPI_LOCALRANKID", rank)]);
    assert_eq!(of("0").job_key().unwrap(), of("1").job_key().unwrap());
    assert!(of("0").is_direct());
}

#[test]
fn launchers_are_known_by_their_names() {
    let words = |line: &str| words_of_launcher(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
    for launcher in ["mpirun", "mpiexec.hydra -n 2", "/usr/bin/srun ./hpl", "ibrun ./hpl"] {
        assert_eq!(words(launcher), 1, "{launcher}");
    }
    assert_eq!(words("flux run -n 2 ./hpl"), 2);
    for other in ["mpirunner", "run", "hpl", "flux", "flux jobs", "./run srun"] {
        assert_eq!(words(other), 0, "{other}");
    }
}
