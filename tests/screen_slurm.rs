//! The scripts of slurm/ for `pmmpi screen`, in a real Slurm with four nodes. Each node has a share of one CPU, and node2
//! can get less. healthcheck.rs has the tests of slurm/healthcheck.sh.

use rig::Mpi;
use rig::slurm::{NODES, manager, read, script_path, text};
use rig::slurm_site::{HEALTHY, Site, WAIT};
use rig::tool::{self, Folder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// CPUs of a slow node.
const SLOW: f64 = 0.2;
/// The shortest kernel, and as many rounds as a verdict needs.
const SHORT: [&str; 4] = ["--kernels", "fma", "--rounds", "5"];

/// `bash -n` and ShellCheck find no error in any script.
#[test]
fn scripts_are_correct_shell() {
    let folder = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm")).unwrap();
    let scripts: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    assert!(scripts.len() >= 10, "{scripts:?}");
    for script in &scripts {
        tool::run(Command::new("bash").arg("-n").arg(script)).success();
    }
    // Notes only, such as on functions that a script calls by name, are no errors.
    let mut shellcheck = Command::new("shellcheck");
    tool::run(shellcheck.args(["--shell=bash", "--severity=warning"]).args(&scripts)).success();
}

/// From the first screen, which changes nothing, to the return of the repaired node.
#[test]
fn a_slow_node_is_drained_and_returns_when_it_is_repaired() {
    let Some(site) = Site::new() else { return };
    site.groups[2].limit(SLOW);
    let ended = site.batch(&[("PMMPI_APPLY", "drain")], &["--nodes=4"], "screen.sbatch", &SHORT);
    assert_eq!(ended.code, "0:0", "{}", ended.output);
    let said = &ended.output;
    assert!(said.contains("1 of 4 nodes is slower than its class: node2 in compute "), "{said}");
    assert!(
        said.contains("node2: would run: scontrol update NodeName=node2 State=DRAIN 'Reason=pmmpi: "),
        "{said}"
    );
    assert!(said.contains("pmmpi changed nothing, because the first use of a log is a dry run"), "{said}");
    assert_eq!(said.matches("would run").count(), 1, "{said}");
    assert_eq!(site.reason("node2"), "");
    site.wait_for_node2("idle");

    // Another program on this machine may slow down all nodes from now on. What pmmpi makes of a node's own history is
    // tested with known times.
    fs::remove_dir_all(site.file("site/archive")).unwrap();
    let options = format!("{} --fail-on slow", SHORT.join(" "));
    let variables = [
        ("PMMPI_APPLY", "drain"),
        ("PMMPI_SRUN_MPI", manager(Mpi::Mpich).trim_start_matches("--mpi=")),
        ("PMMPI_OPTIONS", &options),
        ("PMMPI_AGAIN", "tomorrow"),
    ];
    let features = ["update", "NodeName=node[0-3]", "AvailableFeatures=fast", "ActiveFeatures=fast"];
    site.run("scontrol", &features).success();
    let request = ["--nodes=4", "--account=lab", "--time=50", "--constraint=fast"];
    let ended = site.batch(&variables, &request, "weekly.sbatch", &[]);
    assert_eq!(ended.code, "3:0", "{}", ended.output);
    assert!(ended.output.contains("node2: done: drain"), "{}", ended.output);
    site.wait_for_node2("drained");
    assert!(site.reason("node2").starts_with("pmmpi: slow-compute: +"), "{}", site.reason("node2"));
    assert_eq!(["node0", "node1", "node3"].map(|node| site.reason(node)), ["", "", ""]);
    assert_eq!(read(site.file("site/exclude.txt")), "node2\n", "{}", ended.output);
    check_metrics(&site);
    // The next job makes the same request, and does not need the drained node.
    let next = site.pending("pmmpi-weekly");
    let fields = ["JobState=", "NumNodes=", "Account=", "TimeLimit=", "Features="];
    assert_eq!(
        next.iter().map(|job| fields.map(|name| site.job_field(job, name))).collect::<Vec<_>>(),
        [["PENDING", "3-4", "lab", "00:50:00", "fast"]]
    );
    site.run("scancel", &["-n", "pmmpi-weekly"]).success();

    // All four nodes run fma, the kernel of compute that found node2.
    let table: String = (0..NODES).map(|node| format!("node{node} {}\n", node + 1)).collect();
    fs::write(site.file("table"), table).unwrap();
    let host = tool::target().join("release/pmmpi-rig-host");
    let rsh = site.program("rsh", &format!("exec {} --rsh {} \"$@\"", text(host), text(site.file("table"))));
    let gate_of_rounds = |rounds: &str, mpi: &str| {
        let variables = [("PMMPI_APPLY", "drain"), ("PMMPI_RSH", &text(&rsh)), ("PMMPI_MPIRUN", mpi)];
        let options = ["node2", "--kernels", "fma", "--rounds", rounds];
        site.batch(&variables, &["--nodes=3"], "gate.sbatch", &options)
    };
    // More rounds show more exactly how slow the node may be.
    let gate = |mpi: &str| gate_of_rounds("11", mpi);
    // No name service knows the nodes of the rig.
    let mpich = site.program("mpich", "exec mpirun.mpich -localhost 127.0.0.1 \"$@\"");
    let ended = gate_of_rounds("5", &text(mpich));
    assert!(
        ended.output.contains("node2 is NOT fit to return: in fma, the node is slower than its class"),
        "{}",
        ended.output
    );
    assert!(ended.code != "0:0" && ended.output.contains("already marked"), "{}", ended.output);
    site.wait_for_node2("drained");
    site.groups[2].limit(HEALTHY);
    // Three other nodes are enough only if the archive has two screens in which node2 was fast: those of the first two
    // tries. And another program may disturb a measurement.
    let mut ended = gate("mpirun.openmpi");
    for _ in 0..7 {
        if ended.code != "0:0" {
            ended = gate("mpirun.openmpi");
        }
    }
    assert_eq!(ended.code, "0:0", "{}", ended.output);
    assert!(ended.output.contains("screen of 4 nodes: 11 rounds of fma"), "{}", ended.output);
    assert!(
        ended.output.contains("node2 is fit to return: with a probability of 99 %, it is "),
        "{}",
        ended.output
    );
    assert!(ended.output.contains("node2: done: resume"), "{}", ended.output);
    site.wait_for_node2("idle");
    let refused = gate("mpirun.openmpi");
    assert!(
        refused.code == "2:0" && refused.output.contains(", not drained: drain it"),
        "{}",
        refused.output
    );
}

/// If the job ends with an error, monitoring still gets the rounds that were saved.
#[test]
fn a_weekly_screen_that_fails_writes_its_metrics_and_keeps_its_status() {
    let Some(site) = Site::new() else { return };
    // As if something failed after the rounds.
    site.program("bin/srun", "/usr/bin/srun \"$@\"; exit 70");
    let variables = [
        ("PMMPI_SRUN_MPI", manager(Mpi::Mpich).trim_start_matches("--mpi=")),
        ("PMMPI_OPTIONS", "--kernels fma --rounds 3"),
        ("PMMPI_AGAIN", "tomorrow"),
        ("PMMPI_NODES", "2-4"),
    ];
    let ended = site.batch(&variables, &["--nodes=2"], "weekly.sbatch", &[]);
    assert_eq!(ended.code, "70:0", "{}", ended.output);
    let next = site.pending("pmmpi-weekly");
    assert_eq!(next.iter().map(|job| site.job_field(job, "NumNodes=")).collect::<Vec<_>>(), ["2-4"]);
    site.run("scancel", &["-n", "pmmpi-weekly"]).success();
    let metrics = read(site.file("site/metrics/pmmpi.prom"));
    assert!(metrics.contains("pmmpi_node_suggests_drain{"), "{metrics}");
    assert!(site.file("site/exclude.txt").exists());
    let of_job = read(site.file("site/metrics/pmmpi-weekly.prom"));
    assert!(of_job.contains("\npmmpi_screen_last_exit_status 70\n"), "{of_job}");
    assert!(of_job.contains("\npmmpi_screen_last_success_timestamp_seconds 0\n"), "{of_job}");
}

/// Python's client of Prometheus reads both files.
fn check_metrics(site: &Site) {
    let metrics = site.file("site/metrics");
    let names: Vec<_> = fs::read_dir(&metrics).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let parse = "import sys; from prometheus_client.parser import text_string_to_metric_families as parse\n\
                 for name in sys.argv[1:]:\n  for family in parse(open(name).read()):\n    for sample in family.samples:\n      \
                 print(sample.name, sample.labels.get('node', ''), sample.value)";
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", parse]).args(["pmmpi.prom", "pmmpi-weekly.prom"].map(|name| metrics.join(name)));
    let said = tool::run(&mut python).success().out();
    let value = |name: &str| {
        let line =
            said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}\n{said}"));
        line.trim().parse::<f64>().unwrap()
    };
    assert!(value("pmmpi_screen_last_success_timestamp_seconds") > 1e9);
    assert_eq!(value("pmmpi_screen_last_exit_status"), 3.0);
    assert_eq!(value("pmmpi_node_suggests_drain node2 "), 1.0);
    assert_eq!(value("pmmpi_node_suggests_drain node1 "), 0.0);
    assert!(!said.contains("pmmpi_run_"), "{said}");
}

/// Nodes that one job each measures are compared in the end.
#[test]
fn nodes_are_compared_that_jobs_measured_one_after_another() {
    let Some(site) = Site::new() else { return };
    site.groups[2].limit(SLOW);
    let variables = [
        ("PMMPI_SESSION", "one"),
        ("PMMPI_ROUNDS", "5"),
        ("PMMPI_OPTIONS", "--kernels fma"),
        ("PMMPI_FAIL_ON", "slow"),
    ];
    let mut submit = site.command(&script_path("screen-array.sbatch"), &["node[0-3]"]);
    let said = tool::run(submit.envs(variables)).success().out();
    let join = said.split_whitespace().last().expect("sbatch says the number").to_owned();
    let ended = site.wait_for_job(&join);
    assert_eq!(ended.code, "3:0", "{}", ended.output);
    let lines = |node: &str| {
        ended.output.lines().filter(|line| line.starts_with(node)).collect::<Vec<_>>().join("\n")
    };
    assert!(lines("node2 ").contains("SLOW-TAIL"), "{}", ended.output);
    assert!(
        ended.output.contains("node2 ") && read(site.file("site/results/one/exclude.txt")).contains("node2")
    );
    assert!(site.file("site/results/one/nodes.csv").exists() && site.file("site/archive-alone").is_dir());
    let again = site.batch(&variables, &["-w", "node1"], "screen-array.sbatch", &[]);
    assert_eq!(
        (again.code.as_str(), again.output.as_str()),
        ("0:0", "node1 has been measured in session one\n")
    );
    site.wait_for_node2("idle");
    let none =
        tool::run(site.command(&script_path("screen-join.sh"), &["other"]).env("PMMPI_FAIL_ON", "slow"));
    assert!(none.code() == 4 && none.err().contains("no node of session other"), "{}", none.err());
}

/// A drained node gets no job. The nodes are compared although the job of another node never started.
#[test]
fn nodes_that_never_run_a_job_do_not_prevent_the_comparison() {
    let Some(site) = Site::new() else { return };
    site.run("scontrol", &["update", "NodeName=node3", "State=DRAIN", "Reason=repair"]).success();
    let busy = ["--parsable", "--exclusive", "-w", "node1", "--output=/dev/null", "--wrap=sleep 300"];
    let busy = site.run("sbatch", &busy).success().out().trim().to_owned();
    assert!(tool::is_over_within(WAIT, || site.job_field(&busy, "JobState=") == "RUNNING"));

    let mut submit = site.command(&script_path("screen-array.sbatch"), &["node[0-1,3]"]);
    submit.env("PMMPI_SESSION", "some").env("PMMPI_ROUNDS", "3").env("PMMPI_OPTIONS", "-- true");
    let submitted = tool::run(&mut submit).success();
    assert_eq!(submitted.err(), "node3 gets no job, because it is drained\n");
    let said = submitted.out();
    assert!(said.contains("session some. ") && said.contains("screen-join.sh some\n"), "{said}");
    let join = said.split_whitespace().last().expect("sbatch says the number").to_owned();
    let measured = site.file("site/results/some/node0");
    assert!(tool::is_over_within(WAIT, || measured.is_dir()), "{}", site.run("squeue", &[]).out());
    let waiting = site.pending("pmmpi-screen-one");
    assert_eq!(waiting.len(), 1, "{}", site.run("squeue", &[]).out());
    // At this time Slurm removes the job, as scancel does now.
    assert!(site.job_field(&waiting[0], "Deadline=").starts_with("20"));
    assert_eq!(site.job_field(&join, "JobState="), "PENDING");
    site.run("scancel", &[waiting[0].as_str()]).success();
    let ended = site.wait_for_job(&join);
    assert_eq!(ended.code, "0:0", "{}", ended.output);
    assert!(ended.output.ends_with("nodes without a result: node1,node3\n"), "{}", ended.output);
    site.run("scancel", &[busy.as_str()]).success();
    site.wait_for_job(&busy);
}

/// A script replaces pmmpi, whose report has each of these statuses.
#[test]
fn a_node_whose_job_never_ran_is_no_pass() {
    let folder = Folder::new("screen-join");
    let session = folder.path().join("results/one");
    ["node0", "node1"].iter().for_each(|node| fs::create_dir_all(session.join(node)).unwrap());
    let pmmpi = folder.path().join("pmmpi");
    let script = "#!/bin/sh\ncase $2 in --format) : > \"$5\"; exit 0;; -o) exit 0;; esac\nexit $STATUS\n";
    fs::write(&pmmpi, script).unwrap();
    fs::set_permissions(&pmmpi, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", text(folder.path()), std::env::var("PATH").unwrap_or_default());
    let join = |nodes: &str, fail_on: &str, status: &str| {
        fs::write(session.join("nodes"), nodes).unwrap();
        let mut command = Command::new("bash");
        command.arg(script_path("screen-join.sh")).arg("one").env("PATH", &path).env("STATUS", status);
        tool::run(command.env("PMMPI_SCREEN", folder.path()).env("PMMPI_FAIL_ON", fail_on))
    };
    let all = "node0\nnode1\n";
    for fail_on in ["slow", "wrong,suspect", "unjudged,wrong"] {
        assert_eq!(join(all, fail_on, "0").code(), 0, "{fail_on}");
        for (status, expected) in [("0", 4), ("1", 4), ("3", 3), ("4", 4), ("125", 125)] {
            let joined = join("node0\nnode1\nnode2\n", fail_on, status);
            assert_eq!(joined.code(), expected, "{fail_on} {status}: {}", joined.err());
            assert!(joined.out().ends_with("nodes without a result: node2\n"), "{}", joined.out());
        }
    }
    for fail_on in ["", "wrong"] {
        assert_eq!(join("node0\nnode1\nnode2\n", fail_on, "0").code(), 0, "{fail_on}");
    }
}

/// Slurm drains a node whose epilog fails.
#[test]
fn an_epilog_never_fails() {
    let site = Site::of_whole_cpus("epilog");
    let sys = site.file("sys");
    fs::create_dir_all(sys.join("edac/mc/mc0")).unwrap();
    fs::create_dir_all(sys.join("edac/mc/mc1")).unwrap();
    fs::write(sys.join("edac/mc/mc0/ce_count"), "40\n").unwrap();
    fs::write(sys.join("edac/mc/mc1/ce_count"), "2\n").unwrap();
    // Two hardware threads of one core.
    for cpu in ["cpu/cpu0", "cpu/cpu1"] {
        for (file, text) in
            [("topology/thread_siblings_list", "0-1\n"), ("thermal_throttle/core_throttle_count", "7\n")]
        {
            let file = sys.join(cpu).join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }
    let conf = site.file("epilog-settings");
    let script =
        format!(". {}; export PMMPI_EPILOG_LOG PMMPI_SYS; exec {}", text(&conf), script_path("epilog.sh"));
    let epilog = text(site.program("epilog", &script));
    let set = |log: &str, sys: &Path| {
        fs::write(&conf, format!("PMMPI_EPILOG_LOG={log}\nPMMPI_SYS={}\n", text(sys))).unwrap();
    };
    let log = site.file("log");
    set(&text(&log), &sys);
    site.configure(&format!("Epilog={epilog}"));
    let job = || {
        site.run("srun", &["-w", "node1", "-N1", "-n1", "true"]).success();
        site.wait_for_node2("idle");
    };
    job();
    let line = read(log.clone());
    let (time, rest) = line.split_once(',').expect("a line");
    assert!(time.ends_with('Z') && rest.starts_with("job "), "{line}");
    assert!(rest.ends_with(",memory_corrected 42,memory_uncorrected -,throttled 7\n"), "{line}");
    // A log that cannot be written, and a file that hangs.
    set("/nowhere/log", &sys);
    job();
    tool::run(Command::new("mkfifo").arg(sys.join("edac/mc/mc1/ue_count"))).success();
    set(&text(&log), &sys);
    job();
    assert_eq!(read(log.clone()), line);
    // A long log begins anew.
    fs::remove_file(sys.join("edac/mc/mc1/ue_count")).unwrap();
    fs::write(&log, "x".repeat(1_000_000)).unwrap();
    job();
    assert!(read(site.file("log.1")).starts_with('x') && read(log).lines().count() == 1);
    assert_eq!(site.reason("node1"), "");
}
