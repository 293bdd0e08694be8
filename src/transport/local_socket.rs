//! Unix sockets with abstract names (unix(7)): they have no file, end with their process, and are local to the
//! node.
//!
//! Every user of the machine may know such a name, bind it first or connect to it. [`is_own`] shows whether the
//! other end belongs to this user.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// The user that a user namespace shows in place of all users that it does not know (user_namespaces(7)).
pub const NOBODY: libc::uid_t = 65534;

/// This process's user.
pub fn user() -> libc::uid_t {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() }
}

/// A listener of this name; the error is `AddrInUse` if another process has the name.
pub fn listen(name: &str) -> io::Result<UnixListener> {
    let socket = socket(0)?;
    call(&socket, name, libc::bind)?;
    // The longest queue that the kernel allows.
    // SAFETY: a socket that this function owns.
    let failed = unsafe { libc::listen(socket.as_raw_fd(), libc::c_int::MAX) } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(UnixListener::from(socket)) }
}

/// A connection to the listener of this name. It never waits, even if the listener's queue is full (`WouldBlock`).
/// Reads and writes do not wait either.
pub fn connect(name: &str) -> io::Result<UnixStream> {
    let socket = socket(libc::SOCK_NONBLOCK)?;
    call(&socket, name, libc::connect)?;
    Ok(UnixStream::from(socket))
}

/// True if this user made the other end. The credentials are those at connect(2) and listen(2).
pub fn is_own(peer: &UnixStream) -> bool {
    let mut peer_is = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer_is` is as long as `length` says.
    let asked = unsafe {
        libc::getsockopt(
            peer.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer_is).cast(),
            &mut length,
        )
    };
    asked == 0 && peer_is.uid == user()
}

fn socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the result is checked before it is used.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

type WithAddress = unsafe extern "C" fn(libc::c_int, *const libc::sockaddr, libc::socklen_t) -> libc::c_int;

fn call(socket: &OwnedFd, name: &str, function: WithAddress) -> io::Result<()> {
    // SAFETY: all zeros are a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // A zero byte before the name makes it abstract.
    let room = &mut address.sun_path[1..];
    if name.len() > room.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in room.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    // SAFETY: the address is a live local of at least this length.
    let failed =
        unsafe { function(socket.as_raw_fd(), (&raw const address).cast(), length as libc::socklen_t) } != 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
