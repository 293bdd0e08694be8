//! What `pmmpi screen` needs to act on its findings: names that Slurm knows, and files that it can write.

use rig::tool::{self, Folder, Output};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A folder with a `scontrol` that shows these nodes (NodeName, NodeHostName) and takes every change. It shows the file
/// `config`, if there is one, as Slurm's configuration.
struct Site(Folder);

impl Site {
    fn new(nodes: &[(&str, &str)]) -> Self {
        let site = Self(Folder::new("screen-act"));
        for (node, host) in nodes {
            let record = format!(
                "NodeName={node} Arch=x86_64\n   AvailableFeatures=\n   ActiveFeatures=\n   NodeAddr={host} \
                 NodeHostName={host} Port=6818\n   State=IDLE Weight=1\n\n"
            );
            fs::write(site.file(&format!("node-{node}")), record).unwrap();
        }
        let here = site.0.path().display().to_string();
        let script = format!(
            "#!/bin/sh\ncd {here}\ncase \"$*\" in update*) echo \"$*\" >> updates;; 'show config') cat config;; \
             *) cat node-${{4:-*}};; esac\n"
        );
        let program = site.file("scontrol");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        site
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn pmmpi(&self, args: &[&str]) -> Output {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap_or_default());
        tool::run(Command::new(tool::pmmpi()).args(args).current_dir(self.0.path()).env("PATH", path))
    }

    /// Acts on a finding for each of these hosts.
    fn act(&self, hosts: &[&str]) -> Output {
        self.act_with(hosts, &[])
    }

    fn act_with(&self, hosts: &[&str], options: &[&str]) -> Output {
        let finding = |host: &&str| serde_json::json!({"node": host, "reason": "pmmpi: slow-memory: +8.1 %"});
        let findings: Vec<_> = hosts.iter().map(finding).collect();
        let findings =
            serde_json::json!({"schema_version": 1, "findings": findings, "passed": [], "fleet": 100});
        fs::write(self.file("findings"), findings.to_string()).unwrap();
        let act = ["screen-act", "--apply", "drain", "--log", "log", "findings"];
        self.pmmpi(&[&act[..], options].concat())
    }
}

/// The hosts have names with a domain, and n2 has another name in Slurm.
#[test]
fn a_host_is_drained_by_its_name_in_slurm() {
    let site = Site::new(&[("n1", "n1"), ("blue2", "n2.cluster.example")]);
    let hosts = ["n1.cluster.example", "n2.cluster.example"];
    let dry = site.act(&hosts).success();
    for node in ["n1", "blue2"] {
        let command = format!("{node}: would run: scontrol update NodeName={node} State=DRAIN ");
        assert!(dry.err().contains(&command), "{}", dry.err());
    }
    assert!(site.file("log").exists() && !site.file("updates").exists());
    // This scontrol shows no drain afterwards.
    let output = site.act(&hosts);
    assert!(output.code() == 1 && output.err().contains("n1: FAILED: drain"), "{}", output.err());
    let updates = fs::read_to_string(site.file("updates")).unwrap();
    let nodes: Vec<&str> = updates.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(nodes, ["NodeName=blue2", "NodeName=n1"]);
}

/// An operator has not seen what pmmpi would do.
#[test]
fn a_dry_run_without_a_known_node_is_not_the_first_use() {
    let site = Site::new(&[("slurm1", "a"), ("slurm2", "a")]);
    for _ in 0..2 {
        let output = site.act(&["n1.cluster", "a"]);
        let said = output.err();
        assert_eq!(output.code(), 1, "{said}");
        assert!(said.contains("n1.cluster: not changed: Slurm has no node with this name"), "{said}");
        assert!(said.contains("a: not changed: this is the name of several nodes in Slurm"), "{said}");
        assert!(said.contains("is a dry run again") && !site.file("log").exists(), "{said}");
    }
    let output = site.act(&["n1.cluster", "slurm1"]);
    assert!(output.code() == 1 && site.file("log").exists(), "{}", output.err());
    assert!(output.err().contains("this is the first use of the log"), "{}", output.err());
}

/// Another screen has created the log during the rounds.
#[test]
fn a_screen_that_began_without_a_log_is_a_dry_run() {
    let site = Site::new(&[("n1", "n1")]);
    fs::write(site.file("log"), "").unwrap();
    let output = site.act_with(&["n1"], &["--first-use"]).success();
    for said in
        ["n1: would run: scontrol update NodeName=n1 ", "the log log was missing when this screen began"]
    {
        assert!(output.err().contains(said), "{}", output.err());
    }
    assert!(!site.file("updates").exists());
}

/// About 3 s.
#[test]
fn pmmpi_waits_for_the_log_of_another_pmmpi() {
    let site = Site::new(&[("n1", "n1")]);
    let log = File::create(site.file("log")).unwrap();
    // SAFETY: flock of a descriptor that is open.
    assert_eq!(unsafe { libc::flock(log.as_raw_fd(), libc::LOCK_EX) }, 0);
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(3));
        drop(log);
    });
    let output = site.act(&["n1"]);
    other.join().unwrap();
    let said = output.err();
    assert_eq!(said.matches("this pmmpi waits for at most 5 minutes").count(), 1, "{said}");
    assert!(site.file("updates").exists(), "{said}");
}

#[test]
fn what_cannot_be_written_is_refused_before_the_first_round() {
    let site = Site::new(&[("n1", "n1")]);
    fs::write(site.file("file"), "").unwrap();
    let screen = |options: &[&str]| {
        let screen = ["screen", "--rounds", "1", "--warmup", "0", "--out", "runs"];
        site.pmmpi(&[&screen[..], options, &["--", "true"]].concat())
    };
    for (archive, why) in [("/proc/nowhere/archive", "No such file"), ("file", "Not a directory")] {
        let output = screen(&["--archive", archive]);
        let told = format!("pmmpi cannot write the archive {archive}: {why}");
        assert!(output.code() == 125 && output.err().contains(&told), "{}", output.err());
    }
    for (log, why) in [
        ("/proc/nowhere/log", "No such file"),
        ("missing/log", "No such file"),
        ("/dev/null", "it is not a regular file"),
    ] {
        let output = screen(&["--apply", "drain", "--log", log]);
        let told = format!("pmmpi cannot write the log {log}: {why}");
        assert!(output.code() == 125 && output.err().contains(&told), "{}", output.err());
    }
    let later = "{\"pmmpi_node_actions\":99}\n";
    for (content, why) in
        [("data\n", "it is not a log of pmmpi"), (later, "a different version of pmmpi wrote it")]
    {
        fs::write(site.file("other"), content).unwrap();
        let output = screen(&["--apply", "drain", "--log", "other"]);
        let told = format!("cannot use other as log: {why}");
        assert!(output.code() == 125 && output.err().contains(&told), "{}", output.err());
        assert_eq!(fs::read_to_string(site.file("other")).unwrap(), content);
    }
    assert!(tool::runs_in(&site.file("runs")).is_empty() && !site.file("missing").exists());
    // Files that can be written. The checks create no log, and an empty archive is no input.
    let options = ["--archive", "archive", "--apply", "drain", "--log", "log"];
    let output = screen(&options).success();
    assert!(output.err().contains("no node to change"), "{}", output.err());
    assert!(!site.file("log").exists() && site.file("archive").read_dir().unwrap().next().is_some());
    assert_eq!(tool::runs_in(&site.file("runs")).len(), 1);
}

/// Before the first round, and before an act or a dry run.
#[test]
fn the_log_of_another_cluster_is_refused() {
    let site = Site::new(&[("n1", "n1")]);
    let begin = serde_json::json!({"time": "2026-11-26 02:09:12", "entry": "begin", "process": 1, "host": "n1",
        "user": 0, "cluster": "alpha"});
    let log = begin.to_string().replacen('{', "{\"pmmpi_node_actions\":1,", 1) + "\n";
    fs::write(site.file("log"), &log).unwrap();
    fs::write(site.file("config"), "ClusterName             = beta\n").unwrap();
    let screen = || {
        let screen = ["screen", "--rounds", "1", "--warmup", "0", "--out", "runs", "--apply", "drain"];
        site.pmmpi(&[&screen[..], &["--log", "log", "--", "true"]].concat())
    };
    for output in [site.act(&["n1"]), site.act_with(&["n1"], &["--first-use"]), screen()] {
        let told =
            "cannot use log as log: it is the log of the cluster alpha, but this is the cluster beta; ";
        assert!(output.code() == 125 && output.err().contains(told), "{}", output.err());
        assert!(!output.err().contains("n1: "), "{}", output.err());
    }
    assert!(tool::runs_in(&site.file("runs")).is_empty());
    assert_eq!(fs::read_to_string(site.file("log")).unwrap(), log);
    // Slurm does not tell the name.
    fs::remove_file(site.file("config")).unwrap();
    for output in [site.act(&["n1"]), site.act_with(&["n1"], &["--first-use"]), screen()] {
        let told = "cannot use log as log: it is the log of the cluster alpha, and pmmpi could not find out with \
                    `scontrol show config` whether this cluster is alpha (";
        assert!(output.code() == 125 && output.err().contains(told), "{}", output.err());
        assert!(output.err().contains("No such file"), "{}", output.err());
    }
    // The question for the right is an update, too.
    assert!(!site.file("updates").exists());
    assert_eq!(fs::read_to_string(site.file("log")).unwrap(), log);
    fs::write(site.file("config"), "ClusterName             = Alpha\n").unwrap();
    screen().success();
    assert!(site.act(&["n1"]).err().contains("n1: FAILED: drain"));
}

/// Another cluster still needs its own dry run.
#[test]
fn a_dry_run_gives_the_new_log_the_name_of_the_cluster() {
    let site = Site::new(&[("n1", "n1")]);
    fs::write(site.file("config"), "ClusterName             = alpha\n").unwrap();
    let dry = site.act(&["n1"]).success();
    assert!(dry.err().contains("this is the first use of the log"), "{}", dry.err());
    let log = fs::read_to_string(site.file("log")).unwrap();
    assert!(log.lines().count() == 1 && log.contains("\"cluster\":\"alpha\""), "{log}");
    fs::write(site.file("config"), "ClusterName             = beta\n").unwrap();
    let refused = site.act(&["n1"]);
    let told = "it is the log of the cluster alpha, but this is the cluster beta; ";
    assert!(refused.code() == 125 && refused.err().contains(told), "{}", refused.err());
    assert!(!site.file("updates").exists());
    fs::write(site.file("config"), "ClusterName             = alpha\n").unwrap();
    assert!(site.act(&["n1"]).err().contains("n1: FAILED: drain"));
}

/// `gate.sbatch` for the repaired nodes blue3 and blue4. `ssh` is the script that answers in their place.
fn gate_script(name: &str, ssh: &str) -> Output {
    let folder = Folder::new(name);
    let programs = [
        ("scontrol", "echo \"$3\" | tr , '\\n'"),
        // slurmd of blue3 does not answer.
        ("sinfo", "case $* in *blue3*) echo 'drained*';; *) echo drained;; esac"),
        ("ssh", ssh),
        (
            "mpirun",
            "case $1 in --version) echo 'Open MPI';; *) : > begun; echo \"$*\" $(ls late 2> /dev/null);; esac",
        ),
        ("pmmpi", "true"),
    ];
    for (name, script) in programs {
        let program = folder.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../slurm/gate.sbatch");
    let mut gate = Command::new("bash");
    gate.arg(script).args(["blue3,blue4", "--rounds", "7"]).current_dir(folder.path());
    gate.env("PATH", path).envs([("SLURM_JOB_ID", "1"), ("SLURM_JOB_NODELIST", "blue1")]);
    for variable in ["PMMPI_APPLY", "PMMPI_MPIRUN", "PMMPI_RSH", "PMMPI_SCREEN"] {
        gate.env_remove(variable);
    }
    tool::run(&mut gate)
}

/// `gate.sbatch` gets the names that Slurm has for the nodes, and pmmpi needs the names that the hosts have themselves.
#[test]
fn the_gate_asks_repaired_nodes_for_the_names_of_their_hosts() {
    let ssh = "[ \"$2 $3\" = 'uname -n' ] && echo 'Welcome, user' && echo \"host-of-$1\"";
    let said = gate_script("gate-names", ssh).success().out();
    assert!(
        said.contains(" -n 3 ") && said.contains(" --gate host-of-blue3,host-of-blue4 --rounds 7"),
        "{said}"
    );
}

/// Each node only answers when the other one has been asked. ssh leaves a process behind that has its stdout.
#[test]
fn the_gate_asks_all_repaired_nodes_at_once() {
    let ssh = "wait_for() { for _ in $(seq 200); do [ -e \"$1\" ] && return; sleep 0.1; done; : > late; }\n\
               : > \"asked-$1\"; wait_for asked-blue3; wait_for asked-blue4; echo \"host-of-$1\"\n\
               wait_for begun 2> late-errors &";
    let said = gate_script("gate-at-once", ssh).success().out();
    assert!(said.ends_with(" --gate host-of-blue3,host-of-blue4 --rounds 7\n"), "{said}");
}

/// pmmpi calls it UNDECIDED, because it took no part.
#[test]
fn the_gate_does_not_need_a_repaired_node_that_does_not_answer() {
    let ssh = "[ \"$1\" != blue3 ] && echo \"host-of-$1\"";
    let output = gate_script("gate-without-node", ssh).success();
    let said = output.out();
    assert!(said.contains(" -n 2 ") && said.contains(" --gate blue3,host-of-blue4 --rounds 7"), "{said}");
    assert!(output.err().contains("blue3 does not answer (`ssh blue3 uname -n`)"), "{}", output.err());
    let output = gate_script("gate-without-nodes", "exit 255");
    assert_eq!(output.code(), 4, "{}", output.err());
    assert!(output.err().contains("no drained node answers") && output.out().is_empty(), "{}", output.err());
}
