//! Is the job that runs the one that was started? What is wrong is said while it can still be mended.

use rig::cluster::{Job, machine};
use rig::tool::{Folder, pmmpi, processes_with};
use rig::{Mpi, programs};

/// A program of one MPI under the launcher of the other runs as so many jobs of one rank.
#[test]
fn the_other_mpis_launcher_is_named() {
    for (mpi, other, advice) in [
        (Mpi::OpenMpi, Mpi::Mpich, "start it with the mpirun of its own MPI, mpiexec.hydra"),
        (Mpi::Mpich, Mpi::OpenMpi, "start it with Open MPI's own mpirun"),
    ] {
        let folder = Folder::new("singletons");
        let job = |more: &[&str]| {
            let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path()).args(more);
            job.arg(programs::mpi(other, "says")).run()
        };
        let warned = job(&[]).success();
        assert_eq!(warned.err().matches(advice).count(), 1, "{}", warned.err());
        assert!(warned.err().contains("warning: ") && warned.out().contains("rank 0 of 1"));
        assert_eq!(folder.runs().len(), 2);
        assert!(!job(&["--quiet"]).success().err().contains(advice));
        let aborted = job(&["--on-mismatch", "abort"]);
        assert_eq!(aborted.code(), 125, "{}", aborted.err());
        assert!(aborted.err().contains(advice) && !aborted.out().contains("rank"), "{}", aborted.out());
        assert_eq!(folder.runs().len(), 4);
    }
}

/// Nothing is said of a job that is what it should be.
#[test]
fn a_right_launch_is_let_go() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("right");
        let job =
            Job::local(mpi, 3).arg(pmmpi()).args(["--on-mismatch", "abort", "--out"]).arg(folder.path());
        let output = job.arg(programs::mpi(mpi, "says")).run().success();
        assert_eq!(folder.runs()[0].ranks.len(), 3, "{mpi:?} {}", output.err());
        assert!(!output.err().contains("warning"), "{}", output.err());
    }
}

/// The measured ranks wait for the others, which will never come; that is said after a while.
#[test]
fn a_job_of_which_only_a_part_is_measured_says_why_it_waits() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("part");
        let _alone = machine();
        let place = folder.path().to_str().unwrap();
        let program = programs::mpi(mpi, "ends");
        let job = Job::local(mpi, 1).args([pmmpi().to_str().unwrap(), "--out", place]).arg(&program);
        let job = job.args(["wait", "0", place, "10", ":", "-n", "1"]).arg(&program);
        let started = job.args(["wait", "0", place, "10"]).start();
        started.wait_for_error("still waiting for other ranks after MPI_Init");
        assert!(folder.runs().is_empty());
        // All at once: Debian's mpirun of Open MPI crashes or hangs if it is told to end now.
        for process in processes_with(place) {
            // SAFETY: a process of this job's; where it has ended already there is nothing to kill.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
}
