//! Where the ranks of a node meet: one of them takes what the others measured along to rank 0.
//!
//! The first to come binds a [`local_socket`]. The
//! others leave their bytes with it. Who cannot, whatever the reason (another network namespace, no
//! descriptor left, another user's socket, a queue that is full), takes its own bytes along: that costs
//! messages and no truth. Other users may know the name and connect: nothing of theirs is read.

use crate::node::NodeKey;
use crate::transport::local_socket;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

/// A meeting that ranks of one job have, and no other's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting(u64);

/// What becomes of a rank's bytes.
pub enum Handover {
    /// Another rank takes them along.
    WithAnother,
    /// This rank takes its own along, and those of others.
    With(Host),
    /// This rank takes its own along.
    Alone,
}

/// Of the rank that came first.
pub struct Host {
    listener: UnixListener,
    /// Its descriptor is that of each guest in turn: others may be used up by then.
    spare: UnixDatagram,
}

impl Meeting {
    /// As nobody else has it.
    pub fn arrange() -> Self {
        Self(RandomState::new().hash_one(std::process::id()))
    }

    /// Leaves `bytes`, or takes the part of the host. When every rank of the job has been here, the host has
    /// them all.
    pub fn come(self, bytes: &[u8]) -> Handover {
        let Ok(spare) = UnixDatagram::unbound() else { return Handover::Alone };
        if local_socket::user() == local_socket::NOBODY {
            return Handover::Alone;
        }
        let name = self.name();
        match local_socket::listen(&name) {
            Ok(listener) => Handover::With(Host { listener, spare }),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && leave(&name, bytes).is_ok() => {
                Handover::WithAnother
            }
            Err(_) => Handover::Alone,
        }
    }

    /// Ranks that differ in their clock are of different nodes.
    fn name(self) -> String {
        format!("pmmpi-{:016x}-{:016x}", self.0, NodeKey::own().digest())
    }
}

impl Host {
    /// What others left, one after the other.
    pub fn guests(self) -> impl Iterator<Item = Vec<u8>> {
        let Self { listener, spare } = self;
        drop(spare);
        // Not waiting for guests that do not exist. Nobody can come any more, or a stranger could keep this
        // rank here for ever; those in the queue stay in it.
        // SAFETY: the descriptor is the listener's own.
        let closed = unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RD) } == 0;
        let closed = closed && listener.set_nonblocking(true).is_ok();
        let accept = move || listener.accept().ok().filter(|_| closed);
        std::iter::from_fn(accept).filter_map(|(guest, _)| read(guest).ok())
    }
}

fn leave(name: &str, bytes: &[u8]) -> io::Result<()> {
    // Not waiting where its queue is full: the host may be waiting for this rank.
    let host = local_socket::connect(name)?;
    check_own(&host)?;
    // SAFETY: the bytes are live. MSG_NOSIGNAL: what SIGPIPE does to this process is the workload's affair.
    let sent =
        unsafe { libc::send(host.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    // A child that another thread forks just now may hold the descriptor open: this ends the bytes all the same.
    host.shutdown(Shutdown::Write)?;
    if usize::try_from(sent) == Ok(bytes.len()) { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// What a guest that has gone left. Of one that could not leave everything the host has a piece that nobody
/// understands.
fn read(mut guest: UnixStream) -> io::Result<Vec<u8>> {
    check_own(&guest)?;
    guest.set_nonblocking(true)?;
    let mut bytes = Vec::new();
    // What came came, and nobody is waited for.
    match guest.read_to_end(&mut bytes) {
        Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
        _ => Ok(bytes),
    }
}

/// Anybody on the machine may know the name.
fn check_own(peer: &UnixStream) -> io::Result<()> {
    if local_socket::is_own(peer) { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_come_has_what_all_others_left() {
        let meeting = Meeting::arrange();
        let Handover::With(host) = meeting.come(b"own") else { panic!("nobody else is here") };
        let long = vec![7; 40_000];
        for bytes in [&b"one"[..], b"", &long] {
            assert!(matches!(meeting.come(bytes), Handover::WithAnother));
        }
        let Handover::With(_) = Meeting::arrange().come(b"of another job") else { panic!("another meeting") };
        assert_eq!(host.guests().collect::<Vec<_>>(), [&b"one"[..], b"", &long]);
        assert!(matches!(meeting.come(b"again"), Handover::With(_)), "the host has gone");
    }

    #[test]
    fn a_host_is_not_kept_by_those_who_come_late_or_leave_nothing() {
        let meeting = Meeting::arrange();
        let Handover::With(host) = meeting.come(b"") else { panic!("nobody else is here") };
        let silent = local_socket::connect(&meeting.name()).unwrap();
        assert!(matches!(meeting.come(b"one"), Handover::WithAnother));
        let mut guests = host.guests();
        // One that says nothing and stays.
        assert_eq!(guests.next().unwrap(), b"");
        assert!(local_socket::connect(&meeting.name()).is_err());
        assert_eq!(guests.collect::<Vec<_>>(), [b"one"]);
        drop(silent);
    }

    #[test]
    fn what_does_not_go_at_once_stays() {
        let meeting = Meeting::arrange();
        let Handover::With(host) = meeting.come(b"") else { panic!("nobody else is here") };
        assert!(matches!(meeting.come(&vec![7; 64 << 20]), Handover::Alone));
        // As many as a queue holds, and more.
        let left = (0..5000u32)
            .map(|n| meeting.come(&n.to_le_bytes()))
            .filter(|left| matches!(left, Handover::WithAnother));
        let left = left.count();
        assert!(left > 10);
        assert_eq!(host.guests().filter(|bytes| bytes.len() == 4).count(), left);
    }
}
