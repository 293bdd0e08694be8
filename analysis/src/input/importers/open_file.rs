//! Opens files, which may be named pipes.

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a named pipe may have no writer: a script starts both ends at about the same time.
const WAIT: Duration = Duration::from_secs(2);
/// The time between two looks.
const STEP: Duration = Duration::from_millis(20);

/// The content of a file. A named pipe without a writer is an error: opening it would wait without a message.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let is_pipe = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
    // The pipe of a shell, such as /dev/fd/63, is not in the file system, and opening it does not wait.
    if !is_pipe || std::fs::canonicalize(path).is_err() {
        return Ok(Box::new(File::open(path)?));
    }
    let mut pipe = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let first = first_byte(&mut pipe)?;
    // Reading the rest waits for the writer.
    // SAFETY: this changes the flags of a descriptor that `pipe` owns.
    if unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(Box::new(Cursor::new(first).chain(pipe)))
}

/// The first byte of a pipe, or nothing if its writer has not written yet.
fn first_byte(pipe: &mut File) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let mut byte = [0];
    loop {
        match pipe.read(&mut byte) {
            Ok(0) if began.elapsed() > WAIT => return Err(io::Error::other("it is a pipe without a writer")),
            Ok(0) => std::thread::sleep(STEP),
            Ok(_) => return Ok(byte.to_vec()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_named_pipe_needs_a_writer() {
        let name = format!("pmmpi-pipe-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let refused = open(&path).err().map(|e| e.to_string());
        let script = "exec >\"$0\"; sleep 0.2; printf ab; sleep 0.2; printf c";
        let writer = Command::new("sh").args(["-c", script]).arg(&path).spawn();
        let mut text = String::new();
        let read = open(&path).and_then(|mut pipe| pipe.read_to_string(&mut text));
        writer.unwrap().wait().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(refused.as_deref(), Some("it is a pipe without a writer"));
        assert_eq!((read.unwrap(), text.as_str()), (3, "abc"));
    }
}
