//! The messages between the `pmmpi` processes of a node and the carrier. Only the wait for an answer blocks.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A message from a follower to its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CarrierWord {
    /// Registers a rank. The message carries the descriptor of its shared memory and, if this launcher has reserved
    /// disk space, of that file.
    Here = b'h',
    /// The rank ended badly; the launcher waits for an answer.
    Ended = b'e',
}

/// The answer to [`CarrierWord::Ended`].
#[derive(Debug, PartialEq, Eq)]
pub enum CarrierAnswer {
    /// The rank's data was written, or why not.
    Is(Result<(), String>),
    /// The leader lives but has not answered in time.
    Late,
    /// The leader has ended.
    Gone,
}

/// The answer if all went well; any other answer is an error text.
const KEPT: &[u8] = b"\0";
const LONGEST_ANSWER: usize = 512;
const MOST_FILES: usize = 2;
/// Space for a header and [`MOST_FILES`] descriptors, rounded up.
const CONTROL_WORDS: usize = 8;

/// Sends `words` and at most [`MOST_FILES`] descriptors (unix(7), SCM_RIGHTS).
pub fn send(to: &UnixStream, words: &[CarrierWord], files: &[RawFd]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().map(|word| *word as u8).collect();
    let mut control = [0u64; CONTROL_WORDS];
    let mut data = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: an all-zero msghdr is valid; the buffers outlive the call; the control buffer is aligned and large
    // enough.
    let sent = unsafe {
        let mut message: libc::msghdr = zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut data, 1);
        if let (1.., true) = (files.len(), files.len() <= MOST_FILES) {
            let length = size_of_val(files) as libc::c_uint;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(length) as _;
            let header = &mut *libc::CMSG_FIRSTHDR(&message);
            (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            header.cmsg_len = libc::CMSG_LEN(length) as _;
            std::ptr::copy_nonoverlapping(files.as_ptr(), libc::CMSG_DATA(header).cast(), files.len());
        }
        libc::sendmsg(to.as_raw_fd(), &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// The new words of a follower and the descriptors that came with them; empty if there is nothing new, `None` after the
/// follower has closed the connection.
pub fn receive(from: &UnixStream) -> io::Result<Option<(Vec<u8>, Vec<File>)>> {
    let mut bytes = [0u8; 16];
    let mut control = [0u64; CONTROL_WORDS];
    let mut files = Vec::new();
    let mut data = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: as in `send`; each received descriptor is new, and nothing else owns it.
    let received = unsafe {
        let mut message: libc::msghdr = zeroed();
        (message.msg_iov, message.msg_iovlen) = (&mut data, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        let received = libc::recvmsg(from.as_raw_fd(), &mut message, flags);
        let mut header = if received >= 0 { libc::CMSG_FIRSTHDR(&message) } else { std::ptr::null_mut() };
        while let Some(control) = header.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let length = control.cmsg_len - libc::CMSG_LEN(0) as usize;
                let came = libc::CMSG_DATA(control).cast::<RawFd>();
                for at in 0..length / size_of::<RawFd>() {
                    files.push(File::from(OwnedFd::from_raw_fd(came.add(at).read_unaligned())));
                }
            }
            header = libc::CMSG_NXTHDR(&message, header);
        }
        received
    };
    match usize::try_from(received) {
        Ok(0) => Ok(None),
        Ok(received) => Ok(Some((bytes[..received].to_vec(), files))),
        Err(_) => match io::Error::last_os_error() {
            e if e.kind() == ErrorKind::WouldBlock => Ok(Some((Vec::new(), files))),
            e => Err(e),
        },
    }
}

/// Answers a follower. Errors are ignored: a follower that has ended needs no answer.
pub fn reply(to: &UnixStream, kept: &Result<(), String>) {
    let bytes = match kept {
        Ok(()) => KEPT,
        Err(why) => why.as_bytes(),
    };
    let bytes = &bytes[..bytes.len().min(LONGEST_ANSWER)];
    // SAFETY: the bytes are live.
    unsafe {
        libc::send(
            to.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    };
}

/// Waits for the leader's answer until `deadline`. `from` must not block.
pub fn answer(mut from: &UnixStream, deadline: Instant) -> CarrierAnswer {
    loop {
        let mut answer = [0; LONGEST_ANSWER];
        match from.read(&mut answer) {
            Ok(0) => return CarrierAnswer::Gone,
            Ok(length) if &answer[..length] == KEPT => return CarrierAnswer::Is(Ok(())),
            Ok(length) => {
                return CarrierAnswer::Is(Err(String::from_utf8_lossy(&answer[..length]).into_owned()));
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return CarrierAnswer::Gone,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return CarrierAnswer::Late;
        }
        let mut poll = [libc::pollfd { fd: from.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
        wait(&mut poll, left);
    }
}

/// Sleeps until one of the descriptors is ready, at most for `longest`.
pub fn wait(poll: &mut [libc::pollfd], longest: Duration) {
    let ms = libc::c_int::try_from(longest.as_millis() + 1).unwrap_or(libc::c_int::MAX);
    // SAFETY: the pointer and the length are those of a live slice. After an interruption, the caller looks once more.
    unsafe { libc::poll(poll.as_mut_ptr(), poll.len() as libc::nfds_t, ms) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    #[test]
    fn words_and_files_come_as_they_went() {
        let (one, other) = UnixStream::pair().unwrap();
        [&one, &other].iter().for_each(|end| end.set_nonblocking(true).unwrap());
        assert!(receive(&other).unwrap().unwrap().1.is_empty(), "nothing came, and no process waits");
        let path = std::env::temp_dir().join(format!("test-handing-{}", std::process::id()));
        let mut file = File::options().create_new(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.write_all(b"shared").unwrap();
        send(&one, &[CarrierWord::Here], &[file.as_raw_fd(), file.as_raw_fd()]).unwrap();
        send(&one, &[CarrierWord::Ended], &[]).unwrap();
        let (mut words, mut files) = receive(&other).unwrap().unwrap();
        while words.len() < 2 {
            words.extend(receive(&other).unwrap().unwrap().0);
        }
        assert_eq!((words, files.len()), (vec![CarrierWord::Here as u8, CarrierWord::Ended as u8], 2));
        let mut text = String::new();
        files[0].rewind().unwrap();
        files[0].read_to_string(&mut text).unwrap();
        assert_eq!(text, "shared");
        let soon = || Instant::now() + Duration::from_secs(60);
        reply(&other, &Ok(()));
        assert_eq!(answer(&one, soon()), CarrierAnswer::Is(Ok(())));
        reply(&other, &Err("full".to_owned()));
        assert_eq!(answer(&one, soon()), CarrierAnswer::Is(Err("full".to_owned())));
        assert_eq!(answer(&one, Instant::now()), CarrierAnswer::Late);
        drop(other);
        assert_eq!(answer(&one, soon()), CarrierAnswer::Gone);
        assert!(send(&one, &[CarrierWord::Here], &[]).is_err());
    }
}
