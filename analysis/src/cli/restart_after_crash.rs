//! Reads and reports in a child process. A damaged Parquet file can crash that process; the user still gets a report.
//!
//! The Parquet library (Polars) trusts the numbers in a file. A wrong one makes it ask for 2^61 bytes or overflow its stack.
//! Rust then ends the process, and no code in that process can catch it. The child tells the parent which file it decodes.
//! After a crash the parent starts a new child, which reports that file as damaged and reads the others.

use super::failure::say;
use crate::cli::progress_line::CLEAR;
use pmmpi_analysis::input::importers::Decoding;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

/// Exit status of a child that got no memory: 100 + ENOMEM.
pub const NO_MEMORY: u8 = 112;
/// Exit status after a crash that a new child cannot avoid.
const CRASHED: u8 = 1;
/// Signals of a crash. The kernel sends SIGKILL when the machine has no memory left.
const CRASHES: [i32; 7] =
    [libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGKILL, libc::SIGSEGV, libc::SIGTRAP];

/// A terminal sends these signals to parent and child. Other senders signal the parent alone, so the parent passes
/// the signal on and waits for the child's end.
const PASSED_ON: [i32; 2] = [libc::SIGINT, libc::SIGQUIT];

/// Process id of the child; 0 if there is no child.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// True in the child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// True if a parent reports why this process ends.
pub fn is_child() -> bool {
    IS_CHILD.load(Relaxed)
}

extern "C" fn pass_on(signal: libc::c_int) {
    let child = CHILD.load(Relaxed);
    if child != 0 {
        // SAFETY: the call uses no memory. If the child has this signal from the terminal already, it ends once all
        // the same.
        unsafe { libc::kill(child, signal) };
    }
}

/// Does `work` in a child process and returns its exit status. If neither this child nor a new one can finish, says why
/// with `give_up` and returns the status of this function. Call this before any thread starts.
pub fn supervise(reads_a_pipe: bool, work: impl Fn(Decoding) -> u8, give_up: impl Fn(&str) -> u8) -> u8 {
    let mut fatal = Vec::new();
    loop {
        let Ok((status, told)) = in_child(|teller| work(Decoding::new(fatal.clone(), Some(teller)))) else {
            // The system cannot start another process: work without a child.
            return work(Decoding::new(fatal, None));
        };
        let why = match (status.code(), status.signal()) {
            (Some(code), _) if code != i32::from(NO_MEMORY) => return code as u8,
            (Some(_), _) => "there is not enough memory".to_owned(),
            (None, Some(signal)) if !CRASHES.contains(&signal) => end_by(signal),
            (None, _) => format!("pmmpi-report crashed ({status})"),
        };
        clear_progress();
        match Decoding::interrupted(&told) {
            Some(file) if reads_a_pipe => {
                let file = file.display();
                return give_up(&format!(
                    "{file} is damaged, or needs too much memory: {why}. Leave out this file. pmmpi itself \
                     cannot skip the file: it would have to read all other input again, but one of the paths \
                     is a pipe, and pmmpi cannot read a pipe a second time"
                ));
            }
            Some(file) if !fatal.contains(&file) => fatal.push(file),
            _ => return give_up(&format!("pmmpi cannot finish: {why}")),
        }
    }
}

/// Says why there is no result, and gives the exit status.
pub fn crashed(message: &str) -> u8 {
    say(message);
    CRASHED
}

/// Does `work` in a child. Returns how the child ended and what it wrote about the files that it decodes.
fn in_child(work: impl FnOnce(io::PipeWriter) -> u8) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (mut reader, teller) = io::pipe()?;
    let parent = process::id();
    // SAFETY: this process has one thread, so the child may do anything after fork. Some callers leave SIGCHLD ignored; the
    // kernel then keeps no exit status.
    let child = unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::fork()
    };
    match child {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            // If someone kills the parent, the child ends too.
            // SAFETY: these calls change this process only.
            let orphan = unsafe {
                // Rust must print no message about a stack overflow: the parent reports it.
                libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                let asked = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0;
                // If the parent is in another PID namespace, getppid returns 0.
                asked && ![0, parent].contains(&(libc::getppid() as u32))
            };
            IS_CHILD.store(true, Relaxed);
            if orphan {
                process::exit(CRASHED.into());
            }
            process::exit(work(teller).into())
        }
        child => {
            drop(teller);
            CHILD.store(child, Relaxed);
            // SAFETY: the handler is async-signal-safe. Signals that this process ignores stay ignored.
            let before = PASSED_ON.map(|signal| unsafe {
                let before = libc::signal(signal, pass_on as *const () as libc::sighandler_t);
                if before == libc::SIG_IGN {
                    libc::signal(signal, libc::SIG_IGN);
                }
                before
            });
            let mut told = Vec::new();
            // `read_to_end` returns when the child ends. After an error the file is unknown; the parent still reports
            // the crash.
            let _ = reader.read_to_end(&mut told);
            let mut status = 0;
            // SAFETY: `status` is a live local, and this loop waits for the child only once.
            while unsafe { libc::waitpid(child, &mut status, 0) } == -1 {
                // Without a status the child counts as crashed.
                if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                    status = libc::SIGABRT;
                    break;
                }
            }
            CHILD.store(0, Relaxed);
            for (signal, before) in PASSED_ON.into_iter().zip(before) {
                // SAFETY: this restores the handler from before.
                unsafe { libc::signal(signal, before) };
            }
            Ok((ExitStatus::from_raw(status), told))
        }
    }
}

/// Removes the progress line that the child left on a terminal.
fn clear_progress() {
    if io::stderr().is_terminal() {
        // If stderr is closed, there is nothing to do.
        let _ = write!(io::stderr(), "{CLEAR}");
    }
}

/// Ends with the same signal as the child: a user or a scheduler sent it.
fn end_by(signal: i32) -> ! {
    // SAFETY: these calls change this process only.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
    process::exit(128 + signal)
}
