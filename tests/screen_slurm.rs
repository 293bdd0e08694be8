//! The scripts of slurm/ for `pmmpi screen`, in a real Slurm with four nodes. Each node has a share of one CPU, and node2
//! can get less.

use rig::Mpi;
use rig::cpu_group::CpuGroup;
use rig::slurm::{NODES, Slurm, Turn, manager, read, text};
use rig::tool::{self, Folder, Output};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(60);
/// A batch job that takes longer hangs. The shares of a CPU make kernels slow.
const JOB: Duration = Duration::from_secs(300);
/// CPUs of a healthy node: four nodes share two CPUs, and other programs need some time, too.
const HEALTHY: f64 = 0.4;
const SLOW: f64 = 0.2;
/// The shortest kernel, and as many rounds as a verdict needs.
const SHORT: [&str; 4] = ["--kernels", "fma", "--rounds", "5"];

fn path_of(name: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm").join(name))
}

/// A cluster for one test whose nodes have their shares of the CPUs.
struct Site {
    slurm: Turn,
    folder: Folder,
    groups: Vec<CpuGroup>,
}

/// The end of a batch job.
struct Ended {
    /// "0:0" if it succeeded.
    code: String,
    output: String,
}

impl Site {
    /// `None` if this machine has no cgroups for CPU time.
    fn new() -> Option<Self> {
        let mut slurm = Slurm::turn();
        slurm.spoil();
        let groups: Option<Vec<CpuGroup>> =
            (0..NODES).map(|node| CpuGroup::new(&format!("node{node}"))).collect();
        let site = Self { slurm, folder: Folder::new("screen-slurm"), groups: groups? };
        for (node, group) in site.groups.iter().enumerate() {
            group.limit(HEALTHY);
            fs::write(site.file(&format!("group-of-node{node}")), text(group.processes())).unwrap();
        }
        let here = text(site.folder.path());
        let enter = format!("case $1 in screen) echo $$ > \"$(cat {here}/group-of-$(uname -n))\";; esac");
        site.program("bin/pmmpi", &format!("{enter}\nexec {} \"$@\"", text(tool::pmmpi())));
        Some(site)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a shell script.
    fn program(&self, name: &str, script: &str) -> PathBuf {
        let program = self.file(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// A command of Slurm, with the nodes' pmmpi in PATH and the folder `site`.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.slurm.command(self.folder.path(), program, args);
        let path =
            command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).expect("PATH");
        let path = format!("{}:{}", self.file("bin").display(), path.display());
        command.env("PATH", path).env("PMMPI_SCREEN", self.file("site"));
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        tool::run(&mut self.command(program, args))
    }

    /// Submits a script of slurm/ and waits for its end.
    fn batch(&self, variables: &[(&str, &str)], options: &[&str], script: &str, args: &[&str]) -> Ended {
        let script = path_of(script);
        let args = [&["--parsable", "--output=out-%j"], options, &[&script], args].concat();
        let mut sbatch = self.command("sbatch", &args);
        let job = tool::run(sbatch.envs(variables.iter().copied())).success().out().trim().to_owned();
        self.wait_for_job(&job)
    }

    /// A value that `scontrol show job` shows, such as that of "JobState=".
    fn job_field(&self, job: &str, name: &str) -> String {
        let shown = self.run("scontrol", &["show", "job", job]).success().out();
        let value = shown.split_whitespace().find_map(|word| word.strip_prefix(name).map(str::to_owned));
        value.unwrap_or_else(|| panic!("{name} in {shown}"))
    }

    /// The numbers of the jobs with this name that wait.
    fn pending(&self, name: &str) -> Vec<String> {
        let shown = self.run("squeue", &["-h", "-n", name, "-t", "PENDING", "-o", "%i"]).success().out();
        shown.lines().map(str::to_owned).collect()
    }

    fn wait_for_job(&self, job: &str) -> Ended {
        let field = |name: &str| self.job_field(job, name);
        let goes_on =
            || ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"].contains(&field("JobState=").as_str());
        assert!(tool::is_over_within(JOB, || !goes_on()), "{}", self.run("squeue", &[]).out());
        Ended { code: field("ExitCode="), output: read(PathBuf::from(field("StdOut="))) }
    }

    fn states(&self) -> String {
        self.run("sinfo", &["-h", "-N", "-o", "%N %T"]).success().out()
    }

    /// Waits until Slurm shows node2 in this state, and all other nodes idle.
    fn wait_for_node2(&self, state: &str) {
        let wanted = format!("node0 idle\nnode1 idle\nnode2 {state}\nnode3 idle\n");
        assert!(tool::is_over_within(WAIT, || self.states() == wanted), "{}", self.states());
    }

    fn reason(&self, node: &str) -> String {
        let shown = self.run("scontrol", &["show", "node", node]).success().out();
        let reason = shown.lines().find_map(|line| line.trim().strip_prefix("Reason="));
        reason.unwrap_or_default().to_owned()
    }

    /// Puts these lines into the configuration of the running cluster.
    fn configure(&self, lines: &str) {
        let command = self.command("true", &[]);
        let conf =
            command.get_envs().find(|(name, _)| *name == "SLURM_CONF").and_then(|(_, path)| path).unwrap();
        let before = read(conf.into());
        fs::write(conf, format!("{lines}\n{before}")).unwrap();
        self.run("scontrol", &["reconfigure"]).success();
    }
}

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
    let mut submit = site.command(&path_of("screen-array.sbatch"), &["node[0-3]"]);
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
    let none = tool::run(site.command(&path_of("screen-join.sh"), &["other"]).env("PMMPI_FAIL_ON", "slow"));
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

    let mut submit = site.command(&path_of("screen-array.sbatch"), &["node[0-1,3]"]);
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
        command.arg(path_of("screen-join.sh")).arg("one").env("PATH", &path).env("STATUS", status);
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

/// slurmd itself calls the program on each node.
#[test]
fn an_idle_node_measures_itself_and_stops_for_a_job() {
    let Some(site) = Site::new() else { return };
    let state = |node: &str, name: &str| read(site.file(&format!("state-{node}/{name}")));
    let environment = site.command("true", &[]);
    let value = |wanted: &str| {
        let value = environment.get_envs().find(|(name, _)| *name == wanted).and_then(|(_, value)| value);
        value.expect("a variable").display().to_string()
    };
    let conf = format!(
        "PATH={}\nSLURM_CONF={}\nPMMPI={}\nPMMPI_STATE={}/state-$(uname -n)\nPMMPI_RESULTS={}\nPMMPI_OPTIONS='--kernels fma'\n",
        value("PATH"),
        value("SLURM_CONF"),
        text(site.file("bin/pmmpi")),
        text(site.folder.path()),
        text(site.file("results"))
    );
    let set = |more: &str| fs::write(site.file("conf"), format!("{conf}{more}\n")).unwrap();
    set("PMMPI_ROUNDS=5");
    fs::set_permissions(site.file("conf"), fs::Permissions::from_mode(0o644)).unwrap();
    let script = format!("PMMPI_CONF={} exec {} \"$@\"", text(site.file("conf")), path_of("healthcheck.sh"));
    let check = text(site.program("healthcheck", &script));
    // As slurmd calls it, on one node.
    let host = text(tool::target().join("release/pmmpi-rig-host"));
    let on_node1 =
        |args: &[&str]| site.run(&host, &[&["node1", "1", "--", &check], args].concat()).success().out();
    let begun = |node: &str| site.file(&format!("state-{node}/begun")).exists();

    // Slurm does not answer, or the node has a job: no measurement begins, and the program ends although sinfo does not.
    for (answer, at) in
        [("echo $$ > asked; sleep 1000", "asked"), ("echo allocated; echo > asked-2", "asked-2")]
    {
        site.program("bin/sinfo", &format!("cd {}; {answer}", text(site.folder.path())));
        assert_eq!(on_node1(&[]), "pmmpi: node1: no result yet\n");
        assert!(tool::is_over_within(WAIT, || site.file(at).exists()));
        assert!(tool::is_over_within(WAIT, || on_node1(&["stop"]).is_empty() && is_free(&site, "node1")));
        assert!(!begun("node1"));
    }
    fs::remove_file(site.file("bin/sinfo")).unwrap();
    // Others could write the settings of a program that runs as root.
    fs::set_permissions(site.file("conf"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(on_node1(&[]).contains("must belong to root"));
    fs::set_permissions(site.file("conf"), fs::Permissions::from_mode(0o644)).unwrap();

    site.configure(&format!("HealthCheckProgram={check}\nHealthCheckInterval=1\nHealthCheckNodeState=IDLE"));
    for node in ["node0", "node1", "node2", "node3"] {
        assert!(
            tool::is_over_within(WAIT, || state(node, "result").contains("measured 20")),
            "{node}: {}",
            state(node, "screen.txt")
        );
    }
    // The last node was compared with the others.
    let results = ["node0", "node1", "node2", "node3"].map(|node| state(node, "result"));
    assert!(results.iter().any(|result| !result.starts_with("not compared")), "{results:?}");
    let said = on_node1(&[]);
    assert!(said.starts_with("pmmpi: node1: ") && said.contains("measured 20"), "{said}");
    let runs =
        fs::read_dir(site.file("results")).unwrap().flatten().filter_map(|of| fs::read_dir(of.path()).ok());
    assert_eq!(runs.flatten().count(), NODES);

    // A measurement that lasts until a job begins.
    set("PMMPI_ROUNDS=10000");
    let remove = |name: &str| {
        (0..NODES).for_each(|node| _ = fs::remove_file(site.file(&format!("state-node{node}/{name}"))))
    };
    let is_measured = |node: &str| {
        let unfinished = site.file(&format!("results/.unfinished-{node}"));
        fs::read_dir(unfinished).is_ok_and(|mut runs| runs.next().is_some())
    };
    remove("begun");
    remove("result");
    assert!(tool::is_over_within(WAIT, || is_measured("node1") && !is_free(&site, "node1")));
    site.run("srun", &["-w", "node1", "-N1", "-n1", "sleep", "4"]).success();
    assert!(tool::is_over_within(WAIT, || is_free(&site, "node1")));
    // Until the next hour, no measurement begins.
    assert!(begun("node1") && state("node1", "result").is_empty());

    // A prolog ends a measurement.
    // Other nodes keep theirs: they still measure, and must not begin again when they are stopped.
    fs::remove_file(site.file("state-node1/begun")).unwrap();
    assert!(tool::is_over_within(WAIT, || !is_free(&site, "node1") && !state("node1", "group").is_empty()));
    assert!(tool::is_over_within(WAIT, || !tool::processes_with(&text(
        site.file("results/.unfinished-node1")
    ))
    .is_empty()));
    on_node1(&["stop"]);
    assert!(is_free(&site, "node1"));
    assert!(tool::processes_with(&text(site.file("results/.unfinished-node1"))).is_empty());
    for node in ["node0", "node2", "node3"] {
        site.run(&host, &[node, "1", "--", &check, "stop"]).success();
        assert!(tool::is_over_within(WAIT, || is_free(&site, node)));
    }
    assert_eq!(site.states().matches("idle").count(), NODES, "{}", site.states());
}

/// With cgroup v2, slurmd keeps a process `slurmstepd infinity`, which is no job. Scripts replace pmmpi and sinfo.
#[test]
fn only_a_job_or_stop_ends_a_measurement() {
    let folder = Folder::new("healthcheck");
    let file = |name: &str| folder.path().join(name);
    let write = |name: &str, mode: u32, contents: String| {
        fs::write(file(name), contents).unwrap();
        fs::set_permissions(file(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    write("sinfo", 0o755, "#!/bin/sh\necho idle\n".to_owned());
    // The watcher looks for a job once per second.
    write("pmmpi", 0o755, format!("#!/bin/sh\nsleep 2.5\necho > {}\n", text(file("ended"))));
    let state = text(file("state"));
    write("conf", 0o644, format!("PATH={}:/usr/bin:/bin\nPMMPI_STATE={state}\n", text(folder.path())));
    std::os::unix::fs::symlink("/usr/bin/sleep", file("slurmstepd")).unwrap();
    let slurmstepd = |argument: &str| tool::start(Command::new(file("slurmstepd")).arg(argument));
    let check = |args: &[&str]| {
        let mut bash = Command::new("bash");
        bash.arg(path_of("healthcheck.sh")).args(args).env("PMMPI_CONF", file("conf"));
        tool::run(&mut bash).success();
    };
    let lock = text(file("state/lock"));
    let is_free = || tool::run(Command::new("flock").args(["--nonblock", &lock, "true"])).status.success();
    let exists = |name: &str| file(name).exists();

    let _of_slurmd = slurmstepd("infinity");
    check(&[]);
    assert!(tool::is_over_within(WAIT, || exists("ended")));

    assert!(tool::is_over_within(WAIT, is_free));
    for name in ["ended", "state/begun"] {
        fs::remove_file(file(name)).unwrap();
    }
    let job = slurmstepd("100");
    check(&[]);
    assert!(tool::is_over_within(WAIT, || exists("state/begun")));
    assert!(tool::is_over_within(WAIT, is_free));
    assert!(!exists("ended"));
    drop(job);

    // Slurm answers after `stop` has ended.
    fs::remove_file(file("state/begun")).unwrap();
    write("sinfo", 0o755, format!("#!/bin/sh\necho > {}\nsleep 4\necho idle\n", text(file("asked"))));
    check(&[]);
    assert!(tool::is_over_within(WAIT, || exists("asked")));
    check(&["stop"]);
    assert!(tool::is_over_within(WAIT, is_free));
    assert!(!exists("state/begun") && !exists("ended"));
}

/// True if no measurement of the node has the lock.
fn is_free(site: &Site, node: &str) -> bool {
    let lock = text(site.file(&format!("state-{node}/lock")));
    tool::run(Command::new("flock").args(["--nonblock", &lock, "true"])).status.success()
}

/// Slurm drains a node whose epilog fails.
#[test]
fn an_epilog_never_fails() {
    let mut slurm = Slurm::turn();
    slurm.spoil();
    let site = Site { slurm, folder: Folder::new("epilog"), groups: Vec::new() };
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
        format!(". {}; export PMMPI_EPILOG_LOG PMMPI_SYS; exec {}", text(&conf), path_of("epilog.sh"));
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
