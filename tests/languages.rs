//! Every language binding under every MPI, and programs behind wrappers: each is measured from inside, once.
//! docs/programs.md lists these tests in a table; tests/slurm_programs.rs has the same tests under srun.

use rig::Mpi;
use rig::cluster::Job;
use rig::program_kinds::{self, Kind};

/// Under the MPI's own launcher.
fn measure(mpi: Mpi, kind: Kind) {
    program_kinds::measured_once(kind, mpi, |program, before| {
        let mut job = Job::local(mpi, 2);
        for (name, value) in &program.environment {
            job = job.env(name, value);
        }
        job.args(before).args(&program.argv).run()
    });
}

macro_rules! cells {
    ($($mpi:expr, $($kind:ident => $name:ident),*;)*) => {$($(
        #[test]
        fn $name() {
            measure($mpi, program_kinds::$kind);
        }
    )*)*};
}

cells! {
    Mpi::OpenMpi, c => c_under_open_mpi, plusplus => cplusplus_under_open_mpi, mpif_h => mpif_h_under_open_mpi,
        use_mpi => use_mpi_under_open_mpi, use_mpi_f08 => use_mpi_f08_under_open_mpi,
        mpi4py => mpi4py_under_open_mpi, shell_command => a_shell_command_under_open_mpi,
        env_and_numactl => env_and_numactl_under_open_mpi, script => a_script_under_open_mpi;
    Mpi::Mpich, c => c_under_mpich, plusplus => cplusplus_under_mpich, mpif_h => mpif_h_under_mpich,
        use_mpi => use_mpi_under_mpich, use_mpi_f08 => use_mpi_f08_under_mpich, mpi4py => mpi4py_under_mpich,
        shell_command => a_shell_command_under_mpich, env_and_numactl => env_and_numactl_under_mpich,
        script => a_script_under_mpich;
}
