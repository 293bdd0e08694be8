//! Writes the result of a command to stdout. In a measurement, stdout belongs to the program.

use pmmpi_workload::Failure;
use std::io::{ErrorKind, Write};

/// Writes `text` in one write, so that the output of several nodes does not mix. A reader that closes the pipe early
/// (`| head`) is not an error.
pub fn write(text: &str) -> Result<(), Failure> {
    // Otherwise a closed pipe would end this process by a signal, and the exit status would be lost.
    // SAFETY: sets a disposition; no handler is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::unwritten(&e)),
        _ => Ok(()),
    }
}
