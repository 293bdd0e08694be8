//! `pmmpi doctor` on this machine: as root and as nobody, for people and for scripts, complete and with faults.

use rig::Mpi;
use rig::cluster::Job;
use rig::perf_rights::LinuxKernel;
use rig::tool::{Folder, Output, for_anybody, pmmpi, run, target};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A user other than root.
const USER: u32 = 65_534;

fn doctor(arguments: &[&str]) -> Command {
    let mut command = Command::new(pmmpi());
    command.arg("doctor").args(arguments).env_remove("PMMPI_LIBDIR").env_remove("PMMPI_OUT");
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", output.out(), output.err()))
}

fn examine(command: &mut Command) -> (Output, Value) {
    let output = run(command.args(["--format", "json"]));
    let value = json(&output);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema/doctor.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(&value).map(|e| format!("{e} at {}", e.instance_path)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    (output, value)
}

fn check<'a>(value: &'a Value, name: &str) -> &'a Value {
    let checks = value["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

fn text<'a>(value: &'a Value, name: &str, key: &str) -> &'a str {
    check(value, name)[key].as_str().unwrap_or_default()
}

#[test]
fn an_installation_that_works_is_not_broken() {
    let folder = Folder::new("doctor");
    let out = folder.path().join("runs").display().to_string();
    let (output, value) = examine(&mut doctor(&["--out", &out]));
    assert_eq!((output.code(), output.err().as_str()), (0, ""));
    for name in ["agent", "topology", "report", "out", "runners", "mpi", "mpicc", "libmpi"] {
        assert_eq!(check(&value, name)["status"], "ok", "{}", check(&value, name));
    }
    assert!(text(&value, "mpi", "found").contains("Open MPI "));
    assert!(text(&value, "mpi", "found").contains("MPICH "));
    assert_eq!(text(&value, "runners", "found"), "openmpi, mpich");
    assert!(text(&value, "out", "found").starts_with(&out));
    assert!(!Path::new(&out).exists(), "it only looks");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// On any machine, each check agrees with the kernel's files.
#[test]
fn what_is_found_is_what_the_kernel_says() {
    let (_, value) = examine(&mut doctor(&[]));
    let file = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    for (name, path) in [
        ("perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid"),
        ("clock_source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ] {
        assert!(text(&value, name, "found").starts_with(&file(path).unwrap()), "{}", check(&value, name));
    }
    // x86 shows this itself; on other processors the firmware may.
    let is_virtual = check(&value, "hypervisor")["status"] == "limits";
    assert!(is_virtual || !file("/proc/cpuinfo").unwrap().contains(" hypervisor"));
    if is_virtual && !LinuxKernel::running().has_pmu {
        assert!(text(&value, "pmu", "found").contains("no hardware counters (virtual machine"));
        assert!(text(&value, "pmu", "fix").contains("-cpu host,pmu=on"));
    }
}

/// Root may count at any level; a user learns which level allows what.
#[test]
fn rights_are_those_of_who_asks() {
    // SAFETY: the call has no arguments.
    assert_eq!(unsafe { libc::geteuid() }, 0, "run as root");
    let (_, root) = examine(&mut doctor(&["--out", "/tmp"]));
    assert_eq!(check(&root, "capabilities")["status"], "ok", "{}", check(&root, "capabilities"));
    assert_eq!(check(&root, "perf_event_paranoid")["status"], "ok");
    assert_eq!(check(&root, "software_events")["status"], "ok");
    let (user, place) = (USER.to_string(), Folder::new("doctor-tool"));
    let tool = for_anybody(&place);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(&tool);
    let (output, value) = examine(command.args(["doctor", "--out", "/tmp"]));
    assert_eq!(output.code(), 0, "{}", output.out());
    // Without a PMU, no right to use it is needed.
    if text(&root, "pmu", "found").starts_with("no hardware counters") {
        assert_eq!(check(&value, "pmu"), check(&root, "pmu"));
    }
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim().parse::<i32>().unwrap() >= 1 {
        assert_eq!(check(&value, "capabilities")["status"], "limits");
        assert!(text(&value, "capabilities", "fix").contains("--ambient-caps +perfmon"));
    }
    if level.trim() == "2" {
        assert_eq!(check(&value, "perf_event_paranoid")["status"], "limits");
        assert!(text(&value, "perf_event_paranoid", "fix").contains("kernel.perf_event_paranoid=1"));
        let found = text(&value, "software_events", "found");
        assert!(found.contains("context_switches, migrations: not allowed"), "{found}");
    }
    // In a folder in which only root may write.
    let folder = Folder::new("doctor-user");
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(&tool).arg("doctor");
    let (output, value) = examine(command.arg("--out").arg(folder.path()));
    assert_eq!((output.code(), text(&value, "out", "status")), (1, "broken"), "{}", output.out());
    assert!(text(&value, "out", "fix").contains("export PMMPI_OUT="));
}

#[test]
fn a_broken_installation_is_named_with_what_mends_it() {
    let (output, value) = examine(doctor(&[]).env("PMMPI_LIBDIR", "/nowhere"));
    assert_eq!((output.code(), &value["status"]), (1, &Value::from("broken")));
    for name in ["agent", "topology"] {
        assert_eq!(check(&value, name)["status"], "broken");
        assert!(text(&value, name, "found").contains("/nowhere"));
        assert!(text(&value, name, "fix").starts_with("unset PMMPI_LIBDIR"));
    }
    // Files that exist but have the wrong content.
    let folder = Folder::new("doctor-libraries");
    for (file, content) in [("libpmmpi_agent.so", "no library"), ("pmmpi-topology", "#!/bin/sh\necho none\n")]
    {
        let path = folder.path().join(file);
        std::fs::write(&path, content).unwrap();
        run(Command::new("chmod").arg("755").arg(&path)).success();
    }
    let (output, value) = examine(doctor(&[]).env("PMMPI_LIBDIR", folder.path()));
    assert_eq!(output.code(), 1);
    assert!(text(&value, "agent", "found").contains("cannot be preloaded"), "{}", check(&value, "agent"));
    assert!(text(&value, "topology", "found").contains("another version"), "{}", check(&value, "topology"));
    assert_eq!(check(&value, "runners")["status"], "limits");
}

#[test]
fn without_a_path_there_is_no_mpi_and_the_tool_is_found_all_the_same() {
    let (output, value) = examine(doctor(&["--out", "/tmp"]).env("PATH", ""));
    assert_eq!(output.code(), 0, "{}", output.out());
    assert_eq!(check(&value, "mpi")["status"], "limits");
    assert_eq!(text(&value, "slurm", "found"), "no srun in PATH");
    assert_eq!(check(&value, "agent")["status"], "ok");
}

#[test]
fn programs_that_hang_do_not_hang_it() {
    let folder = Folder::new("doctor-hangs");
    for name in ["srun", "mpirun"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "#!/bin/sh\nexec sleep 1000\n").unwrap();
        run(Command::new("chmod").arg("755").arg(&path)).success();
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let (_, value) = examine(doctor(&[]).env("PATH", path));
    assert!(text(&value, "slurm", "found").contains("no answer in 5 s"), "{}", check(&value, "slurm"));
    assert!(text(&value, "mpi", "found").contains("no answer in 5 s"), "{}", check(&value, "mpi"));
}

#[test]
fn text_is_aligned_for_pipes_and_terminals() {
    let piped = run(doctor(&["--out", "/tmp"]).env("TERM", "xterm"));
    let text = piped.out();
    assert!(!text.contains('\x1b') && piped.code() == 0, "{text}");
    assert!(text.lines().any(|line| line.starts_with("ok ") || line.starts_with("limits ")), "{text}");
    // Lines with a command may be longer.
    let prose = |line: &&str| line.starts_with(['o', 'l', 'b']) || line.starts_with(&" ".repeat(24));
    for line in text.lines().filter(prose).filter(|line| !line.contains('/')) {
        assert!(line.chars().count() <= 96, "{line}");
    }
    // script(1) provides a terminal.
    let on_terminal = |variables: &str| {
        let command = format!("{variables} TERM=xterm {} doctor --out /tmp", pmmpi().display());
        run(Command::new("script").args(["-qec", &command, "/dev/null"])).out()
    };
    assert!(on_terminal("").contains("\x1b[32mok"));
    assert!(!on_terminal("NO_COLOR=1").contains('\x1b'));
}

#[test]
fn scripts_are_told_by_the_exit_status() {
    let code = |arguments: &[&str]| run(&mut doctor(arguments)).code();
    // Nearly always a check reports a limit: no MPI plugin of Slurm, no PMU, or turbo.
    let (_, value) = examine(&mut doctor(&["--out", "/tmp"]));
    let limited = if value["status"] == "ok" { 0 } else { 3 };
    assert_eq!(code(&["--out", "/tmp", "--fail-on", "limits"]), limited);
    assert_eq!(code(&["--out", "/tmp", "--fail-on", "broken"]), 0);
    assert_eq!(code(&["--out", "/proc/runs"]), 1);
    for fail_on in ["broken", "limits"] {
        assert_eq!(code(&["--out", "/proc/runs", "--fail-on", fail_on]), 3, "{fail_on}");
    }
    for wrong in [&["--fail-on", "luck"][..], &["--format", "xml"], &["--unknown"], &["word"]] {
        assert_eq!(code(wrong), 2, "{wrong:?}");
    }
    let help = run(&mut doctor(&["--help"])).success().out();
    assert!(help.contains("Exit status: 1: write error, or (without") && help.contains("--fail-on limits"));
    let full = run(Command::new("sh").args(["-c", &format!("{} doctor > /dev/full", pmmpi().display())]));
    assert_eq!(full.code(), 1, "{}", full.err());
}

/// Of four ranks on one node only one reports.
#[test]
fn one_rank_a_node_answers() {
    let job = |rank: &str| {
        let mut command = doctor(&["--out", "/tmp"]);
        command.env("PMI_RANK", rank).env("PMI_SIZE", "4").env("MPI_LOCALRANKID", rank);
        command
    };
    let (_, value) = examine(&mut job("0"));
    assert!(text(&value, "launch", "found").contains("by mpiexec (Hydra)"));
    let other = run(&mut job("1"));
    assert_eq!((other.code(), other.out().as_str()), (0, ""));
}

#[test]
fn under_mpirun_it_says_which_runner_fits() {
    for (mpi, launcher, runner) in
        [(Mpi::OpenMpi, "by mpirun (Open MPI)", "openmpi"), (Mpi::Mpich, "by mpiexec (Hydra)", "mpich")]
    {
        let job = Job::local(mpi, 2).arg(pmmpi()).args(["doctor", "--out", "/tmp", "--format", "json"]);
        let value = json(&job.run().success());
        let found = text(&value, "launch", "found");
        assert!(found.contains(launcher) && found.contains(runner), "{found}");
    }
}

/// Each suggested fix works.
#[test]
fn remedies_are_tried() {
    let place = Folder::new("doctor-tool");
    let tool = for_anybody(&place);
    let shell = |script: &str| {
        let script = format!("{script} {} doctor --out /tmp --format json", tool.display());
        json(&run(Command::new("bash").args(["-c", &script])))
    };
    // 64 descriptors besides those for events: fewer are too few for any machine. pmmpi raises its own soft limit to
    // the hard limit.
    assert_eq!(text(&shell("ulimit -Sn 40;"), "descriptors", "status"), "ok");
    let value = shell("ulimit -n 40;");
    assert_eq!(text(&value, "descriptors", "status"), "limits");
    assert!(text(&value, "descriptors", "fix").contains("/etc/security/limits.d/"));
    // The fix of `capabilities`, without sudo.
    let user = format!("setpriv --reuid {USER} --regid {USER} --clear-groups");
    let value = shell(&format!("{user} --inh-caps +perfmon --ambient-caps +perfmon"));
    for name in ["capabilities", "perf_event_paranoid", "software_events"] {
        assert_eq!(text(&value, name, "status"), "ok", "{}", check(&value, name));
    }
    assert_eq!(text(&value, "capabilities", "found"), "CAP_PERFMON");
    let value = shell("PMMPI_OUT=/proc/runs");
    assert_eq!(text(&value, "out", "status"), "ok", "--out comes before PMMPI_OUT");
}

/// For the kernel's counters, root in a container is an ordinary user.
#[test]
fn capabilities_in_a_user_namespace_are_none() {
    let (user, place) = (USER.to_string(), Folder::new("doctor-tool"));
    let tool = for_anybody(&place);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups", "unshare", "--map-root-user"]);
    let (_, value) = examine(command.arg(tool).args(["doctor", "--out", "/tmp"]));
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if level.trim().parse::<i32>().unwrap() >= 2 {
        assert!(text(&value, "capabilities", "found").contains("in a user namespace"));
        assert_eq!(
            text(&value, "software_events", "status"),
            "limits",
            "{}",
            check(&value, "software_events")
        );
        assert!(text(&value, "software_events", "fix").contains("perf_event_paranoid=1"));
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let (output, value) = examine(doctor(&[]).env("PMMPI_OUT", "/proc/runs"));
    assert_eq!((output.code(), text(&value, "out", "status")), (1, "broken"));
    assert!(
        text(&value, "out", "found")
            .starts_with("pmmpi cannot write to /proc/runs (to be created in /proc): ")
    );
}

#[test]
fn the_manual_has_it() {
    let page = target().join("pmmpi/share/man/man1/pmmpi-doctor.1");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("EXIT STATUS") && page.contains("PMMPI_LIBDIR"), "{page}");
    // `pmmpi-report screen` has the same name and is no command for users.
    let page = target().join("pmmpi/share/man/man1/pmmpi-screen.1");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("rounds") && page.contains("soak") && !page.contains("[PATH]"), "{page}");
}

/// Like a pmmpi with file capabilities: the loader distrusts the environment and removes variables that programs
/// need.
#[test]
fn a_pmmpi_with_rights_of_its_own_is_told_what_that_breaks() {
    let folder = Folder::new("doctor-secure");
    let own = folder.path().join("pmmpi");
    std::fs::copy(pmmpi(), &own).unwrap();
    for (command, what) in [("chown", USER.to_string()), ("chmod", "4755".into())] {
        run(Command::new(command).arg(what).arg(&own)).success();
    }
    let libraries = target().join("pmmpi/lib/pmmpi");
    let mut command = Command::new(&own);
    let (output, value) = examine(command.args(["doctor", "--out", "/tmp"]).env("PMMPI_LIBDIR", libraries));
    assert_eq!((output.code(), text(&value, "capabilities", "status")), (1, "broken"), "{}", output.out());
    assert!(text(&value, "capabilities", "fix").starts_with("setcap -r"));
    let mut command = Command::new(&own);
    command.args(["--no-save", "--mode", "plain", "env"]).env("LD_LIBRARY_PATH", "/nowhere");
    assert!(!run(&mut command).success().out().contains("LD_LIBRARY_PATH"));
}
