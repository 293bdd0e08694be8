//! Probes that programs name: each thread enters and leaves them on its own.

use pmmpi::counters::count_and_quality::{Gap, WhyUnavailable};
use pmmpi::probes::ProbeTotals;
use pmmpi::record::Run;
use rig::checked_report::checked_report;
use rig::cluster::Job;
use rig::tool::{Folder, pmmpi, run, runs_in};
use rig::{Mpi, probing, programs};
use std::path::{Path, PathBuf};
use std::process::Command;

const ENTRIES: u64 = 200;
const THREADS: u64 = 3;
const RANKS: usize = 2;

fn program(mpi: Mpi) -> PathBuf {
    programs::with_regions(mpi, "probes", &["-pthread"], "probes")
}

/// The run of two ranks, and what the program printed.
fn measured(mpi: Mpi, folder: &Folder, program: &Path, options: &[&str]) -> (Run, String) {
    let runs = folder.path().join("runs");
    let job = Job::local(mpi, RANKS).arg(pmmpi()).args(options).arg("--out").arg(&runs).arg(program);
    let out = job.arg(ENTRIES.to_string()).run().success().out();
    let mut runs = runs_in(&runs);
    assert_eq!(runs.len(), 1);
    (runs.remove(0), out)
}

fn all_entries(of: &ProbeTotals) -> u64 {
    of.entries + of.discarded.all()
}

#[test]
fn each_thread_records_its_own_entries() {
    for mpi in Mpi::ALL {
        let (folder, program) = (Folder::new("probes"), program(mpi));
        let alone = Job::local(mpi, RANKS).arg(&program).arg("2").run().success().out();
        assert_eq!(alone.lines().count(), RANKS, "without the tool, the calls do nothing");
        let options = ["--expect", "kernel:instructions=4000", "--expect", "kernle:instructions=1"];
        let (run, out) = measured(mpi, &folder, &program, &options);
        let longest_ns: u64 = out.lines().map(|line| line.trim().parse().unwrap()).max().unwrap();
        let found: Vec<_> = run.probes.over_ranks().collect();
        let names: Vec<&str> = found.iter().map(|(name, ..)| *name).collect();
        let of = |name: &str| &found.iter().find(|(known, ..)| *known == name).unwrap().1;
        assert_eq!(names.len(), 4, "{names:?}");
        for name in ["outer", "kernel"] {
            let totals = of(name);
            assert_eq!(u64::from(totals.threads), THREADS * RANKS as u64);
            assert_eq!(all_entries(totals), THREADS * ENTRIES * RANKS as u64, "{name}");
        }
        // An entry that another one encloses is not longer. (Each has its own discarded entries.)
        let [outer, kernel] = ["outer", "kernel"].map(of);
        assert!(kernel.time_ps.least <= outer.time_ps.most, "{outer:?} {kernel:?}");
        let sleep = of("sleep");
        assert_eq!(all_entries(sleep), 3 * RANKS as u64);
        if sleep.entries > 0 {
            // Two clocks whose rates differ by far less than 1 %.
            assert!(sleep.time_ps.least > 1_980_000_000, "{sleep:?}");
            assert!(sleep.time_ps.most < longest_ns * 1010, "{sleep:?} {longest_ns}");
        }
        let last: Vec<_> =
            run.probes.totals.iter().filter(|of| names[of.probe as usize] == "only here").collect();
        assert_eq!(last.iter().map(|of| of.rank.0).collect::<Vec<_>>(), [1], "no other rank took part");
        assert!(run.probes.cost_ps > 0 && run.probes.unrecorded == 0, "{:?}", run.probes);

        let report = checked_report(&folder.path().join("runs"));
        let of_run = &report["runs"][0];
        let kernel = &of_run["probing"]["probes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|of| of["name"] == "kernel")
            .unwrap();
        assert_eq!(kernel["threads"], THREADS * RANKS as u64);
        let median = kernel["median_ns"].as_f64().unwrap();
        assert!(kernel["min_ns"].as_f64().unwrap() <= median && median <= kernel["max_ns"].as_f64().unwrap());
        let is_counted = kernel["counted"].as_u64().unwrap() > 0;
        assert_eq!(kernel["instructions_to_expected"].is_f64(), is_counted);
        assert!(kernel["null_reasons"]["cycles"].is_string() != is_counted);
        let codes: Vec<&str> =
            of_run["warnings"].as_array().unwrap().iter().map(|of| of["code"].as_str().unwrap()).collect();
        assert!(codes.contains(&"expected-of-nothing"), "{codes:?}");
        let text = rig::tool::run(Command::new(pmmpi()).arg("report").arg(folder.path().join("runs")))
            .success()
            .out();
        assert!(text.contains("probes of the last run") && text.contains("only here"), "{text}");
    }
}

#[test]
fn probes_can_be_left_alone_and_need_no_counters() {
    let (mpi, folder) = (Mpi::ALL[0], Folder::new("off"));
    let (run, _) = measured(mpi, &folder, &program(mpi), &["--regions", "off"]);
    assert_eq!(run.probes, Default::default());
    let folder = Folder::new("counters");
    let (run, _) = measured(mpi, &folder, &program(mpi), &["--counters", "off"]);
    assert_eq!(run.probes.uncounted, Some(Gap::Unavailable(WhyUnavailable::Off)));
    assert!(run.probes.over_ranks().all(|(_, totals, _)| all_entries(&totals) > 0 && totals.counted == 0));
}

#[test]
fn probes_from_fortran_are_measured() {
    for mpi in Mpi::ALL {
        let folder = Folder::new("fortran");
        let program = programs::with_regions(mpi, "probes.f90", &[], "probes-fortran");
        let (run, _) = measured(mpi, &folder, &program, &[]);
        let found: Vec<_> =
            run.probes.over_ranks().map(|(name, totals, _)| (name, all_entries(&totals))).collect();
        assert_eq!(found, [("solve", 100 * RANKS as u64)]);
    }
}

/// pmmpi cannot get into a static program, and a plain program has no agent.
#[test]
fn other_programs_can_call_probes() {
    let program = programs::statically_linked("marks");
    assert_eq!(run(&mut Command::new(program)).success().out(), "done\n");
}

/// How often a process with some entries without content stops, if ptrace(2) lets it continue with `request`: at each
/// instruction (`PTRACE_SINGLESTEP`), or twice at each system call (`PTRACE_SYSCALL`).
#[cfg(target_arch = "x86_64")]
fn stops(request: libc::c_uint, entries: u32) -> u64 {
    const MOST: u64 = 1_000_000;
    // SAFETY: the child only enters and leaves probes; it needs no lock of another thread.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            probing::arm();
            probing::inside("stepped", || ());
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
            libc::raise(libc::SIGSTOP);
            for _ in 0..entries {
                probing::inside("stepped", || ());
            }
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &mut status, 0);
        assert!(libc::WIFSTOPPED(status), "{status:#x}");
        let mut stops = 0;
        while stops < MOST {
            assert_eq!(libc::ptrace(request, child, 0, 0), 0);
            libc::waitpid(child, &mut status, 0);
            if libc::WIFEXITED(status) {
                assert_eq!(libc::WEXITSTATUS(status), 0);
                return stops;
            }
            stops += 1;
        }
        panic!("the child does not end");
    }
}

/// The time of an entry depends on the machine. How many instructions and system calls an entry takes does not.
#[cfg(target_arch = "x86_64")]
#[test]
fn an_entry_takes_few_instructions_and_no_system_call() {
    let [few, more] = [10, 110].map(|entries| stops(libc::PTRACE_SINGLESTEP, entries));
    let each = (more - few) as f64 / 100.0;
    println!("{each:.1} instructions for one entry");
    assert!(each > 20.0 && each < 400.0, "{each}");
    // Without the processor's clock, pmmpi asks the Linux kernel for the time, and that may be a system call.
    if pmmpi::clock::tsc().is_some() {
        let [few, more] = [10, 110].map(|entries| stops(libc::PTRACE_SYSCALL, entries));
        assert!(few > 0, "the end of the process is a system call");
        assert_eq!(few, more);
    }
}
