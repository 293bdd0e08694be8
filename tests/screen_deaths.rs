//! A process of `pmmpi screen` is killed: the screen ends, names it, and reports the rounds that are saved.

use pmmpi::record::Run;
use rig::cluster::Cluster;
use rig::slurm::{Slurm, manager, text};
use rig::tool::{Folder, Output, pmmpi, processes_with, run, tool};
use rig::{Mpi, programs};
use std::fs;
use std::path::Path;
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
    let during = "was killed, has failed or does not answer during round 3 of script, so the screen ends";
    assert!(matches!(victim, Victim::Supervisor(_)) || said.contains(during), "{victim:?}: {said}");
    let hint = format!("pmmpi-report screen {}", text(folder.join("runs")));
    assert!(said.contains(&hint), "{victim:?}: {said}");
    let report = run(Command::new(tool("pmmpi-report")).arg("screen").arg(folder.join("runs"))).success();
    let warning = format!("warning: a screen ended early: {}", victim.host());
    assert!(report.out().contains(&warning) && report.out().contains("[ended-early]"), "{}", report.out());
}

/// The message that is kept beside the runs.
fn ended(folder: &Path) -> Option<String> {
    let files = fs::read_dir(folder.join("runs")).expect("a folder").flatten().map(|entry| entry.path());
    let mut files = files.filter(|file| file.extension().is_some_and(|e| e == "ended"));
    files.next().map(|file| fs::read_to_string(file).expect("readable").trim_end().to_owned())
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
