//! A real Slurm cluster of four nodes on this machine; each node has its own name and clock.

use crate::cluster::machine;
use crate::proctrack::Proctrack;
use crate::tool::{self, Folder, Output};
use crate::{FOR_ROOT, Mpi};
use std::fs::{self, File};
use std::net::TcpListener;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The nodes are node0 to node3.
pub const NODES: usize = 4;
const HOUR_NS: i64 = 3_600_000_000_000;
/// Daemons that have not started by then will never start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// By default (tree), Slurm 22.05's pmix plugin lets MPI_Init return before ranks of other nodes are ready. If a
/// message then reaches a rank too early, Open MPI's TCP transport crashes this rank, with and without pmmpi. Under
/// load this happens to one in twenty jobs whose first call is MPI_Barrier; with this setting to none in a hundred.
const MPI_CONF: &str = "PMIxCollFence=ring\n";
/// Every test is faster, unless it hangs.
const BATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// The srun option that starts a job of this MPI.
pub fn manager(mpi: Mpi) -> &'static str {
    match mpi {
        Mpi::OpenMpi => "--mpi=pmix",
        Mpi::Mpich => "--mpi=pmi2",
    }
}

/// One rank on each of two nodes.
pub const TWO_NODES: [&str; 2] = ["-N2", "--ntasks-per-node=1"];

/// A path or another value as text for a command line.
pub fn text(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

/// An sbatch option that tells a script of slurm/ the MPI of its program.
pub fn exported(mpi: Mpi, more: &str) -> String {
    format!("--export=ALL,{},{more}", manager(mpi).replace("--mpi", "PMMPI_SRUN_MPI"))
}

/// The path of a batch script of slurm/.
pub fn script(name: &str) -> String {
    script_path(&format!("{name}.sbatch"))
}

/// The path of a file of slurm/.
pub fn script_path(file: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm").join(file))
}

/// The content of a file; empty if the file does not exist.
pub fn read(file: PathBuf) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// A running cluster, which ends with this value.
pub struct Slurm {
    folder: Folder,
    daemons: Vec<Child>,
    proctrack: Proctrack,
    /// True if another test could not use it.
    spoilt: bool,
}

/// The cluster and the machine, reserved for one test. If another test already waits, the cluster continues to run
/// for it, because a start takes one second.
pub struct Turn {
    // First field: it is dropped before the cluster.
    _wanted: Wanted,
    cluster: MutexGuard<'static, Option<Slurm>>,
    _alone: MutexGuard<'static, ()>,
}

static CLUSTER: Mutex<Option<Slurm>> = Mutex::new(None);
/// Number of tests that have the cluster or wait for it.
static TESTS: AtomicUsize = AtomicUsize::new(0);

/// Counts as one of [`TESTS`].
struct Wanted;

impl Wanted {
    fn new() -> Self {
        TESTS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        TESTS.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let is_last = TESTS.load(Ordering::Relaxed) == 1;
        // State from a failed test could make the next test fail too.
        if is_last || self.spoilt || std::thread::panicking() {
            *self.cluster = None;
        }
    }
}

impl Deref for Turn {
    type Target = Slurm;

    fn deref(&self) -> &Slurm {
        self.cluster.as_ref().expect("a cluster until the turn ends")
    }
}

impl DerefMut for Turn {
    fn deref_mut(&mut self) -> &mut Slurm {
        self.cluster.as_mut().expect("a cluster until the turn ends")
    }
}

impl Slurm {
    /// Waits for the cluster, and starts it if there is none.
    pub fn turn() -> Turn {
        Self::turn_with(Proctrack::LinuxProc)
    }

    /// A cluster with this plugin; a cluster with another plugin ends first.
    pub fn turn_with(proctrack: Proctrack) -> Turn {
        let _wanted = Wanted::new();
        let _alone = machine();
        let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
        if cluster.as_ref().is_some_and(|cluster| cluster.proctrack != proctrack) {
            *cluster = None;
        }
        cluster.get_or_insert_with(|| Self::start(proctrack));
        Turn { _wanted, cluster, _alone }
    }

    /// Starts the controller and the nodes, and waits until all are idle.
    fn start(proctrack: Proctrack) -> Self {
        let mut slurm = Self { folder: Folder::new("slurm"), daemons: Vec::new(), proctrack, spoilt: false };
        slurm.configure();
        slurm.daemon(&mut Command::new("slurmctld"), "ctld", &["-D", "-i"]);
        for node in 0..NODES {
            let name = format!("node{node}");
            let host = text(tool::target().join("release/pmmpi-rig-host"));
            let offset = (node as i64 * 3 + 1) * HOUR_NS;
            let line = [host, name.clone(), offset.to_string(), "--".to_owned(), "slurmd".to_owned()];
            let mut command = proctrack.daemon(slurm.folder.path(), &line);
            slurm.daemon(&mut command, &name, &["-D", "-N", &name]);
        }
        slurm.wait_until_idle();
        slurm
    }

    /// A Slurm command for this cluster, in a folder of the test, with the tool in PATH.
    pub fn command(&self, folder: &Path, program: &str, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = tool::target().join("pmmpi/bin");
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.configuration()).envs(FOR_ROOT);
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.current_dir(folder).args(args);
        command
    }

    /// Runs the same command to its end.
    pub fn run(&self, folder: &Path, program: &str, args: &[&str]) -> Output {
        tool::run(&mut self.command(folder, program, args))
    }

    /// Submits with this sbatch command and waits for the end: true if all its jobs succeeded. (sbatch --wait checks
    /// only every few seconds.)
    pub fn batch(&self, sbatch: &mut Command) -> bool {
        let submitted = tool::run(sbatch).success().out();
        let id = submitted.split_whitespace().last().expect("sbatch says the number");
        let deadline = Instant::now() + BATCH_TIMEOUT;
        loop {
            let shown = self.run(self.folder.path(), "scontrol", &["show", "job", id]).success().out();
            let words = shown.split_whitespace();
            let states: Vec<&str> = words.filter_map(|word| word.strip_prefix("JobState=")).collect();
            let goes_on = |state: &&str| ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"].contains(state);
            if !states.iter().any(goes_on) {
                return states.iter().all(|state| *state == "COMPLETED");
            }
            assert!(Instant::now() < deadline, "a batch job does not end:\n{shown}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The next test gets a new cluster.
    pub fn spoil(&mut self) {
        self.spoilt = true;
    }

    /// Kills all processes of a node at once, as in a power failure. The node does not come back.
    pub fn lose_node(&mut self, node: usize) {
        self.spoil();
        let host = |process: &str| fs::read_link(format!("/proc/{process}/ns/uts")).ok();
        let lost = host(&self.daemons[1 + node].id().to_string()).expect("the node's daemon");
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Ok(process) = name.parse::<i32>()
                && host(&name).is_some_and(|host| host == lost)
            {
                // SAFETY: a process of the node; if it has ended already, the call does nothing.
                unsafe { libc::kill(process, libc::SIGKILL) };
            }
        }
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// Only the backfill scheduler starts heterogeneous jobs; by default it checks every 30 s.
    fn configure(&self) {
        let folder = self.folder.path().display();
        let hostname = Command::new("uname").arg("-n").output().expect("uname");
        let hostname = String::from_utf8_lossy(&hostname.stdout).trim().to_owned();
        let ports = free_ports(NODES + 1);
        let node_ports: Vec<String> = ports[1..].iter().map(u16::to_string).collect();
        let text = format!(
            "ClusterName=rig\nSlurmctldHost={hostname}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             AuthType=auth/none\nCredType=cred/none\nStateSaveLocation={folder}/state\n\
             SlurmdSpoolDir={folder}/shared.%n\nSlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/%n.pid\n\
             TmpFS={folder}/tmp.%n\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSwitchType=switch/none\nMpiDefault=none\n\
             ReturnToService=2\nSlurmdParameters=config_overrides\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/none\nSchedulerType=sched/backfill\n\
             SchedulerParameters=bf_interval=1\nInactiveLimit=0\nKillWait=2\n\
             NodeName=node[0-{}] NodeAddr=127.0.0.1 Port=[{}] CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 \
             ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN\n\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n{}",
            ports[0],
            NODES - 1,
            node_ports.join(","),
            self.proctrack.configuration()
        );
        self.proctrack.configure(self.folder.path());
        fs::write(self.configuration(), text).expect("slurm.conf");
        fs::write(self.folder.path().join("mpi.conf"), MPI_CONF).expect("mpi.conf");
        let nodes = (0..NODES).flat_map(|node| [format!("shared.node{node}"), format!("tmp.node{node}")]);
        for name in nodes.chain(["state".to_owned()]) {
            fs::create_dir(self.folder.path().join(name)).expect("a folder of Slurm's");
        }
    }

    fn daemon(&mut self, command: &mut Command, name: &str, args: &[&str]) {
        let log = File::create(self.folder.path().join(format!("{name}.log"))).expect("a log");
        command.args(args).arg("-f").arg(self.configuration()).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        command.env("SLURM_CONF", self.configuration());
        self.daemons.push(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")));
    }

    fn wait_until_idle(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let output =
                self.command(self.folder.path(), "sinfo", &["-h", "-N", "-o", "%T"]).output().expect("sinfo");
            let states = String::from_utf8_lossy(&output.stdout).into_owned();
            if states.lines().filter(|state| *state == "idle").count() == NODES {
                return;
            }
            assert!(Instant::now() < deadline, "Slurm does not start: {states}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let nodes = (0..NODES).map(|node| format!("node{node}.log"));
        let names = ["ctld.log".to_owned()].into_iter().chain(nodes);
        names.map(|name| read(self.folder.path().join(name))).collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // SAFETY: this process has not yet waited for the child.
            unsafe { libc::kill(daemon.id() as i32, libc::SIGTERM) };
        }
        // A daemon that had to end a job may wait ten seconds without reason.
        let deadline = Instant::now() + Duration::from_secs(2);
        for daemon in &mut self.daemons {
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            // The daemon may have ended already.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        self.proctrack.clean(self.folder.path());
    }
}

/// Free ports below the range from which the kernel assigns ports. The kernel could give a port of that range to
/// another process before a daemon starts.
fn free_ports(count: usize) -> Vec<u16> {
    const FIRST: u16 = 20_000;
    const PORTS: u16 = 12_000;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let begin = std::process::id() as usize * 97 + NEXT.fetch_add(100, Ordering::Relaxed);
    let ports = (0..usize::from(PORTS)).map(|at| FIRST + ((begin + at) % usize::from(PORTS)) as u16);
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    let mut ports: Vec<u16> = ports.filter(is_free).take(count).collect();
    assert_eq!(ports.len(), count, "no free ports");
    ports.sort_unstable();
    ports
}
