//! How srun finds a program through pmmpi, and steps that start launchers of their own.

use pmmpi::record::Mode;
use rig::slurm::{Slurm, TWO_NODES, manager, text};
use rig::tool::{Folder, pmmpi, run, runs_in};
use rig::{Mpi, programs};
use std::process::Command;

/// If PATH has no such program, srun takes the program in the current folder.
#[test]
fn srun_with_pmmpi_finds_what_srun_finds() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let (folder, tool) = (Folder::new("bare"), text(pmmpi()));
        let own_name = format!("says-{}", std::process::id());
        let program = folder.path().join(&own_name);
        run(Command::new("cp").arg(programs::mpi(mpi, "says")).arg(program)).success();
        let srun = |before: &[&str], name: &str| {
            let args = [&TWO_NODES[..], &[manager(mpi)], before, &[name]].concat();
            slurm.run(folder.path(), "srun", &args)
        };
        let measured = [tool.as_str(), "--out", "runs"];
        for before in [&[][..], &measured] {
            let output = srun(before, &own_name).success();
            assert_eq!(output.out().matches("of 2").count(), 2, "{}", output.out());
        }
        let runs = runs_in(&folder.path().join("runs"));
        assert_eq!((runs.len(), runs[0].ranks.len(), runs[0].header.mode), (1, 2, Mode::Mpi));
        // A program in PATH comes first, as for srun; it is not this file of the same name in the current folder.
        std::fs::write(folder.path().join("true"), "#!/bin/sh\nexit 3\n").unwrap();
        run(Command::new("chmod").arg("+x").arg(folder.path().join("true"))).success();
        for before in [&[][..], &measured] {
            srun(before, "true").success();
        }
    }
}

/// A script in a step starts its own mpirun. The agent is in some of its ranks, but not in all.
#[test]
fn a_step_that_starts_a_job_of_its_own_does_not_hang() {
    let slurm = Slurm::turn();
    let (folder, tool) = (Folder::new("inner"), text(pmmpi()));
    let program = text(programs::mpi(Mpi::Mpich, "says"));
    let rest = format!("{program} : -n 1 env -u LD_PRELOAD -u PMMPI_SPOOL {program}");
    let inner = format!("mpirun.mpich -launcher fork -rmk user -n 1 {rest}");
    let measured = [tool.as_str(), "--mode", "mpi", "--out", "runs", "bash", "-c", &inner];
    let output = slurm.run(folder.path(), "srun", &[&["-N1", "-n1"], &measured[..]].concat()).success();
    assert_eq!(output.out().matches("of 2").count(), 2, "{}", output.out());
    assert!(output.err().contains("the program itself started an MPI job"), "{}", output.err());
    assert_eq!(runs_in(&folder.path().join("runs")).len(), 1);
}
