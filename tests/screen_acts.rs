//! `pmmpi screen --apply` changes no node if the screen ends early, or if the report fails. The report of most tests
//! always finds the node n2 slow, and a script replaces scontrol. With the real report, a gate keeps the drain of n2 until
//! it measures what found the node slow.

use rig::cluster::{Cluster, machine};
use rig::tool::{self, Folder, Output};
use rig::{Mpi, programs};
use serde_json::{Value, json};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shows the node n2, drains it, and ends its drain. Each call is a line of the file `calls`, but for the question before
/// the rounds, and for that for the name of the cluster, which it does not tell: the log names no cluster.
const SCONTROL: &str = r#"[ "$2" = NodeName=pmmpi-asks-for-the-right ] && exit 1
[ "$*" = "show config" ] && exit 1
echo "$*" >> calls
state=IDLE
[ -e reason ] && state=IDLE+DRAIN
case $* in
"--all show node"*)
    printf 'NodeName=n2 Arch=x86_64\n   AvailableFeatures=(null)\n   ActiveFeatures=(null)\n'
    echo "   State=$state ThreadsPerCore=1"
    [ -e reason ] && cat reason
    echo
    ;;
"update NodeName=n2 State=DRAIN Reason="*) echo "   $4 [root@2026-11-26T02:09:12]" > reason ;;
"update NodeName=n2 State=UNDRAIN") rm reason ;;
*) exit 1 ;;
esac"#;

/// The real report, with one more finding. The end of the script follows.
const REPORT: &str = r#"case " $* " in *" --findings="*) ;; *) exec $real "$@" ;; esac
$real "$@" || exit
while [ $# -gt 0 ]; do
    finding='{"node": "n2", "reason": "pmmpi: slow-compute: +9 %"}'
    case "$1" in --findings=*) sed -i "s/\"findings\": \[\]/\"findings\": [$finding]/" "${1#*=}" ;; esac
    shift
done
"#;

const EARLY: &str = "pmmpi changes no node, because the screen ended early";

/// A pmmpi, a report and a scontrol in a folder of the test.
struct Site {
    folder: Folder,
    pmmpi: PathBuf,
}

impl Site {
    /// The report ends in this way.
    fn new(end_of_report: &str) -> Self {
        let folder = Folder::new("screen-acts");
        let pmmpi = tool::with_report(folder.path(), &format!("{REPORT}{end_of_report}"));
        Self::of(folder, pmmpi)
    }

    fn with_real_report() -> Self {
        Self::of(Folder::new("screen-acts"), tool::pmmpi())
    }

    fn of(folder: Folder, pmmpi: PathBuf) -> Self {
        let scontrol = folder.path().join("slurm/scontrol");
        fs::create_dir(folder.path().join("slurm")).expect("a folder");
        let script = format!("#!/bin/sh\ncd {}\n{SCONTROL}\n", folder.path().display());
        fs::write(&scontrol, script).expect("a script");
        fs::set_permissions(&scontrol, fs::Permissions::from_mode(0o755)).expect("executable");
        // The first use of a log is a dry run.
        fs::write(folder.path().join("log"), "").expect("a log");
        Self { folder, pmmpi }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The screen that runs this script in each round, and may drain nodes.
    fn command(&self, rounds: &str, script: &str) -> Vec<String> {
        let program = programs::script(self.folder.path(), &format!("#!/bin/sh\n{script}"));
        self.command_with(rounds, &["--", &program.display().to_string()])
    }

    /// The screen with these options, which may drain nodes.
    fn command_with(&self, rounds: &str, options: &[&str]) -> Vec<String> {
        let path = format!("PATH={}:{}", self.file("slurm"), std::env::var("PATH").unwrap_or_default());
        let pmmpi = self.pmmpi.display().to_string();
        let (log, out) = (self.file("log"), self.file("runs"));
        let words = ["env", &path, &pmmpi, "screen", "--apply", "drain", "--log", &log, "--out", &out];
        let rounds = ["--rounds", rounds, "--warmup", "0"];
        words.into_iter().chain(rounds).chain(options.iter().copied()).map(str::to_owned).collect()
    }

    /// The same on this machine alone.
    fn screen(&self, rounds: &str, script: &str) -> Output {
        let _alone = machine();
        let words = self.command(rounds, script);
        tool::run(Command::new(&words[0]).args(&words[1..]))
    }

    /// The condition that a round is saved, for a shell.
    fn is_saved(&self) -> String {
        format!("ls {}/*.pmr > /dev/null 2>&1", self.file("runs"))
    }

    fn assert_unchanged(&self, output: &Output) {
        let read = |name: &str| fs::read_to_string(self.file(name)).unwrap_or_default();
        assert_eq!((read("calls"), read("log")), (String::new(), String::new()), "{}", output.err());
    }
}

/// Without this test, the other tests could pass because the report has no finding.
#[test]
fn a_complete_screen_drains_the_node() {
    let site = Site::new("exit 0");
    let output = site.screen("1", "true").success();
    assert!(output.err().contains("n2: done: drain"), "{}", output.err());
    let calls = fs::read_to_string(site.file("calls")).expect("calls of scontrol");
    assert_eq!(calls.matches("update NodeName=n2 State=DRAIN").count(), 1, "{calls}");
}

#[test]
fn a_report_that_fails_changes_no_node() {
    for end in ["exit 125", "exit 127", "kill -KILL $$"] {
        let site = Site::new(end);
        let output = site.screen("1", "true");
        assert!(output.code() >= 125, "{end}: {} {}", output.code(), output.err());
        let said = "pmmpi changes no node, because it could not make the report";
        assert!(output.err().contains(said), "{end}: {}", output.err());
        site.assert_unchanged(&output);
    }
}

/// The program that is measured removes the report.
#[test]
fn a_report_that_is_missing_changes_no_node() {
    let site = Site::new("exit 0");
    let output = site.screen("1", &format!("rm {}", site.file("installed/bin/pmmpi-report")));
    assert!(output.code() >= 125, "{} {}", output.code(), output.err());
    assert!(output.err().contains("/pmmpi-report: "), "{}", output.err());
    site.assert_unchanged(&output);
}

#[test]
fn a_screen_that_a_signal_ends_changes_no_node() {
    let site = Site::new("exit 0");
    let output = site.screen("3", &format!("{} && kill -TERM $PPID\nsleep 0.2", site.is_saved()));
    assert_eq!(output.code(), 1, "{}", output.err());
    for said in ["signal 15 has stopped the screen", EARLY] {
        assert!(output.err().contains(said), "{said}: {}", output.err());
    }
    site.assert_unchanged(&output);
}

/// The report is running.
#[test]
fn a_signal_after_the_last_round_changes_no_node() {
    let site = Site::new("kill -TERM $PPID\nsleep 0.2\nexit 0");
    let output = site.screen("1", "true");
    assert_eq!(output.code(), 1, "{}", output.err());
    let said = "pmmpi changes no node, because it received a signal to end";
    assert_eq!(output.err().matches(said).count(), 1, "{}", output.err());
    site.assert_unchanged(&output);
}

/// The acts wait for another pmmpi, and the signal reaches only the process that started them. About 4 s.
#[test]
fn a_signal_while_the_acts_wait_changes_no_node() {
    let site = Site::new("exit 0");
    let log = fs::File::open(site.file("log")).unwrap();
    // SAFETY: flock of a descriptor that is open.
    assert_eq!(unsafe { libc::flock(log.as_raw_fd(), libc::LOCK_EX) }, 0);
    let signal = "until pgrep -P $PPID -f screen-act; do sleep 0.2; done; sleep 2; kill -TERM $PPID";
    let output = site.screen("1", &format!("({signal}) > /dev/null 2>&1 < /dev/null &"));
    assert_eq!(output.code(), 1, "{}", output.err());
    assert!(output.err().contains("this pmmpi waits for at most"), "{}", output.err());
    site.assert_unchanged(&output);
}

/// Another screen creates the log during the rounds.
#[test]
fn a_screen_that_began_without_a_log_changes_no_node() {
    let site = Site::new("exit 0");
    let log = site.file("log");
    fs::remove_file(&log).expect("the log");
    let output = site.screen("1", &format!(": > {log}")).success();
    let said = "n2: would run: scontrol update NodeName=n2 State=DRAIN ";
    assert!(output.err().contains(said), "{}", output.err());
    assert!(Path::new(&log).exists() && !Path::new(&site.file("reason")).exists(), "{}", output.err());
}

/// About 3 s.
#[test]
fn a_screen_that_loses_a_rank_changes_no_node() {
    let (cluster, site) = (Cluster::hours_apart(3), Site::new("exit 0"));
    let kill = format!("[ $(uname -n) = node1 ] && {} && kill -KILL $PPID\nsleep 0.2", site.is_saved());
    let output = cluster.mpirun(Mpi::OpenMpi, 3).args(site.command("3", &kill)).run();
    assert_ne!(output.code(), 0, "{}", output.err());
    for said in ["node1 (rank 1): the process of pmmpi was killed", EARLY] {
        assert!(output.err().contains(said), "{said}: {}", output.err());
    }
    site.assert_unchanged(&output);
}

/// The first of a few screens that says this: another program may disturb a measurement.
fn screen_that_says(said: &str, screen: impl Fn() -> Output) -> Output {
    let mut output = screen();
    for _ in 0..4 {
        if !output.err().contains(said) {
            output = screen();
        }
    }
    assert!(output.err().contains(said), "{said}: {}\n{}", output.err(), output.out());
    output
}

/// The log keeps the soak of the screen that found the node. A gate that says what is missing gives the options for the next
/// gate. About 20 s.
#[test]
fn a_gate_without_the_soak_keeps_the_drain() {
    let hosts = [
        ("n0", 0),
        ("n1", 3_600_000_000_000),
        ("n2", 7_200_000_000_123),
        ("n3", 80_000_000_000_000),
        ("n4", 1_000_000_000),
    ];
    let (cluster, site) = (Cluster::new(&hosts), Site::with_real_report());
    let (repaired, drained) = (site.file("repaired"), PathBuf::from(site.file("reason")));
    // A busy machine changes the time of sleep less than that of a kernel.
    let script = format!("[ $(uname -n) = n2 ] && [ ! -e {repaired} ] && sleep 0.3\nsleep 0.5");
    let program = programs::script(site.folder.path(), &format!("#!/bin/sh\n{script}")).display().to_string();
    let screen = |options: &[&str]| {
        let words = site.command_with("5", options);
        cluster.mpirun(Mpi::OpenMpi, hosts.len()).args(words).run()
    };
    screen_that_says("n2: done: drain, reason `pmmpi: slow-script: +", || {
        screen(&["--soak", "1s", "--", &program])
    });
    let log = fs::read_to_string(site.file("log")).expect("the log");
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found_by: Vec<Value> =
        lines.filter(|line| line["entry"] == "intent").map(|line| line["found_by"].clone()).collect();
    let measurement = json!({
        "kernel": program, "options": [], "is_program": true, "ranks": 1, "soak_s": 1, "soaked": ["script"]
    });
    assert_eq!(found_by, [json!([measurement])], "{log}");

    fs::write(repaired, "").expect("a file");
    let refused = screen_that_says(
        "n2: not changed: the node passed --gate, but the gate did not repeat the measurements",
        || screen(&["--gate", "n2", "--", &program]),
    );
    assert!(refused.code() == 1 && drained.exists(), "{} {}", refused.code(), refused.err());
    let said = refused.err();
    let needed = said.split_once("Repeat the gate with `").and_then(|(_, rest)| rest.split_once('`'));
    let (options, rest) = needed.expect("options to paste");
    assert_eq!(options, format!("--soak 1s -- {program}"));
    assert!(rest.starts_with(" with 1 rank per node"), "{said}");

    let options: Vec<&str> = ["--gate", "n2"].into_iter().chain(options.split(' ')).collect();
    let passed = screen_that_says("n2: done: resume", || screen(&options));
    assert!(!drained.exists(), "{}", passed.err());
    let calls = fs::read_to_string(site.file("calls")).expect("calls of scontrol");
    let updates: Vec<&str> = calls.lines().filter(|call| call.starts_with("update ")).collect();
    assert!(updates.len() == 2 && updates[1] == "update NodeName=n2 State=UNDRAIN", "{calls}");
}

/// `./script` is another program in another folder.
#[test]
fn the_findings_have_the_absolute_path_of_a_program() {
    let site = Site::with_real_report();
    programs::script(site.folder.path(), "#!/bin/sh\ntrue");
    let words = site.command_with("1", &["--", "./script", "4"]);
    let _alone = machine();
    tool::run(Command::new(&words[0]).args(&words[1..]).current_dir(site.folder.path())).success();
    let files = fs::read_dir(site.file("runs")).expect("the runs").map(|entry| entry.expect("a file").path());
    let findings: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|of| of == "findings")).collect();
    let [file] = &findings[..] else { panic!("{findings:?}") };
    let found: Value = serde_json::from_str(&fs::read_to_string(file).expect("the findings")).expect("JSON");
    let program = site.folder.path().canonicalize().expect("the folder").join("script");
    let kernel = &found["kernels"][0];
    assert_eq!(kernel["kernel"], program.display().to_string(), "{found:#}");
    assert_eq!(kernel["options"], json!(["4"]), "{found:#}");
    // The run has what the user typed.
    assert_eq!(tool::runs_in(Path::new(&site.file("runs")))[0].header.command, ["./script", "4"]);
}
