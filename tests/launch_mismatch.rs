//! Does the job that runs match the launch? The tool reports a mismatch at the start, when the user can still correct
//! it.

use pmmpi::record::{End, Mode};
use rig::cluster::{Cluster, Job, machine};
use rig::tool::{Folder, pmmpi, processes_with, run};
use rig::wheels::Launcher;
use rig::{FOR_ROOT, Mpi, programs};
use std::process::Command;

/// A program of one MPI under the launcher of another runs as separate jobs of one rank.
#[test]
fn the_other_mpis_launcher_is_named() {
    for (mpi, other, advice) in [
        (
            Mpi::OpenMpi,
            Mpi::Mpich,
            "start the program with the launcher of its own MPI, for example mpiexec.hydra",
        ),
        (Mpi::Mpich, Mpi::OpenMpi, "start the program with Open MPI's own mpirun"),
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

/// A launcher that gives each rank its number but not the size of the job: one rank per node notices this and reports
/// it.
#[test]
fn a_launcher_that_tells_no_size_is_named_too() {
    let folder = Folder::new("no-size");
    let job = |more: &[&str]| {
        let job = Launcher::Prterun.local(3).arg(pmmpi()).arg("--out").arg(folder.path()).args(more);
        job.arg(programs::mpi(Mpi::Mpich, "says")).run()
    };
    let said = "ranks, but the program runs as separate jobs of 1 rank: the program's MPI (MPICH";
    let warned = job(&[]).success();
    assert_eq!(warned.err().matches(said).count(), 1, "{}", warned.err());
    assert!(warned.err().contains("warning: prterun started at least "), "{}", warned.err());
    assert!(!job(&["--quiet"]).success().err().contains(said));
    let aborted = job(&["--on-mismatch", "abort"]);
    assert!(aborted.code() == 125 && aborted.err().contains(said), "{} {}", aborted.code(), aborted.err());
}

/// pmmpi's own MPI program is checked too: here it belongs to the other MPI.
#[test]
fn a_runner_of_another_mpi_is_named() {
    for (mpi, other) in [(Mpi::OpenMpi, Mpi::Mpich), (Mpi::Mpich, Mpi::OpenMpi)] {
        let (folder, libraries) = (Folder::new("runner"), Folder::new("libraries"));
        let installed = pmmpi().parent().unwrap().join("../lib/pmmpi");
        let link = |from: &str, to: &str| {
            std::os::unix::fs::symlink(installed.join(from), libraries.path().join(to)).unwrap();
        };
        link("pmmpi-topology", "pmmpi-topology");
        link(&format!("pmmpi-runner-{}", other.name()), &format!("pmmpi-runner-{}", mpi.name()));
        let job = |more: &[&str]| {
            let job = Job::local(mpi, 2).env("PMMPI_LIBDIR", libraries.path().to_str().unwrap());
            job.arg(pmmpi()).arg("--out").arg(folder.path()).args(more).arg("true").run()
        };
        let warned = job(&[]).success();
        let said = "started 2 ranks, but pmmpi's runner runs as separate jobs of 1 rank";
        assert_eq!(warned.err().matches(said).count(), 1, "{}", warned.err());
        assert!(!job(&["--quiet"]).success().err().contains(said));
        let aborted = job(&["--on-mismatch", "abort"]);
        assert!(aborted.code() == 125 && aborted.err().contains(said), "{}", aborted.err());
    }
}

/// The tool recognizes Spectrum MPI, Fujitsu MPI, ParaStation MPI and others by the MPI that they are made from.
#[test]
fn an_mpi_of_another_name_is_measured() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("derived");
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path());
        let output = job.arg(programs::with_derived_mpi(mpi)).run().success();
        assert_eq!(folder.runs().len(), 1, "{mpi:?} {}", output.err());
        let run = &folder.runs()[0];
        assert_eq!((run.ranks.len(), run.end()), (2, Some(End::Finalized)));
        assert_eq!(run.header.mpi_library.as_deref(), Some("Derived MPI 1.0"));
    }
}

/// A correct job gives no message.
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

/// The measured ranks wait for the others, which never come. After a while a message says so. If rank 0 is missing,
/// the next rank reports it.
#[test]
fn a_job_of_which_only_a_part_is_measured_says_why_it_waits() {
    // With two hosts the end barrier is prepared before the start barrier; this step must report a wait too.
    let cluster = Cluster::hours_apart(2);
    let jobs =
        [(Mpi::OpenMpi, true, 1), (Mpi::Mpich, true, 1), (Mpi::Mpich, false, 1), (Mpi::OpenMpi, true, 2)];
    let _alone = machine();
    // All jobs at once, because each waits half a minute for its message.
    let started = jobs.map(|(mpi, measured_first, hosts)| {
        let folder = Folder::new("part");
        let place = folder.path().to_str().unwrap();
        let program = programs::mpi(mpi, "ends").display().to_string();
        let tool = pmmpi().display().to_string();
        let bare = [&program, "wait", "0", place, "10"].map(str::to_owned).to_vec();
        // Pings begin with a collective function of MPI.
        let sync = if mpi == Mpi::Mpich { "pingpong" } else { "none" };
        let measured =
            [vec![tool, format!("--sync={sync}"), format!("--out={place}")], bare.clone()].concat();
        let (first, second) = if measured_first { (&measured, &bare) } else { (&bare, &measured) };
        let job = if hosts == 1 { Job::local(mpi, 1) } else { cluster.mpirun(mpi, 1) };
        let started = job.args(first).args([":", "-n", "1"]).args(second).start();
        (folder, started)
    });
    for (folder, started) in started {
        started.wait_for_error("still waiting for other ranks after MPI_Init");
        assert!(folder.runs().is_empty());
        // All at once, because Debian's mpirun of Open MPI crashes or hangs if it must end now.
        for process in processes_with(folder.path().to_str().unwrap()) {
            // SAFETY: a process of this job; if it has ended already, the call does nothing.
            unsafe { libc::kill(process, libc::SIGKILL) };
        }
    }
}

/// The agent cannot see MPI in these programs: a message gives reason and advice, and the tool measures rank 0's
/// process from outside.
fn measured_from_outside(mpi: Mpi, program: &[&str], why: &str) {
    let folder = Folder::new("outside");
    let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path()).args(program);
    let output = job.run().success();
    assert!(output.err().contains("the process of rank 0") && output.err().contains(why), "{}", output.err());
    assert_eq!(output.out().lines().count(), 2);
    let runs = folder.runs();
    assert_eq!((runs.len(), runs[0].ranks.len(), runs[0].header.mode), (1, 1, Mode::Plain));
    assert_eq!(runs[0].end(), Some(End::Exited(0)));
    assert!(runs[0].elapsed().unwrap().lower_ns >= 19_000_000 && runs[0].nodes[0].facts.is_some());
    assert!(
        std::fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .all(|e| e.path().extension().is_none_or(|e| e != "partial"))
    );
}

#[test]
fn a_static_program_is_measured_from_outside() {
    let program = programs::statically_linked("static").display().to_string();
    for mpi in Mpi::ALL {
        measured_from_outside(mpi, &[&program], "statically linked: link it dynamically");
    }
}

#[test]
fn a_program_that_calls_through_a_handle_is_measured_from_outside() {
    let program = programs::plain("handle").display().to_string();
    measured_from_outside(Mpi::OpenMpi, &[&program, "libmpi.so.40"], "through dlopen and dlsym");
    measured_from_outside(Mpi::Mpich, &[&program, "libmpich.so.12"], "through dlopen and dlsym");
}

/// Only MPICH, because Open MPI 4.1 has no sessions.
#[test]
fn a_program_of_sessions_alone_is_measured_from_outside() {
    let program = programs::mpi(Mpi::Mpich, "sessions").display().to_string();
    measured_from_outside(Mpi::Mpich, &[&program], "MPI sessions");
}

/// The loader preloads nothing into it.
#[test]
fn a_set_user_id_program_is_measured_from_outside() {
    let folder = Folder::new("setuid");
    let program = folder.path().join("says");
    std::fs::copy(programs::mpi(Mpi::Mpich, "says"), &program).unwrap();
    for (command, what) in [("chown", "nobody"), ("chmod", "4755")] {
        run(Command::new(command).arg(what).arg(&program)).success();
    }
    let _alone = machine();
    let mut command = Command::new(pmmpi());
    let output = run(command.arg("--out").arg(folder.path()).arg(&program).envs(FOR_ROOT)).success();
    assert!(output.err().contains("the loader ignores LD_PRELOAD"), "{}", output.err());
    assert_eq!((folder.runs().len(), folder.runs()[0].header.mode), (1, Mode::Plain));
}
