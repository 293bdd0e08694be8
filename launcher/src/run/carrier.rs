//! How what ranks measured gets from shared memory to the disk: one process a node carries it.
//!
//! The first launcher of the node starts that process, before its program; all launchers of the node give it
//! their ranks' shared memory and sleep until their ranks have ended. It sleeps as well, outlives them, and carries:
//! - what a rank left that ended badly, or whose launcher was killed, at once;
//! - what has changed, some time after t1 and then at growing intervals: so much is left where it is killed, too.
//!
//! Of a job that ends well within the first moment nothing is carried. Where that process was killed and
//! launchers live, the first one whose rank ends badly carries for all that do so at the same time. A process that
//! still carries for a job's first programs takes those on that its ranks start next.

mod handing;
mod leader;
mod members;
mod process;

use handing::{CarrierAnswer, CarrierWord};
use leader::CarrierLeader;
use members::Member;
use pmmpi::partial::CarrierNote;
use pmmpi::record::RunHeader;
use pmmpi::session::shared_memory::SharedMemory;
use pmmpi::transport::node_election::{Duty, Follower, Role};
use std::fs::File;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after it has seen t1 a leader carries: a job that ends well by then is not carried.
pub const FIRST: Duration = Duration::from_millis(200);

/// How long a launcher waits for its leader's answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What this launcher does for its rank, and perhaps for its node.
pub struct Carrier {
    shared: Arc<SharedMemory>,
    /// Room on the disk that was set aside for the whole run.
    room: Option<File>,
    header: RunHeader,
    part: Part,
}

enum Part {
    /// It started the process that carries; where others can come, it follows when that has gone.
    Leads(UnixStream, Option<Follower>),
    /// It has given its shared memory away, if that is true.
    Follows(Follower, bool),
    /// It does nothing until its rank has ended badly.
    Alone,
}

impl Carrier {
    /// Of a rank that does nothing yet.
    pub fn new(shared: Arc<SharedMemory>, room: Option<File>, header: RunHeader) -> Self {
        Self { shared, room, header, part: Part::Alone }
    }

    /// Before this process has started anything: gives the shared memory to the process that carries for the node, and starts
    /// that where there is none. `job` as in [`Role::enter`]. Waits for nothing.
    pub fn begin(&mut self, job: Option<&str>) {
        self.part = match Role::enter(Duty::Carry, job) {
            Role::Leader(mut role) => {
                let (listener, follower) = role.hand_on().unzip();
                let carrier = process::start(self.member(), listener, self.header.clone());
                carrier.map_or(Part::Alone, |carrier| Part::Leads(carrier, follower))
            }
            Role::Follower(mut follower) => {
                let handed =
                    follower.connection().is_ok_and(|leader| self.hand_to(leader, &[CarrierWord::Here]));
                if !handed {
                    // What cannot be sent now is sent when it is needed. Until then no process waits for it.
                    follower.hang_up();
                }
                Part::Follows(follower, handed)
            }
        };
    }

    /// The rank has ended and its launcher has done all that is to be done about it.
    pub fn let_go(self) {
        self.shared.live().settle();
    }

    /// The rank has ended badly: sees to it that what there is of it gets to the disk. Gives the folder, or why
    /// there is nothing.
    pub fn keep(&mut self) -> Result<PathBuf, String> {
        let told = CarrierNote::read(&self.shared)
            .ok_or("its rank had not said where (is `ulimit -f` below 60 MB?)")?;
        let deadline = Instant::now() + PATIENCE;
        let (answer, follower) = match std::mem::replace(&mut self.part, Part::Alone) {
            Part::Leads(carrier, follower) => (ask(&carrier, deadline), follower),
            Part::Follows(mut follower, handed) => {
                let carrier = follower.connection().ok().filter(|_| handed);
                (carrier.map_or(CarrierAnswer::Gone, |carrier| ask(carrier, deadline)), Some(follower))
            }
            Part::Alone => (CarrierAnswer::Gone, None),
        };
        let kept = match (answer, follower) {
            (CarrierAnswer::Gone, Some(follower)) => self.find_leader(&follower, deadline),
            (answer, _) => answer,
        };
        let kept = match kept {
            CarrierAnswer::Is(kept) => kept,
            // It is there, and may go on where this launcher cannot wait.
            CarrierAnswer::Late => Err(format!(
                "pmmpi-carrier, which writes there for this node, did not answer within {} s",
                PATIENCE.as_secs()
            )),
            // No process answers: this launcher does what it can.
            CarrierAnswer::Gone => self.lead(None),
        };
        self.shared.live().settle();
        kept.map(|()| told.folder.clone()).map_err(|why| format!("{}: {why}", told.folder.display()))
    }

    /// Where the leader has gone: this launcher is the next one, or follows that.
    fn find_leader(&self, follower: &Follower, deadline: Instant) -> CarrierAnswer {
        while Instant::now() < deadline {
            match follower.again() {
                Role::Leader(mut role) => {
                    return CarrierAnswer::Is(self.lead(role.hand_on().map(|(listener, _)| listener)));
                }
                Role::Follower(mut follower) => {
                    let Ok(leader) = follower.connection() else { break };
                    if self.hand_to(leader, &[CarrierWord::Here, CarrierWord::Ended]) {
                        match handing::answer(leader, deadline) {
                            CarrierAnswer::Gone => {}
                            answer => return answer,
                        }
                    }
                }
            }
        }
        CarrierAnswer::Gone
    }

    /// This launcher carries, for itself and, where they can come, for others whose ranks end now.
    fn lead(&self, listener: Option<UnixListener>) -> Result<(), String> {
        CarrierLeader::new(listener, self.member(), self.header.clone()).keep_own()
    }

    fn hand_to(&self, leader: &UnixStream, words: &[CarrierWord]) -> bool {
        handing::send(leader, words, &self.member().descriptors()).is_ok()
    }

    fn member(&self) -> Member {
        Member::own(self.shared.clone(), self.room.as_ref().and_then(|room| room.try_clone().ok()))
    }
}

fn ask(carrier: &UnixStream, deadline: Instant) -> CarrierAnswer {
    match handing::send(carrier, &[CarrierWord::Ended], &[]) {
        Ok(()) => handing::answer(carrier, deadline),
        Err(_) => CarrierAnswer::Gone,
    }
}
