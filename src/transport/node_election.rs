//! Elects one of a job's processes on a node, for work that only one of them must do. The launcher's local rank 0
//! is no substitute: it need not run through pmmpi, and not every launcher reports it.
//!
//! The processes use a common name of this user, node, job and duty. The first to bind it leads as long as it has
//! the listener; the others follow. A process that cannot find out (another network namespace, another user with
//! that name, no descriptor left) also leads. Two leaders cost extra work, but cause no wrong result: when the
//! ranks' records are put together, each core's counts are used once.

use crate::node::NodeKey;
use crate::transport::local_socket;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// What one process of a node does for all. Each duty has an election of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Reads the node's facts, and counts on its cores and sockets.
    Read,
    /// Reports what limits measurements on the node (`pmmpi doctor`).
    Examine,
    /// Carries what ranks measured from shared memory to the disk.
    Carry,
}

impl Duty {
    fn name(self) -> &'static str {
        match self {
            Duty::Read => "node",
            Duty::Examine => "doctor",
            Duty::Carry => "carrier",
        }
    }
}

/// The role of this process on its node.
pub enum Role {
    /// It acts for the node.
    Leader(Leader),
    /// Another process acts for it.
    Follower(Follower),
}

/// The process that acts for its node, until this value is dropped.
#[derive(Default)]
pub struct Leader {
    /// Where followers connect; `None` if this process is alone.
    listener: Option<UnixListener>,
    name: String,
}

/// A process that lets another one act for its node.
pub struct Follower {
    /// The leader's name; `None` if the leader cannot be reached.
    name: Option<String>,
    /// To the leader, not blocking; `None` if the leader's queue was full.
    connection: Option<UnixStream>,
}

impl Role {
    /// The role of this process for this duty, among the processes of `job` on this node. `job` is a text that all
    /// processes of the job have in common, and that no other running job of this user has; `None` if the process is
    /// a separate job.
    pub fn enter(duty: Duty, job: Option<&str>) -> Self {
        job.map_or_else(Self::alone, |job| elect(name_of(duty.name(), job)))
    }

    /// The only process of its job on this node.
    pub fn alone() -> Self {
        Role::Leader(Leader::default())
    }

    /// The role of a process that cannot meet the others of its job: the launcher's local rank 0 leads.
    pub fn by_local_rank(rank: u32) -> Self {
        if rank == 0 { Self::alone() } else { Role::Follower(Follower { name: None, connection: None }) }
    }

    /// True for the process that acts for its node.
    pub fn leads(&self) -> bool {
        matches!(self, Role::Leader(_))
    }

    /// The descriptor that makes this process the leader. It stays open across an exec, so the process stays the
    /// leader.
    pub fn keep_across_exec(&self) -> io::Result<Option<RawFd>> {
        let Role::Leader(Leader { listener: Some(listener), .. }) = self else { return Ok(None) };
        // SAFETY: sets a flag of a descriptor that this value owns.
        let failed = unsafe { libc::fcntl(listener.as_raw_fd(), libc::F_SETFD, 0) } < 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(Some(listener.as_raw_fd())) }
    }
}

impl Leader {
    /// Where followers connect. Other users can connect, too: see [`local_socket::is_own`].
    pub fn listener(&self) -> Option<&UnixListener> {
        self.listener.as_ref()
    }

    /// Makes another process the leader, which must receive the listener. This process follows it.
    pub fn hand_on(&mut self) -> Option<(UnixListener, Follower)> {
        let listener = self.listener.take()?;
        Some((listener, Follower { name: Some(self.name.clone()), connection: None }))
    }
}

impl Follower {
    /// Closes the connection: the leader receives nothing from this process until it connects again.
    pub fn hang_up(&mut self) {
        self.connection = None;
    }

    /// The role of this process after its leader has ended.
    pub fn again(&self) -> Role {
        self.name.clone().map_or_else(Role::alone, elect)
    }

    /// A connection to the leader, which does not block. Data can be sent before the leader accepts the connection.
    pub fn connection(&mut self) -> io::Result<&UnixStream> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            none => {
                let name = self.name.as_deref().ok_or(ErrorKind::NotConnected)?;
                let connection = local_socket::connect(name)?;
                if !local_socket::is_own(&connection) {
                    return Err(ErrorKind::PermissionDenied.into());
                }
                Ok(none.insert(connection))
            }
        }
    }
}

/// The name of a [`local_socket`] that processes of this user, node and job use for `purpose`. Processes with
/// different clocks are on different nodes, as in the record of a run.
pub(crate) fn name_of(purpose: &str, job: &str) -> String {
    let mut hasher = DefaultHasher::new();
    job.hash(&mut hasher);
    let (user, node) = (local_socket::user(), NodeKey::own().digest());
    format!("pmmpi-{purpose}-{user:x}-{node:016x}-{:016x}", hasher.finish())
}

fn elect(name: String) -> Role {
    if local_socket::user() == local_socket::NOBODY {
        return Role::alone();
    }
    // No process can connect between a leader's bind and its listen, and while the leader ends.
    const PAUSE: Duration = Duration::from_millis(1);
    const LONGEST: u32 = 1000;
    for _ in 0..LONGEST {
        match local_socket::listen(&name) {
            Ok(listener) => return Role::Leader(Leader { listener: Some(listener), name }),
            Err(e) if e.kind() == ErrorKind::AddrInUse => {}
            Err(_) => return Role::alone(),
        }
        match local_socket::connect(&name) {
            Ok(connection) if local_socket::is_own(&connection) => {
                return Role::Follower(Follower { name: Some(name), connection: Some(connection) });
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                return Role::Follower(Follower { name: Some(name), connection: None });
            }
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => std::thread::sleep(PAUSE),
            _ => return Role::alone(),
        }
    }
    Role::alone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Child, Command, Stdio};

    fn job(name: &str) -> String {
        format!("test-{}-{name}", std::process::id())
    }

    #[test]
    fn who_has_no_job_leads_and_binds_nothing() {
        let role = Role::enter(Duty::Read, None);
        assert!(
            role.leads()
                && role.keep_across_exec().unwrap().is_none()
                && Role::enter(Duty::Read, None).leads()
        );
    }

    #[test]
    fn ranks_that_cannot_meet_go_by_the_launcher() {
        let leads = [0, 1, 7].map(|rank| Role::by_local_rank(rank).leads());
        assert_eq!(leads, [true, false, false]);
        let Role::Follower(mut follower) = Role::by_local_rank(1) else { panic!("it leads") };
        assert_eq!(follower.connection().unwrap_err().kind(), ErrorKind::NotConnected);
        assert!(follower.again().leads());
    }

    #[test]
    fn a_job_has_one_leader_and_jobs_have_one_each() {
        let first = Role::enter(Duty::Read, Some(&job("a")));
        assert!(first.leads() && !Role::enter(Duty::Read, Some(&job("a"))).leads());
        assert!(Role::enter(Duty::Read, Some(&job("b"))).leads());
        assert!(Role::enter(Duty::Carry, Some(&job("a"))).leads(), "another duty");
        drop(first);
        assert!(Role::enter(Duty::Read, Some(&job("a"))).leads(), "a step after another one");
    }

    #[test]
    fn what_a_follower_sends_waits_for_its_leader() {
        let Role::Leader(leader) = Role::enter(Duty::Read, Some(&job("talk"))) else {
            panic!("nobody else is here")
        };
        let Role::Follower(mut follower) = Role::enter(Duty::Read, Some(&job("talk"))) else {
            panic!("two leaders")
        };
        follower.connection().unwrap().write_all(b"hello").unwrap();
        drop(follower);
        let (mut guest, _) = leader.listener().unwrap().accept().unwrap();
        let mut text = String::new();
        guest.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_full_queue_makes_no_second_leader() {
        let _leader = Role::enter(Duty::Read, Some(&job("full")));
        let enter = |_| Role::enter(Duty::Read, Some(&job("full")));
        let (mut waiting, mut followers) = (0, Vec::new());
        while waiting < 3 && followers.len() < 10_000 {
            let Role::Follower(follower) = enter(()) else { panic!("two leaders") };
            waiting += u32::from(follower.connection.is_none());
            followers.push(follower);
        }
        assert_eq!(waiting, 3);
    }

    /// Another process. It runs the test `a_process_of_a_job`, with its job in [`AS_PROCESS`].
    struct Process(Child, BufReader<std::process::ChildStdout>);

    const AS_PROCESS: &str = "PMMPI_TEST_ELECTION";

    impl Process {
        fn start(job: &str) -> Self {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--exact", "transport::node_election::tests::a_process_of_a_job", "--nocapture"]);
            let (input, output) = (Stdio::piped(), Stdio::piped());
            let mut child = command.env(AS_PROCESS, job).stdin(input).stdout(output).spawn().unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            Self(child, output)
        }

        fn leads(&mut self) -> bool {
            let mut line = String::new();
            loop {
                line.clear();
                assert!(self.1.read_line(&mut line).unwrap() > 0, "it ended");
                match line.trim().rsplit(' ').next() {
                    Some("leader") => return true,
                    Some("follower") => return false,
                    _ => {}
                }
            }
        }

        fn end(mut self, kill: bool) {
            if kill {
                self.0.kill().unwrap();
            }
            drop(self.0.stdin.take());
            self.0.wait().unwrap();
        }
    }

    /// Does nothing unless [`AS_PROCESS`] is set. Then it prints its role and stays until its stdin ends.
    #[test]
    fn a_process_of_a_job() {
        let Ok(job) = std::env::var(AS_PROCESS) else { return };
        let role = Role::enter(Duty::Read, Some(&job));
        println!("{}", if role.leads() { "leader" } else { "follower" });
        let _ = std::io::stdin().read(&mut [0]);
    }

    #[test]
    fn processes_that_start_at_once_or_late_have_one_leader() {
        for kill in [false, true] {
            let (one, other) = (job(&format!("one-{kill}")), job(&format!("other-{kill}")));
            let mut all: Vec<Process> = (0..24).map(|_| Process::start(&one)).collect();
            let mut others: Vec<Process> = (0..2).map(|_| Process::start(&other)).collect();
            let leaders: Vec<bool> = all.iter_mut().map(Process::leads).collect();
            assert_eq!(leaders.iter().filter(|leads| **leads).count(), 1);
            assert_eq!(others.iter_mut().filter_map(|other| other.leads().then_some(())).count(), 1);
            // All other processes have entered long before.
            let mut late = Process::start(&one);
            assert!(!late.leads());
            // However the leader ends, its followers keep their role, and the next new process leads.
            let at = leaders.iter().position(|leads| *leads).unwrap();
            all.remove(at).end(kill);
            let mut next = Process::start(&one);
            assert!(next.leads());
            all.into_iter().chain(others).chain([late, next]).for_each(|process| process.end(false));
        }
    }
}
