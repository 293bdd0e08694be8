//! A process of `pmmpi screen` is killed: the screen ends, names it, and reports the rounds that are saved.

use pmmpi::record::Run;
use rig::cluster::{Cluster, machine};
use rig::slurm::{Slurm, manager, text};
use rig::tool::{
    Folder, Output, is_over_within, pmmpi, processes_of, processes_with, processes_with_variable, run, tool,
    with_report,
};
use rig::{Mpi, programs};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const HOSTS: [(&str, i64); 3] = [("n0", 0), ("n1", 3_600_000_000_000), ("n2", 7_200_000_000_123)];
/// Rounds that are saved before a process is killed.
const ROUNDS: usize = 2;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    /// The process that measures on this host.
    Rank(&'static str),
    /// The launcher of rank 0, which supervises the others, on this host.
    Supervisor(&'static str),
}

impl Victim {
    fn host(self) -> &'static str {
        match self {
            Self::Rank(host) | Self::Supervisor(host) => host,
        }
    }
}

/// Options of a screen whose program kills the victim after [`ROUNDS`] rounds.
fn screen(victim: Victim, folder: &Path) -> Vec<String> {
    let parent = match victim {
        Victim::Rank(_) => "$PPID",
        Victim::Supervisor(_) => "$(cut -d' ' -f4 /proc/$PPID/stat)",
    };
    let (host, runs) = (victim.host(), folder.join("runs"));
    let saved = format!("$(ls {} | grep -c 'pmr$')", text(&runs));
    let kill = format!(
        "#!/bin/sh\n[ $(uname -n) = {host} ] && [ {saved} -ge {ROUNDS} ] && kill -9 {parent}\nsleep 0.2"
    );
    let program = programs::script(folder, &kill);
    let words = ["screen", "--rounds", "9", "--warmup", "0", "--out", &text(runs), "--", &text(program)];
    [text(pmmpi())].into_iter().chain(words.map(str::to_owned)).collect()
}

/// Checks what a screen left that ended early. `passes_on`: this launcher passes output on after the end of a rank.
fn assert_named_and_reported(victim: Victim, output: &Output, folder: &Path, passes_on: bool) {
    let (out, err) = (output.out(), output.err());
    assert_ne!(output.status.code(), Some(0), "{victim:?}: {err}");
    let rounds: Vec<u32> =
        saved(folder).iter().map(|run| run.header.series.as_ref().expect("a series").round).collect();
    assert_eq!(rounds, [0, 1], "{victim:?}: {err}");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !processes_with(&text(folder)).is_empty() {
        assert!(Instant::now() < deadline, "{victim:?}: left: {:?}", processes_with(&text(folder)));
        std::thread::sleep(Duration::from_millis(20));
    }
    // MPICH's mpiexec may kill all processes before one of them can say why.
    let said = ended(folder);
    assert!(said.is_some() || !passes_on, "{victim:?}: {err}");
    if let Some(said) = said {
        assert_named(victim, &said, folder);
        if passes_on {
            assert!(err.contains(&said), "{victim:?}: {err}");
            assert!(
                matches!(victim, Victim::Supervisor(_)) || out.contains("2 rounds"),
                "{victim:?}: {out}\n{err}"
            );
        }
    }
    let entries = fs::read_dir(folder.join("runs")).expect("a folder").flatten();
    let names: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|file| file.extension().is_none_or(|e| e != "pmr" && e != "ended"))
        .collect();
    assert!(names.is_empty(), "{victim:?}: left: {names:?}");
}

/// Checks the message, and that a report of what is saved begins with it.
fn assert_named(victim: Victim, said: &str, folder: &Path) {
    let begin = match victim {
        Victim::Rank(host) => format!("{host} (rank "),
        Victim::Supervisor(host) => format!("{host}: rank 0 has ended, so the screen ends"),
    };
    assert!(said.starts_with(&begin), "{victim:?}: {said}");
    let during = "was killed, failed or did not answer during round 3 of script, so the screen ends";
    assert!(matches!(victim, Victim::Supervisor(_)) || said.contains(during), "{victim:?}: {said}");
    let hint = format!("pmmpi-report screen {}", text(folder.join("runs")));
    assert!(said.contains(&hint), "{victim:?}: {said}");
    let report = run(Command::new(tool("pmmpi-report")).arg("screen").arg(folder.join("runs"))).success();
    let warning = format!("warning: a screen ended early: {}", victim.host());
    assert!(report.out().contains(&warning) && report.out().contains("[ended-early]"), "{}", report.out());
}

/// The message that is kept beside the runs.
fn ended(folder: &Path) -> Option<String> {
    let file = files_of(folder, "ended").into_iter().next();
    file.map(|file| fs::read_to_string(file).expect("readable").trim_end().to_owned())
}

/// The files beside the runs with this extension; none if the screen has not yet made the folder.
fn files_of(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("runs")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|e| e == extension)).collect()
}

fn saved(folder: &Path) -> Vec<Run> {
    let mut runs = rig::tool::runs_in(&folder.join("runs"));
    runs.sort_by_key(|run| run.header.started_unix_ns);
    runs
}

fn on_hosts(mpi: Mpi, victims: &[Victim]) {
    for victim in victims {
        let (cluster, folder) = (Cluster::new(&HOSTS), Folder::new("screen-dies"));
        let output = cluster.mpirun(mpi, HOSTS.len()).args(screen(*victim, folder.path())).run();
        assert_named_and_reported(*victim, &output, folder.path(), mpi == Mpi::OpenMpi);
    }
}

#[test]
fn whoever_is_killed_under_open_mpi_is_named() {
    on_hosts(Mpi::OpenMpi, &[Victim::Rank("n2"), Victim::Rank("n0"), Victim::Supervisor("n0")]);
}

#[test]
fn whoever_is_killed_under_mpich_is_named() {
    on_hosts(Mpi::Mpich, &[Victim::Rank("n1"), Victim::Rank("n0"), Victim::Supervisor("n0")]);
}

#[test]
fn whoever_is_killed_under_slurm_is_named() {
    for mpi in Mpi::ALL {
        for victim in [Victim::Rank("node2"), Victim::Rank("node0"), Victim::Supervisor("node0")] {
            let (slurm, folder) = (Slurm::turn(), Folder::new("screen-dies"));
            let words = screen(victim, folder.path());
            let words = words.iter().map(String::as_str);
            let args: Vec<&str> = ["-N3", "--ntasks-per-node=1", "-wnode[0-2]", manager(mpi)]
                .into_iter()
                .chain(words)
                .collect();
            let output = slurm.run(folder.path(), "srun", &args);
            assert_named_and_reported(victim, &output, folder.path(), true);
        }
    }
}

/// When the rank on `n1` is killed: while it runs a kernel.
struct Moment {
    /// Options of the screen.
    options: &'static [&'static str],
    /// Rounds that are saved before.
    saved: usize,
    /// As the message names it.
    during: &'static str,
}

/// Finds `n1` slow in fma, so that all three hosts run more rounds.
const REPORT: &str =
    "case \" $* \" in *\" --suspects \"*) printf 'fma\\tn1\\n'; exit;; esac\nexec $real \"$@\"";

/// Kills the rank whose kernel has this variable in its environment. False if there is no such kernel at the time, or if it
/// is not the moment while the rank cannot end its round.
fn kill_rank_of_kernel(variable: &str, is_moment: impl Fn() -> bool) -> bool {
    let Some(kernel) = processes_of(variable, "screen-kernel").into_iter().next() else { return false };
    let is_of_job = |process: &i32| processes_with_variable(variable).contains(process);
    let Some(rank) = parent(kernel).filter(is_of_job) else { return false };
    let signal = |signal: i32| {
        // SAFETY: the call accesses no memory. The rank is a process of this test.
        unsafe { libc::kill(rank, signal) };
    };
    // A stopped rank cannot end its round.
    signal(libc::SIGSTOP);
    let is_in_round = parent(kernel) == Some(rank) && is_moment();
    signal(if is_in_round { libc::SIGKILL } else { libc::SIGCONT });
    is_in_round
}

/// The process that started this one; `None` if this one has ended.
fn parent(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// About 4 s for each moment.
#[test]
fn a_rank_that_is_killed_while_it_runs_a_kernel_is_named() {
    const LIMIT: Duration = Duration::from_secs(60);
    for Moment { options, saved, during } in [
        Moment {
            options: &["--kernels", "fma", "--warmup", "1", "--rounds", "2"],
            saved: 0,
            during: "a warm-up of fma",
        },
        Moment {
            options: &["--kernels", "fma,dgemm", "--warmup", "0", "--rounds", "2"],
            saved: 1,
            during: "round 1 of ",
        },
        Moment {
            options: &["--kernels", "fma", "--warmup", "0", "--rounds", "1+2"],
            saved: 1,
            during: "round 2 of fma",
        },
    ] {
        let (cluster, _alone) = (Cluster::new(&HOSTS), machine());
        let names =
            |folder: &Folder| ["SCREEN", "VICTIM"].map(|name| format!("{name}={}", text(folder.path())));
        let saved_in = |folder: &Folder| files_of(folder.path(), "pmr").len();
        let attempt = || {
            let folder = Folder::new("screen-dies");
            let (pmmpi, [screen, victim]) = (with_report(folder.path(), REPORT), names(&folder));
            let script =
                format!("export {screen}; case $(uname -n) in n1) export {victim};; esac; exec \"$@\"");
            let runs = text(folder.path().join("runs"));
            let job = cluster.mpirun(Mpi::OpenMpi, HOSTS.len()).args(["sh", "-c", &script, "sh"]).arg(pmmpi);
            let job = job.args(["screen", "--out", &runs]).args(options).start();
            let is_killed = Cell::new(false);
            let is_over = is_over_within(LIMIT, || {
                is_killed.set(
                    saved_in(&folder) == saved && kill_rank_of_kernel(&victim, || saved_in(&folder) == saved),
                );
                is_killed.get() || saved_in(&folder) > saved
            });
            assert!(is_over, "{during}");
            let output = job.finish();
            is_killed.get().then_some((folder, output))
        };
        // On a busy machine, the round may be over before this test sees its kernel.
        let (folder, output) = (0..5).find_map(|_| attempt()).expect("a rank that is killed in this round");
        let ([screen, _], runs) = (names(&folder), text(folder.path().join("runs")));
        let err = output.err();
        assert_ne!(output.code(), 0, "{during}: {err}");
        let said = "n1 (rank 1): the process of pmmpi was killed, failed or did not answer during ";
        assert!(err.contains(&format!("{said}{during}")), "{during}: {err}");
        assert_eq!(saved_in(&folder), saved, "{during}: {err}");
        if let Some(said) = ended(folder.path()) {
            assert!(err.contains(&said), "{during}: {err}");
            let report = run(Command::new(tool("pmmpi-report")).args(["screen", &runs])).success();
            assert!(report.out().contains("[ended-early]"), "{during}: {}", report.out());
        } else {
            assert!(saved == 0 && err.contains("no round has ended, so there is no result"), "{err}");
        }
        let left = || processes_with_variable(&screen);
        assert!(is_over_within(LIMIT, || left().is_empty()), "{during}: left: {:?}", left());
    }
}
