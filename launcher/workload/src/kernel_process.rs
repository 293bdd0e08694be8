//! A kernel of `pmmpi screen` in a process of its own, so that a kernel that crashes or hangs harms no other.
//!
//! The two processes speak over a pair of sockets. The kernel prepares its data and says that it is ready. The measuring
//! process passes the barrier, and says go. The kernel says that its timed repetitions are done, checks its results, and
//! sends them. A kernel that fails sends the reason instead of its next word; so does a kernel with a hardware exception
//! (`kernel_fault`).

use crate::kernel_fault::{self, FAULT, KernelFault};
use crate::kernel_output::KernelOutput;
use crate::process::{Ended, PreparedProgram, Running};
use pmmpi::record::{KernelReport, KernelResult, wire};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The number of the socket in the kernel's process.
pub const KERNEL_SOCKET: RawFd = 3;

const READY: u8 = b'r';
const GO: u8 = b'g';
const DONE: u8 = b'd';
/// The results follow.
const RESULTS: u8 = b'e';

/// The kernel's process, as the measuring process sees it.
pub struct KernelProcess {
    running: Running,
    socket: UnixStream,
    output: KernelOutput,
    /// Limit of the preparation, and again of what follows.
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    /// The last word of the kernel.
    heard: u8,
}

impl KernelProcess {
    /// Starts the kernel. It must send its results within `timeout`.
    pub fn start(program: &PreparedProgram, timeout: Option<Duration>) -> io::Result<Self> {
        let (socket, of_kernel) = UnixStream::pair()?;
        let output = KernelOutput::new()?;
        // The socket comes last, because the file may have its number here.
        let running = program.start_with(&[
            (output.file(), libc::STDOUT_FILENO),
            (output.file(), libc::STDERR_FILENO),
            (of_kernel.as_fd(), KERNEL_SOCKET),
        ])?;
        Ok(Self { running, socket, output, timeout, deadline: from_now(timeout), heard: 0 })
    }

    /// Waits until the kernel is ready. False if it ended or took too long.
    pub fn is_ready(&mut self) -> bool {
        self.hears(READY)
    }

    /// Starts the timed repetitions.
    pub fn go(&mut self) {
        // The ranks may have waited long for one that prepares slowly.
        self.deadline = from_now(self.timeout);
        // If the kernel ended, the next answer is missing.
        let _ = self.socket.write_all(&[GO]);
    }

    /// Waits until the timed repetitions are done. False if the kernel ended or took too long.
    pub fn is_done(&mut self) -> bool {
        self.hears(DONE)
    }

    /// The results; `None` if the kernel ended without them or took too long.
    pub fn report(&mut self) -> Option<KernelReport> {
        if ![RESULTS, FAULT].contains(&self.heard) {
            self.hears(RESULTS);
        }
        match self.heard {
            RESULTS => {
                let bytes = self.rest()?;
                // A thread may have an exception while another one sends the results.
                wire::decode(&bytes).ok().or_else(|| KernelFault::at_end_of(&bytes).map(report_of))
            }
            FAULT => Some(report_of(KernelFault::of_message(&self.rest()?)?)),
            _ => None,
        }
    }

    /// All that the kernel still sends.
    fn rest(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut part = [0; 4096];
        while self.has_news() {
            match self.socket.read(&mut part) {
                Ok(0) => break,
                Ok(read) if bytes.len() + read <= wire::LIMIT_BYTES => bytes.extend_from_slice(&part[..read]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return None,
            }
        }
        Some(bytes)
    }

    /// The time that is left of the limit; `None` if there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Waits for its end as [`Running::wait`] does, and prints what it has printed.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Ended> {
        let ended = self.running.wait(timeout);
        self.output.print();
        ended
    }

    fn hears(&mut self, word: u8) -> bool {
        let mut heard = [0];
        let has_heard = self.has_news() && self.socket.read_exact(&mut heard).is_ok();
        [self.heard] = heard;
        has_heard && self.heard == word
    }

    /// Waits for something to read, or for the end of the other side. False after the deadline.
    fn has_news(&self) -> bool {
        loop {
            let left = self.time_left();
            let limit_ms =
                left.map_or(-1, |left| libc::c_int::try_from(left.as_millis()).unwrap_or(libc::c_int::MAX));
            let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one live structure.
            match unsafe { libc::poll(&mut poll, 1, limit_ms) } {
                0 if self.time_left().is_none_or(|left| left.as_millis() > 0) => {}
                0 => return false,
                1.. => return true,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
    }
}

/// A kernel with a hardware exception has no results.
fn report_of(fault: KernelFault) -> KernelReport {
    let result = KernelResult { wrong: Some(fault.to_string()), ..KernelResult::default() };
    KernelReport { result, ..KernelReport::default() }
}

fn from_now(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// The measuring process, as the kernel's process sees it.
pub struct MeasuringProcess(UnixStream);

impl MeasuringProcess {
    /// The process at the other end of the inherited socket `socket`.
    pub fn new(socket: UnixStream) -> Self {
        Self(socket)
    }

    /// From now on, a hardware exception of this process is a wrong result. `uses_library`: the kernel calls a library
    /// of the user, which may itself be the cause.
    pub fn send_faults(&self, uses_library: bool) {
        kernel_fault::send_on(self.0.as_raw_fd(), uses_library);
    }

    /// Says that the kernel is ready, and waits for the start of the timed repetitions.
    pub fn wait_for_go(&mut self) -> io::Result<()> {
        self.0.write_all(&[READY])?;
        let mut heard = [0];
        self.0.read_exact(&mut heard)?;
        if heard == [GO] { Ok(()) } else { Err(io::Error::from(io::ErrorKind::InvalidData)) }
    }

    /// Says that the timed repetitions are done.
    pub fn say_done(&mut self) -> io::Result<()> {
        self.0.write_all(&[DONE])
    }

    /// Sends the results; nothing follows.
    pub fn send(mut self, report: &KernelReport) -> io::Result<()> {
        let bytes = wire::encode(report).map_err(io::Error::other)?;
        self.0.write_all(&[RESULTS])?;
        self.0.write_all(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::record::End;
    use std::ffi::OsString;
    use std::path::Path;

    fn shell(script: &str, timeout: Option<Duration>) -> KernelProcess {
        let argv = ["bash", "-c", script].map(OsString::from);
        let program = PreparedProgram::new(Path::new("/bin/bash"), &argv, std::env::vars_os()).unwrap();
        KernelProcess::start(&program, timeout).unwrap()
    }

    #[test]
    fn the_two_processes_take_turns() {
        let report = KernelReport { cpu_ns: [1, 2], ..KernelReport::default() };
        let bytes = wire::encode(&report).unwrap();
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let script = format!("printf r >&3; read -n1 -u3 word; [ $word = g ] && printf 'de{octal}' >&3");
        let mut kernel = shell(&script, Some(Duration::from_secs(60)));
        assert!(kernel.is_ready());
        kernel.go();
        assert!(kernel.is_done());
        assert_eq!(kernel.report(), Some(report));
        assert_eq!(kernel.wait(None).unwrap().end, End::Exited(0));
    }

    #[test]
    fn a_kernel_that_fails_says_why() {
        let failed = KernelResult { failed: Some("no memory".to_owned()), ..KernelResult::default() };
        let bytes =
            wire::encode(&KernelReport { result: failed.clone(), ..KernelReport::default() }).unwrap();
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let mut kernel = shell(&format!("printf 'e{octal}' >&3; exit 1"), None);
        assert!(!kernel.is_ready());
        assert_eq!(kernel.report().map(|report| report.result), Some(failed));
        assert_eq!(kernel.wait(None).unwrap().end, End::Exited(1));
    }

    /// In each phase: while it prepares, in the timed repetitions, and in the check.
    #[test]
    fn a_hardware_exception_is_a_wrong_result() {
        let fault = format!("printf 'f\\013{}' >&3", "\\000".repeat(31));
        let go = "printf r >&3; read -n1 -u3 word; ";
        for phases in [String::new(), go.to_owned(), format!("{go}printf d >&3; ")] {
            let mut kernel = shell(&format!("{phases}{fault}"), Some(Duration::from_secs(60)));
            if kernel.is_ready() {
                kernel.go();
                kernel.is_done();
            }
            let report = kernel.report().unwrap();
            let wrong = report.result.wrong.clone().unwrap();
            assert!(wrong.starts_with("wrong result on hardware thread 0: a wrong pointer"), "{wrong}");
            assert!(wrong.contains("signal 11 at address 0x0"), "{wrong}");
            assert!(report.result.values.is_empty() && report.result.failed.is_none());
            assert_eq!(kernel.wait(None).unwrap().end, End::Exited(0));
        }
    }

    #[test]
    fn a_hardware_exception_among_the_results_is_a_wrong_result() {
        let report = KernelReport { cpu_ns: [1, 2], ..KernelReport::default() };
        let bytes = wire::encode(&report).unwrap();
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        let fault = format!("f\\013{}", "\\000".repeat(31));
        let with_results = |bytes: &str| shell(&format!("printf 'rde{bytes}' >&3"), None);
        for results in [fault.clone(), format!("{octal}{fault}")] {
            let mut kernel = with_results(&results);
            assert!(kernel.is_ready() && kernel.is_done());
            let wrong = kernel.report().unwrap().result.wrong.unwrap();
            assert!(wrong.contains("signal 11 at address 0x0"), "{wrong}");
            kernel.wait(None).unwrap();
        }
        // The kernel has ended while it sent its results.
        let mut kernel = with_results(&"x".repeat(100));
        assert!(kernel.is_ready() && kernel.is_done());
        assert_eq!(kernel.report(), None);
        kernel.wait(None).unwrap();
    }

    #[test]
    fn a_kernel_that_ends_early_or_hangs_is_noticed() {
        let mut crashes = shell("kill -SEGV $$", None);
        assert!(!crashes.is_ready() && crashes.report().is_none());
        assert_eq!(crashes.wait(None).unwrap().end, End::Signaled(libc::SIGSEGV));
        let mut hangs = shell("printf r >&3; exec sleep 600", Some(Duration::from_millis(300)));
        assert!(hangs.is_ready());
        hangs.go();
        assert!(!hangs.is_done());
        let left = hangs.time_left();
        assert!(hangs.wait(left).unwrap().timed_out);
    }
}
