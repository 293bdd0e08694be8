//! Runs programs that may never answer, with a time limit.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The output of a program that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// True if its exit status is 0.
    pub success: bool,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Why a program gave no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silent {
    /// It did not start.
    NotStarted(String),
    /// It did not end within this time, so pmmpi killed it.
    TooLong(Duration),
}

impl CommandOutput {
    /// Stdout and stderr, as text.
    pub fn text(&self) -> String {
        format!("{}\n{}", String::from_utf8_lossy(&self.stdout), self.stderr)
    }

    /// The last line of stderr, because it usually names the error.
    pub fn complaint(&self) -> String {
        let mut lines = self.stderr.lines().map(str::trim);
        let line = lines.rfind(|line| !line.is_empty()).unwrap_or("the command failed without a message");
        line.chars().take(200).collect()
    }
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silent::NotStarted(why) => f.write_str(why),
            Silent::TooLong(limit) => write!(f, "no answer in {} s", limit.as_secs_f64()),
        }
    }
}

/// More than any answer that the checks need.
const MOST_BYTES: usize = 1 << 20;
/// A killed process ends within this time, unless it waits inside the kernel.
const GRACE: Duration = Duration::from_millis(500);

/// Runs a command to its end, or kills it and its process group after `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Result<CommandOutput, Silent> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|e| Silent::NotStarted(e.to_string()))?;
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let mut pipes = pipes.map(Pipe::new);
    let ended = read_all(&mut child, &mut pipes, deadline).and_then(|()| wait(&mut child, deadline));
    let [stdout, stderr] = pipes.map(|pipe| pipe.bytes);
    match ended {
        Some(status) => Ok(CommandOutput {
            success: status.success(),
            stdout,
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
        }),
        None => {
            // SAFETY: the group is the child's own, and nothing has waited for the child yet.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            // If even this does not end the child, the doctor continues without it.
            wait(&mut child, Instant::now() + GRACE);
            Err(Silent::TooLong(limit))
        }
    }
}

/// Reads until all pipes are closed or the child has ended; `None` after the deadline. A descendant of the child may
/// keep the pipes open longer than the child lives.
fn read_all(child: &mut Child, pipes: &mut [Pipe; 2], deadline: Instant) -> Option<()> {
    loop {
        // Check this first, so that the reads below get all that the child wrote before its end.
        let has_ended = child.try_wait().ok().flatten().is_some();
        pipes.iter_mut().for_each(Pipe::take_what_there_is);
        if has_ended || pipes.iter().all(|pipe| pipe.file.is_none()) {
            return Some(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        // Short, to notice the end of a child whose pipes stay open.
        let wait_ms = left.as_millis().clamp(1, 20) as i32;
        let mut polled = [0, 1].map(|at: usize| {
            let fd = pipes[at].file.as_ref().map_or(-1, AsRawFd::as_raw_fd);
            libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
        });
        // SAFETY: the array lives through the call; poll(2) ignores a descriptor of -1.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, wait_ms) };
    }
}

/// The read end of a pipe (`None` after the write end is closed), and the bytes from it.
struct Pipe {
    file: Option<File>,
    bytes: Vec<u8>,
}

impl Pipe {
    fn new(descriptor: Option<OwnedFd>) -> Self {
        if let Some(descriptor) = &descriptor {
            // SAFETY: sets a flag of a descriptor that this process owns.
            unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        Self { file: descriptor.map(File::from), bytes: Vec::new() }
    }

    /// Reads what is available; drops bytes above `MOST_BYTES`.
    fn take_what_there_is(&mut self) {
        let Some(file) = &mut self.file else { return };
        let mut chunk = [0u8; 4096];
        // Bounded, because a program may write faster than this loop reads.
        for _ in 0..64 {
            match file.read(&mut chunk) {
                Ok(length) if length > 0 => {
                    let room = MOST_BYTES.saturating_sub(self.bytes.len());
                    self.bytes.extend_from_slice(&chunk[..length.min(room)]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                _ => {
                    self.file = None;
                    return;
                }
            }
        }
    }
}

fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<CommandOutput, Silent> {
        run(Command::new("/bin/sh").args(["-c", script]), limit)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_is_heard() {
        let said = shell("echo out; echo err >&2; exit 3", LONG).unwrap();
        assert_eq!((said.success, &said.stdout[..], &said.stderr[..]), (false, &b"out\n"[..], "err\n"));
        assert_eq!(said.complaint(), "err");
        assert!(shell("exec >&- 2>&-; exit 0", LONG).unwrap().success);
    }

    #[test]
    fn more_than_a_pipe_holds_is_read_and_no_more_than_is_wanted_kept() {
        let said = shell("head -c 3000000 /dev/zero", LONG).unwrap();
        assert!(said.success && said.stdout.len() == MOST_BYTES);
    }

    #[test]
    fn what_hangs_is_ended() {
        let short = Duration::from_millis(50);
        for script in ["sleep 1000", "trap '' TERM; echo x; sleep 1000", "exec >&- 2>&-; sleep 1000", "yes"] {
            assert_eq!(shell(script, short), Err(Silent::TooLong(short)), "{script}");
        }
    }

    /// The doctor does not wait for a daemon that the program leaves behind.
    #[test]
    fn pipes_that_stay_open_do_not_matter() {
        let said = shell("sleep 5 & echo out", LONG).unwrap();
        assert_eq!((said.success, &said.stdout[..]), (true, &b"out\n"[..]));
    }

    #[test]
    fn what_is_not_there_says_so() {
        let silent = run(&mut Command::new("/nonexistent/program"), LONG);
        assert!(matches!(silent, Err(Silent::NotStarted(_))), "{silent:?}");
    }
}
