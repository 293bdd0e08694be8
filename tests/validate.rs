//! `pmmpi validate`: compares known counts with the counts on this machine.

use pmmpi::node::NodeFacts;
use pmmpi_events::validation::{self, EventVerdict, Trust};
use rig::cluster::machine;
use rig::perf_rights::LinuxKernel;
use rig::tool::{Folder, Output, pmmpi, run, start};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn validate(trust: &Path) -> Command {
    let mut command = Command::new(pmmpi());
    command.arg("validate").env(validation::FOLDER_VARIABLE, trust);
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}\n{}{}", output.out(), output.err()))
}

/// Checks that the exit status is 0 or 1 as the findings require, and returns the findings.
fn findings(output: &Output) -> Value {
    let found = json(output);
    let unusable = list(&found["events"]).iter().any(|event| event["verdict"] == "unusable");
    assert_eq!(output.code(), i32::from(unusable), "{}", output.err());
    found
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn named<'a>(value: &'a Value, name: &str) -> &'a Value {
    list(value).iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} in {value:#}"))
}

fn check<'a>(found: &'a Value, kernel: &str, event: &str) -> &'a Value {
    let checks = list(&named(&found["kernels"], kernel)["checks"]);
    checks.iter().find(|check| check["event"] == event).unwrap_or_else(|| panic!("{event} of {kernel}"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

fn assert_of_the_schema(found: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema/validate.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(found).map(|e| format!("{}: {e}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Without memory for STREAM's arrays, validate says so, and the rest of its result stays.
#[test]
fn ceilings_without_memory_have_a_reason() {
    let _alone = machine();
    let folder = Folder::new("trust");
    let mut command = Command::new("prlimit");
    command
        .arg("--as=200000000")
        .arg(pmmpi())
        .arg("validate")
        .env(validation::FOLDER_VARIABLE, folder.path());
    let output = run(command.args(["--ceilings", "--kernel", "page-touch", "--format", "json"]));
    let found = findings(&output);
    assert_of_the_schema(&found);
    let ceilings = list(&found["ceilings"]);
    assert!(!ceilings.is_empty() && ceilings.iter().all(|of| of["latency_ns"].is_null()), "{found:#}");
    let reason = ceilings[0]["reason"].as_str().unwrap();
    assert!(reason.contains("memory"), "{reason}");
}

#[test]
fn what_the_kernel_counts_is_exact_and_kept() {
    let _alone = machine();
    let folder = Folder::new("trust");
    let output = run(validate(folder.path()).args(["--format", "json"]));
    let found = findings(&output);
    assert_of_the_schema(&found);
    // The count is exact.
    let faults = check(&found, "page-touch", "page_faults");
    assert_eq!(
        (&faults["expected"], &faults["measured"]),
        (&serde_json::json!([256.0, 256.0]), &256.0.into())
    );
    assert_eq!(check(&found, "sleeps", "context_switches")["verdict"], "trusted", "{found:#}");
    let moved = named(&found["kernels"], "migrations");
    if moved["skipped"].is_null() {
        assert_eq!(check(&found, "migrations", "migrations")["measured"], 40.0);
    }
    assert_eq!(check(&found, "cycles", "task_clock_ns")["against"], "CPU time of the thread");

    let cpu = validation::cpu_name(&NodeFacts::read(Path::new("/")).hardware);
    assert_eq!(found["cpu"]["name"], cpu.as_str());
    let file = folder.path().join(format!("trust-{cpu}.json"));
    assert_eq!(files(folder.path()), std::slice::from_ref(&file));
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(&file).unwrap()).unwrap(), found);
    let trust = Trust::read(folder.path());
    assert_eq!(trust.of(&cpu, "page_faults"), EventVerdict::Trusted);
    for event in list(&found["events"]) {
        let kept = trust.of(&cpu, event["name"].as_str().unwrap());
        assert_eq!(kept.name(), event["verdict"].as_str().unwrap());
        // A missing value is not 0: there is a verdict or a reason.
        assert_eq!(event["deviation"].is_null(), event["verdict"] == "not counted here", "{event}");
        assert!(!event["deviation"].is_null() || event["reason"].is_string(), "{event}");
    }
}

/// Without a PMU the processor's events give a reason, each with its expected count.
#[test]
fn what_is_not_counted_here_says_why() {
    let folder = Folder::new("absent");
    let output =
        run(validate(folder.path()).args(["--format", "json", "--kernel", "loads", "--kernel", "triad"]));
    let found = findings(&output);
    assert_of_the_schema(&found);
    let pmu = LinuxKernel::running().has_pmu;
    for (kernel, event) in [("loads", "L1-dcache-loads"), ("triad", "instructions")] {
        let check = check(&found, kernel, event);
        let low = check["expected"][0].as_f64().unwrap();
        assert!(low > 1e6);
        if !pmu {
            assert_eq!((&check["measured"], &check["verdict"]), (&Value::Null, &"not counted here".into()));
            assert!(check["reason"].as_str().unwrap().contains("not counted by this processor"));
        }
    }
    // Three arrays are read or allocated; one is written.
    let lines = named(&found["kernels"], "triad")["trips"].as_f64().unwrap();
    let bytes = |event| {
        let range = list(&check(&found, "triad", event)["expected"]);
        (range[0].as_f64().unwrap() + range[1].as_f64().unwrap()) / 2.0
    };
    assert!((bytes("dram_read_bytes") / (192.0 * lines) - 1.0).abs() < 1e-9);
    assert!((bytes("dram_write_bytes") / (64.0 * lines) - 1.0).abs() < 1e-9);
    // Controllers that belong to no core have a mask of hardware threads.
    let devices = fs::read_dir("/sys/bus/event_source/devices").unwrap().map(|entry| entry.unwrap().path());
    if devices.into_iter().all(|device| !device.join("cpumask").exists()) {
        for event in ["dram_read_bytes", "dram_write_bytes"] {
            let check = self::check(&found, "triad", event);
            assert_eq!((&check["verdict"], &check["measured"]), (&"not counted here".into(), &Value::Null));
            assert!(check["reason"].as_str().unwrap().contains("no PMU of memory controllers"), "{check}");
            assert_eq!(found["memory"]["reason"], check["reason"]);
        }
    }
    // With a selection of kernels, nothing is stored, because other events were not checked.
    assert!(files(folder.path()).is_empty());
}

#[test]
fn text_is_for_a_terminal() {
    let folder = Folder::new("text");
    let output = run(&mut validate(folder.path()));
    assert!(output.code() <= 1, "{}", output.err());
    let text = output.out();
    for said in
        ["processor ", "EVENT ", "page_faults ", "the Linux kernel's own count", "errata: ", "saved in "]
    {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let faults = text.lines().find(|line| line.starts_with("page_faults ")).unwrap();
    assert!(faults.contains(" trusted "), "{text}");
    assert_eq!(output.err(), "");
    let long =
        |line: &&str| line.chars().count() > 80 && !line.contains("https://") && !line.contains("saved in");
    assert_eq!(text.lines().find(long), None);
}

#[test]
fn wrong_usage_is_2() {
    let folder = Folder::new("wrong");
    for (arguments, said) in [
        (
            &["--kernel", "load"][..],
            "--kernel load: there is no test loop of this name; choose one of instructions, ",
        ),
        (&["--cpu", "60000"], "--cpu"),
        (&["--cpu", "4000000000"], "--cpu"),
        (&["--format", "csv"], "--format"),
        (&["program"], "program"),
    ] {
        let output = run(validate(folder.path()).args(arguments));
        assert_eq!(output.code(), 2, "{arguments:?}");
        assert!(output.err().contains(said), "{}", output.err());
    }
    assert!(files(folder.path()).is_empty());
    let full = run(Command::new("sh")
        .arg("-c")
        .arg(format!("{} validate --kernel page-touch >/dev/full", pmmpi().display())));
    assert_eq!((full.code(), full.err().contains("stdout")), (1, true));
}

/// The findings are printed, and a warning says that they are not stored.
#[test]
fn a_home_that_cannot_be_written_costs_nothing_else() {
    let folder = Folder::new("home");
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    for place in [file.join("below"), PathBuf::from("/proc/pmmpi"), PathBuf::from("/sys/pmmpi")] {
        let output = run(validate(&place).args(["--format", "json"]));
        findings(&output);
        assert!(
            output.err().contains("warning: pmmpi did not save the validation results"),
            "{}",
            output.err()
        );
        assert!(output.err().contains(validation::FOLDER_VARIABLE), "{}", output.err());
    }
    let mut homeless = validate(folder.path());
    homeless.args(["--format", "json"]).env_remove(validation::FOLDER_VARIABLE);
    let output = run(homeless.env_remove("XDG_STATE_HOME").env_remove("HOME"));
    findings(&output);
    assert!(output.err().contains("does not know your home folder"), "{}", output.err());
    assert_eq!(files(folder.path()), [file]);
}

#[test]
fn the_home_is_where_it_belongs() {
    let folder = Folder::new("state");
    let (home, state) = (folder.path().join("home"), folder.path().join("state"));
    let mut command = validate(folder.path());
    command.env_remove(validation::FOLDER_VARIABLE).env("HOME", &home).env("XDG_STATE_HOME", &state);
    findings(&run(command.args(["--format", "json"])));
    assert_eq!(files(&state.join("pmmpi")).len(), 1);
    assert!(!home.exists());
    command.env("XDG_STATE_HOME", "relative");
    findings(&run(&mut command));
    assert_eq!(files(&home.join(".local/state/pmmpi")).len(), 1);
}

#[test]
fn several_at_once_leave_one_whole_file() {
    let folder = Folder::new("several");
    let started: Vec<_> = (0..4).map(|_| start(validate(folder.path()).args(["--format", "json"]))).collect();
    let found: Vec<Value> = started.into_iter().map(|one| findings(&one.finish())).collect();
    let left = files(folder.path());
    assert_eq!(left.len(), 1, "{left:?}");
    let kept: Value = serde_json::from_slice(&fs::read(&left[0]).unwrap()).unwrap();
    assert!(found.contains(&kept));
    let unreadable = Trust::read(folder.path()).unusable;
    assert!(unreadable.is_empty(), "{unreadable:?}");
}

/// A user who may not count the kernel: user mode is counted, and all else has a reason.
#[test]
fn a_user_is_told_what_may_not_be_counted() {
    let _alone = machine();
    let _level = rig::tool::Paranoid::set("2");
    let folder = Folder::new("user");
    run(Command::new("chmod").arg("777").arg(folder.path())).success();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(pmmpi());
    command.args(["validate", "--format", "json"]).env(validation::FOLDER_VARIABLE, folder.path());
    let found = findings(&run(&mut command));
    let faults = check(&found, "page-touch", "page_faults");
    assert_eq!((&faults["measured"], &faults["quality"]), (&256.0.into(), &"partial".into()));
    for (kernel, event) in [("sleeps", "context_switches"), ("migrations", "migrations")] {
        let check = check(&found, kernel, event);
        assert_eq!((&check["measured"], &check["quality"]), (&Value::Null, &"denied".into()));
        assert!(check["reason"].as_str().unwrap().contains("perf_event_paranoid"));
    }
}
