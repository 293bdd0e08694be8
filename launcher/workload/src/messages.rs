//! Messages on stderr.

use pmmpi::text::printable;
use std::fmt::Display;
use std::io::Write;

/// Prints a message in one write, so that messages of several ranks do not mix. Ignores a failed write.
pub fn say(message: impl Display) {
    let _ = std::io::stderr().write_all(line(message).as_bytes());
}

/// Prints a warning: something that the user should know but that does not stop pmmpi.
pub fn warn(message: impl Display) {
    say(format_args!("warning: {message}"));
}

/// The line of a message.
pub(crate) fn line(message: impl Display) -> String {
    format!("pmmpi: {}\n", printable(&message.to_string()))
}
