//! Starting a program as if the tool were not there, and learning how it ended.
//!
//! The child gets the signal mask and dispositions that this process was started with, stays in its
//! process group, and inherits no descriptor of the tool's.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::failure::Failure;
use crate::signals::{self, Held};
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
        match self.spawn() {
            Err(e) if e.raw_os_error() == Some(libc::ENOEXEC) => self.as_script().spawn(),
            result => result,
        }
    }

    /// What the kernel cannot execute is a script of the shell, as execvp(3) has it.
    fn as_script(&self) -> Self {
        let shell = [c"sh".to_owned(), self.path.clone()];
        Self {
            path: c"/bin/sh".to_owned(),
            argv: shell.into_iter().chain(self.argv.iter().skip(1).cloned()).collect(),
            environment: self.environment.clone(),
        }
    }

    fn spawn(&self) -> io::Result<Running> {
        let argv = pointers(&self.argv);
        let environment = pointers(&self.environment);
        let signals = Held::back();
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
        code.map(|()| {
            signals.hand_to(pid);
            Running { pid }
        })
    }

    /// This process becomes the program. Returns only where that fails.
    pub fn exec(&self) -> io::Error {
        // SAFETY: as in `start`.
        unsafe {
            let (argv, environment) = (pointers(&self.argv), pointers(&self.environment));
            libc::execve(self.path.as_ptr(), argv.as_ptr().cast(), environment.as_ptr().cast());
        }
        io::Error::last_os_error()
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
        signals::no_child();
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
        End::Finalized | End::Interrupted(_) => std::process::exit(0),
        End::Exited(code) => std::process::exit(code),
        End::NotStarted(errno) => std::process::exit(Failure::not_started(errno)),
        End::Signaled(signal) => {
            // SAFETY: plain system calls on this process. The core file, if any, is the child's.
            unsafe {
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                // That limit does not hold for core files that go to a program (core(5)).
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
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

/// What posix_spawn is to do with signals: the mask from before [`Held::back`], dispositions from before
/// [`signals::prepare`].
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new(signals: &Held) -> io::Result<Self> {
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
