//! The process that carries for a node: it outlives the launchers of its ranks, whoever kills them, and ends when
//! the last of them has.

use super::leader::CarrierLeader;
use super::members::Member;
use pmmpi::counters::descriptor_room::DescriptorRoom;
use pmmpi::record::RunHeader;
use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Starts it, as a copy of this process before it has started anything else: no program has to be found and
/// loaded. `own` is the rank of this launcher. Gives the connection to it, or `None` where the system has no room for
/// another process.
pub fn start(own: Member, listener: Option<UnixListener>, header: RunHeader) -> Option<UnixStream> {
    let (connection, launcher) = UnixStream::pair().ok()?;
    connection.set_nonblocking(true).ok()?;
    launcher.set_nonblocking(true).ok()?;
    let mut kept = own.descriptors();
    kept.push(launcher.as_raw_fd());
    kept.extend(listener.as_ref().map(AsRawFd::as_raw_fd));
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => None,
        0 => {
            // Nothing of this process's own is undone: no destructor, no output that it has buffered.
            std::mem::forget(connection); // closed with all others
            let carried = catch_unwind(AssertUnwindSafe(move || {
                if detach(&kept) {
                    CarrierLeader::new(listener, own.with(launcher), header).run();
                }
            }));
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(i32::from(carried.is_err())) }
        }
        _ => Some(connection),
    }
}

/// No process waits for this one, and no signal to the job ends it: what holds the launchers' pipes and sockets
/// open would be waited for. False where that cannot be.
fn detach(kept: &[RawFd]) -> bool {
    // SAFETY: plain system calls on this process and on descriptors that nothing here uses again.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"pmmpi-carrier".as_ptr());
        // No folder is in use because of this process.
        libc::chdir(c"/".as_ptr());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        if null < 0 {
            return false;
        }
        (0..=2).for_each(|standard| {
            libc::dup2(null, standard);
        });
        let Ok(entries) = fs::read_dir("/proc/self/fd") else { return false };
        let open: Vec<RawFd> =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2 && !kept.contains(descriptor))
        {
            libc::close(descriptor);
        }
    }
    // Each rank of the node takes a descriptor or two.
    std::mem::forget(DescriptorRoom::make());
    true
}
