//! What programs do is counted: all their threads and children, up to whatever end, and nothing of theirs is touched.

use pmmpi::counters::probe::Scope;
use pmmpi::counters::reading::{Cause, Gap, Quality};
use pmmpi::record::Run;
use pmmpi::{partial, runfile};
use rig::cluster::{Cluster, Job, machine};
use rig::tool::{Folder, Paranoid, pmmpi, run, tool};
use rig::{Mpi, programs};
use std::fs;
use std::path::Path;
use std::process::Command;

const RANKS: usize = 2;

/// What one rank counted of an event, and what that is worth.
fn counted(run: &Run, rank: u32, event: &str) -> (Option<u64>, Quality) {
    let totals = run.counts.totals(|row| row.rank == rank && row.region.is_none());
    let total = totals.iter().find(|total| total.event.name == event).expect("an event of the default set");
    (total.count, total.quality)
}

/// What the program itself found that it had used (ns).
fn used_ns(folder: &Path, rank: u32) -> u64 {
    fs::read_to_string(folder.join(format!("cpu.{rank}"))).unwrap().trim().parse().unwrap()
}

fn assert_all_was_counted(run: &Run, folder: &Path, ranks: u32) {
    for rank in 0..ranks {
        let (used, (count, quality)) = (used_ns(folder, rank), counted(run, rank, "task_clock_ns"));
        let count = count.unwrap();
        assert_eq!(quality, Quality::Exact);
        let off = (count as f64 - used as f64) / used as f64;
        // Four threads and children of 100 ms; a rank that waits for another at its end waits outside.
        assert!(used >= 390_000_000 && off.abs() < 0.02, "rank {rank}: {count} of {used} ns");
        assert!(counted(run, rank, "page_faults").0.is_some_and(|faults| faults > 0));
        assert!(counted(run, rank, "context_switches").0.is_some_and(|switches| switches > 0));
    }
}

#[test]
fn every_thread_and_child_of_an_mpi_program_is_counted() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("burns");
        let job = Job::local(mpi, RANKS).arg(pmmpi()).arg("--out").arg(folder.path());
        job.arg(programs::mpi(mpi, "burns")).arg(folder.path()).run().success();
        let runs = folder.runs();
        assert_all_was_counted(&runs[0], folder.path(), RANKS as u32);
        let [least, most] = runs[0].counts.cost.unwrap();
        assert!(0 < least.opening_ns && least.snapshots_ns[0] <= most.snapshots_ns[0]);
    }
}

#[test]
fn every_thread_and_child_of_a_plain_program_is_counted() {
    let folder = Folder::new("burns");
    let mut command = Command::new(pmmpi());
    command
        .args(["--runs", "2", "--out"])
        .arg(folder.path())
        .arg(programs::plain("burns"))
        .arg(folder.path());
    run(&mut command).success();
    let runs = folder.runs();
    assert_eq!(runs.len(), 2);
    let counts: Vec<_> = runs.iter().map(|run| counted(run, 0, "task_clock_ns").0.unwrap()).collect();
    assert!(counts[1] < 2 * counts[0], "each round counts its own: {counts:?}");
    let agrees = |run: &Run, rank: usize| {
        let record = &run.ranks[rank];
        let cpu = (record.cpu_user_ns + record.cpu_system_ns) as f64;
        let count = counted(run, rank as u32, "task_clock_ns").0.unwrap() as f64;
        assert!((count - cpu).abs() / cpu < 0.02, "rank {rank}: {count} of {cpu} ns");
    };
    runs.iter().for_each(|run| agrees(run, 0));
    // The program measures itself from its main on; its start, which takes what it takes, is counted, too.
    let used = used_ns(folder.path(), 0) as f64;
    assert!(counts[1] as f64 > 0.98 * used, "{counts:?} {used}");
    // Under an MPI launcher by the runner.
    for mpi in Mpi::ALL {
        let folder = Folder::new("burns");
        let job = Job::local(mpi, RANKS).arg(pmmpi()).args(["--mode", "plain", "--out"]).arg(folder.path());
        job.arg(programs::plain("burns")).arg(folder.path()).run().success();
        let run = &folder.runs()[0];
        (0..RANKS).for_each(|rank| agrees(run, rank));
    }
}

/// Counters outlive what they counted: the launcher has them, too.
#[test]
fn what_a_killed_rank_counted_is_kept() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("killed");
        let out = folder.path().join("runs");
        let job = Job::local(mpi, RANKS).arg(pmmpi()).arg("--out").arg(&out).arg(programs::mpi(mpi, "burns"));
        let output = job.arg(folder.path()).arg("kill").run();
        assert_ne!(output.code(), 0);
        let left = fs::read_dir(&out).unwrap().flatten().map(|entry| entry.path());
        let left = left.filter(|path| path.extension().is_some_and(|e| e == "partial")).min().unwrap();
        let run = partial::read(&left).unwrap();
        let (used, count) = (used_ns(folder.path(), 1), counted(&run, 1, "task_clock_ns").0.unwrap());
        assert!(count as f64 > 0.98 * used as f64, "{mpi:?} {count} of {used}");
    }
}

/// A program that closes what it did not open, and opens something else in its place, loses nothing to the tool.
#[test]
fn a_counter_that_the_program_closed_is_not_read() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("closed");
        let job = Job::local(mpi, 1).arg(pmmpi()).arg("--out").arg(folder.path());
        job.arg(programs::mpi(mpi, "burns")).arg(folder.path()).arg("close").run().success();
        let run = &folder.runs()[0];
        assert_eq!(counted(run, 0, "task_clock_ns"), (None, Quality::Unavailable));
        let totals = run.counts.totals(|_| true);
        let clock = totals.iter().find(|total| total.event.name == "task_clock_ns").unwrap();
        assert!(clock.reason.as_deref().unwrap().contains("closed the counter's descriptor"));
    }
}

#[test]
fn regions_count_what_happens_in_them() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("touch");
        let flags = ["-DWITH_MPI", "-DWITH_REGIONS"];
        let program = programs::with_regions(mpi, "burns", &flags, "counted");
        let job = Job::local(mpi, RANKS).arg(pmmpi()).arg("--out").arg(folder.path());
        job.arg(program).arg(folder.path()).arg("touch").run().success();
        let run = &folder.runs()[0];
        assert_all_was_counted(run, folder.path(), RANKS as u32);
        assert_eq!(run.counts.regions, ["touch"]);
        for rank in 0..RANKS as u32 {
            let totals = run.counts.totals(|row| row.rank == rank && row.region == Some(0));
            let faults = totals.iter().find(|total| total.event.name == "page_faults").unwrap();
            assert_eq!((faults.count, faults.quality), (Some(3 * 16), Quality::Exact), "{mpi:?}");
        }
        let json = run_report(folder.path());
        let region = &json["runs"][0]["regions"][0];
        let faults = region["counters"].as_array().unwrap().iter().find(|c| c["name"] == "page_faults");
        assert_eq!(faults.unwrap()["value"], 2 * 3 * 16);
    }
}

/// Every hardware thread of every node, each counted by one rank of its node and placed in its topology.
#[test]
fn hardware_threads_are_counted_and_placed() {
    let online = std::thread::available_parallelism().unwrap().get();
    for mpi in Mpi::ALL {
        let (folder, cluster) = (Folder::new("core"), Cluster::hours_apart(2));
        let job = cluster.mpirun(mpi, 3).arg(pmmpi()).args(["--scope", "core", "--out"]).arg(folder.path());
        job.arg(programs::mpi(mpi, "burns")).arg(folder.path()).run().success();
        let run = &run_report(folder.path())["runs"][0];
        let places = run["places"].as_array().unwrap();
        assert_eq!((places.len(), run["places_count"].as_u64()), (2 * online, Some(2 * online as u64)));
        for (at, place) in places.iter().enumerate() {
            let (node, thread) = (format!("node{}", at / online), at % online);
            assert_eq!(
                (&place["node"], &place["hardware_thread"]),
                (&node.into(), &thread.into()),
                "{place}"
            );
            assert!(
                place["scope"] == "core" && place["core"].is_u64() && place["socket"].is_u64(),
                "{place}"
            );
            // Both hosts are this machine: somebody ran on each of its threads meanwhile.
            assert!(place["values"]["context_switches"].as_f64().is_some_and(|count| count > 0.0), "{place}");
            assert!(place["values"]["cycles"].is_null() || place["values"]["cycles"].as_f64() > Some(0.0));
        }
    }
}

/// Siblings are watched by one rank of each node, and what comes of it is the mean over cores, or says why not.
#[test]
fn siblings_are_counted_and_the_mean_over_cores_says_what_it_is_worth() {
    let folder = Folder::new("smt");
    let job =
        Job::local(Mpi::OpenMpi, RANKS).arg(pmmpi()).args(["--group", "smt", "--out"]).arg(folder.path());
    job.arg(programs::mpi(Mpi::OpenMpi, "burns")).arg(folder.path()).run().success();
    let run = &run_report(folder.path())["runs"][0];
    let counters = run["counters"].as_array().unwrap();
    let counters: Vec<_> = counters.iter().filter(|of| of["scope"] == "core").collect();
    let is_counted = |of: &serde_json::Value| of["value"].as_u64().is_some_and(|count| count > 0);
    for name in ["ref_cycles_a", "ref_cycles_b"] {
        let counter = counters.iter().find(|counter| counter["name"] == name).expect(name);
        assert!(is_counted(counter) || counter["value"].is_null() && counter["reason"].is_string());
    }
    for name in ["smt_both", "smt_both_lower", "smt_both_upper"] {
        let metric = run["metrics"].as_array().unwrap().iter().find(|of| of["name"] == name).expect(name);
        let is_part = metric["value"].as_f64().is_some_and(|part| (-1e-3..1.001).contains(&part));
        assert!(is_part || metric["value"].is_null() && metric["reason"].is_string(), "{metric}");
    }
    // Of those that have a second hardware thread, each was watched on both.
    let of = |name: &str| {
        let places = run["places"].as_array().unwrap().iter();
        places.filter(|place| place["values"].get(name).is_some()).count()
    };
    assert!(of("ref_cycles_b") <= of("ref_cycles_a"));
}

/// What nobody can count ends no program, and its exit status is its own.
#[test]
fn a_group_that_cannot_be_counted_ends_nothing() {
    for (program, code) in [("true", 0), ("false", 1)] {
        let folder = Folder::new("smt");
        let mut command = Command::new(pmmpi());
        command.args(["--group", "smt", "--out"]).arg(folder.path()).arg(program);
        assert_eq!(run(&mut command).code(), code);
        let sets = &folder.runs()[0].counts.sets;
        let of_cores: Vec<_> = sets.iter().filter(|set| set.scope == Scope::Core).collect();
        let names = |set: &&pmmpi::counters::probe::Set| set.events[0].0.name.clone();
        let names: Vec<String> = of_cores.iter().map(names).collect();
        assert_eq!(names, ["ref_cycles_a", "ref_cycles_b"]);
        let smt = fs::read_to_string("/sys/devices/system/cpu/smt/active").unwrap_or_default();
        if smt.trim() == "0" {
            assert_eq!(of_cores[1].events[0].1, Some(Gap::Unavailable(Cause::NoSuchThread)));
        }
    }
}

/// What is asked for beside the default set, by each kind of name.
#[test]
fn events_are_counted_by_their_names() {
    let folder = Folder::new("events");
    let mut command = Command::new(pmmpi());
    command.args(["--events", "minor-faults,major-faults,cpu-clock", "--out"]).arg(folder.path());
    run(command.arg(programs::plain("burns")).arg(folder.path())).success();
    let run = &folder.runs()[0];
    let (faults, _) = counted(run, 0, "page_faults");
    let (minor, major) = (counted(run, 0, "minor-faults"), counted(run, 0, "major-faults"));
    assert_eq!((minor.1, major.1), (Quality::Exact, Quality::Exact));
    assert_eq!(faults, minor.0.zip(major.0).map(|(minor, major)| minor + major));
    // A tracepoint, where this user may see it: what it stands for is counted by the kernel, too.
    if Path::new("/sys/kernel/tracing/events/sched/sched_switch/id").exists() {
        let folder = Folder::new("tracepoint");
        let mut command = Command::new(pmmpi());
        command.args(["--events", "sched:sched_switch", "--out"]).arg(folder.path());
        rig::tool::run(command.arg(programs::plain("burns")).arg(folder.path())).success();
        let run = &folder.runs()[0];
        assert_eq!(counted(run, 0, "sched:sched_switch"), counted(run, 0, "context_switches"));
    }
    // What the default set has is counted once, whatever it is called.
    let folder = Folder::new("twice");
    let mut command = Command::new(pmmpi());
    command.args(["--events", "task-clock,page-faults", "--out"]).arg(folder.path());
    rig::tool::run(command.arg(programs::plain("burns")).arg(folder.path())).success();
    let run = &folder.runs()[0];
    let names: Vec<_> = run.counts.totals(|_| true).iter().map(|total| total.event.name.clone()).collect();
    assert_eq!(names.iter().filter(|name| *name == "page_faults").count(), 1);
    assert_eq!(run.counts.sets.len(), 1, "{names:?}");
    for (option, value, said) in [
        ("--events", "nonsense", "unknown event nonsense"),
        ("--group", "nonsense", "no such group; there are default, efficiency"),
        ("--scope", "socket", "name events of PMUs outside the cores with --events"),
    ] {
        let output = rig::tool::run(Command::new(pmmpi()).args([option, value, "--no-save", "true"]));
        assert!(output.code() == 125 && output.err().contains(said), "{}", output.err());
    }
}

fn run_report(folder: &Path) -> serde_json::Value {
    let output = run(Command::new(tool("pmmpi")).args(["report", "--format", "json"]).arg(folder)).success();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a user may not count is said, and is never 0.
#[test]
fn what_a_user_may_not_count_is_said() {
    let _alone = machine();
    let _level = Paranoid::set("2");
    let folder = Folder::new("paranoid");
    run(Command::new("chmod").arg("777").arg(folder.path())).success();
    // Where that user can reach it.
    let program = folder.path().join("burns");
    fs::copy(programs::plain("burns"), &program).unwrap();
    run_as_nobody(&folder, &program, "755");
    let run = runfile::read(&runs_of(&folder)[0]).unwrap();
    assert_eq!(counted(&run, 0, "task_clock_ns").1, Quality::Exact);
    assert_eq!(counted(&run, 0, "page_faults").1, Quality::Partial);
    assert_eq!(counted(&run, 0, "context_switches"), (None, Quality::Denied));
    assert_eq!(counted(&run, 0, "migrations"), (None, Quality::Denied));
    let used = used_ns(folder.path(), 0) as f64;
    let count = counted(&run, 0, "task_clock_ns").0.unwrap() as f64;
    assert!((count - used).abs() / used < 0.03, "{count} {used}");
    // Of a program that this user may run and not read the kernel counts nothing, and it does not say so.
    run_as_nobody(&folder, &program, "711");
    let file = runs_of(&folder).pop().unwrap();
    let hidden = runfile::read(&file).unwrap();
    assert_eq!(counted(&hidden, 0, "task_clock_ns"), (None, Quality::Unavailable));
}

fn run_as_nobody(folder: &Folder, program: &Path, mode: &str) {
    run(Command::new("chmod").arg(mode).arg(program)).success();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(pmmpi());
    command.arg("--out").arg(folder.path().join("runs")).arg(program).arg(folder.path());
    run(&mut command).success();
}

/// In the order of their start.
fn runs_of(folder: &Folder) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(folder.path().join("runs")).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "pmr")).collect();
    files.sort();
    files
}
