//! Starting a program as if the tool were not there, and learning how it ended.
//!
//! The child gets the signal mask and dispositions that this process was started with, stays in its
//! process group, and inherits no descriptor of the tool's.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::failure::Failure;
use pmmpi::record::End;

/// A program that is ready to start: everything that allocates has been done.
pub struct Prepared {
    path: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
}

/// How a child ended and what it used.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its exit code or signal.
    pub end: End,
    /// CPU time of it and of the descendants that it waited for, in user mode (ns).
    pub cpu_user_ns: i64,
    /// The same in the kernel.
    pub cpu_system_ns: i64,
}

impl Ended {
    /// The exec failed with `errno`.
    pub fn not_started(errno: i32) -> Self {
        Self { end: End::NotStarted(errno), cpu_user_ns: 0, cpu_system_ns: 0 }
    }
}

impl Prepared {
    /// `path` is used as it is, `argv` begins with the program's name. Fails where a string holds a
    /// zero byte.
    pub fn new(
        path: &Path,
        argv: &[OsString],
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> io::Result<Self> {
        let assignment = |(name, value): (OsString, OsString)| {
            let mut text = name;
            text.push("=");
            text.push(value);
            c_string(&text)
        };
        Ok(Self {
            path: c_string(path.as_os_str())?,
            argv: argv.iter().map(|arg| c_string(arg)).collect::<io::Result<_>>()?,
            environment: environment.into_iter().map(assignment).collect::<io::Result<_>>()?,
        })
    }

    /// Starts the program: posix_spawn(3), which reports an exec that fails.
    pub fn start(&self) -> io::Result<Running> {
        let argv = pointers(&self.argv);
        let environment = pointers(&self.environment);
        let signals = Signals::hold();
        let mut pid: libc::pid_t = 0;
        let code = Attributes::new(&signals).and_then(|attributes| {
            // SAFETY: every pointer is to a live C string or to a null-terminated array of them.
            let code = unsafe {
                libc::posix_spawn(
                    &mut pid,
                    self.path.as_ptr(),
                    ptr::null(),
                    &attributes.0,
                    argv.as_ptr(),
                    environment.as_ptr(),
                )
            };
            if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
        });
        if code.is_ok() {
            CHILD.store(pid, Ordering::Release);
        }
        drop(signals);
        code.map(|()| Running { pid })
    }
}

/// A child that has not been waited for.
pub struct Running {
    pid: libc::pid_t,
}

impl Running {
    /// Sleeps until the child has ended: wait4(2).
    pub fn wait(self) -> io::Result<Ended> {
        let mut status = 0;
        // SAFETY: an all-zero rusage is valid; both pointers are to live locals.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            while libc::wait4(self.pid, &mut status, 0, &mut usage) < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            usage
        };
        CHILD.store(0, Ordering::Release);
        let signaled = libc::WIFSIGNALED(status);
        Ok(Ended {
            end: if signaled {
                End::Signaled(libc::WTERMSIG(status))
            } else {
                End::Exited(libc::WEXITSTATUS(status))
            },
            cpu_user_ns: pmmpi::session::timeval_ns(usage.ru_utime),
            cpu_system_ns: pmmpi::session::timeval_ns(usage.ru_stime),
        })
    }
}

/// Ends this process as the child ended: with its code, or by its signal.
pub fn end_as(end: End) -> ! {
    match end {
        End::Finalized => std::process::exit(0),
        End::Exited(code) => std::process::exit(code),
        End::NotStarted(errno) => std::process::exit(Failure::not_started(errno)),
        End::Signaled(signal) => {
            // SAFETY: plain system calls on this process. The core file, if any, is the child's.
            unsafe {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                libc::signal(signal, libc::SIG_DFL);
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, signal);
                libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
                libc::raise(signal);
            }
            // A signal that does not end a process by default: the shell's convention.
            std::process::exit(128 + signal)
        }
    }
}

/// Signals that reach this process are passed on to the child.
///
/// Not those that the child got as well: from the terminal, and from a job launcher, which signals the
/// whole process group (Open MPI's orted, MPICH's proxy and slurmstepd all do). Such a launcher is this
/// process's parent and in another group.
pub fn forward_signals() {
    for signal in FORWARDED {
        // SAFETY: installs a handler that calls async-signal-safe functions only; a signal that was
        // ignored (nohup) stays so.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, ptr::null(), &mut before);
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = forward as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, ptr::null_mut());
        }
    }
}

/// Where this process was started with stdin, stdout or stderr closed, nothing that it opens may take
/// their place: a message would go into a run file. The child finds them closed as they were.
pub fn occupy_standard_descriptors() {
    for fd in 0..=2 {
        // SAFETY: asks for flags, and opens a file that the lowest free descriptor, this one, is for.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            }
        }
    }
}

/// A reader of stderr that has gone away, or a limit on file sizes, must not end this process: its
/// child's end is still to be reported. The child itself gets these signals as this process was started
/// with them.
pub fn ignore_write_signals() {
    for signal in WRITE_SIGNALS {
        // SAFETY: sets a disposition; no handler is involved.
        let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
        if before == libc::SIG_DFL {
            WERE_DEADLY.fetch_or(1 << signal, Ordering::AcqRel);
        }
    }
}

/// The last signal that asked this process to end, if one did.
pub fn asked_to_end() -> Option<i32> {
    let signal = ASKED_TO_END.load(Ordering::Acquire);
    (signal != 0).then_some(signal)
}

const FORWARDED: [libc::c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGCONT,
];

static CHILD: AtomicI32 = AtomicI32::new(0);
static ASKED_TO_END: AtomicI32 = AtomicI32::new(0);
/// Those of [`WRITE_SIGNALS`] that had their default action, a bit each.
static WERE_DEADLY: AtomicU32 = AtomicU32::new(0);
const WRITE_SIGNALS: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];
static UNDER_A_LAUNCHER: AtomicBool = AtomicBool::new(false);

/// Tells [`forward_signals`] that an MPI or batch launcher started this process.
pub fn started_by_launcher() {
    UNDER_A_LAUNCHER.store(true, Ordering::Release);
}

extern "C" fn forward(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if matches!(signal, libc::SIGHUP | libc::SIGINT | libc::SIGQUIT | libc::SIGTERM) {
        ASKED_TO_END.store(signal, Ordering::Release);
    }
    // SAFETY: the kernel passes a valid siginfo; the calls are async-signal-safe (signal-safety(7)).
    unsafe {
        let from_terminal = (*info).si_code > 0;
        let parent = libc::getppid();
        let from_launcher = UNDER_A_LAUNCHER.load(Ordering::Acquire)
            && (*info).si_pid() == parent
            && libc::getpgid(parent) != libc::getpgrp();
        let child = CHILD.load(Ordering::Acquire);
        if child > 0 && !from_terminal && !from_launcher {
            let errno = *libc::__errno_location();
            libc::kill(child, signal);
            *libc::__errno_location() = errno;
        }
    }
}

/// Forwarded signals held back until the child's number is known.
struct Signals {
    before: libc::sigset_t,
}

impl Signals {
    fn hold() -> Self {
        // SAFETY: both sets are initialised before they are used.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in FORWARDED {
                libc::sigaddset(&mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before);
            Self { before }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: `before` is what the kernel stored.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

/// What posix_spawn is to do with signals: the mask from before [`Signals::hold`], dispositions from before
/// [`ignore_write_signals`].
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new(signals: &Signals) -> io::Result<Self> {
        // SAFETY: init makes the attributes valid; the setters take live pointers.
        unsafe {
            let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
            let code = libc::posix_spawnattr_init(&mut attributes);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(code));
            }
            libc::posix_spawnattr_setsigmask(&mut attributes, &signals.before);
            libc::posix_spawnattr_setsigdefault(&mut attributes, &defaults());
            let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
            libc::posix_spawnattr_setflags(&mut attributes, flags as libc::c_short);
            Ok(Self(attributes))
        }
    }
}

/// Signals that must have their default action in the child, beyond those that exec resets.
fn defaults() -> libc::sigset_t {
    // SAFETY: an all-zero set is the empty one on Linux, and sigaddset takes a live set.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    let deadly = WERE_DEADLY.load(Ordering::Acquire);
    for signal in WRITE_SIGNALS.into_iter().filter(|signal| deadly >> signal & 1 == 1) {
        // SAFETY: as above.
        unsafe { libc::sigaddset(&mut set, signal) };
    }
    // glibc's posix_spawn leaves the two signals that its threads use (32 and 33) ignored, unless they
    // are in this set; its sigaddset refuses to put them there. The set is one bit a signal from 1 on.
    for signal in [32, 33].into_iter().filter(|signal| has_default_action(*signal)) {
        // SAFETY: the first word of a sigset_t is valid memory of its own.
        unsafe { *(&raw mut set).cast::<u64>() |= 1 << (signal - 1) };
    }
    set
}

/// Asks the kernel: the C library answers nothing about its own signals.
fn has_default_action(signal: libc::c_int) -> bool {
    // struct kernel_sigaction: handler, flags, restorer, mask; the handler is its first word.
    let mut action = [u64::MAX; 4];
    let mask_bytes = 8;
    // SAFETY: the buffer is as long as the kernel's structure, of which the mask has 8 bytes.
    let code = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<u64>(), action.as_mut_ptr(), mask_bytes)
    };
    code == 0 && action[0] == libc::SIG_DFL as u64
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: made by posix_spawnattr_init.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    let zero = |_| io::Error::new(io::ErrorKind::InvalidInput, "an argument holds a zero byte");
    CString::new(text.as_bytes()).map_err(zero)
}

fn pointers(strings: &[CString]) -> Vec<*mut libc::c_char> {
    strings.iter().map(|s| s.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Ended {
        let argv = ["sh", "-c", script].map(OsString::from);
        let prepared = Prepared::new(Path::new("/bin/sh"), &argv, std::env::vars_os()).unwrap();
        prepared.start().unwrap().wait().unwrap()
    }

    #[test]
    fn a_child_ends_with_a_code_or_a_signal() {
        assert_eq!(run("exit 255").end, End::Exited(255));
        assert_eq!(run("kill -SEGV $$").end, End::Signaled(libc::SIGSEGV));
    }

    #[test]
    fn a_program_that_cannot_start_says_why() {
        let argv = [OsString::from("x")];
        let start = |path: &str| Prepared::new(Path::new(path), &argv, []).unwrap().start().err();
        assert_eq!(start("/nonexistent").unwrap().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(start("/etc/passwd").unwrap().raw_os_error(), Some(libc::EACCES));
        assert!(Prepared::new(Path::new("/bin/sh"), &[OsString::from("a\0b")], []).is_err());
    }
}
