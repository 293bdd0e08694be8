//! Signals: each reaches the workload once, from any sender and at any time, with the same effect as without the
//! tool.

use pmmpi::record::End;
use rig::cluster::{Job, machine};
use rig::tool::{Folder, Output, pmmpi, run, start};
use rig::{Mpi, programs};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn measured(program: &Path, out: &Folder) -> Command {
    let mut command = Command::new(pmmpi());
    command.args(["--quiet", "--out"]).arg(out.path()).arg("--").arg(program);
    command
}

/// mpirun forwards signals through its own daemons. Hydra kills its ranks soon after SIGTERM, and ends itself on
/// SIGUSR2.
#[test]
fn a_signal_to_mpirun_reaches_each_rank_once() {
    for (mpi, signals, expected) in [
        (Mpi::OpenMpi, &[libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM][..], "10x1 12x1 15x1"),
        (Mpi::Mpich, &[libc::SIGUSR1], "10x1"),
    ] {
        for program in [programs::mpi(mpi, "signals"), programs::plain("signals")] {
            let _alone = machine();
            let bare = count_signals(mpi, &[], &program, signals);
            assert!(bare.iter().all(|counts| counts.starts_with(expected)), "{bare:?}");
            let tool = [pmmpi().display().to_string(), "--no-save".into(), "--quiet".into()];
            let measured = count_signals(mpi, &tool, &program, signals);
            assert_eq!(bare, measured, "{mpi:?} {}", program.display());
        }
    }
}

/// The signals that each of two ranks received.
fn count_signals(mpi: Mpi, tool: &[String], program: &Path, signals: &[i32]) -> Vec<String> {
    const RANKS: usize = 2;
    let folder = Folder::new("counts");
    let mut job = Job::local(mpi, RANKS);
    if mpi == Mpi::OpenMpi {
        // It kills the ranks this long after SIGTERM (default: one second), and waits for this time in any case.
        job = job.args(["--mca", "odls_base_sigkill_timeout", "5"]);
    }
    let last = signals.last().copied().unwrap_or(libc::SIGTERM).to_string();
    let job = job.args(tool).arg(program).arg(last).arg(folder.path());
    let started = job.start();
    started.wait_for("ready", RANKS);
    for signal in signals {
        started.signal(*signal);
        std::thread::sleep(Duration::from_millis(300));
    }
    let output = started.finish();
    let read = || -> Vec<String> {
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        files
            .map(|file| std::fs::read_to_string(file.path()).unwrap())
            .filter(|text| text.ends_with('\n'))
            .collect()
    };
    let began = Instant::now();
    while read().len() < RANKS {
        assert!(began.elapsed() < Duration::from_secs(60), "{mpi:?} {:?} {}", read(), output.err());
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut counts = read();
    counts.sort();
    counts
}

/// Every signal that a program can handle, from the batch system's SIGXCPU to real-time signals.
#[test]
fn whatever_is_sent_to_the_launcher_reaches_the_program() {
    let (program, out) = (programs::plain("signals"), Folder::new("every"));
    let kept = [libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD];
    let stops = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    let all: Vec<i32> = all.filter(|signal| !kept.contains(signal) && !stops.contains(signal)).collect();
    let started = start(measured(&program, &out).arg(libc::SIGRTMAX().to_string()));
    started.wait_for("ready", 1);
    all.iter().for_each(|signal| started.signal(*signal));
    let counts: Vec<String> = all.iter().map(|signal| format!("{signal}x1")).collect();
    assert_eq!(started.finish().success().out(), format!("ready\n{}\n", counts.join(" ")));
}

/// A batch system's SIGTERM may come while the tool still prepares the run. It must not be lost.
#[test]
fn a_signal_that_comes_before_the_program_reaches_it() {
    let folder = Folder::new("early");
    let slow = folder.path().join("pmmpi-topology");
    std::fs::write(&slow, "#!/bin/sh\necho > $PMMPI_TEST_MARK\nsleep 1\n").unwrap();
    run(Command::new("chmod").arg("+x").arg(&slow)).success();
    let mark = folder.path().join("mark");
    let mut command = Command::new(pmmpi());
    command.env("PMMPI_LIBDIR", folder.path()).env("PMMPI_TEST_MARK", &mark);
    command.args(["--runs", "3", "--out"]).arg(folder.path()).args(["sleep", "100"]);
    let began = Instant::now();
    let started = start(&mut command);
    while !mark.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "the topology is read");
        std::thread::sleep(Duration::from_millis(5));
    }
    started.signal(libc::SIGTERM);
    let output = started.finish();
    assert_eq!(output.code(), 128 + libc::SIGTERM, "{}", output.err());
    assert!(began.elapsed() < Duration::from_secs(90));
}

/// A program that exits with 0 after a signal has not done its work: its run is kept, but marked as interrupted.
#[test]
fn an_interrupted_run_says_so() {
    let out = Folder::new("interrupted");
    let mut command = Command::new(pmmpi());
    let script = "trap 'exit 0' INT; echo ready; sleep 0.2 & wait; sleep 0.1";
    command.args(["--runs", "5", "--out"]).arg(out.path()).args(["sh", "-c", script]);
    let started = start(&mut command);
    started.wait_for("ready", 2);
    started.signal(libc::SIGINT);
    let output = started.finish();
    assert_eq!(output.code(), 128 + libc::SIGINT);
    assert!(output.err().contains("stopped by signal 2 after 2 of 5 runs"), "{}", output.err());
    let ends: Vec<_> = out.runs().iter().map(|run| run.end()).collect();
    assert_eq!(ends, [Some(End::Exited(0)), Some(End::Interrupted(libc::SIGINT))]);
}

/// Some daemons ignore SIGCHLD, and the processes that they start inherit this.
#[test]
fn the_end_is_known_where_sigchld_was_ignored() {
    let out = Folder::new("sigchld");
    let tool = [pmmpi().into_os_string(), "--out".into(), out.path().into()];
    let ignoring = |args: &[&str]| {
        let mut command = Command::new("perl");
        command.args(["-e", "$SIG{CHLD} = 'IGNORE'; exec @ARGV"]).args(&tool).args(args).envs(rig::FOR_ROOT);
        run(&mut command)
    };
    assert_eq!(ignoring(&["sh", "-c", "exit 3"]).code(), 3);
    let program = programs::mpi(Mpi::Mpich, "noisy");
    assert_eq!(ignoring(&[program.to_str().unwrap(), "4"]).code(), 4);
    let ends: Vec<_> = out.runs().iter().map(|run| run.end()).collect();
    assert_eq!(ends, [Some(End::Exited(3)), Some(End::Exited(4))]);
}

/// The runner is an MPI program between the launcher and the workload. It changes no signal disposition.
#[test]
fn dispositions_pass_through_the_runner() {
    let ignored = "$SIG{PIPE} = $SIG{USR2} = 'IGNORE'; exec @ARGV";
    for mpi in Mpi::ALL {
        let out = Folder::new("dispositions");
        let job = || Job::local(mpi, 1).args(["perl", "-e", ignored]);
        let bare = job().arg(programs::plain("noisy")).run().success();
        let tool = job().arg(pmmpi()).args(["--quiet", "--mode", "plain", "--out"]).arg(out.path());
        let measured = tool.arg(programs::plain("noisy")).run().success();
        let lines = |output: &Output, what: &str| -> Vec<String> {
            let text = String::from_utf8_lossy(&output.stdout[4096..]).into_owned();
            text.lines().filter(|line| line.starts_with(what)).map(str::to_owned).collect()
        };
        assert_eq!(lines(&bare, "Sig"), lines(&measured, "Sig"), "{mpi:?}");
        let descriptors = lines(&measured, "descriptor");
        let bare = lines(&bare, "descriptor");
        assert!(descriptors.iter().all(|line| bare.contains(line)), "{mpi:?} {bare:?} {descriptors:?}");
        assert_eq!(out.runs().len(), 1);
    }
}
