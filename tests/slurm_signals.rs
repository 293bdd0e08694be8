//! Signals from a real Slurm. With proctrack/linuxproc they go to each process of a step. With proctrack/cgroup they
//! go only to the process that slurmstepd started, which is the tool. The workload gets the same signals as without
//! the tool.

use rig::proctrack::Proctrack;
use rig::slurm::{Slurm, TWO_NODES, manager, read, text};
use rig::tool::{self, Folder, pmmpi};
use rig::{Mpi, programs};
use std::path::Path;
use std::time::{Duration, Instant};

const RANKS: usize = 2;

fn for_each_cluster(test: impl Fn(&Slurm, Proctrack)) {
    for proctrack in Proctrack::ALL.into_iter().filter(|proctrack| proctrack.works_here()) {
        test(&Slurm::turn_with(proctrack), proctrack);
    }
}

/// The words before the program: none, or the tool.
fn ways() -> [Vec<String>; 2] {
    [vec![], vec![text(pmmpi()), "--no-save".into(), "--quiet".into()]]
}

/// The counts of tests/programs/signals.c, one line per rank.
fn counts(said: &str) -> Vec<String> {
    let mut lines: Vec<String> = said.lines().filter(|l| l.contains("x1")).map(str::to_owned).collect();
    lines.sort();
    lines
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_step_gets_each_signal_once() {
    for_each_cluster(|slurm, proctrack| {
        step(slurm, proctrack, &[], &text(programs::plain("signals")));
        for mpi in Mpi::ALL {
            step(slurm, proctrack, &[manager(mpi)], &text(programs::mpi(mpi, "signals")));
            step(slurm, proctrack, &[manager(mpi)], &text(programs::plain("signals")));
        }
    });
}

fn step(slurm: &Slurm, proctrack: Proctrack, options: &[&str], program: &str) {
    for way in ways() {
        let folder = Folder::new("step");
        let way: Vec<&str> = way.iter().map(String::as_str).collect();
        let args = [&TWO_NODES[..], &["--job-name=counts"], options, &way, &[program]].concat();
        let started = tool::start(&mut slurm.command(folder.path(), "srun", &args));
        started.wait_for("ready", RANKS);
        for signal in ["--signal=USR1", "--signal=USR2", "--signal=TERM"] {
            // Slurm sends signals as they come, and each node forwards them separately.
            std::thread::sleep(Duration::from_millis(300));
            slurm.run(folder.path(), "scancel", &[signal, "--name=counts"]).success();
        }
        let output = started.finish();
        let context = format!("{proctrack:?} {args:?} {}", output.err());
        assert_eq!(counts(&output.out()), ["10x1 12x1 15x1"; RANKS], "{context}");
    }
}

/// `scancel` as users type it: SIGCONT and SIGTERM, and later SIGKILL.
#[test]
fn a_step_that_is_cancelled_is_told_so() {
    for_each_cluster(|slurm, proctrack| {
        for way in ways() {
            let folder = Folder::new("cancel");
            let way: Vec<&str> = way.iter().map(String::as_str).collect();
            let program = text(programs::plain("signals"));
            let args =
                [&TWO_NODES[..], &["--job-name=cancelled", "--output=log.%t"], &way, &[&program]].concat();
            let started = tool::start(&mut slurm.command(folder.path(), "srun", &args));
            let log = |rank: usize| read(folder.path().join(format!("log.{rank}")));
            wait_until("no ranks", || (0..RANKS).all(|rank| log(rank).contains("ready")));
            slurm.run(folder.path(), "scancel", &["--name=cancelled"]).success();
            let output = started.finish();
            for rank in 0..RANKS {
                let log = log(rank);
                assert!(log.contains("15x1 18x"), "{proctrack:?} {args:?} {log} {}", output.err());
            }
        }
    });
}

/// The tool is the batch script's process: `-b` signals only this process, `-f` all processes of the script.
#[test]
fn a_batch_script_gets_each_signal_once() {
    for_each_cluster(|slurm, proctrack| {
        for way in ways() {
            let folder = Folder::new("batch");
            let line = [way, vec![text(programs::plain("signals"))]].concat().join(" ");
            let job = submit(slurm, folder.path(), &[], &format!("exec {line}"));
            wait_until("no batch job", || read(folder.path().join("log")).contains("ready"));
            for (which, signal) in [("--batch", "USR1"), ("--full", "USR2"), ("--batch", "TERM")] {
                std::thread::sleep(Duration::from_millis(300));
                slurm.run(folder.path(), "scancel", &[which, "--signal", signal, &job]).success();
            }
            assert_log(folder.path(), "10x1 12x1 15x1", proctrack);
        }
    });
}

/// `--signal` of sbatch warns before the time is up: the script (B:), or its steps.
#[test]
fn a_warning_reaches_the_workload_once() {
    for_each_cluster(|slurm, proctrack| {
        let program = format!("{} {}", text(programs::plain("signals")), libc::SIGUSR1);
        let tool = ways()[1].join(" ");
        let folders = [Folder::new("warned"), Folder::new("steps")];
        let scripts = [("B:USR1@60", "exec"), ("USR1@60", "srun")];
        // Slurm checks every half minute, so both jobs run at the same time.
        for (folder, (warning, how)) in folders.iter().zip(scripts) {
            let options = [&format!("--signal={warning}"), "--time=1"];
            submit(slurm, folder.path(), &options, &format!("{how} {tool} {program}"));
        }
        folders.iter().for_each(|folder| assert_log(folder.path(), "10x1", proctrack));
    });
}

/// Returns the job's number.
fn submit(slurm: &Slurm, folder: &Path, options: &[&str], line: &str) -> String {
    let script = text(programs::script(folder, &format!("#!/bin/sh\n{line}\n")));
    let args = [options, &["--output=log", &script]].concat();
    let said = slurm.run(folder, "sbatch", &args).success().out();
    said.split_whitespace().last().expect("sbatch says the number").to_owned()
}

fn assert_log(folder: &Path, expected: &str, proctrack: Proctrack) {
    let log = || read(folder.join("log"));
    wait_until("the workload does not end", || !counts(&log()).is_empty());
    // Slurm may also send SIGCONT before the workload has ended.
    let only = counts(&log()).join(", ");
    assert_eq!(only.trim_end_matches(" 18x1"), expected, "{proctrack:?} {}", log());
}
