//! A real Slurm cluster of four nodes on this machine, each node with its own name and clock.

use crate::FOR_ROOT;
use crate::cluster::machine;
use crate::tool::{self, Folder, Output};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// Nodes are called node0 to node3.
pub const NODES: usize = 4;
const HOUR_NS: i64 = 3_600_000_000_000;
/// Daemons that are not up by then never will be.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running cluster; it ends with this value.
pub struct Slurm {
    folder: Folder,
    daemons: Vec<Child>,
    _alone: MutexGuard<'static, ()>,
}

impl Slurm {
    /// Starts the controller and the nodes, and waits until all are idle.
    pub fn start() -> Self {
        let mut slurm = Self { folder: Folder::new("slurm"), daemons: Vec::new(), _alone: machine() };
        slurm.configure();
        slurm.daemon(&mut Command::new("slurmctld"), "ctld", &["-D", "-i"]);
        for node in 0..NODES {
            let name = format!("node{node}");
            let mut command = Command::new(tool::target().join("release/pmmpi-rig-host"));
            let offset = (node as i64 * 3 + 1) * HOUR_NS;
            command.args([&name, &offset.to_string(), "--", "slurmd"]);
            slurm.daemon(&mut command, &name, &["-D", "-N", &name]);
        }
        slurm.wait_until_idle();
        slurm
    }

    /// A Slurm command of this cluster's, in a folder of the test's.
    pub fn run(&self, folder: &std::path::Path, program: &str, args: &[&str]) -> Output {
        let mut command = self.command(program);
        tool::run(command.current_dir(folder).args(args))
    }

    /// A command that runs on its own.
    pub fn start_command(&self, folder: &std::path::Path, program: &str, args: &[&str]) -> tool::Started {
        tool::start(self.command(program).current_dir(folder).args(args))
    }

    /// Everything that runs on a node dies at once, as if its power had failed.
    pub fn lose_node(&self, node: usize) {
        let host = |process: &str| fs::read_link(format!("/proc/{process}/ns/uts")).ok();
        let lost = host(&self.daemons[1 + node].id().to_string()).expect("the node's daemon");
        for entry in fs::read_dir("/proc").expect("/proc").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Ok(process) = name.parse::<i32>()
                && host(&name).is_some_and(|host| host == lost)
            {
                // SAFETY: a process of the node's; where it has ended already there is nothing to kill.
                unsafe { libc::kill(process, libc::SIGKILL) };
            }
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = tool::target().join("pmmpi/bin");
        command.env("SLURM_CONF", self.configuration()).envs(FOR_ROOT);
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    fn configure(&self) {
        let folder = self.folder.path().display();
        let hostname = Command::new("uname").arg("-n").output().expect("uname");
        let hostname = String::from_utf8_lossy(&hostname.stdout).trim().to_owned();
        let ports = free_ports(NODES + 1);
        let node_ports: Vec<String> = ports[1..].iter().map(u16::to_string).collect();
        let text = format!(
            "ClusterName=rig\nSlurmctldHost={hostname}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             AuthType=auth/none\nCredType=cred/none\nStateSaveLocation={folder}/state\n\
             SlurmdSpoolDir={folder}/spool.%n\nSlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/%n.pid\n\
             TmpFS={folder}/tmp.%n\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSwitchType=switch/none\nMpiDefault=none\n\
             ReturnToService=2\nSlurmdParameters=config_overrides\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nJobCompType=jobcomp/none\nSchedulerType=sched/backfill\n\
             InactiveLimit=0\nKillWait=5\n\
             NodeName=node[0-{}] NodeAddr=127.0.0.1 Port=[{}] CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 \
             ThreadsPerCore=1 RealMemory=1000 State=UNKNOWN\n\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES\n",
            ports[0],
            NODES - 1,
            node_ports.join(",")
        );
        fs::write(self.configuration(), text).expect("slurm.conf");
        let nodes = (0..NODES).flat_map(|node| [format!("spool.node{node}"), format!("tmp.node{node}")]);
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
            let output = self.command("sinfo").args(["-h", "-N", "-o", "%T"]).output().expect("sinfo");
            let states = String::from_utf8_lossy(&output.stdout).into_owned();
            if states.lines().filter(|state| *state == "idle").count() == NODES {
                return;
            }
            assert!(Instant::now() < deadline, "Slurm does not start: {states}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn logs(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("ctld.log") + &read("node0.log")
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // SAFETY: a child that has not been waited for.
            unsafe { libc::kill(daemon.id() as i32, libc::SIGTERM) };
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        for daemon in &mut self.daemons {
            while matches!(daemon.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(10));
            }
            // One that has ended already is no longer there to kill.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Ports that nobody listens on now.
fn free_ports(count: usize) -> Vec<u16> {
    let listen = |_| TcpListener::bind("127.0.0.1:0").expect("a free port");
    let listeners: Vec<TcpListener> = (0..count).map(listen).collect();
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let mut ports: Vec<u16> = listeners.iter().map(port).collect();
    ports.sort_unstable();
    ports
}
