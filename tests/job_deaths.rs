//! All ways in which a job can die: the tool keeps and reports what it measured until then, the job ends as it would
//! without the tool, and no process or file remains.

use pmmpi::RankId;
use pmmpi::partial;
use pmmpi::record::End;
use rig::cluster::{Cluster, Job, kept_of, machine};
use rig::remains::left_in;
use rig::tool::{Folder, Output, Started, pmmpi, processes_with, run, runs_in, tool};
use rig::{Mpi, programs};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

const RANKS: usize = 3;

/// A job of [`RANKS`] ranks on two hosts that ends in the way `how`; `before` stands in front of the program.
fn job<'a>(mpi: Mpi, cluster: &'a Cluster, before: &[&str], how: &[&str], folder: &Path) -> Job<'a> {
    let job = cluster.mpirun(mpi, RANKS).args(before).arg(programs::mpi(mpi, "ends"));
    job.args(&how[..2]).arg(folder).args(&how[2..])
}

/// Number of node files of a partial run.
fn files_of_nodes(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let partial = entries.into_iter().find(|path| path.extension().is_some_and(|e| e == "partial"));
    fs::read_dir(partial.unwrap()).unwrap().count()
}

/// Neither a process of the job remains, nor a file of the tool outside the test's folder.
fn assert_nothing_is_left_behind(folder: &Path) {
    let left = || (processes_with(folder.to_str().unwrap()), files_since(born(folder)));
    let deadline = Instant::now() + Duration::from_secs(30);
    while left() != (Vec::new(), Vec::new()) {
        assert!(Instant::now() < deadline, "left: {:?}", left());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Files of the tool, by name, in folders for temporary files.
fn files_since(since: SystemTime) -> Vec<PathBuf> {
    let entries = ["/dev/shm", "/var/tmp", "/tmp"].into_iter().flat_map(|place| fs::read_dir(place).unwrap());
    let ours = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().contains("pmmpi"));
    ours.map(|entry| entry.path()).filter(|path| path.exists() && born(path) >= since).collect()
}

/// Creation time of a file; if the file system does not store it, the time of the last change.
fn born(path: &Path) -> SystemTime {
    let times = fs::metadata(path).and_then(|metadata| metadata.created().or_else(|_| metadata.modified()));
    times.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn report(folder: &Path) -> serde_json::Value {
    let output = run(Command::new(tool("pmmpi")).args(["report", "--format", "json"]).arg(folder)).success();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_way_to_die_is_recorded_and_ends_the_job_as_it_would() {
    let ways = [
        ("abort", End::Aborted(7)),
        ("exit", End::Exited(5)),
        ("segv", End::Signaled(libc::SIGSEGV)),
        ("kill", End::Signaled(libc::SIGKILL)),
    ];
    for (mpi, (how, end)) in Mpi::ALL.into_iter().flat_map(|mpi| ways.map(|way| (mpi, way))) {
        for rank in [0, 1] {
            let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("ends"));
            let how = [how, if rank == 0 { "0" } else { "1" }];
            // If a rank leaves without MPI_Finalize, MPICH's own mpirun sometimes returns 9, or hangs. If a rank is
            // killed, it sometimes returns 255, because an assertion in its proxy fails.
            let expected = match (mpi, how[0], end) {
                (Mpi::Mpich, "exit", _) => vec![5],
                (Mpi::Mpich, _, End::Signaled(signal)) => vec![signal, 255],
                _ => vec![job(mpi, &cluster, &[], &how, folder.path()).run().code()],
            };
            let out = folder.path().join("runs");
            let before = [pmmpi().display().to_string(), "--out".to_owned(), out.display().to_string()];
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let output = job(mpi, &cluster, &before, &how, folder.path()).run();
            let context = format!("{mpi:?} {how:?} {}", output.err());
            assert!(expected.contains(&output.code()), "{} {expected:?} {context}", output.code());
            let left = left_in(&out);
            assert_eq!(
                (left.size as usize, left.lost.len(), left.ranks.len()),
                (RANKS, RANKS, 0),
                "{context}"
            );
            assert_eq!(left.end(), Some(end), "{context}");
            assert_eq!(files_of_nodes(&out), 2, "{context}");
            let lost = &left.lost[rank];
            let worked_ns = lost.ended_ns.map(|ended| ended - lost.t_ns[1]);
            assert!(end == End::Aborted(7) || worked_ns.is_some_and(|ns| ns > 90_000_000), "{context}");
            let report = report(&out);
            let run = &report["runs"][0];
            assert_eq!(run["missing_ranks"], serde_json::json!([0, 1, 2]), "{context}");
            assert!(run["elapsed"].is_null() && run["null_reasons"]["elapsed"].is_string());
            assert_eq!(run["end"], end.to_string());
            assert_eq!(run["lost_ranks"].as_array().unwrap().len(), RANKS);
            assert_nothing_is_left_behind(folder.path());
        }
    }
}

/// The processes of each rank after every rank has begun: its own and its launcher's.
fn processes(folder: &Path, started: &Started) -> Vec<[i32; 2]> {
    let read = |rank: usize| {
        let path = folder.join(format!("pids.{rank}"));
        while !path.exists() {
            started.assert_running();
            std::thread::sleep(Duration::from_millis(1));
        }
        let text = fs::read_to_string(path).unwrap();
        let pids: Vec<i32> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        [pids[0], pids[1]]
    };
    (0..RANKS).map(read).collect()
}

fn kill(process: i32) {
    // SAFETY: a process of this job; if it has ended already, the call does nothing.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Starts a job of `ms` and returns it with its ranks' processes.
fn begin(mpi: Mpi, cluster: &Cluster, folder: &Path, ms: &str) -> (Started, Vec<[i32; 2]>) {
    begin_how(mpi, cluster, folder, &["wait", "0", ms])
}

fn begin_how(mpi: Mpi, cluster: &Cluster, folder: &Path, how: &[&str]) -> (Started, Vec<[i32; 2]>) {
    let out = folder.join("runs");
    let before = [pmmpi().display().to_string(), "--out".to_owned(), out.display().to_string()];
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    let started = job(mpi, cluster, &before, how, folder).start();
    let processes = processes(folder, &started);
    (started, processes)
}

/// Kills any subset of ranks and launchers at any time: the partial run has every rank that had begun.
fn kill_at_random(mpi: Mpi, times: u64) {
    let cluster = Cluster::hours_apart(2);
    let _alone = machine();
    // Four jobs at a time, because a job that dies mostly waits for its mpirun.
    for four in 0..times / 4 {
        let folders = [(); 4].map(|()| Folder::new("random"));
        std::thread::scope(|scope| {
            for (folder, time) in folders.iter().zip(4 * four..) {
                let cluster = &cluster;
                scope.spawn(move || kill_one_at_random(mpi, cluster, folder, time));
            }
        });
        folders.iter().for_each(|folder| assert_nothing_is_left_behind(folder.path()));
    }
}

fn kill_one_at_random(mpi: Mpi, cluster: &Cluster, folder: &Folder, time: u64) {
    let mut random = Random(mpi as u64 + 1000 * time);
    let (started, processes) = begin(mpi, cluster, folder.path(), "60");
    std::thread::sleep(Duration::from_micros(random.below(150_000)));
    let subset = 1 + random.below(63);
    let all = processes.iter().flatten().enumerate();
    all.filter(|(number, _)| subset & 1 << number != 0).for_each(|(_, process)| kill(*process));
    let output = started.finish();
    let left = left_in(&folder.path().join("runs"));
    let context = format!("{mpi:?} {time}: {subset:b} {left:#?}\n{}", output.err());
    assert_eq!(left.ranks.len() + left.lost.len(), RANKS, "{context}");
    assert!(output.code() != 0 || left.is_complete(), "{context}");
    let killed = [128 + libc::SIGKILL, libc::SIGKILL, 255];
    assert!(left.is_complete() || killed.contains(&output.code()), "{} {context}", output.code());
}

/// The same numbers in every run: splitmix64 (S. Vigna).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }
}

#[test]
fn whoever_is_killed_whenever_under_open_mpi() {
    kill_at_random(Mpi::OpenMpi, 100);
}

#[test]
fn whoever_is_killed_whenever_under_mpich() {
    kill_at_random(Mpi::Mpich, 100);
}

/// SIGTERM to mpirun, as a batch system sends it.
#[test]
fn a_job_that_is_told_to_end_keeps_what_it_has() {
    for mpi in Mpi::ALL {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("told"));
        let _alone = machine();
        let (started, _) = begin(mpi, &cluster, folder.path(), "60000");
        started.signal(libc::SIGTERM);
        started.finish();
        let left = left_in(&folder.path().join("runs"));
        assert_eq!(left.lost.len(), RANKS, "{mpi:?}");
        assert!(left.end().is_some_and(|end| !end.is_success()));
        assert_nothing_is_left_behind(folder.path());
    }
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    for mpi in Mpi::ALL {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("timeout"));
        let out = folder.path().join("runs").display().to_string();
        let before = [&pmmpi().display().to_string(), "--timeout", "2", "--out", &out];
        let output = job(mpi, &cluster, &before, &["wait", "0", "100000"], folder.path()).run();
        assert_eq!(output.code(), 124, "{mpi:?} {}", output.err());
        let left = left_in(Path::new(&out));
        assert_eq!((left.end(), left.lost.len()), (Some(End::TimedOut), RANKS), "{mpi:?}");
        assert_nothing_is_left_behind(folder.path());
    }
    let folder = Folder::new("timeout");
    let mut command = Command::new(pmmpi());
    command.args(["--timeout", "0.3s", "--runs", "3", "--out"]).arg(folder.path()).args(["sleep", "100"]);
    let output = run(&mut command);
    assert_eq!(output.code(), 124);
    let ends: Vec<_> = folder.runs().iter().map(|run| run.end()).collect();
    assert_eq!(ends, [Some(End::TimedOut)], "{}", output.err());
}

/// If the run cannot be saved, the partial folder has the measurements of every rank.
#[test]
fn a_run_that_cannot_be_saved_is_not_lost() {
    for mpi in Mpi::ALL {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("unsaved"));
        let _alone = machine();
        let (started, processes) = begin(mpi, &cluster, folder.path(), "500");
        // Rank 0's launcher is stopped, so it saves nothing. It dies after its rank reached the end.
        let [rank, launcher] = processes[0];
        // SAFETY: a process of this job.
        assert_eq!(unsafe { libc::kill(launcher, libc::SIGSTOP) }, 0);
        let is_over = || fs::read_to_string(format!("/proc/{rank}/stat")).is_ok_and(|s| s.contains(") Z "));
        while !is_over() {
            started.assert_running();
            std::thread::sleep(Duration::from_millis(5));
        }
        kill(launcher);
        started.finish();
        let left = left_in(&folder.path().join("runs"));
        assert!(left.is_complete() && left.elapsed().unwrap().lower_ns >= 500_000_000, "{mpi:?} {left:#?}");
        assert_eq!(left.host_count(), 2);
        assert!(left.nodes.iter().all(|node| node.facts.is_some()));
        assert_nothing_is_left_behind(folder.path());
    }
}

/// A job of two ranks that measure themselves, on a disk of its own with `kib` KiB. Rank 1 does `how`, with the
/// arguments `more`. Returns the output and a copy of the disk's content.
fn on_small_disk(mpi: Mpi, folder: &Folder, kib: u32, how: &str, more: &[&str]) -> (Output, PathBuf) {
    let disk = folder.path().join("disk");
    fs::create_dir_all(&disk).unwrap();
    let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(disk.join("runs"));
    let job = job.arg(programs::mpi(mpi, "ends")).args([how, "1"]).arg(&disk).args(more);
    (job.on_small_disk(kib, &disk).run(), kept_of(&disk).join("runs"))
}

#[test]
fn a_disk_that_is_full_before_the_run_is_said_before_it_starts() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("full");
        let (output, _) = on_small_disk(mpi, &folder, 16, "fill", &[]);
        assert_eq!(output.code(), 125, "{mpi:?} {}", output.err());
        let said = [
            "cannot save runs in ",
            ": No space left on device",
            "(a run of 2 ranks needs 68 KiB, ",
            " KiB are free). Choose another folder with --out",
        ];
        assert!(said.iter().all(|said| output.err().contains(said)), "{mpi:?} {}", output.err());
        assert!(!kept_of(&folder.path().join("disk")).join("pids.0").exists());
        assert_nothing_is_left_behind(folder.path());
    }
}

#[test]
fn a_disk_that_fills_up_during_the_run_costs_nothing() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("fills");
        let (output, runs) = on_small_disk(mpi, &folder, 2048, "fill", &[]);
        assert_eq!(output.code(), 0, "{mpi:?} {}", output.err());
        assert!(runs.join("../fill").metadata().unwrap().len() > 1 << 20);
        let left = left_in(&runs);
        assert!(left.is_complete() && left.end() == Some(End::Finalized), "{mpi:?} {left:#?}");
        // The job is killed when the disk has no free byte.
        let folder = Folder::new("fills");
        let (output, runs) = on_small_disk(mpi, &folder, 2048, "fill", &["kill"]);
        assert_ne!(output.code(), 0, "{mpi:?} {}", output.err());
        let left = left_in(&runs);
        assert_eq!(
            (left.lost.len(), left.end()),
            (2, Some(End::Signaled(libc::SIGKILL))),
            "{mpi:?} {left:#?}"
        );
        assert_nothing_is_left_behind(folder.path());
    }
}

/// The run is longer than the space reserved for it, and the disk is full at the end.
#[test]
fn where_a_run_that_could_not_be_saved_is_kept_is_said() {
    let long = "x".repeat(100_000);
    for mpi in Mpi::ALL {
        let folder = Folder::new("long");
        let (output, runs) = on_small_disk(mpi, &folder, 2048, "fill", &["go on", &long]);
        assert_eq!(output.code(), 125, "{mpi:?} {}", output.err());
        let said = [
            "could not save the run in",
            "No space left on device",
            "The data that each rank measured is in",
            ".partial",
        ];
        assert!(said.iter().all(|said| output.err().contains(said)), "{mpi:?} {}", output.err());
        let left = left_in(&runs);
        assert!(left.is_complete() && left.elapsed().is_some() && left.header.command.len() == 6, "{mpi:?}");
        assert_nothing_is_left_behind(folder.path());
        // Without space for the partial run: nothing is stored, not even a half-written file.
        let (output, runs) = on_small_disk(mpi, &folder, 120, "fill", &["at once", &long]);
        assert_eq!(output.code(), 125, "{mpi:?} {}", output.err());
        let said = [
            "pmmpi does not know whether any part of the run was saved (",
            "No space left on device",
            "). Measure again",
        ];
        assert!(said.iter().all(|said| output.err().contains(said)), "{mpi:?} {}", output.err());
        let left = fs::read_dir(runs).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
        assert_eq!(left.filter(|name| name != ".nodes").collect::<Vec<_>>(), [""; 0], "{mpi:?}");
    }
}

/// Someone removes the folder for run files during the job; the tool creates it again to save the run.
#[test]
fn a_folder_that_is_gone_is_made_again() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("gone");
        let out = folder.path().join("runs");
        let alone = machine();
        let (started, _) = begin(mpi, &Cluster::hours_apart(2), folder.path(), "500");
        fs::remove_dir_all(&out).unwrap();
        let output = started.finish().success();
        assert!(left_in(&out).is_complete(), "{mpi:?}");
        assert!(
            output.err().contains("runs was removed or unmounted while the program ran"),
            "{}",
            output.err()
        );
        // If the job is then killed, nothing remains, and a message says so.
        let gone = Folder::new("gone");
        let out = gone.path().join("runs");
        let (started, processes) = begin(mpi, &Cluster::hours_apart(2), gone.path(), "600000");
        fs::remove_dir_all(&out).unwrap();
        kill(processes[0][0]);
        let output = started.finish();
        assert!(
            output.code() != 0
                && output.err().contains("pmmpi does not know whether any part of the run was saved"),
            "{}",
            output.err()
        );
        assert!(!output.err().contains("panicked") && !out.exists(), "{}", output.err());
        // If the folder cannot be created again, the run is lost and the job fails.
        let file = Folder::new("gone");
        let out = file.path().join("runs");
        let (started, _) = begin(mpi, &Cluster::hours_apart(2), file.path(), "500");
        fs::remove_dir_all(&out).unwrap();
        fs::write(&out, "").unwrap();
        let output = started.finish();
        let said = ["could not save the run in", "Measure again with another folder"];
        assert!(said.iter().all(|said| output.err().contains(said)), "{mpi:?} {}", output.err());
        assert_eq!(output.code(), 125, "{mpi:?} {}", output.err());
        drop(alone);
        [folder, gone, file].iter().for_each(|folder| assert_nothing_is_left_behind(folder.path()));
    }
    // A plain program: between two rounds, and during a round.
    let folder = Folder::new("gone");
    let out = folder.path().join("runs");
    let script = format!("rm -r {}", out.display());
    let mut command = Command::new(pmmpi());
    let output = run(command.args(["--runs", "2", "--out"]).arg(&out).args(["sh", "-c", &script])).success();
    assert_eq!(runs_in(&out).len(), 1, "{}", output.err());
    assert!(output.err().contains("was removed or unmounted while the program ran"), "{}", output.err());
}

/// If the folder is unmounted, there is another folder in its place. The run goes there.
#[test]
fn a_folder_that_is_unmounted_leaves_another() {
    let folder = Folder::new("unmounted");
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!("umount --lazy {}", disk.display());
    let mut command = Command::new("unshare");
    let mount = format!("mount -t tmpfs none {0} && exec \"$@\"", disk.display());
    command
        .args(["--mount", "--map-root-user", "sh", "-c", &mount, "sh"])
        .arg(pmmpi())
        .arg("--out")
        .arg(&disk);
    let output = run(command.args(["sh", "-c", &script])).success();
    assert_eq!(runs_in(&disk).len(), 1, "{}", output.err());
    assert!(output.err().contains("was removed or unmounted while the program ran"), "{}", output.err());
}

/// A job that still runs is reported as running, whatever its end.
#[test]
fn a_job_that_still_runs_is_not_a_failed_one() {
    for mpi in Mpi::ALL {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("live"));
        let _alone = machine();
        let (started, processes) = begin(mpi, &cluster, folder.path(), "600000");
        let out = folder.path().join("runs");
        let mut live = serde_json::Value::Null;
        // Each node's carrier writes at a time of its own.
        while live["runs"][0]["lost_ranks"].as_array().is_none_or(|lost| lost.len() < RANKS) {
            started.assert_running();
            std::thread::sleep(Duration::from_millis(50));
            let output = run(Command::new(tool("pmmpi")).args(["report", "--format", "json"]).arg(&out));
            live = serde_json::from_slice(&output.stdout).unwrap_or_default();
        }
        let run = &live["runs"][0];
        assert!(run["end"].is_null() && run["lost_ranks"].as_array().unwrap().len() == RANKS, "{run}");
        assert_eq!(run["null_reasons"]["end"], "pmmpi did not see the end: the program may still be running");
        let codes = |run: &serde_json::Value| -> Vec<String> {
            run["warnings"].as_array().unwrap().iter().map(|w| w["code"].to_string()).collect()
        };
        assert_eq!(codes(run), ["\"incomplete-run\""], "{run}");
        kill(processes[1][0]);
        started.finish();
        let ended = report(&out);
        assert_eq!(ended["runs"][0]["end"], "signal 9", "{ended}");
        assert_eq!(codes(&ended["runs"][0])[0], "\"failed-run\"");
        assert_nothing_is_left_behind(folder.path());
    }
}

/// A rank that has done its work waits for the others in MPI_Finalize. Meanwhile its t2 is kept.
#[test]
fn what_a_rank_measured_is_kept_while_it_waits_for_others() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("late");
        let out = folder.path().join("runs");
        let _alone = machine();
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(&out).arg(programs::mpi(mpi, "ends"));
        let started = job.args(["late", "1"]).arg(folder.path()).start();
        let waits = || {
            let partial = fs::read_dir(&out).ok()?.flatten().find(|e| e.path().extension().is_some())?;
            let run = partial::read(&partial.path()).ok()?;
            let stamps = |rank: u32| {
                run.lost.iter().find(|lost| lost.rank == RankId(rank)).map(|lost| lost.t_ns.len())
            };
            Some((stamps(0)?, stamps(1)?))
        };
        while waits() != Some((3, 2)) {
            started.assert_running();
            std::thread::sleep(Duration::from_millis(5));
        }
        fs::write(folder.path().join("go"), "").unwrap();
        started.finish().success();
        assert!(left_in(&out).is_complete());
    }
}

/// When a program's time is up, all that it has started ends: its children, orphans, and processes that ignore
/// SIGTERM. The exit status shows the timeout even if the program itself exits with 0.
#[test]
fn nothing_of_a_program_whose_time_is_up_is_left() {
    for script in [
        "sh $0 sleeps; true",
        "(sh $0 sleeps &); sh $0 sleeps; true",
        "(setsid sh $0 sleeps &) & sh $0 sleeps & wait",
        "trap 'exit 0' TERM; sh $0 sleeps & wait",
        "sh $0 deaf",
        "kill -STOP $$",
    ] {
        // A process that ignores SIGTERM gets ten seconds.
        for runs in ["1", "2"].into_iter().take(if script.contains("deaf") { 1 } else { 2 }) {
            let folder = Folder::new("all");
            let helper = folder.path().join("helper");
            fs::write(&helper, "[ $1 = deaf ] && trap '' TERM\nwhile :; do sleep 0.1; done\n").unwrap();
            let mut command = Command::new(pmmpi());
            command.args(["--timeout", "0.5", "--runs", runs, "--out"]).arg(folder.path().join("runs"));
            let output = run(command.args(["sh", "-c", script]).arg(&helper));
            assert_eq!(output.code(), 124, "{script} {}", output.err());
            assert_eq!(processes_with(folder.path().to_str().unwrap()), [0; 0], "{script}");
            assert_eq!(runs_in(&folder.path().join("runs"))[0].end(), Some(End::TimedOut), "{script}");
        }
    }
    // The same under an MPI launcher, with an MPI program.
    for mpi in Mpi::ALL {
        let folder = Folder::new("all");
        let job =
            Job::local(mpi, 2).arg(pmmpi()).args(["--timeout", "2", "--out"]).arg(folder.path().join("runs"));
        let script = "\"$@\"; true";
        let job = job.args(["bash", "-c", script, "bash"]).arg(programs::mpi(mpi, "ends"));
        let output = job.args(["wait", "0"]).arg(folder.path()).arg("600000").run();
        assert_eq!(output.code(), 124, "{mpi:?} {}", output.err());
        assert_eq!(left_in(&folder.path().join("runs")).end(), Some(End::TimedOut), "{mpi:?}");
        assert_nothing_is_left_behind(folder.path());
    }
}

/// If the program or the tool cannot start for one rank, the other ranks do not wait for it. With MPICH's mpirun they
/// otherwise would.
#[test]
fn a_rank_that_cannot_be_started_ends_the_job() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("part");
        let program = programs::mpi(mpi, "ends").display().to_string();
        let place = folder.path().display().to_string();
        let here = folder.path().join("no_interpreter");
        fs::write(&here, "#!/nonexistent/sh\n").unwrap();
        run(Command::new("chmod").arg("+x").arg(&here)).success();
        let (tool, none) = (pmmpi().display().to_string(), here.display().to_string());
        let without = ["env", "PMMPI_LIBDIR=/nonexistent", &tool];
        for (ranks, code, why) in [
            (vec![&tool, "--no-save", &none], 127, "not found"),
            (
                [&without[..], &["--no-save", &program, "wait", "0", &place, "10"]].concat(),
                125,
                "libpmmpi_agent.so",
            ),
            ([&without[..], &["--no-save", "--mode", "plain", "true"]].concat(), 125, "pmmpi-runner"),
        ] {
            let plain = if ranks.contains(&"plain") { &["--mode", "plain"][..] } else { &[] };
            let job = Job::local(mpi, 1).args([&tool, "--no-save"]).args(plain).arg(&program);
            let job = job.args(["wait", "0", &place, "10", ":", "-n", "1"]).args(&ranks);
            let output = job.run();
            assert_eq!(output.code(), code, "{mpi:?} {ranks:?} {}", output.err());
            assert!(output.err().contains(why), "{mpi:?} {ranks:?} {}", output.err());
            assert_nothing_is_left_behind(folder.path());
        }
    }
}

/// A program that traps SIGTERM, writes its checkpoint and exits with 0 has not done all its work. The signal comes
/// from a batch system to every process of a step, or from a user to one launcher.
#[test]
fn a_job_that_ends_well_because_it_was_told_to_is_an_interrupted_one() {
    for (mpi, everybody) in Mpi::ALL.into_iter().flat_map(|mpi| [(mpi, true), (mpi, false)]) {
        let (cluster, folder) = (Cluster::hours_apart(2), Folder::new("trap"));
        let _alone = machine();
        let (started, processes) = begin_how(mpi, &cluster, folder.path(), &["trap", "0"]);
        let told = if everybody { processes.concat() } else { vec![processes[1][1]] };
        for process in told {
            // SAFETY: a process of this job.
            assert_eq!(unsafe { libc::kill(process, libc::SIGTERM) }, 0);
        }
        let output = started.finish().success();
        let left = left_in(&folder.path().join("runs"));
        assert!(folder.path().join("checkpoint").exists() && left.is_complete(), "{mpi:?} {}", output.err());
        assert_eq!(left.end(), Some(End::Interrupted(libc::SIGTERM)), "{mpi:?} {everybody} {}", output.err());
        assert_nothing_is_left_behind(folder.path());
    }
}
