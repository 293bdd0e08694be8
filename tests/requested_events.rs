//! Requested counters: none, more than the default set, and more than a machine has.

use rig::cluster::{Job, machine};
use rig::sys::Machine;
use rig::tool::{Folder, Output, Paranoid, pmmpi, run};
use rig::{FOR_ROOT, Mpi, programs};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", output.err()))
}

/// The report of the only run in a folder.
fn reported(folder: &Path) -> Value {
    let output = run(Command::new(pmmpi()).args(["report", "--format", "json"]).arg(folder)).success();
    json(&output)["runs"][0].take()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

/// The warning about requested events that were not counted.
fn warning(run: &Value) -> Option<&str> {
    let warning = list(&run["warnings"]).iter().find(|warning| warning["code"] == "uncounted-events")?;
    assert!(warning["advice"].as_str().unwrap().contains("`pmmpi doctor`"), "{warning}");
    warning["message"].as_str()
}

/// How many counters a command and all its processes opened or tried to open.
fn counters_opened(folder: &Folder, command: &Command) -> usize {
    let trace = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=perf_event_open", "-e", "signal=none", "-o"]).arg(&trace);
    strace.arg(command.get_program()).args(command.get_args()).envs(FOR_ROOT);
    let _alone = machine();
    run(&mut strace).success();
    fs::read_to_string(trace).unwrap().matches("perf_event_open(").count()
}

/// Neither the launcher, the agent nor the runner opens a counter, so all are free for a program that counts by
/// itself. The report says that counters were off.
#[test]
fn counters_that_are_off_are_opened_by_nobody() {
    let ways = Mpi::ALL.into_iter().flat_map(|mpi| {
        let mpirun = format!("mpirun.{}", mpi.name());
        [(Some(mpirun), programs::mpi(mpi, "says")), (None, programs::mpi(mpi, "says"))]
    });
    let plain = [
        (Some("mpirun.openmpi".to_owned()), "true".into()),
        (Some("mpirun.mpich".to_owned()), "true".into()),
        (None, "true".into()),
    ];
    for (mpirun, program) in ways.chain(plain) {
        for counters in ["off", "default"] {
            let folder = Folder::new("off");
            let mut command = match &mpirun {
                Some(mpirun) => Command::new(mpirun),
                None => Command::new(pmmpi()),
            };
            if mpirun.is_some() {
                command.args(["-n", "1"]).arg(pmmpi());
            }
            command.args(["--counters", counters, "--out"]).arg(folder.path().join("runs")).arg(&program);
            let opened = counters_opened(&folder, &command);
            assert_eq!(opened > 0, counters == "default", "{command:?}: {opened}");
            let run = reported(&folder.path().join("runs"));
            assert!(warning(&run).is_none(), "{run:#}");
            for counter in list(&run["counters"]) {
                let reason = counter["reason"].as_str().unwrap_or_default();
                assert_eq!(reason.contains("counters were off"), counters == "off", "{counter}");
                assert!(counters == "default" || counter["quality"] == "unavailable", "{counter}");
            }
            assert!(list(&run["counters"]).iter().any(|counter| counter["name"] == "page_faults"));
        }
    }
}

#[test]
fn no_option_asks_for_counters_that_are_off() {
    for (option, value) in
        [("--events", "cycles"), ("--group", "smt"), ("--scope", "core"), ("--scope", "task")]
    {
        let arguments = ["--counters", "off", option, value, "--no-save", "true"];
        let output = run(Command::new(pmmpi()).args(arguments));
        let said = format!("--counters off disables all counters, but {option} needs counters");
        assert!(output.code() == 125 && output.err().contains(&said), "{}", output.err());
    }
}

/// Those of `events` that are null in a report.
fn uncounted(run: &Value, events: &[&str]) -> BTreeSet<String> {
    let is_counted = |name: &str| {
        let mut all = list(&run["counters"]).iter().filter(|counter| counter["name"] == name).peekable();
        assert!(all.peek().is_some(), "{name} is in no report: {run:#}");
        all.any(|counter| {
            assert!(!counter["value"].is_null() || counter["reason"].is_string(), "{counter}");
            !counter["value"].is_null()
        })
    };
    events.iter().filter(|name| !is_counted(name)).map(|name| (*name).to_owned()).collect()
}

/// Runs the real tool with each machine's tables, PMUs and processor. A message at the start and the report name the
/// requested events that the machine lacks, and no others.
#[test]
fn what_a_machine_cannot_count_is_said_on_each() {
    for machine in [
        Machine::intel_server(),
        Machine::amd_server(),
        Machine::arm_server(),
        Machine::hybrid_client(),
        Machine::big_little(),
        Machine::bare(),
    ] {
        let on_it = |arguments: &[&str]| run(machine.run_here(&pmmpi()).args(arguments)).success();
        let groups = json(&on_it(&["list", "groups", "--format", "json"]));
        for group in list(&groups["groups"]) {
            let (name, folder) = (group["name"].as_str().unwrap(), Folder::new("group"));
            let events: Vec<&str> =
                list(&group["events"]).iter().map(|name| name.as_str().unwrap()).collect();
            let out = folder.path().display().to_string();
            let output = on_it(&["--group", name, "--out", &out, "true"]);
            let run = reported(folder.path());
            let missing = uncounted(&run, &events);
            let context = format!(
                "{name} on {}: {missing:?}\n{}\n{:?}",
                groups["processor"],
                output.err(),
                warning(&run)
            );
            let is_silent = missing.is_empty() && !events.is_empty();
            assert_eq!(output.err().matches("warning:").count(), usize::from(!is_silent), "{context}");
            assert_eq!(warning(&run).is_none(), is_silent, "{context}");
            let said = output.err();
            let is_named = |text: &str, event: &str| {
                text.split([' ', ',', ':']).any(|word| word == event)
                    && text.contains(&format!("--group {name}"))
            };
            for event in &events {
                for text in [said.as_str(), warning(&run).unwrap_or_default()] {
                    assert_eq!(is_named(text, event), missing.contains(*event), "{event}: {context}");
                }
            }
            assert_eq!(on_it(&["--quiet", "--group", name, "--no-save", "true"]).err(), "");
        }
    }
}

/// One rank reports, once per job. It does not report missing events of the default set.
#[test]
fn one_rank_says_what_cannot_be_counted() {
    let level = Paranoid::set("2");
    let place = Folder::new("tool");
    let tool = rig::tool::for_anybody(&place);
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let denied = |options: &[&str]| {
        let job = Job::local(Mpi::Mpich, 2).args(as_nobody).arg(&tool).arg("--no-save").args(options);
        job.arg("true").run().success().err()
    };
    let said = denied(&["--events", "context-switches,page-faults"]);
    assert_eq!(said.matches("warning:").count(), 1, "{said}");
    assert!(said.contains("--events: pmmpi cannot count context_switches: not allowed"), "{said}");
    assert!(said.contains("`pmmpi doctor`") && !said.contains("page_faults"), "{said}");
    assert_eq!(denied(&[]).matches("warning:").count(), 0);
    drop(level);
}

/// Runs a program with these `limits` on open files (options of ulimit).
fn limited(mpi: Mpi, limits: &str, options: Option<&[&str]>) -> Output {
    let script = format!("ulimit {limits}; exec \"$@\"");
    let job = Job::local(mpi, 1).args(["bash", "-c", &script, "bash"]);
    let job = match options {
        Some(options) => job.arg(pmmpi()).args(options),
        None => job,
    };
    job.arg(programs::mpi(mpi, "opens")).run().success()
}

/// There are many counters of hardware threads, and none of them uses a descriptor that the program could have.
#[test]
fn a_program_opens_as_many_files_as_without_counters() {
    for mpi in Mpi::ALL {
        for limits in ["-Sn 64", "-Sn 256"] {
            let folder = Folder::new("opens");
            let out = folder.path().display().to_string();
            let bare = limited(mpi, limits, None).out();
            for options in [&["--out", &out][..], &["--scope", "core", "--out", &out]] {
                assert_eq!(limited(mpi, limits, Some(options)).out(), bare, "{mpi:?} {limits} {options:?}");
            }
            let runs = folder.runs();
            assert!(runs[1].counts.rows.iter().any(|row| row.cpu.is_some()), "{mpi:?}");
        }
    }
}

/// If the hard limit leaves no descriptors beyond the program's own, hardware threads are not counted, with a
/// message.
#[test]
fn a_hard_limit_that_is_too_low_costs_counts_and_no_files() {
    /// One for each group of the rank's own threads.
    const OWN: u64 = 3;
    for mpi in Mpi::ALL {
        let folder = Folder::new("low");
        let out = folder.path().display().to_string();
        let opened = |output: &Output| -> u64 {
            let text = output.out();
            text.split(' ').nth(1).unwrap().parse().unwrap()
        };
        let bare = opened(&limited(mpi, "-n 256", None));
        let output = limited(mpi, "-n 256", Some(&["--scope", "core", "--out", &out]));
        assert!((bare - OWN..=bare).contains(&opened(&output)), "{bare} {}", output.out());
        let said = "raise the hard limit on open files (ulimit -Hn)";
        assert!(
            output.err().contains("--scope core: pmmpi cannot count") && output.err().contains(said),
            "{}",
            output.err()
        );
        let run = reported(folder.path());
        assert!(warning(&run).is_some_and(|message| message.contains(said)), "{run:#}");
        let own = |name: &str| {
            list(&run["counters"]).iter().find(|of| of["name"] == name && of["scope"] == "task").unwrap()
        };
        assert_eq!(own("page_faults")["quality"], "exact");
    }
}
