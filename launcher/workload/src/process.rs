//! Starts a program as if pmmpi were not there, and gets its end.
//!
//! The child gets the signal mask and dispositions that this process inherited, stays in its process group, and
//! inherits no descriptor of pmmpi.

mod time_limit;

pub use time_limit::{LEFT, TIMED_OUT};

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use crate::failure::Failure;
use crate::held_signals::HeldSignals;
use crate::signal_witness;
use crate::signals;
use pmmpi::record::End;

/// A program that is ready to start: all allocations are done.
pub struct PreparedProgram {
    path: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
}

/// How a child ended, and its CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Its exit code or signal; [`End::Lost`] if it is still there.
    pub end: End,
    /// True if its time limit was over, and pmmpi told it to end.
    pub timed_out: bool,
    /// True if a process of it is still there after its time limit: see [`LEFT`].
    pub is_left: bool,
    /// CPU time in user mode (ns), including descendants that it waited for; 0 if it is still there.
    pub cpu_user_ns: i64,
    /// The same in kernel mode (ns).
    pub cpu_system_ns: i64,
}

impl Ended {
    /// The exec failed with `errno`.
    pub fn not_started(errno: i32) -> Self {
        Self::without_cpu_time(End::NotStarted(errno))
    }

    /// An end of work for which no child ran.
    pub(crate) fn without_cpu_time(end: End) -> Self {
        Self { end, timed_out: false, is_left: false, cpu_user_ns: 0, cpu_system_ns: 0 }
    }

    /// The end for this process's own exit status: after a timeout 124, even if the program then ended well.
    pub fn status(&self) -> End {
        if self.timed_out { End::Exited(TIMED_OUT) } else { self.end }
    }

    /// The end for the run file, with its cause.
    pub fn for_the_record(&self) -> End {
        if self.timed_out { End::TimedOut } else { self.end.asked_for_by(signals::asked_to_end()) }
    }
}

impl PreparedProgram {
    /// Uses `path` without a search in PATH; `argv` starts with the program's name. Fails if a string contains a
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

    /// Starts the program with posix_spawn(3), which reports a failed exec.
    pub fn start(&self) -> io::Result<Running> {
        self.spawn_or_interpret(None)
    }

    /// Like [`Self::start`], for a program that also inherits these descriptors, each under this number. No descriptor
    /// may have the number of one before it.
    pub fn start_with(&self, descriptors: &[(BorrowedFd<'_>, RawFd)]) -> io::Result<Running> {
        let mut actions = Actions::new()?;
        for (descriptor, number) in descriptors {
            actions.duplicate(*descriptor, *number)?;
        }
        self.spawn_or_interpret(Some(&actions))
    }

    fn spawn_or_interpret(&self, actions: Option<&Actions>) -> io::Result<Running> {
        match self.spawn(actions) {
            Err(e) if e.raw_os_error() == Some(libc::ENOEXEC) => self.as_script().spawn(actions),
            result => result,
        }
    }

    /// A file that the kernel cannot execute runs as a shell script, as with execvp(3).
    fn as_script(&self) -> Self {
        let shell = [c"sh".to_owned(), self.path.clone()];
        Self {
            path: c"/bin/sh".to_owned(),
            argv: shell.into_iter().chain(self.argv.iter().skip(1).cloned()).collect(),
            environment: self.environment.clone(),
        }
    }

    fn spawn(&self, actions: Option<&Actions>) -> io::Result<Running> {
        let argv = pointers(&self.argv);
        let environment = pointers(&self.environment);
        let held = HeldSignals::back();
        let mut pid: libc::pid_t = 0;
        let code = Attributes::new(&held).and_then(|attributes| {
            signals::take_pending(&held);
            // SAFETY: every pointer is to a live C string or to a null-terminated array of them.
            let code = unsafe {
                libc::posix_spawn(
                    &mut pid,
                    self.path.as_ptr(),
                    actions.map_or(ptr::null(), |actions| &raw const actions.0),
                    &attributes.0,
                    argv.as_ptr(),
                    environment.as_ptr(),
                )
            };
            if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
        });
        code.map(|()| {
            signals::hand_to(&held, pid);
            Running { pid }
        })
    }

    /// Replaces this process by the program. Returns only if that fails.
    pub fn exec(&self) -> io::Error {
        // SAFETY: as in `start`.
        unsafe {
            let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
            libc::execve(self.path.as_ptr(), argv.as_ptr().cast(), environment.as_ptr().cast());
        }
        io::Error::last_os_error()
    }
}

/// A running child.
pub struct Running {
    pid: libc::pid_t,
}

impl Running {
    /// The child's process number.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Sleeps until the child ends (wait4(2)). After `timeout`, ends the child and all processes that it started: see
    /// `time_limit`. If no signal ends them, leaves them.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Ended> {
        let timed_out = timeout.is_some_and(|timeout| !self.ends_within(timeout));
        let is_left = timed_out && !self.end_all();
        // Otherwise this would wait as long as the child waits inside the kernel.
        let options = if is_left { libc::WNOHANG } else { 0 };
        let mut status = 0;
        // SAFETY: an all-zero rusage is valid; both pointers are to live locals.
        let (ended, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            loop {
                let ended = libc::wait4(self.pid, &mut status, options, &mut usage);
                if ended >= 0 {
                    break (ended, usage);
                }
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        };
        signals::no_child();
        let end = match ended {
            0 => End::Lost,
            _ if libc::WIFSIGNALED(status) => End::Signaled(libc::WTERMSIG(status)),
            _ => End::Exited(libc::WEXITSTATUS(status)),
        };
        Ok(Ended {
            end,
            timed_out,
            is_left,
            cpu_user_ns: pmmpi::session::timeval_ns(usage.ru_utime),
            cpu_system_ns: pmmpi::session::timeval_ns(usage.ru_stime),
        })
    }
}

/// Ends this process as the child ended: with its code, or by its signal.
pub fn end_as(end: End) -> ! {
    signal_witness::end();
    match end {
        End::Finalized | End::Interrupted(_) => std::process::exit(0),
        // These ends occur only in records; no process ends like this.
        End::Aborted(_) | End::TimedOut | End::Lost => std::process::exit(125),
        End::Exited(code) => std::process::exit(code),
        End::NotStarted(errno) => std::process::exit(Failure::not_started(errno)),
        End::Signaled(signal) => {
            // SAFETY: plain system calls on this process. The core file, if any, is the child's.
            unsafe {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                // The limit does not apply to core files that go to a program (core(5)).
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                libc::signal(signal, libc::SIG_DFL);
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, signal);
                libc::sigprocmask(libc::SIG_UNBLOCK, &set, ptr::null_mut());
                libc::raise(signal);
            }
            // The signal does not end a process by default: use the shell's convention.
            std::process::exit(128 + signal)
        }
    }
}

/// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise a file of pmmpi could get the number,
/// and a message would go into a run file. In the child, these descriptors are closed again.
pub fn occupy_standard_descriptors() {
    for fd in 0..=2 {
        // SAFETY: reads flags, then opens a file, which gets the lowest free descriptor: this one.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            }
        }
    }
}

/// The signal state of the child for posix_spawn: the mask from before [`HeldSignals::back`], the dispositions from
/// before [`signals::prepare`].
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new(signals: &HeldSignals) -> io::Result<Self> {
        // SAFETY: init makes the attributes valid; the setters take live pointers.
        unsafe {
            let mut attributes: libc::posix_spawnattr_t = std::mem::zeroed();
            let code = libc::posix_spawnattr_init(&mut attributes);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(code));
            }
            libc::posix_spawnattr_setsigmask(&mut attributes, signals.mask());
            libc::posix_spawnattr_setsigdefault(&mut attributes, &signals::defaults());
            let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
            libc::posix_spawnattr_setflags(&mut attributes, flags as libc::c_short);
            Ok(Self(attributes))
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: posix_spawnattr_init made the attributes.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

/// What posix_spawn(3) does with descriptors in the child.
struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Self> {
        // SAFETY: init makes the actions valid.
        unsafe {
            let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
            match libc::posix_spawn_file_actions_init(&mut actions) {
                0 => Ok(Self(actions)),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
    }

    fn duplicate(&mut self, descriptor: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
        // SAFETY: the actions are valid.
        let code =
            unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, descriptor.as_raw_fd(), number) };
        if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: posix_spawn_file_actions_init made the actions.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    let zero = |_| io::Error::new(io::ErrorKind::InvalidInput, "an argument contains a zero byte");
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
        let prepared = PreparedProgram::new(Path::new("/bin/sh"), &argv, std::env::vars_os()).unwrap();
        prepared.start().unwrap().wait(None).unwrap()
    }

    #[test]
    fn a_child_ends_with_a_code_or_a_signal() {
        assert_eq!(run("exit 255").end, End::Exited(255));
        assert_eq!(run("kill -SEGV $$").end, End::Signaled(libc::SIGSEGV));
    }

    #[test]
    fn a_child_whose_time_is_up_is_ended() {
        let argv = ["sh", "-c", "trap 'exit 3' TERM; sleep 100 & wait"].map(OsString::from);
        let start = || {
            PreparedProgram::new(Path::new("/bin/sh"), &argv, std::env::vars_os()).unwrap().start().unwrap()
        };
        let ended = start().wait(Some(Duration::from_millis(300))).unwrap();
        assert_eq!((ended.end, ended.timed_out), (End::Exited(3), true));
        assert_eq!(ended.for_the_record(), End::TimedOut);
        let argv = ["true"].map(OsString::from);
        let quick = PreparedProgram::new(Path::new("/bin/true"), &argv, []).unwrap().start().unwrap();
        let ended = quick.wait(Some(Duration::from_secs(60))).unwrap();
        assert_eq!((ended.end, ended.timed_out), (End::Exited(0), false));
    }

    /// Its entry in /proc looks like that of a zombie.
    #[test]
    fn a_child_whose_first_thread_has_ended_is_ended() {
        let script = "import ctypes, threading, time\n\
                      threading.Thread(target=time.sleep, args=(1000,)).start()\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let argv = ["env", "python3", "-c", script].map(OsString::from);
        let python = PreparedProgram::new(Path::new("/usr/bin/env"), &argv, std::env::vars_os()).unwrap();
        let ended = python.start().unwrap().wait(Some(Duration::from_secs(2))).unwrap();
        assert_eq!(ended.end, End::Signaled(libc::SIGTERM));
        assert!(ended.timed_out && !ended.is_left);
    }

    #[test]
    fn a_program_that_cannot_start_says_why() {
        let argv = [OsString::from("x")];
        let start = |path: &str| PreparedProgram::new(Path::new(path), &argv, []).unwrap().start().err();
        assert_eq!(start("/nonexistent").unwrap().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(start("/etc/passwd").unwrap().raw_os_error(), Some(libc::EACCES));
        assert!(PreparedProgram::new(Path::new("/bin/sh"), &[OsString::from("a\0b")], []).is_err());
    }
}
