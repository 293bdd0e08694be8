//! Under a real Slurm with four nodes: steps that end badly, and users other than root. docs/programs.md lists these
//! tests. They share a cluster, one at a time.

use pmmpi::record::{End, Mode, Run};
use rig::slurm::{NODES, Slurm, TWO_NODES, exported, manager, read, script, text};
use rig::tool::{self, Folder, Output, Started, pmmpi, runs_in};
use rig::{Mpi, programs};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[test]
fn a_rank_killed_under_srun_k1_is_recorded() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("kill");
        let output = four_ranks(&slurm, mpi, &folder, &["kill", "1", "0"]).finish();
        assert_eq!(left_of(mpi, &folder, &output).end(), Some(End::Signaled(libc::SIGKILL)), "{mpi:?}");
    }
}

#[test]
fn a_step_cancelled_by_scancel_is_recorded() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let folder = Folder::new("scancel");
        let started = four_ranks(&slurm, mpi, &folder, &["wait", "0", "600000"]);
        wait_for_ranks(&started, &folder, NODES);
        slurm.run(folder.path(), "scancel", &["--name=ends"]).success();
        let output = started.finish();
        assert!(left_of(mpi, &folder, &output).end().is_some_and(|end| !end.is_success()));
    }
}

/// The measurements of the lost node's rank are kept as well.
#[test]
fn a_run_that_loses_a_node_is_recorded() {
    for mpi in Mpi::ALL {
        let mut slurm = Slurm::turn();
        let folder = Folder::new("node");
        let started = four_ranks(&slurm, mpi, &folder, &["wait", "0", "600000"]);
        wait_for_ranks(&started, &folder, NODES);
        // What is only in the memory of a node's processes is lost with the node.
        wait_until_carried(&started, &folder, NODES);
        slurm.lose_node(3);
        slurm.run(folder.path(), "scancel", &["--name=ends"]).success();
        let output = started.finish();
        // The record names the lost rank, not the ranks that Slurm ended.
        let left = left_of(mpi, &folder, &output);
        let (rank, node, end) = left.telling_rank().unwrap();
        assert_eq!((rank.0, end, left.nodes[node.index()].key.hostname.as_str()), (3, End::Lost, "node3"));
    }
}

/// Without -K, srun lets the other ranks wait in MPI_Init for the rank that could not save the run.
#[test]
fn a_step_that_rank_0_cannot_begin_ends() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let (folder, tool) = (Folder::new("refused"), text(pmmpi()));
        for program in ["true".to_owned(), text(programs::mpi(mpi, "says"))] {
            let layout = ["-N4", "--ntasks-per-node=1", manager(mpi)];
            let args = [&layout[..], &[&tool, "--out", "/proc/nowhere/runs", &program]].concat();
            let started = tool::start(&mut slurm.command(folder.path(), "srun", &args));
            assert!(started.ends_within(Duration::from_secs(60)), "{mpi:?} {program}");
            let output = started.finish();
            assert_ne!(output.code(), 0, "{mpi:?} {program} {}", output.err());
            let refusals = output.err().matches("cannot save runs in").count();
            assert_eq!(refusals, 1, "{mpi:?} {program} {}", output.err());
        }
    }
}

/// tests/programs/ends.c on each node: the way of ending, the rank, and the longest time.
fn four_ranks(slurm: &Slurm, mpi: Mpi, folder: &Folder, [how, rank, ms]: &[&str; 3]) -> Started {
    let (tool, program, here) = (text(pmmpi()), text(programs::mpi(mpi, "ends")), text(folder.path()));
    let layout = ["-N4", "--ntasks-per-node=1", "--job-name=ends", manager(mpi), "-K1"];
    let args = [&layout[..], &[&tool, "--out", "runs", &program, how, rank, &here, ms]].concat();
    tool::start(&mut slurm.command(folder.path(), "srun", &args))
}

fn wait_for_ranks(started: &Started, folder: &Folder, ranks: usize) {
    while !(0..ranks).all(|rank| folder.path().join(format!("pids.{rank}")).exists()) {
        started.assert_running();
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait_until_carried(started: &Started, folder: &Folder, ranks: usize) {
    let partial = || {
        let mut entries =
            std::fs::read_dir(folder.path().join("runs")).ok()?.flatten().map(|entry| entry.path());
        entries.find(|path| path.extension().is_some_and(|e| e == "partial"))
    };
    let carried = || Some(pmmpi::partial::read(&partial()?).ok()?.lost.len());
    while carried() != Some(ranks) {
        started.assert_running();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The only run, in which every rank was lost.
fn left_of(mpi: Mpi, folder: &Folder, output: &Output) -> Run {
    assert!(!output.status.success());
    tool::wait_until_gone(folder.path());
    let run = pmmpi::partial::read(&partial_folder(folder)).unwrap();
    assert_eq!((run.lost.len(), run.nodes.len()), (NODES, NODES), "{mpi:?} {}", output.err());
    run
}

fn partial_folder(folder: &Folder) -> PathBuf {
    let left = std::fs::read_dir(folder.path().join("runs")).unwrap().flatten().map(|entry| entry.path());
    let left: Vec<_> = left.filter(|path| path.extension().is_some_and(|e| e == "partial")).collect();
    assert_eq!(left.len(), 1);
    left[0].clone()
}

/// Neither is root, which runs the cluster's daemons.
const USER: u32 = 65_534;
const ANOTHER_USER: u32 = 1;

/// The tool where every user can access it, not in a private checkout; and a folder of the user.
struct Home {
    folder: Folder,
    tool: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = Folder::new("user");
        chown(folder.path(), Some(USER), Some(USER)).unwrap();
        let stage = tool::target().join("pmmpi");
        tool::run(Command::new("cp").arg("-r").arg(stage).arg(folder.path().join("tool"))).success();
        tool::run(Command::new("chmod").args(["-R", "a+rX,go-w"]).arg(folder.path())).success();
        Self { tool: folder.path().join("tool/bin/pmmpi"), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A copy of a file of the checkout that everyone may read.
    fn copy(&self, file: impl AsRef<Path>) -> String {
        let copy = self.path().join(file.as_ref().file_name().unwrap());
        std::fs::copy(file, &copy).unwrap();
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
        text(copy)
    }

    fn command(&self, slurm: &Slurm, program: &str, args: &[&str]) -> Command {
        let mut command = slurm.command(self.path(), program, args);
        let path = format!("{}:/usr/bin:/bin", self.tool.parent().unwrap().display());
        command.env("HOME", self.path()).env("PATH", path).uid(USER).gid(USER);
        command
    }

    fn run(&self, slurm: &Slurm, program: &str, args: &[&str]) -> Output {
        tool::run(&mut self.command(slurm, program, args))
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

/// An ordinary user measures with srun and with sbatch: the runs belong to this user, and nothing else remains.
#[test]
fn a_user_who_is_not_root_measures() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let home = Home::new();
        let program = home.copy(programs::mpi(mpi, "says"));
        let step = [&TWO_NODES[..], &[manager(mpi), "pmmpi", "--out", "runs", &program]].concat();
        home.run(&slurm, "srun", &step).success();
        // The tool is executable but not readable: the kernel then protects its process from others.
        std::fs::set_permissions(&home.tool, PermissionsExt::from_mode(0o711)).unwrap();
        home.run(&slurm, "srun", &step).success();
        let plain = [&TWO_NODES[..], &[manager(mpi), "pmmpi", "--out", "runs", "sleep", "0.01"]].concat();
        home.run(&slurm, "srun", &plain).success();
        let export = exported(mpi, "PMMPI_OUT=runs");
        let batch = ["--output=log", &export, &home.copy(script("step")), &program];
        let succeeded = slurm.batch(&mut home.command(&slurm, "sbatch", &batch));
        assert!(succeeded, "{}", read(home.path().join("log")));

        let runs = runs_in(&home.path().join("runs"));
        let ranks: Vec<_> = runs.iter().map(|run| (run.ranks.len(), run.header.mode)).collect();
        assert_eq!(ranks, [(2, Mode::Mpi), (2, Mode::Mpi), (2, Mode::Plain), (4, Mode::Mpi)]);
        assert!(runs.iter().flat_map(|run| &run.nodes).all(|node| node.facts.is_some()));
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(home.path()), ["log", "runs", "says", "step.sbatch", "tool"]);
        let files = names(&home.path().join("runs"));
        assert!(files.len() == 4 && files.iter().all(|name| name.ends_with(".pmr")), "{files:?}");
        for name in files {
            let metadata = std::fs::metadata(home.path().join("runs").join(name)).unwrap();
            assert_eq!((metadata.uid(), metadata.mode() & 0o777), (USER, 0o644));
        }
    }
}

/// Only the user may read the data of a run in progress, and only this user's report shows it.
#[test]
fn nobody_reads_what_is_kept_of_anothers_run() {
    let slurm = Slurm::turn();
    for mpi in Mpi::ALL {
        let home = Home::new();
        let (program, here) = (home.copy(programs::mpi(mpi, "ends")), text(home.path()));
        let layout = ["--job-name=ends", manager(mpi), "pmmpi", "--out", "runs"];
        let args = [&TWO_NODES[..], &layout, &[&program, "wait", "0", &here, "600000"]].concat();
        let started = tool::start(&mut home.command(&slurm, "srun", &args));
        wait_for_ranks(&started, &home.folder, 2);
        wait_until_carried(&started, &home.folder, 2);
        let partial = partial_folder(&home.folder);
        assert_eq!((std::fs::metadata(&partial).unwrap().uid(), mode(&partial)), (USER, 0o700));
        for entry in std::fs::read_dir(&partial).unwrap().flatten() {
            assert_eq!((entry.metadata().unwrap().uid(), mode(&entry.path())), (USER, 0o600));
        }
        home.run(&slurm, "scancel", &["--name=ends"]).success();
        assert!(!started.finish().status.success());
        let report = |user: u32| {
            let mut command = home.command(&slurm, text(&home.tool).as_str(), &["report", "runs"]);
            tool::run(command.uid(user).gid(user))
        };
        let own = report(USER).success();
        assert!(own.out().contains("not complete"), "{}", own.out());
        let others = report(ANOTHER_USER);
        assert!(!others.out().contains("not complete"), "{}", others.out());
        assert!(others.err().contains("Permission denied"), "{}\n{}", others.out(), others.err());
    }
}
