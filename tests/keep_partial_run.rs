//! The carrier, a process of its own, writes the ranks' measurements to disk. No rank writes to disk, a slow file
//! system blocks no rank, and the carrier itself may be killed.

use pmmpi::RankId;
use pmmpi::partial;
use pmmpi::record::{End, Run};
use rig::cluster::{Cluster, Job, machine};
use rig::tool::{Folder, Started, pmmpi, processes_with, run, wait_until_gone};
use rig::{Mpi, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const RANKS: usize = 3;

/// The folder of the partial run, if there is one.
fn partial_in(out: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(out).ok()?.flatten().map(|entry| entry.path());
    entries.find(|path| path.extension().is_some_and(|e| e == "partial"))
}

/// What the carrier has written so far.
fn carried(out: &Path) -> Option<Run> {
    partial::read(&partial_in(out)?).ok()
}

/// A job of [`RANKS`] ranks on two hosts that would run for ten minutes.
fn begin(mpi: Mpi, cluster: &Cluster, folder: &Path) -> Started {
    let job = cluster.mpirun(mpi, RANKS).arg(pmmpi()).arg("--out").arg(folder.join("runs"));
    job.arg(programs::mpi(mpi, "ends")).args(["wait", "0"]).arg(folder).arg("600000").start()
}

fn wait_until(started: &Started, is_so: impl Fn() -> bool) {
    while !is_so() {
        started.assert_running();
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_until_carried(started: &Started, folder: &Path) {
    wait_until(started, || carried(&folder.join("runs")).is_some_and(|run| run.lost.len() == RANKS));
}

/// Process ids of the rank and of its launcher.
fn processes(folder: &Path, rank: usize) -> Option<[i32; 2]> {
    let text = fs::read_to_string(folder.join(format!("pids.{rank}"))).ok()?;
    let mut pids = text.split_whitespace().filter_map(|word| word.parse().ok());
    Some([pids.next()?, pids.next()?])
}

/// The carriers of the job in this folder.
fn carriers(folder: &Path) -> Vec<i32> {
    let name = |process: &i32| fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let all = processes_with(folder.to_str().unwrap());
    all.into_iter().filter(|process| name(process).trim() == "pmmpi-carrier").collect()
}

fn kill(process: i32) {
    // SAFETY: a process of this job; if it has ended already, the call does nothing.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// While a run is in progress, no process touches its folder. In the whole job, no rank touches it.
#[test]
fn a_short_job_that_ends_well_makes_no_folder() {
    const SHORT_NS: i64 = 190_000_000;
    for mpi in Mpi::ALL {
        let program = programs::mpi(mpi, "quiet");
        // On a busy machine a job may take longer; then the carrier may write.
        let is_short = |_: &u32| {
            let folder = Folder::new("short");
            let trace = folder.path().join("trace");
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-e", "trace=%file", "-o"]).arg(&trace).arg(pmmpi());
            command.arg("--out").arg(folder.path().join("runs")).arg(&program).envs(rig::FOR_ROOT);
            run(&mut command).success();
            let runs = rig::tool::runs_in(&folder.path().join("runs"));
            let stamps = runs[0].ranks[0].stamps;
            let is_short = stamps.outer_ns() + runs[0].gather_ns < SHORT_NS;
            let text = fs::read_to_string(&trace).unwrap();
            let lines: Vec<&str> = text.lines().filter(|line| line.contains(".partial")).collect();
            assert!(!is_short || lines.is_empty(), "{mpi:?} {lines:#?}");
            is_short
        };
        assert!((0..50).any(|time| is_short(&time)), "{mpi:?}: no job was short");
    }
}

/// A rank opens no file below --out, however long it works.
#[test]
fn ranks_write_no_file() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("none");
        let (out, trace) = (folder.path().join("runs"), folder.path().join("trace"));
        let program = programs::mpi(mpi, "ends");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "trace=%file,%process", "-o"]).arg(&trace).arg(pmmpi());
        command.arg("--out").arg(&out).arg(&program).args(["late", "0"]).arg(folder.path());
        let started = rig::tool::start(command.envs(rig::FOR_ROOT));
        wait_until(&started, || carried(&out).is_some());
        fs::write(folder.path().join("go"), "").unwrap();
        started.finish().success();
        let text = fs::read_to_string(&trace).unwrap();
        let begins = |line: &&str| line.contains("execve(") && line.contains(program.to_str().unwrap());
        let rank = text.lines().rfind(begins).unwrap().split(' ').next().unwrap();
        let below = |line: &&str| line.contains(out.to_str().unwrap());
        let (of_rank, of_others): (Vec<&str>, Vec<&str>) =
            text.lines().filter(below).partition(|line| line.starts_with(&format!("{rank} ")));
        // The arguments in its own execve contain the path.
        let of_rank: Vec<_> = of_rank.iter().filter(|line| !line.contains("execve(")).collect();
        assert!(of_rank.is_empty(), "{mpi:?} {of_rank:#?}");
        assert!(of_others.iter().any(|line| line.contains(".node")), "{mpi:?} {of_others:#?}");
        assert!(partial_in(&out).is_none() && rig::tool::runs_in(&out)[0].is_complete());
    }
}

/// A file system on which every write waits until the file system is thawed.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Folder) -> Self {
        let (image, place) = (folder.path().join("image"), folder.path().join("disk"));
        fs::create_dir(&place).unwrap();
        fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image)).success();
        run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&place)).success();
        Self(place)
    }

    fn freeze(&self) {
        run(Command::new("fsfreeze").arg("--freeze").arg(&self.0)).success();
    }

    fn thaw(&self) {
        run(Command::new("fsfreeze").arg("--unfreeze").arg(&self.0)).success();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(&self.0).output();
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn a_file_system_that_hangs_keeps_no_rank_waiting() {
    // Before the carrier has written anything, and after.
    for (mpi, late) in Mpi::ALL.into_iter().flat_map(|mpi| [(mpi, false), (mpi, true)]) {
        let folder = Folder::new("frozen");
        let disk = Disk::mount(&folder);
        let out = disk.0.join("runs");
        let _alone = machine();
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(&out).arg(programs::mpi(mpi, "ends"));
        let started = job.args(["late", "1"]).arg(folder.path()).start();
        let ranks = || (0..2).filter_map(|rank| processes(folder.path(), rank)).map(|[rank, _]| rank);
        wait_until(&started, || ranks().count() == 2 && (!late || carried(&out).is_some()));
        disk.freeze();
        fs::write(folder.path().join("go"), "").unwrap();
        let is_over = |rank: i32| {
            fs::read_to_string(format!("/proc/{rank}/stat")).map_or(true, |stat| stat.contains(") Z "))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !ranks().all(is_over) {
            assert!(Instant::now() < deadline, "{mpi:?} {late}: a rank waits for the file system");
            std::thread::sleep(Duration::from_millis(5));
        }
        disk.thaw();
        started.finish().success();
        wait_until_gone(folder.path());
        assert!(rig::tool::runs_in(&out)[0].is_complete() && partial_in(&out).is_none(), "{mpi:?} {late}");
    }
}

/// All processes of the job are killed at once, including the carriers. What they have written stays, in one file per
/// node.
#[test]
fn what_was_carried_is_left_whatever_is_killed() {
    for mpi in Mpi::ALL {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("all"));
        let _alone = machine();
        let started = begin(mpi, &cluster, folder.path());
        wait_until_carried(&started, folder.path());
        assert_eq!(carriers(folder.path()).len(), 2);
        carriers(folder.path()).into_iter().for_each(kill);
        (0..RANKS).filter_map(|rank| processes(folder.path(), rank)).flatten().for_each(kill);
        started.finish();
        let out = folder.path().join("runs");
        let left = carried(&out).unwrap();
        assert_eq!((left.lost.len(), left.nodes.len()), (RANKS, 2), "{mpi:?} {left:#?}");
        assert!(left.nodes.iter().all(|node| node.facts.is_some()), "{mpi:?} {left:#?}");
        assert_eq!(fs::read_dir(partial_in(&out).unwrap()).unwrap().count(), 2, "{mpi:?}");
        wait_until_gone(folder.path());
    }
}

/// If the carrier is killed, a process that remains takes over.
#[test]
fn launchers_carry_where_nobody_else_does() {
    for mpi in Mpi::ALL {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("next"));
        let _alone = machine();
        let started = begin(mpi, &cluster, folder.path());
        wait_until_carried(&started, folder.path());
        carriers(folder.path()).into_iter().for_each(kill);
        // Rank 1 is on rank 0's node, but not the first rank there.
        kill(processes(folder.path(), 1).unwrap()[0]);
        started.finish();
        wait_until_gone(folder.path());
        let out = folder.path().join("runs");
        let left = carried(&out).unwrap();
        let killed = left.lost.iter().find(|lost| lost.rank == RankId(1)).unwrap();
        assert_eq!((left.lost.len(), killed.end), (RANKS, End::Signaled(libc::SIGKILL)), "{mpi:?} {left:#?}");
        assert_eq!(fs::read_dir(partial_in(&out).unwrap()).unwrap().count(), 2, "{mpi:?}");
        wait_until_gone(folder.path());
    }
}

/// A carrier that does not respond delays neither ranks nor launchers that end normally.
#[test]
fn nobody_waits_for_the_process_that_carries() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("stopped");
        let _alone = machine();
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path().join("runs"));
        let job = job.arg(programs::mpi(mpi, "ends")).args(["late", "1"]).arg(folder.path());
        let started = job.start();
        wait_until(&started, || processes(folder.path(), 1).is_some() && !carriers(folder.path()).is_empty());
        let carriers = carriers(folder.path());
        // SAFETY: processes of this job.
        let all = |signal| {
            carriers.iter().for_each(|process| unsafe { assert_eq!(libc::kill(*process, signal), 0) })
        };
        all(libc::SIGSTOP);
        fs::write(folder.path().join("go"), "").unwrap();
        started.finish().success();
        assert!(rig::tool::runs_in(&folder.path().join("runs"))[0].is_complete(), "{mpi:?}");
        all(libc::SIGCONT);
        wait_until_gone(folder.path());
        assert!(partial_in(&folder.path().join("runs")).is_none(), "{mpi:?}");
    }
}
