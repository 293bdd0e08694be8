//! What can go wrong in a kernel.

use std::fmt;
use std::io;

/// An error of a kernel.
#[derive(Debug)]
pub enum Error {
    /// The hardware computed, stored or loaded a wrong value. A repetition with a wrong result has no time.
    Wrong(Wrong),
    /// A setting that the kernel cannot use: what, and what to do.
    Setting(String),
    /// The system refused something.
    System {
        /// What the kernel could not do, and where.
        what: String,
        /// The system's reason.
        reason: io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// A failure of the kernel itself.
    Internal(String),
}

/// A wrong result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The hardware thread that computed or checked the result.
    pub hardware_thread: u32,
    /// What holds the wrong value: an array, a matrix, a register, a file.
    pub of: String,
    /// The number of the first wrong element.
    pub element: u64,
    /// The value that the element must have.
    pub expected: String,
    /// The value that it has.
    pub found: String,
    /// How many elements are wrong, as far as the check counted them.
    pub wrong_count: u64,
}

impl Error {
    /// The system refused `what`; the reason is `errno`.
    pub(crate) fn last_os(what: impl Into<String>, advice: &'static str) -> Self {
        Self::System { what: what.into(), reason: io::Error::last_os_error(), advice }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Wrong(wrong) => wrong.fmt(f),
            Error::Setting(text) => f.write_str(text),
            Error::System { what, reason, advice } => write!(f, "{what}: {reason}; {advice}"),
            Error::Internal(text) => write!(f, "{text}; this is a bug in pmmpi, please report it"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::System { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { hardware_thread, of, element, expected, found, wrong_count } = self;
        write!(
            f,
            "wrong result on hardware thread {hardware_thread}: element {element} of {of} is {found}, \
             expected {expected}"
        )?;
        if *wrong_count > 1 {
            write!(f, " ({wrong_count} elements are wrong)")?;
        }
        write!(
            f,
            "; take this node out of service and test its processor and memory (kernel `disk`: also the disk)"
        )
    }
}

impl From<Wrong> for Error {
    fn from(wrong: Wrong) -> Self {
        Error::Wrong(wrong)
    }
}

/// A double with its bits, which show a flipped bit that a decimal number hides.
pub(crate) fn double(value: f64) -> String {
    format!("{value:?} (0x{:016x})", value.to_bits())
}
