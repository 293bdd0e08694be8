//! Signals: each reaches the workload once, whoever sends it and whenever, and means what it would mean
//! without the tool.

use pmmpi::record::End;
use rig::cluster::{Job, machine};
use rig::tool::{Folder, Output, Started, pmmpi, run, start};
use rig::{Mpi, programs};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn measured(program: &Path, out: &Folder) -> Command {
    let mut command = Command::new(pmmpi());
    command.args(["--quiet", "--out"]).arg(out.path()).arg("--").arg(program);
    command
}

/// One SIGUSR1 and one SIGTERM, sent to the process that the user knows.
fn count_signals(started: Started, ranks: usize) -> Output {
    started.wait_for("ready", ranks);
    started.signal(libc::SIGUSR1);
    std::thread::sleep(std::time::Duration::from_millis(200));
    started.signal(libc::SIGTERM);
    started.finish()
}

#[test]
fn a_signal_reaches_a_program_alone_once() {
    let out = Folder::new("usr1");
    let output = count_signals(start(&mut measured(&programs::plain("signals"), &out)), 1).success();
    assert_eq!(output.out(), "ready\nuser 1 term 1\n");
}

/// From the terminal everybody in the group gets it: the tool must not pass on a second one.
#[test]
fn a_signal_to_the_group_reaches_a_program_once() {
    let out = Folder::new("group");
    let mut measured = measured(&programs::plain("signals"), &out);
    // From a process that is nobody's parent here, as kill(1) is; a terminal's come from the kernel.
    let started = start(&mut measured);
    started.wait_for("ready", 1);
    started.signal_group(libc::SIGTERM);
    let output = started.finish().success();
    assert!(output.out().starts_with("ready\nuser 0 term "), "{}", output.out());
}

#[test]
fn a_signal_to_mpirun_reaches_each_rank_once() {
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "signals");
        let _alone = machine();
        let out = Folder::new("mpirun");
        let bare = count_signals(Job::local(mpi, 2).arg(&program).start(), 2);
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--quiet").arg("--out").arg(out.path());
        let measured = count_signals(job.arg(&program).start(), 2);
        let counts = |output: &Output| {
            let text = output.out();
            let mut lines: Vec<_> = text.lines().filter(|l| l.contains("user")).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(counts(&bare), counts(&measured), "{mpi:?}\n{}", measured.err());
    }
}

/// Every signal that a program can handle, from the batch system's SIGXCPU to real-time ones.
#[test]
fn whatever_is_sent_to_the_launcher_reaches_the_program() {
    let (program, out) = (programs::plain("signals"), Folder::new("every"));
    let kept = [libc::SIGKILL, libc::SIGSTOP, libc::SIGCHLD, libc::SIGPIPE, libc::SIGXFSZ];
    let stops = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    let all = (1..32).chain(libc::SIGRTMIN()..=libc::SIGRTMAX());
    for signal in all.filter(|signal| !kept.contains(signal) && !stops.contains(signal)) {
        let started = start(measured(&program, &out).arg(signal.to_string()));
        started.wait_for("ready", 1);
        started.signal(signal);
        assert_eq!(started.finish().success().out(), format!("ready\ngot {signal}\n"));
    }
}

/// A batch system's SIGTERM may come while the tool is still preparing. It must not be lost.
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

/// A program that ends well when it is told to has not done its work: its run is kept, and no good one.
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

/// Some daemons ignore SIGCHLD, and what they start inherits that.
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

/// The runner is an MPI program between the launcher and the workload: it changes no disposition.
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
