//! Programs are counted with all their threads and children, whatever their end, and the tool does not disturb them.

use pmmpi::RankId;
use pmmpi::counters::count_and_quality::{Gap, Quality, WhyUnavailable};
use pmmpi::counters::open_counters::Scope;
use pmmpi::node::NodeSettings;
use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::record::run_file;
use pmmpi_events::totals::totals;
use rig::cluster::{Cluster, Job, machine};
use rig::tool::{Folder, Paranoid, pmmpi, run, tool};
use rig::{Mpi, programs};
use std::fs;
use std::path::Path;
use std::process::Command;

const RANKS: usize = 2;

/// The count of an event on one rank, and its quality.
fn counted(run: &Run, rank: u32, event: &str) -> (Option<u64>, Quality) {
    let totals = totals(&run.counts, |row| row.rank == RankId(rank) && row.region.is_none());
    let total = totals.iter().find(|total| total.event.name == event).expect("an event of the default set");
    (total.count, total.quality)
}

/// What tests/programs/burns.c reports for one rank.
struct Used {
    /// CPU time that the program itself measured (ns).
    cpu_ns: u64,
    /// Number of pages that each of its threads and children touched.
    pages: u64,
}

/// Two threads, a child, and a child's child: each burns 100 ms and touches pages.
const WORKERS: u64 = 4;

impl Used {
    fn read(folder: &Path, rank: u32) -> Self {
        let text = fs::read_to_string(folder.join(format!("cpu.{rank}"))).unwrap();
        let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        Self { cpu_ns: numbers[0], pages: numbers[1] }
    }

    /// Every worker was counted, and none twice. On a busy machine CPU time alone does not show this. The task's
    /// clock includes time that a hypervisor takes, and the kernel's CPU time does not; so the clock has only a lower
    /// limit.
    fn assert_was_counted(&self, run: &Run, rank: u32) {
        let (clock_ns, quality) = counted(run, rank, "task_clock_ns");
        assert_eq!(quality, Quality::Exact);
        // 400 ms by the threads' own clocks; getrusage, which gives the children's time, may be less exact.
        assert!(self.cpu_ns >= 390_000_000, "rank {rank}: {} ns", self.cpu_ns);
        assert!(clock_ns.is_some_and(|ns| 10 * ns >= 9 * self.cpu_ns), "rank {rank}: {clock_ns:?} ns");
        let faults = counted(run, rank, "page_faults").0.unwrap();
        let range = WORKERS * self.pages..(WORKERS + 1) * self.pages;
        assert!(range.contains(&faults), "rank {rank}: {faults} faults, not {range:?}");
    }
}

fn assert_all_was_counted(run: &Run, folder: &Path, ranks: u32) {
    for rank in 0..ranks {
        Used::read(folder, rank).assert_was_counted(run, rank);
        assert!(counted(run, rank, "context_switches").0.is_some_and(|switches| switches > 0));
        assert_fits_the_machine(run, rank);
    }
}

/// The clock shows at most the time of all hardware threads between t1 and t2.
fn assert_fits_the_machine(run: &Run, rank: u32) {
    let clock_ns = counted(run, rank, "task_clock_ns").0.unwrap() as f64;
    let record = run.ranks.iter().find(|record| record.rank == RankId(rank)).unwrap();
    let [_, t1_ns, t2_ns, _] = <[i64; 4]>::from(record.stamps);
    let most_ns = (t2_ns - t1_ns) as f64 * online().len() as f64;
    // The scheduler's clock and CLOCK_MONOTONIC may differ by the slew of a time service.
    assert!(clock_ns <= 1.001 * most_ns, "rank {rank}: {clock_ns} of {most_ns} ns");
}

/// The hardware threads of this machine, by the kernel's numbers.
fn online() -> Vec<u32> {
    NodeSettings::read(Path::new("/")).online.numbers().collect()
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
    // Both rounds wrote their usage to the same file; each round has its own counts only.
    runs.iter().for_each(|run| assert_plain_was_counted(run, folder.path(), 0));
    // Under an MPI launcher, the runner measures the program.
    for mpi in Mpi::ALL {
        let folder = Folder::new("burns");
        let job = Job::local(mpi, RANKS).arg(pmmpi()).args(["--mode", "plain", "--out"]).arg(folder.path());
        job.arg(programs::plain("burns")).arg(folder.path()).run().success();
        let run = &folder.runs()[0];
        (0..RANKS as u32).for_each(|rank| assert_plain_was_counted(run, folder.path(), rank));
    }
}

/// Ranks of a plain program do not know their numbers: all write nearly the same values to one file.
fn assert_plain_was_counted(run: &Run, folder: &Path, rank: u32) {
    let record = &run.ranks[rank as usize];
    // The kernel's own accounting of the process and of all children that it waited for.
    let cpu_ns = (record.cpu_user_ns + record.cpu_system_ns) as u64;
    Used { cpu_ns, ..Used::read(folder, 0) }.assert_was_counted(run, rank);
    assert_fits_the_machine(run, rank);
}

/// Counters outlive the counted process, because the launcher also has them open.
#[test]
fn what_a_killed_rank_counted_is_kept() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("killed");
        let out = folder.path().join("runs");
        let job = Job::local(mpi, RANKS).arg(pmmpi()).arg("--out").arg(&out).arg(programs::mpi(mpi, "burns"));
        let output = job.arg(folder.path()).arg("kill").run();
        assert_ne!(output.code(), 0);
        rig::tool::wait_until_gone(&out);
        let left = fs::read_dir(&out).unwrap().flatten().map(|entry| entry.path());
        let left = left.filter(|path| path.extension().is_some_and(|e| e == "partial")).min().unwrap();
        let run = partial::read(&left).unwrap();
        Used::read(folder.path(), 1).assert_was_counted(&run, 1);
    }
}

/// If the program closes a counter's descriptor and opens another file with its number, the tool does not touch that
/// file.
#[test]
fn a_counter_that_the_program_closed_is_not_read() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("closed");
        let job = Job::local(mpi, 1).arg(pmmpi()).arg("--out").arg(folder.path());
        job.arg(programs::mpi(mpi, "burns")).arg(folder.path()).arg("close").run().success();
        let run = &folder.runs()[0];
        assert_eq!(counted(run, 0, "task_clock_ns"), (None, Quality::Unavailable));
        let totals = totals(&run.counts, |_| true);
        let clock = totals.iter().find(|total| total.event.name == "task_clock_ns").unwrap();
        assert!(clock.reason.as_ref().unwrap().to_string().contains("closed the counter's descriptor"));
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
            let totals = totals(&run.counts, |row| row.rank == RankId(rank) && row.region == Some(0));
            let faults = totals.iter().find(|total| total.event.name == "page_faults").unwrap();
            assert_eq!((faults.count, faults.quality), (Some(3 * 16), Quality::Exact), "{mpi:?}");
        }
        let json = run_report(folder.path());
        let region = &json["runs"][0]["regions"][0];
        let faults = region["counters"].as_array().unwrap().iter().find(|c| c["name"] == "page_faults");
        assert_eq!(faults.unwrap()["value"], 2 * 3 * 16);
    }
}

/// One rank of each node counts every hardware thread of its node. The report shows each in the node's topology.
#[test]
fn hardware_threads_are_counted_and_placed() {
    let online = online();
    for mpi in Mpi::ALL {
        let (folder, cluster) = (Folder::new("core"), Cluster::hours_apart(2));
        let job = cluster.mpirun(mpi, 3).arg(pmmpi()).args(["--scope", "core", "--out"]).arg(folder.path());
        job.arg(programs::mpi(mpi, "burns")).arg(folder.path()).run().success();
        let run = &run_report(folder.path())["runs"][0];
        let places = run["places"].as_array().unwrap();
        let expected = 2 * online.len();
        assert_eq!((places.len(), run["places_count"].as_u64()), (expected, Some(expected as u64)));
        let all = ["node0", "node1"].into_iter().flat_map(|node| online.iter().map(move |at| (node, *at)));
        for (place, (node, thread)) in places.iter().zip(all) {
            assert_eq!(
                (&place["node"], &place["hardware_thread"]),
                (&node.into(), &thread.into()),
                "{place}"
            );
            assert!(
                place["scope"] == "core" && place["core"].is_u64() && place["socket"].is_u64(),
                "{place}"
            );
            assert!(place["values"]["context_switches"].is_number(), "{place}");
        }
        // Both hosts are this machine. Some hardware threads may have been idle, but not the thread of a rank.
        for node in ["node0", "node1"] {
            let switches = places.iter().filter(|place| place["node"] == node);
            let switches = switches.map(|place| place["values"]["context_switches"].as_f64().unwrap());
            assert!(switches.sum::<f64>() > 0.0, "{places:#?}");
        }
    }
}

/// One rank per node counts on sibling hardware threads. The result is the mean over cores, or a reason.
#[test]
fn siblings_are_counted_and_the_mean_over_cores_says_what_it_is_worth() {
    let folder = Folder::new("smt");
    let job =
        Job::local(Mpi::OpenMpi, RANKS).arg(pmmpi()).args(["--group", "smt", "--out"]).arg(folder.path());
    job.arg(programs::mpi(Mpi::OpenMpi, "burns")).arg(folder.path()).run().success();
    let run = &run_report(folder.path())["runs"][0];
    let counters = run["counters"].as_array().unwrap();
    let is_counted = |of: &serde_json::Value| of["value"].as_u64().is_some_and(|count| count > 0);
    for name in events_of_smt().1 {
        let counter =
            counters.iter().find(|counter| counter["name"] == name.as_str()).expect("what is asked for");
        assert!(is_counted(counter) || counter["value"].is_null() && counter["reason"].is_string());
    }
    for name in ["smt_both", "smt_both_lower", "smt_both_upper"] {
        let metric = run["metrics"].as_array().unwrap().iter().find(|of| of["name"] == name).expect(name);
        let is_part = metric["value"].as_f64().is_some_and(|part| (-1e-3..1.001).contains(&part));
        assert!(is_part || metric["value"].is_null() && metric["reason"].is_string(), "{metric}");
    }
    // Every core with a second hardware thread was counted on both threads.
    let of = |name: &str| {
        let places = run["places"].as_array().unwrap().iter();
        places.filter(|place| place["values"].get(name).is_some()).count()
    };
    assert!(of("ref_cycles_b") <= of("ref_cycles_a"));
}

/// A group that cannot be counted ends no program and does not change its exit status.
#[test]
fn a_group_that_cannot_be_counted_ends_nothing() {
    for (program, code) in [("true", 0), ("false", 1)] {
        let folder = Folder::new("smt");
        let mut command = Command::new(pmmpi());
        command.args(["--group", "smt", "--out"]).arg(folder.path()).arg(program);
        assert_eq!(run(&mut command).code(), code);
        let sets = &folder.runs()[0].counts.sets;
        let of = |name: &str| {
            let mut all = sets.iter().flat_map(|set| set.events.iter().map(move |event| (set.scope, event)));
            all.find(|(_, (event, _))| event.name == name).expect("what is asked for")
        };
        let (processor, names) = events_of_smt();
        names.iter().for_each(|name| _ = of(name));
        let smt = fs::read_to_string("/sys/devices/system/cpu/smt/active").unwrap_or_default();
        if smt.trim() == "0" && names.iter().any(|name| name == "ref_cycles_b") {
            let (scope, (_, gap)) = of("ref_cycles_b");
            // On Zen to Zen 3 the event belongs to a PMU, which the machine has or not; on other processors the event has
            // a number on any machine.
            let is_of_pmu = ["AMD Zen and Zen+", "AMD Zen 2", "AMD Zen 3"].contains(&processor.as_str());
            let has_pmu = Path::new("/sys/bus/event_source/devices/msr/events/mperf").exists();
            let expected = match is_of_pmu && !has_pmu {
                true => Gap::Unsupported(libc::ENODEV),
                false => Gap::Unavailable(WhyUnavailable::NoSuchThread),
            };
            assert_eq!((scope, gap), (Scope::Core, &Some(expected)));
        }
    }
}

/// This machine's processor, and the events of the group smt on it; each vendor has other events.
fn events_of_smt() -> (String, Vec<String>) {
    let output = run(Command::new(pmmpi()).args(["list", "groups", "smt", "--format", "json"])).success();
    let groups: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let smt = groups["groups"].as_array().unwrap().iter().find(|group| group["name"] == "smt").unwrap();
    let names =
        smt["events"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    (groups["processor"].as_str().unwrap().to_owned(), names)
}

/// Events requested in addition to the default set, with each kind of name.
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
    // A tracepoint, if this user may see it; the kernel also counts the event that it corresponds to.
    if Path::new("/sys/kernel/tracing/events/sched/sched_switch/id").exists() {
        let folder = Folder::new("tracepoint");
        let mut command = Command::new(pmmpi());
        command.args(["--events", "sched:sched_switch", "--out"]).arg(folder.path());
        rig::tool::run(command.arg(programs::plain("burns")).arg(folder.path())).success();
        let run = &folder.runs()[0];
        assert_eq!(counted(run, 0, "sched:sched_switch"), counted(run, 0, "context_switches"));
    }
    // An event of the default set is counted once, whatever name the user gives.
    let folder = Folder::new("twice");
    let mut command = Command::new(pmmpi());
    command.args(["--events", "task-clock,page-faults", "--out"]).arg(folder.path());
    rig::tool::run(command.arg(programs::plain("burns")).arg(folder.path())).success();
    let run = &folder.runs()[0];
    let names: Vec<_> = totals(&run.counts, |_| true).iter().map(|total| total.event.name.clone()).collect();
    assert_eq!(names.iter().filter(|name| *name == "page_faults").count(), 1);
    assert_eq!(run.counts.sets.len(), 1, "{names:?}");
    for (option, value, said) in [
        ("--events", "nonsense", "unknown event nonsense"),
        ("--group", "nonsense", "there is no group of this name; choose one of default, efficiency"),
        ("--scope", "socket", "--scope socket needs events of PMUs outside the cores: add --events"),
    ] {
        let output = rig::tool::run(Command::new(pmmpi()).args([option, value, "--no-save", "true"]));
        assert!(output.code() == 125 && output.err().contains(said), "{}", output.err());
    }
}

fn run_report(folder: &Path) -> serde_json::Value {
    let output = run(Command::new(tool("pmmpi")).args(["report", "--format", "json"]).arg(folder)).success();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An event that the user may not count has a reason, and is never 0.
#[test]
fn what_a_user_may_not_count_is_said() {
    let _alone = machine();
    let _level = Paranoid::set("2");
    let folder = Folder::new("paranoid");
    run(Command::new("chmod").arg("777").arg(folder.path())).success();
    // In a folder that this user can access.
    let program = folder.path().join("burns");
    fs::copy(programs::plain("burns"), &program).unwrap();
    run_as_nobody(&folder, &program, "755");
    let run = run_file::read(&runs_of(&folder)[0]).unwrap();
    assert_eq!(counted(&run, 0, "task_clock_ns").1, Quality::Exact);
    assert_eq!(counted(&run, 0, "page_faults").1, Quality::Partial);
    assert_eq!(counted(&run, 0, "context_switches"), (None, Quality::Denied));
    assert_eq!(counted(&run, 0, "migrations"), (None, Quality::Denied));
    let (used, clock_ns) = (Used::read(folder.path(), 0), counted(&run, 0, "task_clock_ns").0.unwrap());
    assert!(10 * clock_ns >= 9 * used.cpu_ns, "{clock_ns} of {} ns", used.cpu_ns);
    let faults = counted(&run, 0, "page_faults").0.unwrap();
    assert!((WORKERS * used.pages..(WORKERS + 1) * used.pages).contains(&faults), "{faults}");
    // If this user may execute a program but not read it, the kernel counts nothing and gives no error.
    run_as_nobody(&folder, &program, "711");
    let file = runs_of(&folder).pop().unwrap();
    let hidden = run_file::read(&file).unwrap();
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
