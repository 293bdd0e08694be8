//! How slurmstepd finds the processes of a step, which decides which of them get a signal.

use crate::tool;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proctrack {
    /// By parent processes: each process of the step gets the signal.
    LinuxProc,
    /// By a cgroup, as on most sites: only processes that slurmstepd itself started get the signal, except for
    /// SIGKILL.
    Cgroup,
}

impl Proctrack {
    pub const ALL: [Self; 2] = [Self::LinuxProc, Self::Cgroup];

    /// False, with a visible message, if this machine cannot do it.
    pub fn works_here(self) -> bool {
        if self == Self::LinuxProc {
            return true;
        }
        let folder = tool::Folder::new("freezer");
        let tried = tool::run(&mut self.daemon(folder.path(), &["true".to_owned()]));
        if !tried.status.success() {
            // Not with a macro, because cargo test would hide the output.
            let text = format!(
                "\n*** NOT TESTED with proctrack/cgroup: the freezer of cgroup v1 cannot be mounted: {} ***\n",
                tried.err().trim()
            );
            std::io::stderr().write_all(text.as_bytes()).expect("stderr");
        }
        tried.status.success()
    }

    /// Lines of slurm.conf. The cgroup's name contains the job's number, and other clusters may run on this machine.
    pub fn configuration(self) -> String {
        match self {
            Self::LinuxProc => "ProctrackType=proctrack/linuxproc\n".to_owned(),
            Self::Cgroup => {
                let first = 1000 + std::process::id() % 1_000_000 * 60;
                format!("ProctrackType=proctrack/cgroup\nFirstJobId={first}\n")
            }
        }
    }

    /// Writes the other configuration files beside slurm.conf.
    pub fn configure(self, folder: &Path) {
        if self == Self::Cgroup {
            let text = format!(
                "CgroupPlugin=cgroup/v1\nCgroupMountpoint={}\nCgroupAutomount=no\nConstrainCores=no\n\
                 ConstrainRAMSpace=no\n",
                mounts(folder).display()
            );
            fs::write(folder.join("cgroup.conf"), text).expect("cgroup.conf");
        }
    }

    /// The command for a node's daemon. If it needs the freezer, it mounts the machine's freezer hierarchy in a mount
    /// namespace of its own.
    pub fn daemon(self, folder: &Path, line: &[String]) -> Command {
        if self == Self::LinuxProc {
            let mut command = Command::new(&line[0]);
            command.args(&line[1..]);
            return command;
        }
        fs::create_dir_all(mounts(folder).join("freezer")).expect("a place for the freezer");
        let script = "mount -t cgroup -o freezer none \"$0\" && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(mounts(folder).join("freezer")).args(line);
        command
    }

    /// Removes the cgroups of nodes that have ended.
    pub fn clean(self, folder: &Path) {
        if self == Self::Cgroup {
            let find =
                ["-depth", "-type", "d", "-path", "*/freezer/slurm_node*", "-exec", "rmdir", "{}", ";"];
            let line = ["find".to_owned(), mounts(folder).display().to_string()].into_iter();
            let line: Vec<String> = line.chain(find.map(str::to_owned)).collect();
            // rmdir fails for cgroups of a step that another cluster still runs; they stay.
            tool::run(&mut self.daemon(folder, &line));
        }
    }
}

fn mounts(folder: &Path) -> PathBuf {
    folder.join("cgroup")
}
