//! A Slurm cluster for the scripts of slurm/: each node has a share of one CPU, and runs pmmpi within its share.

use crate::cpu_group::CpuGroup;
use crate::slurm::{NODES, Slurm, Turn, read, script_path, text};
use crate::tool::{self, Folder, Output};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub const WAIT: Duration = Duration::from_secs(60);
/// A batch job that takes longer hangs. The shares of a CPU make kernels slow.
const JOB: Duration = Duration::from_secs(300);
/// CPUs of a healthy node: four nodes share two CPUs, and other programs need some time, too.
pub const HEALTHY: f64 = 0.4;

/// A cluster for one test whose nodes have their shares of the CPUs.
pub struct Site {
    slurm: Turn,
    pub folder: Folder,
    /// One for each node.
    pub groups: Vec<CpuGroup>,
}

/// The end of a batch job.
pub struct Ended {
    /// "0:0" if it succeeded.
    pub code: String,
    pub output: String,
}

impl Site {
    /// `None` if this machine has no cgroups for CPU time.
    pub fn new() -> Option<Self> {
        let mut site = Self::of_whole_cpus("screen-slurm");
        let groups: Option<Vec<CpuGroup>> =
            (0..NODES).map(|node| CpuGroup::new(&format!("node{node}"))).collect();
        site.groups = groups?;
        for (node, group) in site.groups.iter().enumerate() {
            group.limit(HEALTHY);
            fs::write(site.file(&format!("group-of-node{node}")), text(group.processes())).unwrap();
        }
        let here = text(site.folder.path());
        let enter = format!("case $1 in screen) echo $$ > \"$(cat {here}/group-of-$(uname -n))\";; esac");
        site.program("bin/pmmpi", &format!("{enter}\nexec {} \"$@\"", text(tool::pmmpi())));
        Some(site)
    }

    /// A cluster whose nodes have no limit of CPU time.
    pub fn of_whole_cpus(folder: &str) -> Self {
        let mut slurm = Slurm::turn();
        slurm.spoil();
        Self { slurm, folder: Folder::new(folder), groups: Vec::new() }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a shell script.
    pub fn program(&self, name: &str, script: &str) -> PathBuf {
        let program = self.file(name);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// A command of Slurm, with the nodes' pmmpi in PATH and the folder `site`.
    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.slurm.command(self.folder.path(), program, args);
        let path =
            command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).expect("PATH");
        let path = format!("{}:{}", self.file("bin").display(), path.display());
        command.env("PATH", path).env("PMMPI_SCREEN", self.file("site"));
        command
    }

    pub fn run(&self, program: &str, args: &[&str]) -> Output {
        tool::run(&mut self.command(program, args))
    }

    /// Submits a script of slurm/ and waits for its end.
    pub fn batch(&self, variables: &[(&str, &str)], options: &[&str], script: &str, args: &[&str]) -> Ended {
        let script = script_path(script);
        let args = [&["--parsable", "--output=out-%j"], options, &[&script], args].concat();
        let mut sbatch = self.command("sbatch", &args);
        let job = tool::run(sbatch.envs(variables.iter().copied())).success().out().trim().to_owned();
        self.wait_for_job(&job)
    }

    /// A value that `scontrol show job` shows, such as that of "JobState=".
    pub fn job_field(&self, job: &str, name: &str) -> String {
        let shown = self.run("scontrol", &["show", "job", job]).success().out();
        let value = shown.split_whitespace().find_map(|word| word.strip_prefix(name).map(str::to_owned));
        value.unwrap_or_else(|| panic!("{name} in {shown}"))
    }

    /// The numbers of the jobs with this name that wait.
    pub fn pending(&self, name: &str) -> Vec<String> {
        let shown = self.run("squeue", &["-h", "-n", name, "-t", "PENDING", "-o", "%i"]).success().out();
        shown.lines().map(str::to_owned).collect()
    }

    pub fn wait_for_job(&self, job: &str) -> Ended {
        let field = |name: &str| self.job_field(job, name);
        let goes_on =
            || ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"].contains(&field("JobState=").as_str());
        assert!(tool::is_over_within(JOB, || !goes_on()), "{}", self.run("squeue", &[]).out());
        Ended { code: field("ExitCode="), output: read(PathBuf::from(field("StdOut="))) }
    }

    pub fn states(&self) -> String {
        self.run("sinfo", &["-h", "-N", "-o", "%N %T"]).success().out()
    }

    /// Waits until Slurm shows node2 in this state, and all other nodes idle.
    pub fn wait_for_node2(&self, state: &str) {
        let wanted = format!("node0 idle\nnode1 idle\nnode2 {state}\nnode3 idle\n");
        assert!(tool::is_over_within(WAIT, || self.states() == wanted), "{}", self.states());
    }

    pub fn reason(&self, node: &str) -> String {
        let shown = self.run("scontrol", &["show", "node", node]).success().out();
        let reason = shown.lines().find_map(|line| line.trim().strip_prefix("Reason="));
        reason.unwrap_or_default().to_owned()
    }

    /// Puts these lines into the configuration of the running cluster.
    pub fn configure(&self, lines: &str) {
        let command = self.command("true", &[]);
        let conf =
            command.get_envs().find(|(name, _)| *name == "SLURM_CONF").and_then(|(_, path)| path).unwrap();
        let before = read(conf.into());
        fs::write(conf, format!("{lines}\n{before}")).unwrap();
        self.run("scontrol", &["reconfigure"]).success();
    }
}
