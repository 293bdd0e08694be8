//! Simulated hosts with their own names and clocks, and MPI jobs on them.

use crate::tool::{self, Folder, Output, Started};
use crate::{FOR_ROOT, Mpi};
use pmmpi::record::{RankRecord, Run};
use std::ffi::OsStr;
use std::fs;
use std::marker::PhantomData;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Only one job at a time, because all ranks share two cores.
static MACHINE: Mutex<()> = Mutex::new(());

/// Reserves the whole machine for work that is not a [`Job`].
pub fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hosts that `mpirun` can reach through a remote shell of the rig.
pub struct Cluster {
    hosts: Vec<String>,
    /// The offset of each host's clocks since boot (ns).
    offsets_ns: Vec<i64>,
    folder: Folder,
}

impl Cluster {
    /// The host names and the offsets of their clocks since boot (ns).
    pub fn new(hosts: &[(&str, i64)]) -> Self {
        let folder = Folder::new("cluster");
        let table: String = hosts.iter().map(|(name, offset)| format!("{name} {offset}\n")).collect();
        fs::write(folder.path().join("table"), table).expect("the table of hosts");
        let (names, offsets_ns) = hosts.iter().map(|(name, offset)| (name.to_string(), *offset)).unzip();
        let cluster = Self { hosts: names, offsets_ns, folder };
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

    /// A job of `ranks` ranks, with equally many on each host if possible.
    pub fn mpirun(&self, mpi: Mpi, ranks: usize) -> Job<'_> {
        let mut job = Job::new(mpi, ranks);
        match mpi {
            Mpi::OpenMpi => {
                job.command.arg("--hostfile").arg(self.hostfile(ranks));
                job.command.args(["--mca", "plm", "rsh", "--mca", "plm_rsh_agent"]).arg(self.shell());
                job.command.args(["--map-by", "slot"]);
            }
            Mpi::Mpich => {
                job.command.args(["-launcher", "ssh", "-launcher-exec"]).arg(self.shell());
                let each = self.ranks_a_host(ranks).to_string();
                job.command.args(["-hosts", &self.hosts.join(","), "-ppn", &each]);
            }
        }
        job
    }

    /// A job of Open MPI with one rank per host, in which each host has a network of its own. The link of `slow` carries at
    /// most `rate` in each direction, such as "2gbit" (tc(8)).
    pub fn mpirun_on_networks(&self, slow: &str, rate: &str) -> Job<'_> {
        let mut job = self.mpirun(Mpi::OpenMpi, self.hosts.len());
        let interfaces = ["btl", "tcp,self", "btl_tcp_if_include", "eth0", "oob_tcp_if_include", "hub,eth0"];
        interfaces.chunks(2).for_each(|pair| _ = job.command.arg("--mca").args(pair));
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("rig/networks.sh");
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount"]).arg(script).args([slow, rate, &self.hosts.join(",")]);
        command.arg(job.command.get_program()).args(job.command.get_args());
        command.envs(job.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Job { command, ..job }.env("PMMPI_RIG_NETWORKS", "1")
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.hosts
    }

    pub(crate) fn ranks_a_host(&self, ranks: usize) -> usize {
        ranks.div_ceil(self.hosts.len())
    }

    /// Open MPI's list of hosts for a job of `ranks` ranks.
    pub(crate) fn hostfile(&self, ranks: usize) -> PathBuf {
        let each = self.ranks_a_host(ranks);
        let lines: String = self.hosts.iter().map(|host| format!("{host} slots={each}\n")).collect();
        let hostfile = self.folder.path().join(format!("hosts-{each}"));
        fs::write(&hostfile, lines).expect("the host file");
        hostfile
    }

    /// Converts `ns` on a host's clock since boot to the clock that all hosts share.
    fn common_ns(&self, host: &str, ns: i64) -> i64 {
        let at = self.hosts.iter().position(|name| name == host).expect("a host of the cluster");
        ns - self.offsets_ns[at]
    }

    /// The instants at which each rank reached t1 and t2, by one clock; only the rig can know them. Clock readings of
    /// a program near these instants are inexact on a busy machine; these are exact.
    pub fn instants_ns(&self, run: &Run) -> Vec<[i64; 2]> {
        let instants = |rank: &RankRecord| {
            let host = &run.nodes[rank.node.index()].key.hostname;
            let [_, t1, t2, _] = <[i64; 4]>::from(rank.stamps);
            [t1, t2].map(|ns| self.common_ns(host, ns))
        };
        run.ranks.iter().map(instants).collect()
    }

    /// The true time from the first t1 to the last t2. It must be within the bounds of the run, except for rounding.
    pub fn elapsed_ns(&self, run: &Run) -> i64 {
        let instants = self.instants_ns(run);
        let (begins, ends) = (instants.iter().map(|at| at[0]), instants.iter().map(|at| at[1]));
        ends.max().expect("ranks") - begins.min().expect("ranks")
    }

    /// The true time is within the bounds, apart from a few nanoseconds of rounding.
    pub fn assert_bounded(&self, run: &Run) {
        const ROUNDING_NS: i64 = 10;
        let (truth, bounds) = (self.elapsed_ns(run), run.elapsed().expect("a complete run"));
        assert!(bounds.lower_ns - ROUNDING_NS <= truth, "{truth} is below {bounds:?}");
        assert!(truth <= bounds.upper_ns + ROUNDING_NS, "{truth} is above {bounds:?}");
    }

    /// The program that replaces ssh.
    pub(crate) fn shell(&self) -> PathBuf {
        self.folder.path().join("rsh")
    }
}

/// The copy of a job's own disk.
pub fn kept_of(disk: &std::path::Path) -> PathBuf {
    disk.with_extension("kept")
}

/// An `mpirun` command line under construction; its cluster must outlive it.
pub struct Job<'a> {
    command: Command,
    cluster: PhantomData<&'a Cluster>,
}

impl Job<'_> {
    fn new(mpi: Mpi, ranks: usize) -> Self {
        let mut job = Self::of(format!("mpirun.{}", mpi.name()));
        if mpi == Mpi::OpenMpi {
            job.command.args(["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]);
        }
        job.command.args(["-n", &ranks.to_string()]);
        job
    }

    /// A job of this launcher, without arguments.
    pub(crate) fn of(launcher: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(launcher);
        command.envs(FOR_ROOT);
        Self { command, cluster: PhantomData }
    }

    /// On this machine itself, without simulated hosts.
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

    /// Gives the job a disk of its own at `place`, with `kib` KiB, which only the job sees. Afterwards [`kept_of`]
    /// has a copy of its content.
    pub fn on_small_disk(self, kib: u32, place: &std::path::Path) -> Self {
        // If launchers are killed, the carrier of the node writes after their end.
        let script = "disk=$1; mount -t tmpfs -o size=$2 none $disk || exit; shift 2; rm -rf $disk.kept; \"$@\"; code=$?; \
                      carries() { for p in $(pgrep -x pmmpi-carrier); do \
                      grep -qs \"$disk\" /proc/$p/cmdline && return; done; return 1; }; \
                      n=0; while carries && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done; \
                      cp -r --sparse=always $disk/. $disk.kept; exit $code";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(place);
        command.arg(format!("{kib}k")).arg(self.command.get_program()).args(self.command.get_args());
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self { command, ..self }
    }

    /// Runs the job to its end, alone on the machine.
    pub fn run(mut self) -> Output {
        let _alone = machine();
        tool::run(&mut self.command)
    }

    /// Starts the job; the caller must hold the [`machine`].
    pub fn start(mut self) -> Started {
        // Launchers of Open MPI create and remove /tmp/ompi.HOST.USER, and fail if two do this at the same time.
        tool::start_with(&mut self.command, |command, folder| {
            command.env("OMPI_MCA_orte_tmpdir_base", folder);
        })
    }
}
