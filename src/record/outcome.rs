//! How a rank's work ends.

use serde::{Deserialize, Serialize};

/// How one rank's work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// An MPI program that reached MPI_Finalize.
    Finalized,
    /// A program that returned this exit code; an MPI program after MPI_Finalize.
    Exited(i32),
    /// A program that this signal ended; an MPI program after MPI_Finalize.
    Signaled(i32),
    /// A plain program that could not be started: the errno of the exec.
    NotStarted(i32),
    /// A program that ended well after this signal asked it to end: it may not have done all its work.
    Interrupted(i32),
    /// An MPI program that called MPI_Abort with this code.
    Aborted(i32),
    /// A program that the tool ended after the user's time limit.
    TimedOut,
    /// A rank whose end no launcher has seen: its launcher was killed, or still runs.
    Lost,
}

impl End {
    /// This end; if it is a success that `signal` had asked for, [`End::Interrupted`].
    pub fn asked_for_by(self, signal: Option<i32>) -> Self {
        match signal {
            Some(signal) if self.is_success() => End::Interrupted(signal),
            _ => self,
        }
    }

    /// How likely it is that another rank's end caused this one; 0 is the least likely. If one rank of a job fails,
    /// a launcher ends all ranks by SIGTERM and SIGKILL, MPICH's gforker by SIGINT and SIGQUIT.
    pub(crate) fn follows(self) -> u32 {
        match self {
            End::Aborted(_) | End::NotStarted(_) => 0,
            End::Exited(code) if code != 0 => 1,
            End::Signaled(libc::SIGTERM | libc::SIGINT | libc::SIGQUIT) => 4,
            End::Signaled(libc::SIGKILL) => 3,
            End::Signaled(_) => 1,
            End::TimedOut => 2,
            End::Interrupted(_) => 5,
            End::Lost => 6,
            End::Finalized | End::Exited(_) => 7,
        }
    }

    /// True for ends that a launcher causes after another rank has failed. (A launcher also uses SIGKILL, but so
    /// does a kernel that has no memory left.)
    pub(crate) fn is_brought_about(self) -> bool {
        matches!(self, End::Signaled(libc::SIGTERM) | End::Interrupted(_))
    }

    /// True for the ends of a healthy program.
    pub fn is_success(self) -> bool {
        matches!(self, End::Finalized | End::Exited(0))
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Finalized => f.write_str("finalized"),
            End::Exited(code) => write!(f, "exited {code}"),
            End::Signaled(signal) => write!(f, "signal {signal}"),
            End::Interrupted(signal) => write!(f, "interrupted by signal {signal}"),
            End::Aborted(code) => write!(f, "aborted with {code}"),
            End::TimedOut => f.write_str("timed out"),
            End::Lost => f.write_str("lost"),
            End::NotStarted(errno) => write!(f, "not started, errno {errno}"),
        }
    }
}
