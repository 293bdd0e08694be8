//! Every language binding under every MPI, and programs behind wrappers: each is measured from inside, once.
//! docs/programs.md lists these tests as a table.

use pmmpi::record::{End, Mode};
use rig::cluster::Job;
use rig::tool::{Folder, pmmpi};
use rig::{Mpi, programs};
use std::path::Path;

/// What stands for a program in a launch line.
type Line = fn(Mpi, &Path) -> programs::Launchable;

/// Two ranks say who they are and sleep 20 ms: the same with the tool, and one run of two ranks.
fn measure(mpi: Mpi, line: Line) {
    let folder = Folder::new("language");
    let program = line(mpi, folder.path());
    let launch = |before: &[&str]| {
        let mut job = Job::local(mpi, 2);
        for (name, value) in &program.environment {
            job = job.env(name, value);
        }
        let output = job.args(before).args(&program.argv).run().success();
        // Two ranks may write into one line.
        let mut said: Vec<char> = output.out().chars().collect();
        said.sort_unstable();
        said
    };
    let bare = launch(&[]);
    let out = folder.path().join("runs").display().to_string();
    let measured = launch(&[&pmmpi().display().to_string(), "--out", &out]);
    assert_eq!(bare, measured);
    let runs = rig::tool::runs_in(Path::new(&out));
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    assert_eq!((run.ranks.len(), run.header.mode, run.end()), (2, Mode::Mpi, Some(End::Finalized)));
    let bounds = run.elapsed().unwrap();
    assert!(bounds.consistent && bounds.lower_ns >= 19_000_000, "{bounds:?}");
}

fn c(mpi: Mpi, _: &Path) -> programs::Launchable {
    programs::Launchable::of(programs::mpi(mpi, "says"))
}

fn plusplus(mpi: Mpi, _: &Path) -> programs::Launchable {
    programs::Launchable::of(programs::cplusplus(mpi, "plusplus"))
}

fn mpif_h(mpi: Mpi, _: &Path) -> programs::Launchable {
    programs::Launchable::of(programs::fortran(mpi, "mpif"))
}

fn use_mpi(mpi: Mpi, _: &Path) -> programs::Launchable {
    programs::Launchable::of(programs::fortran(mpi, "use_mpi"))
}

fn use_mpi_f08(mpi: Mpi, _: &Path) -> programs::Launchable {
    programs::Launchable::of(programs::fortran(mpi, "use_mpi_f08"))
}

fn mpi4py(mpi: Mpi, _: &Path) -> programs::Launchable {
    programs::mpi4py(mpi, "python")
}

fn shell_command(mpi: Mpi, folder: &Path) -> programs::Launchable {
    let program = c(mpi, folder).argv.remove(0);
    programs::Launchable::of_words(["bash", "-c", &format!("true && {program}")])
}

fn env_and_numactl(mpi: Mpi, folder: &Path) -> programs::Launchable {
    let program = c(mpi, folder).argv.remove(0);
    programs::Launchable::of_words(["env", "A=b", "numactl", "--all", &program])
}

fn script(mpi: Mpi, folder: &Path) -> programs::Launchable {
    let program = c(mpi, folder).argv.remove(0);
    programs::Launchable::of(programs::script(folder, &format!("#!/bin/sh\n{program}\n")))
}

macro_rules! cells {
    ($($mpi:expr, $($line:ident => $name:ident),*;)*) => {$($(
        #[test]
        fn $name() {
            measure($mpi, $line);
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
