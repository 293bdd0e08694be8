//! What a kernel prints: an anonymous file takes it until the kernel has ended.
//!
//! mpirun ends only when all processes have closed its pipes for stdout and stderr. A kernel that no signal ends would
//! keep them open, and the job would not end.

use crate::messages;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::FileExt;

/// A kernel prints hardly anything: only its libraries do, and Rust before a crash.
const MOST_BYTES: usize = 64 << 10;

/// Stdout and stderr of a kernel.
pub(crate) struct KernelOutput(File);

impl KernelOutput {
    pub fn new() -> io::Result<Self> {
        // SAFETY: the name is a live C string.
        let fd = unsafe { libc::memfd_create(c"kernel-output".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nothing else owns.
        Ok(Self(unsafe { File::from_raw_fd(fd) }))
    }

    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Prints on stderr what the kernel has printed, because stdout belongs to the report.
    pub fn print(&self) {
        let _ = io::stderr().write_all(&self.shown());
    }

    /// Of much output only the beginning, and how much is missing.
    fn shown(&self) -> Vec<u8> {
        let mut bytes = vec![0; MOST_BYTES];
        // The kernel may still be there, so its position in the file must not move.
        let read = self.0.read_at(&mut bytes, 0).unwrap_or(0);
        bytes.truncate(read);
        let printed = self.0.metadata().map_or(0, |about| about.len());
        let missing = printed.saturating_sub(read as u64);
        if missing > 0 {
            bytes.push(b'\n');
            let told =
                messages::line(format_args!("the kernel printed {missing} more bytes, which are not shown"));
            bytes.extend_from_slice(told.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_what_was_printed() {
        let output = KernelOutput::new().unwrap();
        let mut writer = File::from(output.file().try_clone_to_owned().unwrap());
        writer.write_all(b"one").unwrap();
        output.print();
        writer.write_all(b", two").unwrap();
        assert_eq!(output.shown(), b"one, two");
    }

    #[test]
    fn what_is_missing_is_told() {
        let output = KernelOutput::new().unwrap();
        let mut writer = File::from(output.file().try_clone_to_owned().unwrap());
        writer.write_all(&[b'x'; MOST_BYTES]).unwrap();
        assert_eq!(output.shown(), [b'x'; MOST_BYTES]);
        writer.write_all(b"more").unwrap();
        let shown = output.shown();
        assert!(shown.starts_with(&[b'x'; MOST_BYTES]));
        assert_eq!(&shown[MOST_BYTES..], b"\npmmpi: the kernel printed 4 more bytes, which are not shown\n");
    }
}
