//! `--timeout`: waits until a time limit, then ends the child and all processes that it started.

use super::Running;
use crate::descendants;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The exit status after a timeout, as in timeout(1).
pub const TIMED_OUT: i32 = 124;
/// What became of a program with [`super::Ended::is_left`]. Such a process waits inside the kernel for a disk, a file
/// server or a driver that never answers: the kernel delivers no signal to it, not even SIGKILL.
pub const LEFT: &str = "it took longer than --timeout, and no signal ended it, probably because it waits inside the Linux \
                        kernel (state D in ps). So pmmpi no longer waits for it, and continues. Look for a file \
                        system, a disk or a driver that hangs";
/// The time for a program to end after SIGTERM: less than the 30 s that Slurm gives a job (KillWait).
const GRACE: Duration = Duration::from_secs(10);

/// The longest interval between two waits for ended orphans: many zombies could use up the process numbers.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

impl Running {
    /// Ends the child and all processes that it started. False if a process is still there in the end.
    pub(super) fn end_all(&self) -> bool {
        let deadline = Instant::now() + GRACE;
        let mut told = Vec::new();
        let mut pause = Duration::from_millis(10);
        loop {
            let mut left = descendants::living(self.pid);
            // A process whose first thread has ended looks like a zombie, even if its other threads continue.
            if !left.contains(&self.pid) && !self.has_ended() {
                left.push(self.pid);
            }
            if left.is_empty() {
                return true;
            }
            if Instant::now() > deadline + GRACE {
                descendants::leave(&left);
                return false;
            }
            if Instant::now() > deadline {
                // The next pass finds processes that start meanwhile.
                descendants::signal(&left, libc::SIGKILL);
            } else {
                let new: Vec<_> = left.into_iter().filter(|process| !told.contains(process)).collect();
                descendants::signal(&new, libc::SIGTERM);
                descendants::signal(&new, libc::SIGCONT); // a stopped process must continue to handle SIGTERM
                told.extend(new);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(500));
            descendants::reap_all_but(self.pid);
        }
    }

    /// Sleeps until the child has ended, but leaves it a zombie; false after `limit`.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let Some(deadline) = Instant::now().checked_add(limit) else { return true }; // too long to matter
        // SAFETY: nothing has waited for the child, so the number is still its own.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, self.pid, 0) } as libc::c_int;
        // SAFETY: a new descriptor that nothing else owns.
        let fd = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            descendants::reap_all_but(self.pid);
            if self.has_ended() {
                return true;
            }
            if left.is_zero() {
                return false;
            }
            match &fd {
                Some(fd) => {
                    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                    let left = libc::c_int::try_from(left.min(LONGEST_SLEEP).as_millis() + 1)
                        .unwrap_or(libc::c_int::MAX);
                    // SAFETY: one live structure. After an interruption, the loop continues.
                    unsafe { libc::poll(&mut poll, 1, left) };
                }
                // Before Linux 5.3.
                None => std::thread::sleep(left.min(Duration::from_millis(50))),
            }
        }
    }

    fn has_ended(&self) -> bool {
        // SAFETY: an all-zero siginfo is valid, and waitid fills it in.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid as libc::id_t, &mut info, options) == 0 && info.si_pid() != 0
        }
    }
}
