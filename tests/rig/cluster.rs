//! Hosts with their own names and clocks, and MPI jobs on them.

use crate::tool::{self, Folder, Output, Started};
use crate::{FOR_ROOT, Mpi};
use std::ffi::OsStr;
use std::fs;
use std::marker::PhantomData;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One job at a time: ranks share two cores as it is.
static MACHINE: Mutex<()> = Mutex::new(());

/// The whole machine, for something that is not a [`Job`].
pub fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hosts that `mpirun` can reach through a remote shell of the rig's.
pub struct Cluster {
    hosts: Vec<String>,
    folder: Folder,
}

impl Cluster {
    /// Host names, and by how much their clocks since boot are off (ns).
    pub fn new(hosts: &[(&str, i64)]) -> Self {
        let folder = Folder::new("cluster");
        let table: String = hosts.iter().map(|(name, offset)| format!("{name} {offset}\n")).collect();
        fs::write(folder.path().join("table"), table).expect("the table of hosts");
        let cluster = Self { hosts: hosts.iter().map(|(name, _)| name.to_string()).collect(), folder };
        let host = tool::target().join("release/pmmpi-rig-host");
        let table = cluster.folder.path().join("table");
        let script = format!("#!/bin/sh\nexec {} --rsh {} \"$@\"\n", host.display(), table.display());
        fs::write(cluster.shell(), script).expect("the remote shell");
        fs::set_permissions(cluster.shell(), fs::Permissions::from_mode(0o755)).expect("executable");
        cluster
    }

    /// `count` hosts whose clocks are hours apart, in both directions.
    pub fn hours_apart(count: usize) -> Self {
        const HOUR_NS: i64 = 3_600_000_000_000;
        let hosts =
            [("node0", 5 * HOUR_NS + 123_456_789), ("node1", 2 * HOUR_NS), ("node2", 77 * HOUR_NS + 1)];
        Self::new(&hosts[..count])
    }

    /// A job of `ranks`, the same number on each host as far as it goes.
    pub fn mpirun(&self, mpi: Mpi, ranks: usize) -> Job<'_> {
        let each = ranks.div_ceil(self.hosts.len());
        let mut job = Job::new(mpi, ranks);
        match mpi {
            Mpi::OpenMpi => {
                let lines: String = self.hosts.iter().map(|host| format!("{host} slots={each}\n")).collect();
                let hostfile = self.folder.path().join(format!("hosts-{each}"));
                fs::write(&hostfile, lines).expect("the host file");
                job.command.arg("--hostfile").arg(hostfile);
                job.command.args(["--mca", "plm", "rsh", "--mca", "plm_rsh_agent"]).arg(self.shell());
                job.command.args(["--map-by", "slot"]);
            }
            Mpi::Mpich => {
                job.command.args(["-launcher", "ssh", "-launcher-exec"]).arg(self.shell());
                job.command.args(["-hosts", &self.hosts.join(","), "-ppn", &each.to_string()]);
            }
        }
        job
    }

    fn shell(&self) -> PathBuf {
        self.folder.path().join("rsh")
    }
}

/// What was on a job's own disk.
pub fn kept_of(disk: &std::path::Path) -> PathBuf {
    disk.with_extension("kept")
}

/// An `mpirun` command line that grows; its cluster outlives it.
pub struct Job<'a> {
    command: Command,
    cluster: PhantomData<&'a Cluster>,
}

impl Job<'_> {
    fn new(mpi: Mpi, ranks: usize) -> Self {
        let mut command = Command::new(format!("mpirun.{}", mpi.name()));
        command.envs(FOR_ROOT);
        if mpi == Mpi::OpenMpi {
            command.args(["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
        }
        command.args(["-n", &ranks.to_string()]);
        Self { command, cluster: PhantomData }
    }

    /// On this machine as it is, without a host of the rig's.
    pub fn local(mpi: Mpi, ranks: usize) -> Self {
        let mut job = Self::new(mpi, ranks);
        if mpi == Mpi::OpenMpi {
            job.command.arg("--oversubscribe");
        }
        job
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn current_dir(mut self, folder: &std::path::Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// With a disk of its own at `place`, of `kib` KiB, which only the job sees; what was on it is in
    /// [`kept_of`] it afterwards.
    pub fn on_small_disk(self, kib: u32, place: &std::path::Path) -> Self {
        let script = "disk=$1; mount -t tmpfs -o size=$2 none $disk || exit; shift 2; rm -rf $disk.kept; \"$@\"; code=$?; \
                      cp -r --sparse=always $disk/. $disk.kept; exit $code";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(place);
        command.arg(format!("{kib}k")).arg(self.command.get_program()).args(self.command.get_args());
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self { command, ..self }
    }

    /// To its end, with the machine to itself.
    pub fn run(mut self) -> Output {
        let _alone = machine();
        tool::run(&mut self.command)
    }

    /// Started; the caller holds the [`machine`].
    pub fn start(mut self) -> Started {
        tool::start(&mut self.command)
    }
}
