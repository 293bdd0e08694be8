//! Writes the result of a command to stdout. In a measurement, stdout belongs to the program.

use pmmpi_workload::Failure;
use std::io::{ErrorKind, Write};

/// Columns of the terminal that stdout is; `None` for a pipe or a file, whose lines stay whole for grep and awk.
pub fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0)).filter(|width| *width > 0)
}

/// On a terminal, text that fits its width.
pub fn folded(text: String) -> String {
    width().map(|width| pmmpi::text::folded(&text, width)).unwrap_or(text)
}

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
