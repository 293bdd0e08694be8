//! Regions that programs name: each entry has its own barriers, and all entries need a fixed amount of memory.

use pmmpi::record::Run;
use pmmpi::regions::RegionBounds;
use rig::cluster::{Cluster, Job};
use rig::tool::{Folder, pmmpi, run, runs_in, tool};
use rig::{Mpi, programs};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: usize = 3;

fn c(mpi: Mpi) -> PathBuf {
    programs::with_regions(mpi, "regions", &["-fPIE", "-pie"], "regions")
}

/// The only run of this program with this number of entries.
fn measured(job: Job, folder: &Path, program: PathBuf, options: &[&str], entries: &str, ms: &str) -> Run {
    let runs = folder.join("runs");
    let job = job.arg(pmmpi()).args(options).arg("--out").arg(&runs).arg(program);
    job.arg(folder).args([entries, ms]).run().success();
    let mut runs = runs_in(&runs);
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// For each region, the sum over its entries of the time from the first rank's begin to the last rank's end.
fn truths_ns(folder: &Path) -> HashMap<String, i64> {
    let read = |rank: usize| std::fs::read_to_string(folder.join(format!("truth.{rank}"))).unwrap();
    let ranks: Vec<String> = (0..RANKS).map(read).collect();
    let lines: Vec<Vec<&str>> = ranks.iter().map(|rank| rank.lines().collect()).collect();
    let mut truths = HashMap::new();
    for number in 0..lines[0].len() {
        let entry: Vec<(&str, i64, i64)> = lines
            .iter()
            .map(|rank| {
                let (rest, end) = rank[number].rsplit_once(' ').unwrap();
                let (name, begin) = rest.rsplit_once(' ').unwrap();
                (name, begin.parse().unwrap(), end.parse().unwrap())
            })
            .collect();
        let took = entry.iter().map(|e| e.2).max().unwrap() - entry.iter().map(|e| e.1).min().unwrap();
        *truths.entry(entry[0].0.to_owned()).or_insert(0) += took;
    }
    truths
}

/// The program's own clock readings are within each entry.
fn assert_true(truth_ns: i64, bounds: &RegionBounds) {
    let entries = bounds.entries.expect("every rank entered it equally often") as i64;
    let context = format!("{truth_ns} {bounds:?}");
    assert!(bounds.lower_ns <= bounds.upper_ns && truth_ns <= bounds.upper_ns, "{context}");
    assert!(bounds.lower_ns - truth_ns < 30_000_000 * entries, "{context}");
}

fn measure(mpi: Mpi, options: &[&str]) {
    let (folder, cluster) = (Folder::new("regions"), Cluster::hours_apart(2));
    let run = measured(cluster.mpirun(mpi, RANKS), folder.path(), c(mpi), options, "4", "5");
    let bounds = run.regions.bounds(RANKS, run.max_drift());
    let names: Vec<&str> = bounds.iter().map(|bounds| bounds.name).collect();
    let expected = ["solve", "step", "MPI_Pcontrol(2)", "MPI_Pcontrol(3)", "until the end"];
    assert_eq!(names, expected, "the order in which they were left first");
    assert_eq!(bounds.iter().map(|b| b.entries).collect::<Vec<_>>(), [4, 4, 1, 1, 1].map(Some));
    let truths = truths_ns(folder.path());
    bounds.iter().for_each(|bounds| assert_true(truths[bounds.name], bounds));
    // The region around it is longer, and no region is longer than the run.
    let elapsed = run.elapsed().unwrap();
    assert!(bounds[0].lower_ns <= bounds[1].upper_ns && bounds[1].lower_ns <= elapsed.upper_ns);
    // Each rank sleeps 5 ms plus its number in ms: the last rank is slightly the slowest.
    assert!(bounds[0].lower_ns >= 4 * 7_000_000 - 1_000_000 && bounds[0].mean_ns <= bounds[0].slowest.1);
    let paused: Vec<u32> = run.regions.paused.iter().map(|(rank, _)| rank.0).collect();
    assert_eq!(paused, [0, 1, 2]);
    let report = Command::new(tool("pmmpi")).arg("report").arg(folder.path().join("runs")).output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("MPI_Pcontrol(3)") && report.contains("[paused]"), "{report}");
}

#[test]
fn regions_are_bounded_under_open_mpi() {
    measure(Mpi::OpenMpi, &["--regions", "pcontrol"]);
}

#[test]
fn regions_are_bounded_under_mpich() {
    measure(Mpi::Mpich, &["--sync", "pingpong", "--regions", "pcontrol"]);
}

#[test]
fn regions_from_fortran_are_measured() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("fortran");
        let program = programs::with_regions(mpi, "regions.f90", &[], "fortran");
        assert_eq!(Job::local(mpi, 2).arg(&program).run().success().out(), "", "without the tool");
        let options = ["--regions", "pcontrol"];
        let run = measured(Job::local(mpi, 2), folder.path(), program, &options, "", "");
        let bounds = run.regions.bounds(2, run.max_drift());
        let entered: Vec<_> = bounds.iter().map(|bounds| (bounds.name, bounds.entries)).collect();
        assert_eq!(entered, [("solve", Some(3)), ("MPI_Pcontrol(2)", Some(3))]);
        assert!(
            bounds.iter().all(|bounds| bounds.lower_ns >= 29_000_000 && bounds.lower_ns <= bounds.upper_ns)
        );
    }
}

/// In an executable at a fixed address, the linker resolves weak symbols; a static executable has no dlsym.
#[test]
fn however_a_program_is_linked_its_marks_do_no_harm() {
    for mpi in Mpi::ALL {
        let fixed = programs::with_regions(mpi, "regions", &["-fno-pie", "-no-pie"], "fixed");
        let folder = Folder::new("fixed");
        Job::local(mpi, 2).arg(&fixed).arg(folder.path()).args(["2", "1"]).run().success();
        let run = measured(Job::local(mpi, 2), folder.path(), fixed, &[], "2", "1");
        // If MPI_Pcontrol belongs to another tool, MPI_Pcontrol(0) pauses nothing.
        assert_eq!(run.regions.names, ["solve", "step", "unseen", "until the end"]);
    }
    let program = programs::statically_linked("marks");
    assert_eq!(run(Command::new(program).arg("x")).success().out(), "done\n");
}

#[test]
fn regions_can_be_left_alone() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("off");
        let run = measured(Job::local(mpi, 2), folder.path(), c(mpi), &["--regions", "off"], "2", "1");
        assert!(run.regions.names.is_empty() && run.regions.paused.is_empty());
    }
}

/// The file of a run with 3,000 entries is as large as that of a run with 3, except for larger numbers.
#[test]
fn entries_take_no_room() {
    let bytes = |entries: &str| {
        let folder = Folder::new("entries");
        let run = measured(Job::local(Mpi::OpenMpi, 2), folder.path(), c(Mpi::OpenMpi), &[], entries, "0");
        let bounds = run.regions.bounds(2, run.max_drift());
        assert_eq!(bounds[0].entries, Some(entries.parse().unwrap()));
        let mut files = std::fs::read_dir(folder.path().join("runs")).unwrap().map(|entry| entry.unwrap());
        files
            .find(|file| file.path().extension().is_some_and(|e| e == "pmr"))
            .unwrap()
            .metadata()
            .unwrap()
            .len()
    };
    let (few, many) = (bytes("3"), bytes("3000"));
    assert!(many < few + 200, "{few} {many}");
}

/// The launchers keep what their ranks did in regions until a kill; at least one launcher outlives its rank.
#[test]
fn regions_of_a_killed_job_are_kept() {
    for mpi in Mpi::ALL {
        let (folder, runs) = (Folder::new("killed"), Folder::new("killed-runs"));
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(runs.path()).arg(c(mpi));
        let started = job.arg(folder.path()).args(["-3", "5"]).run();
        assert!(!started.status.success());
        rig::tool::wait_until_gone(runs.path());
        let left = std::fs::read_dir(runs.path()).unwrap().map(|entry| entry.unwrap().path());
        let left: Vec<_> = left.filter(|path| path.extension().is_some_and(|e| e == "partial")).collect();
        let run = pmmpi::partial::read(&left[0]).unwrap();
        let entries = |totals: &pmmpi::regions::RegionTotals| totals.entries;
        assert_eq!(run.regions.names, ["solve", "step"], "{}", started.err());
        assert!(run.regions.totals.iter().map(entries).eq(run.regions.totals.iter().map(|_| 3)));
    }
}

/// MPI_Pcontrol belongs to another tool, unless the user lets it make regions: it has no barrier and passes on every
/// argument.
#[test]
fn pcontrol_is_passed_on_untouched() {
    for mpi in Mpi::ALL {
        let library = format!("LD_PRELOAD={}", programs::preloaded(mpi, "pcontrol_tool.c"));
        let folder = Folder::new("pcontrol");
        let launch = |tool: &[&str], arguments: &[&str]| {
            let job = Job::local(mpi, 2).args(["env", &library]).args(tool);
            job.arg(programs::mpi(mpi, "pcontrol")).args(arguments).run().success().out()
        };
        let tool = [pmmpi().display().to_string(), "--out".to_owned(), folder.path().display().to_string()];
        let tool = tool.each_ref().map(String::as_str);
        // Rank 0 alone calls it: with a barrier it would wait forever.
        let said = launch(&tool, &[]);
        assert_eq!(said, "a 1.5 2\nb 2.5 3\nc 3.5 4\nd 4.5 5\n");
        assert_eq!(said, launch(&[], &[]));
        assert!(folder.runs()[0].regions.names.is_empty());
        // The other tool's call of PMPI_Pcontrol is not another entry.
        launch(&[&tool[..], &["--regions", "pcontrol"]].concat(), &["all"]);
        let run = folder.runs().pop().unwrap();
        assert_eq!(run.regions.names, ["MPI_Pcontrol(2)"]);
        assert_eq!(run.regions.bounds(2, run.max_drift())[0].entries, Some(3));
    }
}

#[test]
fn what_makes_regions_is_one_of_three() {
    let refused = run(Command::new(pmmpi()).args(["--regions", "on", "true"]));
    assert!(refused.code() == 125 || refused.code() == 2, "{}", refused.code());
    assert!(refused.err().contains("marks, pcontrol, off"), "{}", refused.err());
}

/// A rank that enters a region alone waits forever. After a while a message says which rank waits where, and the
/// report of the killed job says it too.
#[test]
fn a_mark_of_one_rank_alone_says_why_it_waits() {
    let start = |mpi| {
        let folder = Folder::new("alone");
        let job = Job::local(mpi, 2).arg(pmmpi()).arg("--out").arg(folder.path());
        (job.arg(programs::with_regions(mpi, "alone", &[], "alone")).arg(folder.path()).start(), folder)
    };
    for (started, folder) in Mpi::ALL.map(start) {
        started.wait_for_error("ends region `never begun`, but is not in this region");
        started.wait_for_error(
            "ranks that wait at the start of region `alone`: 1; other ranks of this node: 0 (in region \
             `outer`)",
        );
        started.signal(libc::SIGTERM);
        started.finish();
        let report = Command::new(tool("pmmpi")).arg("report").arg(folder.path()).output().unwrap();
        let report = String::from_utf8(report.stdout).unwrap();
        let where_it_hung = "rank 1 at the start of region `alone`";
        assert!(report.replace('\n', " ").contains(where_it_hung), "{report}");
    }
}

/// A program with rsmpi that measures itself, on hosts whose clocks are hours apart.
#[test]
fn a_program_in_rust_measures_itself() {
    for mpi in Mpi::ALL {
        let (folder, cluster) = (Folder::new("rust"), Cluster::hours_apart(2));
        let program = rig::tool::target().join(format!("{}/release/examples/session", mpi.name()));
        let output = cluster.mpirun(mpi, RANKS).arg(program).arg(folder.path()).run().success();
        assert!(output.out().contains("3 ranks on 2 nodes"), "{}", output.out());
        let runs = runs_in(folder.path());
        let (run, elapsed) = (&runs[0], runs[0].elapsed().unwrap());
        assert!(runs.len() == 1 && run.is_complete() && elapsed.consistent);
        assert!(run.nodes.iter().all(|node| node.facts.is_some()));
        let bounds = &run.regions.bounds(RANKS, run.max_drift())[0];
        assert_eq!((bounds.name, bounds.entries), ("sleep", Some(2)));
        assert!(bounds.lower_ns >= 23_000_000 && bounds.lower_ns <= elapsed.upper_ns);
    }
}
