//! The carrier process of a node. It survives the killing of the ranks' `pmmpi` processes, and ends after the last
//! of them.

use super::when_to_carry::CarrierLeader;
use super::write_ranks::Member;
use pmmpi::counters::descriptor_room::DescriptorRoom;
use pmmpi::record::RunHeader;
use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Starts the carrier as a fork of this process, so that it need not find and load a program. Call it before this
/// process starts any other. `own` is the rank of this launcher. Gives the connection to the carrier, or `None` if it
/// cannot start.
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
            // The copy must not run the parent's destructors or flush its buffers.
            std::mem::forget(connection); // `detach` closes it with all others
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

/// Detaches this process from the job: no signal to the job ends it. It closes all inherited descriptors, because other
/// processes wait until the launchers' pipes and sockets are closed. False if that fails.
fn detach(kept: &[RawFd]) -> bool {
    // SAFETY: plain system calls on this process and on descriptors that nothing here uses again.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"pmmpi-carrier".as_ptr());
        // This process must keep no folder in use.
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
    // Each rank of the node needs one or two descriptors.
    std::mem::forget(DescriptorRoom::make());
    true
}
