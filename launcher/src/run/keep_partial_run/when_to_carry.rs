//! When the leader carries. The leader is the process that carries for its node: the carrier or, after its death, a
//! `pmmpi` process of a rank. The leader sleeps until there is something to carry.

use super::FIRST;
use super::messages_to_carrier::{self, CarrierWord};
use super::write_ranks::{Member, MemberEnd, Members};
use pmmpi::node::NodeKey;
use pmmpi::record::RunHeader;
use pmmpi::transport::local_socket;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The longest interval between two checks whether ranks have reached t1.
const LONGEST_LOOK: Duration = Duration::from_millis(500);
/// The first and the longest interval between two times of carrying changed data.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Ranks of a job that ends badly end at about the same time, so the leader collects them and carries them together.
/// These are the first and the longest interval between two such times.
const BATCH: Duration = Duration::from_millis(50);
const LONGEST_BATCH: Duration = Duration::from_secs(1);
/// How long a launcher that leads after the carrier was killed waits for other ranks to end.
const LINGER: Duration = Duration::from_millis(200);
/// Nodes other than rank 0's carry first at `FIRST` plus `AFTER_RANK_0` plus a multiple of `PER_NODE`, so that not all
/// nodes create their files at the same time.
const AFTER_RANK_0: Duration = Duration::from_millis(200);
const PER_NODE: Duration = Duration::from_micros(100);

/// Writes the data of its node's ranks from shared memory to disk.
pub struct CarrierLeader {
    listener: Option<UnixListener>,
    members: Members,
    /// Launchers that have connected but not yet registered a rank.
    silent: Vec<UnixStream>,
    /// When to carry changed data next (before the first time: when to check for t1), and the interval before it.
    next: Instant,
    pause: Duration,
    /// True if a rank had reached t1 at the last check.
    started: bool,
    /// True after changed data was carried for the first time.
    begun: bool,
    /// When the data of ended ranks was carried last, and the shortest interval to the next time.
    carried: Option<Instant>,
    batch: Duration,
}

impl CarrierLeader {
    /// For a launcher's own rank, and for the ranks whose launchers connect to `listener`.
    pub fn new(listener: Option<UnixListener>, own: Member, header: RunHeader) -> Self {
        if let Some(listener) = &listener {
            // If this fails, `accept` may block until a launcher connects.
            let _ = listener.set_nonblocking(true);
        }
        let (next, pause) = (Instant::now() + FIRST, FIRST);
        let members = Members::new(own, header, listener.is_none());
        let (started, begun) = (false, false);
        Self {
            listener,
            members,
            silent: Vec::new(),
            next,
            pause,
            started,
            begun,
            carried: None,
            batch: BATCH / 2,
        }
    }

    /// Carries until no launcher of the node is left. Runs in the process that [`super::carrier_process::start`] makes.
    pub fn run(&mut self) {
        while self.is_needed() || self.is_needed_after_all() {
            let batch = self.carried.filter(|_| self.members.any_ended()).map(|carried| carried + self.batch);
            let until =
                [batch, self.members.in_doubt_until()].into_iter().flatten().fold(self.next, Instant::min);
            self.listen(until.saturating_duration_since(Instant::now()), batch.is_none());
            self.look();
        }
        // From now on, a new launcher must lead itself: the end of this process may take long.
        self.listener = None;
    }

    fn is_needed(&self) -> bool {
        let is_connected = self.members.all.iter().any(|member| member.connection.is_some());
        let in_doubt = self.members.in_doubt_until().is_some();
        is_connected || self.members.any_ended() || in_doubt || !self.silent.is_empty()
    }

    /// The last check before this process ends: accepts launchers that connected at the last moment.
    fn is_needed_after_all(&mut self) -> bool {
        self.members.withdraw_saved();
        self.accept();
        self.is_needed()
    }

    /// For a launcher that leads after the carrier was killed: carries its own rank, which ended badly, and others
    /// that end badly meanwhile. Gives the result for its own rank.
    pub fn keep_own(&mut self) -> Result<(), String> {
        self.members.all[0].end = MemberEnd::Badly;
        self.accept();
        let mut own = self.carry_ended();
        let deadline = Instant::now() + LINGER;
        while Instant::now() < deadline && self.listener.is_some() {
            self.listen(deadline.saturating_duration_since(Instant::now()).min(BATCH), true);
            self.accept();
            if self.members.any_ended() {
                own = own.or(self.carry_ended());
            }
        }
        own.unwrap_or_else(|| {
            Err("the agent in this rank did not give pmmpi the folder of the partial run".to_owned())
        })
    }

    fn look(&mut self) {
        let now = Instant::now();
        let due = now >= self.next;
        if due || self.hears_all() {
            self.accept();
        }
        self.members.leave_no_doubt(now);
        if self.members.any_ended() && self.carried.is_none_or(|carried| now >= carried + self.batch) {
            self.carry_ended();
        }
        if due {
            self.carry_living(now);
        }
    }

    fn carry_living(&mut self, now: Instant) {
        if self.begun {
            self.members.carry_living(now);
            self.pause = (self.pause * 2).min(LONGEST);
        } else if self.started {
            self.begun = true;
            self.members.carry_living(now);
            self.pause = SHORTEST;
        } else if self.members.see(now) {
            self.started = true;
            self.pause = FIRST + self.turn();
        } else {
            self.pause = (self.pause * 2).min(LONGEST_LOOK);
        }
        if self.begun && self.members.any_fresh() {
            self.pause = self.pause.min(LONGEST_LOOK);
        }
        self.next = now + self.pause;
    }

    /// The delay of this node's first carrying after that of rank 0's node.
    fn turn(&self) -> Duration {
        if self.members.all.iter().any(Member::is_rank_0) {
            return Duration::ZERO;
        }
        let here = self.members.all.len().max(1) as u32;
        let nodes = self.members.all.iter().map(Member::size).max().unwrap_or(0) / here;
        AFTER_RANK_0 + PER_NODE * ((NodeKey::own().digest() % u64::from(nodes.max(1))) as u32)
    }

    fn carry_ended(&mut self) -> Option<Result<(), String>> {
        let own = self.members.carry_ended();
        self.carried = Some(Instant::now());
        self.batch = (self.batch * 2).min(LONGEST_BATCH);
        own
    }

    /// True if the leader accepts connections at once. Before the first carrying, other launchers wait in the queue
    /// until the first launcher ends: in a short job, the leader then wakes up only once for all of them.
    fn hears_all(&self) -> bool {
        self.begun || self.members.all[0].connection.is_none()
    }

    /// Sleeps until a message comes, at most for `longest`. Without `listens`, it always sleeps for `longest`.
    fn listen(&mut self, longest: Duration, listens: bool) {
        let on = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let connection = |member: &Member| member.connection.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        // One entry per member, then the silent ones, then the listener; poll(2) ignores negative descriptors.
        let mut poll: Vec<_> = self.members.all.iter().map(|member| on(connection(member))).collect();
        poll.extend(self.silent.iter().map(|launcher| on(launcher.as_raw_fd())));
        poll.extend(
            self.listener.iter().filter(|_| self.hears_all()).map(|listener| on(listener.as_raw_fd())),
        );
        messages_to_carrier::wait(if listens { &mut poll } else { &mut [] }, longest);
        for (member, _) in self.members.all.iter_mut().zip(poll).filter(|(_, poll)| poll.revents != 0) {
            match member.connection.as_ref().map(messages_to_carrier::receive) {
                Some(Ok(Some((words, _)))) => hear(member, &words),
                Some(Ok(None) | Err(_)) => member.has_gone(),
                None => {}
            }
        }
        for launcher in std::mem::take(&mut self.silent) {
            self.welcome(launcher);
        }
    }

    /// Accepts all waiting connections.
    fn accept(&mut self) {
        while let Some(accepted) = self.listener.as_ref().map(UnixListener::accept) {
            let follower = match accepted {
                Ok((follower, _)) => follower,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // Without free descriptors, the listener would always be ready. Close it: other launchers lead
                    // themselves.
                    self.listener = None;
                    return;
                }
            };
            // Every user of the machine can connect to this name.
            if local_socket::is_own(&follower) && follower.set_nonblocking(true).is_ok() {
                self.welcome(follower);
            }
        }
    }

    /// Registers the rank of a new launcher, or keeps the launcher in `silent` until it sends its rank.
    fn welcome(&mut self, launcher: UnixStream) {
        let Ok(Some((words, files))) = messages_to_carrier::receive(&launcher) else { return };
        if words.is_empty() {
            self.silent.push(launcher); // it has connected but not yet sent
            return;
        }
        let mut files = files.into_iter();
        let (shared, room) = (files.next(), files.next());
        if let Some(Ok(mut member)) = shared.map(|shared| Member::of(shared, room, launcher)) {
            hear(&mut member, &words);
            self.members.all.push(member);
            // A program that a rank starts later is carried soon after its start, too.
            if self.begun {
                self.pause = SHORTEST;
                self.next = self.next.min(Instant::now() + SHORTEST);
            }
        }
    }
}

fn hear(member: &mut Member, words: &[u8]) {
    if words.contains(&(CarrierWord::Ended as u8)) {
        member.end = MemberEnd::Badly;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::partial::{self, CarrierNote};
    use pmmpi::record::{End, Mode, Part, RankRecord};
    use pmmpi::session::live_record::Phase;
    use pmmpi::session::shared_memory::SharedMemory;
    use std::sync::Arc;

    fn member() -> Member {
        Member::own(Arc::new(SharedMemory::create().unwrap()), None)
    }

    fn leader(name: &str) -> (CarrierLeader, String) {
        let name = format!("pmmpi-test-{name}-{}", std::process::id());
        let listener = local_socket::listen(&name).unwrap();
        let header = RunHeader::new("run".into(), vec!["work".into()], Mode::Mpi, 0);
        (CarrierLeader::new(Some(listener), member(), header), name)
    }

    /// On a busy node, a long time may pass between the connection and the first message.
    #[test]
    fn a_launcher_that_connects_and_speaks_later_is_heard() {
        let (mut leader, name) = leader("later");
        let [follower, gone] = [(); 2].map(|()| local_socket::connect(&name).unwrap());
        assert!(leader.is_needed_after_all(), "somebody has come");
        assert_eq!((leader.members.all.len(), leader.silent.len()), (1, 2));
        drop(gone);
        let rank = member();
        messages_to_carrier::send(&follower, &[CarrierWord::Here], &rank.descriptors()).unwrap();
        leader.listen(Duration::ZERO, true);
        assert_eq!((leader.members.all.len(), leader.silent.len()), (2, 0));
        assert!(leader.is_needed());
        messages_to_carrier::send(&follower, &[CarrierWord::Ended], &[]).unwrap();
        leader.listen(Duration::ZERO, true);
        assert_eq!(leader.members.all[1].end, MemberEnd::Badly);
        drop(follower);
        leader.carry_ended();
        leader.listen(Duration::ZERO, true);
        assert!(!leader.is_needed_after_all());
        assert_eq!(leader.members.all.len(), 1, "what is over is forgotten");
    }

    /// The rank has sent its record, but rank 0 was killed before it came.
    #[test]
    fn what_was_sent_and_never_saved_is_carried() {
        let folder = std::env::temp_dir().join(format!("rig-sent-{}.partial", std::process::id()));
        for is_saved in [false, true] {
            let (mut leader, name) = leader("sent");
            let shared = Arc::new(SharedMemory::create().unwrap());
            let record = RankRecord::unmeasured(End::Finalized);
            let part = Part::of_rank(NodeKey::own().clone(), Vec::new(), record);
            CarrierNote { folder: folder.clone(), part }.write(&shared).unwrap();
            shared.live().claim();
            shared.live().set_phase(Phase::Gathered);
            let follower = local_socket::connect(&name).unwrap();
            let rank = Member::own(shared, None);
            messages_to_carrier::send(&follower, &[CarrierWord::Here], &rank.descriptors()).unwrap();
            drop(follower);
            leader.members.all[0].end = MemberEnd::Done;
            if is_saved {
                std::fs::write(folder.with_extension("pmr"), "").unwrap();
            }
            leader.accept();
            leader.run();
            assert_eq!(folder.exists(), !is_saved);
            partial::remove(&folder);
        }
        std::fs::remove_file(folder.with_extension("pmr")).unwrap();
    }

    /// A program that a rank starts after another one is carried soon after its start.
    #[test]
    fn who_joins_late_is_looked_at_soon() {
        let (mut leader, name) = leader("joins");
        leader.begun = true;
        (leader.next, leader.pause) = (Instant::now() + LONGEST, LONGEST);
        let follower = local_socket::connect(&name).unwrap();
        messages_to_carrier::send(&follower, &[CarrierWord::Here], &member().descriptors()).unwrap();
        leader.accept();
        assert_eq!((leader.members.all.len(), leader.pause), (2, SHORTEST));
        assert!(leader.next <= Instant::now() + SHORTEST);
    }
}
