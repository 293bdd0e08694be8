//! Kinds of MPI programs. Each is measured from inside, once, with any launcher.

use crate::Mpi;
use crate::programs::{self, Launchable};
use crate::tool::{self, Folder, Output, pmmpi};
use pmmpi::record::{End, Mode, Run};
use std::path::Path;

/// The words for a program of a kind in a launch line. Its two ranks print who they are and sleep 20 ms.
pub type Kind = fn(Mpi, &Path) -> Launchable;

pub fn c(mpi: Mpi, _: &Path) -> Launchable {
    Launchable::of(programs::mpi(mpi, "says"))
}

pub fn plusplus(mpi: Mpi, _: &Path) -> Launchable {
    Launchable::of(programs::cplusplus(mpi, "plusplus"))
}

pub fn mpif_h(mpi: Mpi, _: &Path) -> Launchable {
    Launchable::of(programs::fortran(mpi, "mpif"))
}

pub fn use_mpi(mpi: Mpi, _: &Path) -> Launchable {
    Launchable::of(programs::fortran(mpi, "use_mpi"))
}

pub fn use_mpi_f08(mpi: Mpi, _: &Path) -> Launchable {
    Launchable::of(programs::fortran(mpi, "use_mpi_f08"))
}

pub fn mpi4py(mpi: Mpi, _: &Path) -> Launchable {
    programs::mpi4py(mpi, "python")
}

pub fn shell_command(mpi: Mpi, folder: &Path) -> Launchable {
    let program = c(mpi, folder).argv.remove(0);
    Launchable::of_words(["bash", "-c", &format!("true && {program}")])
}

pub fn env_and_numactl(mpi: Mpi, folder: &Path) -> Launchable {
    let program = c(mpi, folder).argv.remove(0);
    Launchable::of_words(["env", "A=b", "numactl", "--all", &program])
}

pub fn script(mpi: Mpi, folder: &Path) -> Launchable {
    let program = c(mpi, folder).argv.remove(0);
    Launchable::of(programs::script(folder, &format!("#!/bin/sh\n{program}\n")))
}

/// Runs two ranks of `kind` with `launch`, which gets the words before the program. The output is the same with and
/// without the tool, and there is one run.
pub fn measured_once(kind: Kind, mpi: Mpi, launch: impl Fn(&Launchable, &[&str]) -> Output) {
    let folder = Folder::new("kind");
    let run = measured(&kind(mpi, folder.path()), launch);
    let bounds = run.elapsed().unwrap();
    assert!(bounds.consistent && bounds.lower_ns >= 19_000_000, "{bounds:?}");
}

/// Like [`measured_once`], for a program that does not sleep; returns the run.
pub fn measured(program: &Launchable, launch: impl Fn(&Launchable, &[&str]) -> Output) -> Run {
    let folder = Folder::new("measured");
    let launch = |before: &[&str]| {
        let output = launch(program, before).success();
        // Two ranks may write into one line.
        let mut said: Vec<char> = output.out().chars().collect();
        said.sort_unstable();
        said
    };
    let bare = launch(&[]);
    assert_eq!(bare, launch(&[&pmmpi().display().to_string(), "--out", folder.path().to_str().unwrap()]));
    let mut runs = tool::runs_in(folder.path());
    assert_eq!(runs.len(), 1);
    let run = runs.remove(0);
    assert_eq!((run.ranks.len(), run.header.mode, run.end()), (2, Mode::Mpi, Some(End::Finalized)));
    run
}
