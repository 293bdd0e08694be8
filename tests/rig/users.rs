//! The user of a process, its hardware thread, and what the kernel lets users count.

use std::os::fd::AsRawFd;
use std::{fs, io};

/// Makes user and group nobody's, permanently, with no capability or only this one.
pub fn become_nobody(capability: Option<u32>) -> io::Result<()> {
    const NOBODY: u32 = 65534;
    /// linux/capability.h: _LINUX_CAPABILITY_VERSION_3; process id 0 is the caller.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    // The effective, permitted and inheritable capabilities: the lower 32 of them and the upper 32.
    let mut sets = [[0u32; 3]; 2];
    if let Some(capability) = capability {
        let set = &mut sets[capability as usize / 32];
        (set[0], set[1]) = (1 << (capability % 32), 1 << (capability % 32));
    }
    // SAFETY: system calls on this process's own identity; the last one reads live locals.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_KEEPCAPS, 1) != 0
            || libc::setgroups(0, std::ptr::null()) != 0
            || libc::setresgid(NOBODY, NOBODY, NOBODY) != 0
            || libc::setresuid(NOBODY, NOBODY, NOBODY) != 0
            || libc::syscall(libc::SYS_capset, HEADER.as_ptr(), sets.as_ptr()) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// True if this process belongs to root.
pub fn is_root() -> bool {
    // SAFETY: the call reads a number.
    unsafe { libc::geteuid() == 0 }
}

/// Restores kernel.perf_event_paranoid when it is dropped. Meanwhile no other test changes it.
pub struct Paranoid {
    before: String,
    _locked: fs::File,
}

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

impl Paranoid {
    /// Keeps the current level; root may then change it.
    pub fn keep() -> io::Result<Self> {
        let locked = fs::File::open(PARANOID)?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(locked.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { before: fs::read_to_string(PARANOID)?, _locked: locked })
    }

    /// The level before any change.
    pub fn level(&self) -> i32 {
        self.before.trim().parse().expect("a number in perf_event_paranoid")
    }

    /// Sets another level.
    pub fn set(&self, level: i32) -> io::Result<()> {
        fs::write(PARANOID, level.to_string())
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        // An error cannot be handled here; the next test that reads the level reports it.
        let _ = fs::write(PARANOID, &self.before);
    }
}

/// Binds the calling thread to its current hardware thread, and returns that thread's number.
pub fn pin() -> io::Result<u32> {
    // SAFETY: all zeros is an empty set; the calls read locals.
    unsafe {
        let cpu = libc::sched_getcpu();
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usize::try_from(cpu).map_err(|_| io::Error::last_os_error())?, &mut set);
        let failed = libc::sched_setaffinity(0, size_of_val(&set), &set) != 0;
        if failed { Err(io::Error::last_os_error()) } else { Ok(cpu as u32) }
    }
}
