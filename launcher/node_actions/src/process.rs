//! Runs a program that may hang or print without end.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// scontrol prints about 100 MB for 100,000 nodes. Tests use a lower limit, to save memory.
const MOST_BYTES: u64 = if cfg!(test) { 4 << 20 } else { 256 << 20 };
const PAUSE: Duration = Duration::from_millis(2);
/// A killed process ends within this time, unless it waits inside the Linux kernel.
const GRACE: Duration = Duration::from_secs(1);

/// How a program ended.
pub(crate) enum ProgramEnd {
    NotStarted(io::Error),
    TooLong,
    TooMuch,
    Ended { success: bool, stdout: Vec<u8>, stderr: Vec<u8> },
}

/// Runs a program to its end. The program inherits `kept`, so a lock of this file lasts until the program ends, even
/// if this process is killed. The output goes to memory and not to a pipe, because a process that the program leaves
/// behind could keep a pipe open.
pub(crate) fn run(command: &mut Command, limit: Duration, kept: Option<&File>) -> ProgramEnd {
    let deadline = Instant::now() + limit;
    let files = memory(c"stdout").and_then(|out| Ok((out, memory(c"stderr")?)));
    let prepared = files.and_then(|(out, err)| Ok((out.try_clone()?, err.try_clone()?, out, err)));
    let (child_out, child_err, mut out, mut err) = match prepared {
        Ok(files) => files,
        Err(reason) => return ProgramEnd::NotStarted(reason),
    };
    command.stdin(Stdio::null()).stdout(child_out).stderr(child_err).process_group(0);
    if let Some(kept) = kept.map(AsRawFd::as_raw_fd) {
        let keep = move || {
            // SAFETY: between fork and exec; fcntl is async-signal-safe, and the file is open in this process.
            unsafe { libc::fcntl(kept, libc::F_SETFD, 0) };
            Ok(())
        };
        // SAFETY: the closure calls only async-signal-safe functions and allocates nothing.
        unsafe { command.pre_exec(keep) };
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(reason) => return ProgramEnd::NotStarted(reason),
    };
    loop {
        let is_too_long = Instant::now() >= deadline;
        match child.try_wait() {
            Ok(Some(status)) => {
                return match (all_of(&mut out), all_of(&mut err)) {
                    (Ok(stdout), Ok(stderr)) => {
                        ProgramEnd::Ended { success: status.success(), stdout, stderr }
                    }
                    _ => ProgramEnd::TooMuch,
                };
            }
            Ok(None) if is_too_long => return killed(&mut child, ProgramEnd::TooLong),
            Ok(None) if length(&out) + length(&err) > MOST_BYTES => {
                return killed(&mut child, ProgramEnd::TooMuch);
            }
            Ok(None) => std::thread::sleep(PAUSE),
            Err(reason) => return killed(&mut child, ProgramEnd::NotStarted(reason)),
        }
    }
}

/// Kills the program and the processes that it started.
fn killed(child: &mut Child, end: ProgramEnd) -> ProgramEnd {
    // SAFETY: the group is the child's own, and nothing has waited for the child yet.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    let deadline = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
    end
}

/// An empty file in memory.
fn memory(name: &CStr) -> io::Result<File> {
    // SAFETY: the name ends with 0; a descriptor that the call returns has no other owner.
    unsafe {
        match libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) {
            descriptor if descriptor >= 0 => Ok(File::from_raw_fd(descriptor)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |about| about.len())
}

fn all_of(file: &mut File) -> io::Result<Vec<u8>> {
    if length(file) > MOST_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    // Bounded, because a process that the program left behind may still write.
    file.by_ref().take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration) -> ProgramEnd {
        run(Command::new("/bin/sh").args(["-c", script]), limit, None)
    }

    #[test]
    fn all_of_an_answer_is_read() {
        let ProgramEnd::Ended { success, stdout, stderr } = shell("echo out; echo err >&2; exit 3", LONG)
        else {
            panic!()
        };
        assert_eq!((success, &stdout[..], &stderr[..]), (false, &b"out\n"[..], &b"err\n"[..]));
        let ProgramEnd::Ended { success: true, stdout, .. } = shell("head -c 3000000 /dev/zero", LONG) else {
            panic!()
        };
        assert_eq!(stdout.len(), 3_000_000);
    }

    #[test]
    fn what_hangs_is_killed() {
        let limit = Duration::from_millis(100);
        for script in ["sleep 1000", "trap '' TERM; sleep 1000 & wait", "exec >&- 2>&-; sleep 1000"] {
            assert!(matches!(shell(script, limit), ProgramEnd::TooLong), "{script}");
        }
    }

    #[test]
    fn what_prints_without_end_is_killed() {
        assert!(matches!(shell("cat /dev/zero", LONG), ProgramEnd::TooMuch));
    }

    #[test]
    fn a_process_that_stays_is_not_waited_for() {
        assert!(matches!(shell("sleep 5 & echo out", LONG), ProgramEnd::Ended { success: true, .. }));
    }

    #[test]
    fn a_missing_program_is_an_end() {
        assert!(matches!(run(&mut Command::new("/nonexistent"), LONG, None), ProgramEnd::NotStarted(_)));
    }
}
