//! The carrier: one process per node that writes the data of ranks from shared memory to disk, if the job does not save
//! its run itself. In this module, a launcher is the `pmmpi` process that starts a rank's program.
//!
//! The first launcher on the node starts the carrier before its program. All launchers of the node send it the shared
//! memory of their ranks and sleep until their ranks end. The carrier sleeps, too, and lives longer than they do. It
//! writes ("carries"):
//! - the data of a rank that ended badly or whose launcher was killed: at once;
//! - changed data: some time after t1 and then at growing intervals. This data remains if the carrier itself is killed.
//!
//! A job that succeeds within the time [`FIRST`] causes no carrying. If the carrier was killed, the first launcher
//! whose rank ends badly carries for all ranks that end badly at the same time. A carrier that still works for the
//! first programs of a job also accepts the programs that the ranks start next.

mod carrier_process;
mod messages_to_carrier;
mod when_to_carry;
mod write_ranks;

use messages_to_carrier::{CarrierAnswer, CarrierWord};
use pmmpi::partial::CarrierNote;
use pmmpi::record::RunHeader;
use pmmpi::session::shared_memory::SharedMemory;
use pmmpi::transport::node_election::{Duty, Follower, Role};
use std::fs::File;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use when_to_carry::CarrierLeader;
use write_ranks::Member;

/// How long after it saw t1 a leader carries for the first time. A job that ends well earlier is not carried.
pub const FIRST: Duration = Duration::from_millis(200);

/// How long a launcher waits for its leader's answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A launcher's part in the carrying for its rank.
pub struct Carrier {
    shared: Arc<SharedMemory>,
    /// The file with the disk space reserved for the whole run.
    room: Option<File>,
    header: RunHeader,
    part: Part,
}

enum Part {
    /// It started the carrier. The follower is for the case that the carrier dies; `None` if other launchers cannot
    /// connect.
    Leads(UnixStream, Option<Follower>),
    /// Another launcher started the carrier. True if this launcher has sent its rank's shared memory to the carrier.
    Follows(Follower, bool),
    /// It has no carrier and does nothing until its rank ends badly.
    Alone,
}

impl Carrier {
    /// For a rank without a carrier: see [`Carrier::begin`].
    pub fn new(shared: Arc<SharedMemory>, room: Option<File>, header: RunHeader) -> Self {
        Self { shared, room, header, part: Part::Alone }
    }

    /// Sends the shared memory to the node's carrier, and starts the carrier if there is none. Call it before this
    /// process starts any other. `job` as in [`Role::enter`]. Does not block.
    pub fn begin(&mut self, job: Option<&str>) {
        self.part = match Role::enter(Duty::Carry, job) {
            Role::Leader(mut role) => {
                let (listener, follower) = role.hand_on().unzip();
                let carrier = carrier_process::start(self.member(), listener, self.header.clone());
                carrier.map_or(Part::Alone, |carrier| Part::Leads(carrier, follower))
            }
            Role::Follower(mut follower) => {
                let handed =
                    follower.connection().is_ok_and(|leader| self.hand_to(leader, &[CarrierWord::Here]));
                if !handed {
                    // Send it later, when it is needed. Disconnect, so that the leader does not wait for it.
                    follower.hang_up();
                }
                Part::Follows(follower, handed)
            }
        };
    }

    /// Tells the carrier that this launcher has finished with its rank.
    pub fn let_go(self) {
        self.shared.live().settle();
    }

    /// After a bad end of the rank: gets its data written to disk. Gives the folder, or why the data of
    /// this rank was not written. (If the carrier is late, it may still write them.)
    pub fn keep(&mut self) -> Result<PathBuf, String> {
        let told = CarrierNote::read(&self.shared).ok_or(
            "the agent in this rank did not give pmmpi the folder of the partial run (is `ulimit -f`, which also \
             limits shared memory, below 80 MB?)",
        )?;
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
            // The carrier lives and may still write, but this launcher must not wait longer.
            CarrierAnswer::Late => Err(format!(
                "pmmpi-carrier, which writes to this folder for all ranks of the node, did not answer \
                 within {} s",
                PATIENCE.as_secs()
            )),
            // No carrier is left: this launcher writes the data itself.
            CarrierAnswer::Gone => self.lead(None),
        };
        self.shared.live().settle();
        kept.map(|()| told.folder.clone()).map_err(|why| format!("{}: {why}", told.folder.display()))
    }

    /// After the leader died: this launcher becomes the new leader or asks the new one.
    fn find_leader(&self, follower: &Follower, deadline: Instant) -> CarrierAnswer {
        while Instant::now() < deadline {
            match follower.again() {
                Role::Leader(mut role) => {
                    return CarrierAnswer::Is(self.lead(role.hand_on().map(|(listener, _)| listener)));
                }
                Role::Follower(mut follower) => {
                    let Ok(leader) = follower.connection() else { break };
                    if self.hand_to(leader, &[CarrierWord::Here, CarrierWord::Ended]) {
                        match messages_to_carrier::answer(leader, deadline) {
                            CarrierAnswer::Gone => {}
                            answer => return answer,
                        }
                    }
                }
            }
        }
        CarrierAnswer::Gone
    }

    /// This launcher carries for its own rank and, with a listener, for other ranks that end now.
    fn lead(&self, listener: Option<UnixListener>) -> Result<(), String> {
        CarrierLeader::new(listener, self.member(), self.header.clone()).keep_own()
    }

    fn hand_to(&self, leader: &UnixStream, words: &[CarrierWord]) -> bool {
        messages_to_carrier::send(leader, words, &self.member().descriptors()).is_ok()
    }

    fn member(&self) -> Member {
        Member::own(self.shared.clone(), self.room.as_ref().and_then(|room| room.try_clone().ok()))
    }
}

fn ask(carrier: &UnixStream, deadline: Instant) -> CarrierAnswer {
    match messages_to_carrier::send(carrier, &[CarrierWord::Ended], &[]) {
        Ok(()) => messages_to_carrier::answer(carrier, deadline),
        Err(_) => CarrierAnswer::Gone,
    }
}
