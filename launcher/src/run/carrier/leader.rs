//! Who carries for a node: it sleeps until there is something to carry.

use super::FIRST;
use super::handing::{self, CarrierWord};
use super::members::{Member, MemberEnd, Members};
use pmmpi::node::NodeKey;
use pmmpi::record::RunHeader;
use pmmpi::transport::local_socket;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Between two looks whether ranks have come to t1, at most.
const LONGEST_LOOK: Duration = Duration::from_millis(500);
/// Between two times that what has changed is carried: at first, and at most.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Ranks of a job that ends badly end at about the same time: what comes within so long is carried at once. At first,
/// and at most.
const BATCH: Duration = Duration::from_millis(50);
const LONGEST_BATCH: Duration = Duration::from_secs(1);
/// How long a launcher that carries after the carrying process was killed waits for others to end.
const LINGER: Duration = Duration::from_millis(200);
/// Of another node than rank 0's: how long after `FIRST`, and how much later for each node there may be, so that
/// not all make their files at once.
const AFTER_RANK_0: Duration = Duration::from_millis(200);
const PER_NODE: Duration = Duration::from_micros(100);

/// Carries what the ranks of its node left in shared memory.
pub struct CarrierLeader {
    listener: Option<UnixListener>,
    members: Members,
    /// Of launchers that have come and not yet said for which rank.
    silent: Vec<UnixStream>,
    /// When what has changed is carried next, and how long from then to the next time.
    next: Instant,
    pause: Duration,
    /// Some rank had come to t1 when it was looked at last.
    started: bool,
    /// The first moment of the first programs has passed.
    begun: bool,
    /// When what ended ranks left was carried last, and how long until that is done again.
    carried: Option<Instant>,
    batch: Duration,
}

impl CarrierLeader {
    /// Of a launcher's own rank, and of those whose launchers come to `listener`.
    pub fn new(listener: Option<UnixListener>, own: Member, header: RunHeader) -> Self {
        if let Some(listener) = &listener {
            // Where that fails, no connection is accepted.
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

    /// Until no launcher of the node is left, in the process that [`super::process::start`] makes.
    pub fn run(&mut self) {
        while self.is_needed() || self.is_needed_after_all() {
            let batch = self.carried.filter(|_| self.members.any_ended()).map(|carried| carried + self.batch);
            let until =
                [batch, self.members.in_doubt_until()].into_iter().flatten().fold(self.next, Instant::min);
            self.listen(until.saturating_duration_since(Instant::now()), batch.is_none());
            self.look();
        }
        // Who comes now is to lead; the end of this process may take its time.
        self.listener = None;
    }

    fn is_needed(&self) -> bool {
        let is_connected = self.members.all.iter().any(|member| member.connection.is_some());
        let in_doubt = self.members.in_doubt_until().is_some();
        is_connected || self.members.any_ended() || in_doubt || !self.silent.is_empty()
    }

    /// Before this process ends: who comes at the last moment counts, too.
    fn is_needed_after_all(&mut self) -> bool {
        self.members.withdraw_saved();
        self.accept();
        self.is_needed()
    }

    /// Carries what a launcher's own rank left that ended badly, and what others did that end meanwhile: in that
    /// launcher, after the carrying process was killed.
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
        own.unwrap_or_else(|| Err("nothing is known of its rank".to_owned()))
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

    /// How much later than rank 0's node this one carries first.
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

    /// Other launchers wait in the queue until the first moment has passed, or the first launcher has ended: in a
    /// short job they need be heard but once.
    fn hears_all(&self) -> bool {
        self.begun || self.members.all[0].connection.is_none()
    }

    /// Sleeps until a message comes, or for so long. Without connections it sleeps for so long.
    fn listen(&mut self, longest: Duration, listens: bool) {
        let on = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let connection = |member: &Member| member.connection.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        // One a member, then the silent ones, then the listener: a descriptor below zero is left out.
        let mut poll: Vec<_> = self.members.all.iter().map(|member| on(connection(member))).collect();
        poll.extend(self.silent.iter().map(|launcher| on(launcher.as_raw_fd())));
        poll.extend(
            self.listener.iter().filter(|_| self.hears_all()).map(|listener| on(listener.as_raw_fd())),
        );
        handing::wait(if listens { &mut poll } else { &mut [] }, longest);
        for (member, _) in self.members.all.iter_mut().zip(poll).filter(|(_, poll)| poll.revents != 0) {
            match member.connection.as_ref().map(handing::receive) {
                Some(Ok(Some((words, _)))) => hear(member, &words),
                Some(Ok(None) | Err(_)) => member.has_gone(),
                None => {}
            }
        }
        for launcher in std::mem::take(&mut self.silent) {
            self.welcome(launcher);
        }
    }

    /// Whoever has come.
    fn accept(&mut self) {
        while let Some(accepted) = self.listener.as_ref().map(UnixListener::accept) {
            let follower = match accepted {
                Ok((follower, _)) => follower,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    // With no descriptor left it would be ready for ever: others lead for themselves.
                    self.listener = None;
                    return;
                }
            };
            // Anybody on the machine may know the name.
            if local_socket::is_own(&follower) && follower.set_nonblocking(true).is_ok() {
                self.welcome(follower);
            }
        }
    }

    /// The rank of a launcher that has come, as soon as it says which.
    fn welcome(&mut self, launcher: UnixStream) {
        let Ok(Some((words, files))) = handing::receive(&launcher) else { return };
        if words.is_empty() {
            self.silent.push(launcher); // it has connected, and is about to send
            return;
        }
        let mut files = files.into_iter();
        let (shared, room) = (files.next(), files.next());
        if let Some(Ok(mut member)) = shared.map(|shared| Member::of(shared, room, launcher)) {
            hear(&mut member, &words);
            self.members.all.push(member);
            // A program that a rank starts later has a first moment of its own.
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

    /// On a crowded node much may happen between the two.
    #[test]
    fn a_launcher_that_connects_and_speaks_later_is_heard() {
        let (mut leader, name) = leader("later");
        let [follower, gone] = [(); 2].map(|()| local_socket::connect(&name).unwrap());
        assert!(leader.is_needed_after_all(), "somebody has come");
        assert_eq!((leader.members.all.len(), leader.silent.len()), (1, 2));
        drop(gone);
        let rank = member();
        handing::send(&follower, &[CarrierWord::Here], &rank.descriptors()).unwrap();
        leader.listen(Duration::ZERO, true);
        assert_eq!((leader.members.all.len(), leader.silent.len()), (2, 0));
        assert!(leader.is_needed());
        handing::send(&follower, &[CarrierWord::Ended], &[]).unwrap();
        leader.listen(Duration::ZERO, true);
        assert_eq!(leader.members.all[1].end, MemberEnd::Badly);
        drop(follower);
        leader.carry_ended();
        leader.listen(Duration::ZERO, true);
        assert!(!leader.is_needed_after_all());
        assert_eq!(leader.members.all.len(), 1, "what is over is forgotten");
    }

    /// A rank that has sent what it measured, to a rank 0 that was killed before it came.
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
            handing::send(&follower, &[CarrierWord::Here], &rank.descriptors()).unwrap();
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

    /// A program that a rank starts after another one has a first moment of its own.
    #[test]
    fn who_joins_late_is_looked_at_soon() {
        let (mut leader, name) = leader("joins");
        leader.begun = true;
        (leader.next, leader.pause) = (Instant::now() + LONGEST, LONGEST);
        let follower = local_socket::connect(&name).unwrap();
        handing::send(&follower, &[CarrierWord::Here], &member().descriptors()).unwrap();
        leader.accept();
        assert_eq!((leader.members.all.len(), leader.pause), (2, SHORTEST));
        assert!(leader.next <= Instant::now() + SHORTEST);
    }
}
