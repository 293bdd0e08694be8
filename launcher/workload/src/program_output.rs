//! What the user's program prints in a screen: the program gets pipes, and a thread passes on what comes.
//!
//! mpirun, srun, and a pipeline such as `pmmpi screen -- PROGRAM | tee` end only when all processes have closed their
//! pipes. A program that no signal ends would keep them open.

use crate::held_signals::HeldSignals;
use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::thread::{Builder, JoinHandle};

/// As much as a pipe holds.
const PART_BYTES: usize = 64 << 10;
const STACK_BYTES: usize = 256 << 10;

/// Stdout and stderr of a program.
pub(crate) struct ProgramOutput {
    /// True if the program's stdout is stderr.
    to_stderr: bool,
    own_stderr: io::Stderr,
    /// What the program gets as stdout and stderr; `None` if it inherits them.
    stdout: Option<PipeWriter>,
    stderr: Option<PipeWriter>,
    /// The thread, and the pipe that tells it the program's end when it is closed.
    passing: Option<(JoinHandle<()>, PipeWriter)>,
}

impl ProgramOutput {
    /// The output of the next program. `is_passed_on`: the program inherits no pipe. Call this before any counter is
    /// opened, because a counter would follow the thread.
    pub fn begin(to_stderr: bool, is_passed_on: bool) -> Self {
        let passed_on =
            is_passed_on.then(|| Self::pass_on(to_stderr, io::stdout().as_fd(), io::stderr().as_fd()));
        // Without a thread, the program inherits the pipes.
        passed_on.and_then(Result::ok).unwrap_or_else(|| Self::inherited(to_stderr))
    }

    fn inherited(to_stderr: bool) -> Self {
        Self { to_stderr, own_stderr: io::stderr(), stdout: None, stderr: None, passing: None }
    }

    fn pass_on(to_stderr: bool, stdout: BorrowedFd<'_>, stderr: BorrowedFd<'_>) -> io::Result<Self> {
        let mut output = Self::inherited(to_stderr);
        let mut streams = Vec::new();
        if !to_stderr {
            output.stdout = pipe_to(stdout, &mut streams)?;
        }
        output.stderr = pipe_to(stderr, &mut streams)?;
        if !streams.is_empty() {
            let (ended, end) = io::pipe()?;
            // Signals stay with the thread that waits for the program.
            let held = HeldSignals::back();
            let thread = Builder::new().stack_size(STACK_BYTES).spawn(move || pass_on(streams, &ended));
            drop(held);
            output.passing = Some((thread?, end));
        }
        Ok(output)
    }

    /// The descriptors that the program does not inherit as they are, each with its number in the program.
    pub fn descriptors(&self) -> Vec<(BorrowedFd<'_>, RawFd)> {
        let stderr = self.stderr.as_ref().map(PipeWriter::as_fd);
        let stdout = match self.to_stderr {
            true => Some(stderr.unwrap_or(self.own_stderr.as_fd())),
            false => self.stdout.as_ref().map(PipeWriter::as_fd),
        };
        let stdout = stdout.map(|descriptor| (descriptor, libc::STDOUT_FILENO));
        let stderr = stderr.map(|descriptor| (descriptor, libc::STDERR_FILENO));
        stdout.into_iter().chain(stderr).collect()
    }

    /// Call this after the program's end. Returns when all that it has printed is passed on. Does not wait for other
    /// processes that have the pipes: what these print later is lost.
    pub fn end(self) {
        if let Some((thread, end)) = self.passing {
            drop(end);
            let _ = thread.join(); // fails only if the thread panicked
        }
    }
}

/// The program's end of a new pipe, whose other end is in `streams`. `None` if nobody waits for the end of `to`.
fn pipe_to(to: BorrowedFd<'_>, streams: &mut Vec<Stream>) -> io::Result<Option<PipeWriter>> {
    let to = File::from(to.try_clone_to_owned()?);
    if !is_waited_for(&to) {
        return Ok(None);
    }
    let (from, of_program) = io::pipe()?;
    streams.push(Stream { from: Some(from), to });
    Ok(Some(of_program))
}

/// True for pipes, and for the terminals that Open MPI makes for its ranks. On the terminal of a user, programs print
/// each line at once, so they keep it.
fn is_waited_for(file: &File) -> bool {
    let kind = file.metadata().map(|about| about.file_type());
    // SAFETY: the call accesses no memory. It fails if this is not the terminal that controls this process.
    let is_of_user = || unsafe { libc::tcgetpgrp(file.as_raw_fd()) } >= 0;
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) || (file.is_terminal() && !is_of_user())
}

/// One stream of the program.
struct Stream {
    /// `None` if nobody reads `to` any more. The program's next write then fails, as if it had inherited `to`.
    from: Option<PipeReader>,
    to: File,
}

/// Passes on what comes, until the other end of `ended` is closed.
fn pass_on(mut streams: Vec<Stream>, ended: &PipeReader) {
    let mut part = vec![0; PART_BYTES];
    let mut has_ended = false;
    while !has_ended {
        let descriptors = streams.iter().map(Stream::descriptor).chain([ended.as_raw_fd()]);
        let mut polls: Vec<libc::pollfd> = descriptors.map(|fd| poll_for(fd, libc::POLLIN)).collect();
        // SAFETY: the structures are live. If the call fails, none of them is ready.
        unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, -1) };
        for (stream, poll) in streams.iter_mut().zip(&polls) {
            if poll.revents != 0 {
                stream.pass_on(&mut part);
            }
        }
        has_ended = polls.last().is_none_or(|poll| poll.revents != 0);
    }
    for stream in &mut streams {
        stream.pass_on_rest(&mut part);
    }
}

impl Stream {
    /// poll(2) ignores a negative one.
    fn descriptor(&self) -> RawFd {
        self.from.as_ref().map_or(-1, PipeReader::as_raw_fd)
    }

    /// Passes on at most as much as fits into `part`. Gives the number of bytes.
    fn pass_on(&mut self, part: &mut [u8]) -> usize {
        let Some(from) = &mut self.from else { return 0 };
        let passed_on = match from.read(part) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            read => read.and_then(|read| write_all(&self.to, &part[..read]).map(|()| read)),
        };
        passed_on.unwrap_or_else(|_| {
            self.from = None;
            0
        })
    }

    /// Passes on what is in the pipe now: another process that has it could print without end.
    fn pass_on_rest(&mut self, part: &mut [u8]) {
        let mut bytes: libc::c_int = 0;
        // SAFETY: a live number. If the call fails, the number stays 0.
        unsafe { libc::ioctl(self.descriptor(), libc::FIONREAD, &raw mut bytes) };
        let mut left = usize::try_from(bytes).unwrap_or(0);
        while left > 0 && self.from.is_some() {
            let most = left.min(part.len());
            left -= self.pass_on(&mut part[..most]);
        }
    }
}

/// Also writes to a pipe that another process has made non-blocking.
fn write_all(mut to: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let mut poll = poll_for(to.as_raw_fd(), libc::POLLOUT);
                // SAFETY: one live structure. The next write says whether the wait has helped.
                unsafe { libc::poll(&raw mut poll, 1, -1) };
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn poll_for(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Prepared, Running};
    use pmmpi::record::End;
    use std::ffi::OsString;
    use std::path::Path;
    use std::time::Duration;

    fn start(script: &str, output: &ProgramOutput) -> Running {
        let argv = ["sh", "-c", script].map(OsString::from);
        let program = Prepared::new(Path::new("/bin/sh"), &argv, std::env::vars_os()).unwrap();
        program.start_with(&output.descriptors()).unwrap()
    }

    /// What arrives on stdout and stderr until their ends.
    fn passed_on(to_stderr: bool, script: &str) -> [String; 2] {
        let (out, to_out) = io::pipe().unwrap();
        let (err, to_err) = io::pipe().unwrap();
        let arriving = [out, err].map(|mut pipe| {
            std::thread::spawn(move || {
                let mut text = String::new();
                pipe.read_to_string(&mut text).unwrap();
                text
            })
        });
        let output = ProgramOutput::pass_on(to_stderr, to_out.as_fd(), to_err.as_fd()).unwrap();
        let ended = start(script, &output).wait(None).unwrap();
        assert_eq!(ended.end, End::Exited(0));
        output.end();
        drop((to_out, to_err));
        arriving.map(|arriving| arriving.join().unwrap())
    }

    #[test]
    fn all_that_the_program_prints_arrives() {
        let lines: String = (1..=200_000).map(|line| format!("{line}\n")).collect();
        let script = "seq 200000; echo told >&2; seq 200000 >&2; printf end";
        let [out, err] = passed_on(false, script);
        assert!(out == format!("{lines}end") && err == format!("told\n{lines}"));
        let [out, err] = passed_on(true, script);
        assert!(out.is_empty() && err == format!("{lines}told\n{lines}end"));
    }

    #[test]
    fn nobody_waits_for_another_process_that_has_the_pipes() {
        let [out, err] = passed_on(false, "sleep 600 & echo $!");
        // SAFETY: the call accesses no memory.
        unsafe { libc::kill(out.trim().parse().unwrap(), libc::SIGKILL) };
        assert_eq!(err, "");
        // This one prints until its pipe has no reader.
        passed_on(false, "yes >&2 & true");
    }

    #[test]
    fn the_program_notices_that_nobody_reads() {
        let (out, to_out) = io::pipe().unwrap();
        let output = ProgramOutput::pass_on(false, to_out.as_fd(), to_out.as_fd()).unwrap();
        drop(out);
        let ended = start("exec yes", &output).wait(Some(Duration::from_secs(60))).unwrap();
        assert!(!ended.timed_out && !ended.end.is_success());
        output.end();
    }

    #[test]
    fn the_program_inherits_files() {
        let file = tempfile::tempfile().unwrap();
        let output = ProgramOutput::pass_on(false, file.as_fd(), file.as_fd()).unwrap();
        assert!(output.descriptors().is_empty() && output.passing.is_none());
        let output = ProgramOutput::begin(true, false);
        assert_eq!(output.descriptors().len(), 1);
    }
}
