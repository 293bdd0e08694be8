//! The test rig: simulated hosts with names and clocks of their own on one machine, MPI jobs on them, small programs
//! to measure, and an independent solver for the expected bounds.

pub mod checked_report;
pub mod cluster;
pub mod counting;
pub mod cpu_group;
pub mod flipped_bits;
pub mod freezer;
pub mod known_counts;
pub mod linear_program;
pub mod perf_rights;
pub mod probing;
pub mod proctrack;
pub mod program_kinds;
pub mod programs;
pub mod remains;
pub mod slurm;
pub mod slurm_site;
pub mod sys;
pub mod tool;
pub mod users;
pub mod wheels;

/// Environment variables that let root run MPI jobs and let several ranks share a core.
pub const FOR_ROOT: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

/// The MPIs that the tool is tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    OpenMpi,
    Mpich,
}

impl Mpi {
    pub const ALL: [Mpi; 2] = [Mpi::OpenMpi, Mpi::Mpich];

    /// The name in Debian's packages.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::OpenMpi => "openmpi",
            Mpi::Mpich => "mpich",
        }
    }
}
