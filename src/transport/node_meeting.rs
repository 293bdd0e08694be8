//! Where the ranks of a node meet: one of them, the host, sends the data of all of them to rank 0.
//!
//! The first rank to come binds a [`local_socket`]. The others leave their bytes with it. A rank that cannot do
//! this, for any reason (another network namespace, no descriptor left, another user's socket, a full queue), sends
//! its own bytes. This costs messages, but causes no wrong result. Other users may know the name and connect; the
//! host reads nothing from them.

use crate::node::NodeKey;
use crate::transport::local_socket;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

/// A meeting of the ranks of one job. No other job has the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting(u64);

/// What happens to a rank's bytes.
pub enum Handover {
    /// Another rank sends them.
    WithAnother,
    /// This rank sends its own and those of others.
    With(Host),
    /// This rank sends its own.
    Alone,
}

/// The host: the rank that came first.
pub struct Host {
    listener: UnixListener,
    /// Holds a descriptor for the guests, one after the other: no other descriptor may be left by then.
    spare: UnixDatagram,
}

impl Meeting {
    /// A meeting that no other job has.
    pub fn arrange() -> Self {
        Self(RandomState::new().hash_one(std::process::id()))
    }

    /// Leaves `bytes` with the host, or becomes the host. After every rank of the job has called this, the host has
    /// all bytes.
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

    /// Ranks with different clocks are on different nodes.
    fn name(self) -> String {
        format!("pmmpi-{:016x}-{:016x}", self.0, NodeKey::own().digest())
    }
}

impl Host {
    /// The bytes that others left, one rank after the other.
    pub fn guests(self) -> impl Iterator<Item = Vec<u8>> {
        let Self { listener, spare } = self;
        drop(spare);
        // Do not wait for guests that do not exist. Refuse new ones, because another user could keep this rank here
        // for ever; those in the queue stay in it.
        // SAFETY: the descriptor is the listener's own.
        let closed = unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RD) } == 0;
        let closed = closed && listener.set_nonblocking(true).is_ok();
        let accept = move || listener.accept().ok().filter(|_| closed);
        std::iter::from_fn(accept).filter_map(|(guest, _)| read(guest).ok())
    }
}

fn leave(name: &str, bytes: &[u8]) -> io::Result<()> {
    // Do not wait if the queue is full: the host may be waiting for this rank.
    let host = local_socket::connect(name)?;
    check_own(&host)?;
    // SAFETY: the bytes are live. MSG_NOSIGNAL: the workload decides what SIGPIPE does to this process.
    let sent =
        unsafe { libc::send(host.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    // A child that another thread forks at this moment may hold the descriptor open. The shutdown ends the bytes
    // anyway.
    host.shutdown(Shutdown::Write)?;
    if usize::try_from(sent) == Ok(bytes.len()) { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Reads what a guest has left. If the guest could not leave everything, the host gets a piece that cannot be
/// decoded.
fn read(mut guest: UnixStream) -> io::Result<Vec<u8>> {
    check_own(&guest)?;
    guest.set_nonblocking(true)?;
    let mut bytes = Vec::new();
    // Take what has arrived, without waiting.
    match guest.read_to_end(&mut bytes) {
        Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
        _ => Ok(bytes),
    }
}

/// Every user of the machine may know the name.
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
        // A child that another test starts at this moment holds the socket open until it is another program.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !matches!(meeting.come(b"again"), Handover::With(_)) {
            assert!(std::time::Instant::now() < until, "the host has gone");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_host_is_not_kept_by_those_who_come_late_or_leave_nothing() {
        let meeting = Meeting::arrange();
        let Handover::With(host) = meeting.come(b"") else { panic!("nobody else is here") };
        let silent = local_socket::connect(&meeting.name()).unwrap();
        assert!(matches!(meeting.come(b"one"), Handover::WithAnother));
        let mut guests = host.guests();
        // A guest that sends nothing and stays.
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
        // More guests than a queue holds.
        let left = (0..5000u32)
            .map(|n| meeting.come(&n.to_le_bytes()))
            .filter(|left| matches!(left, Handover::WithAnother));
        let left = left.count();
        assert!(left > 10);
        assert_eq!(host.guests().filter(|bytes| bytes.len() == 4).count(), left);
    }
}
