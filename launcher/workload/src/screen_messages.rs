//! What the runner of rank 0 tells the `pmmpi` process that supervises the screen. This process still knows it if the
//! runner is killed.
//!
//! Each message has its length in four bytes, then its wire form.

use crate::failure::Failure;
use pmmpi::record::wire;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

/// A message to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    /// This work begins, such as "round 2 of the kernel triad".
    Begins(String),
    /// This run is saved.
    Saved(PathBuf),
    /// No more rounds follow.
    Ended(RoundsEnd),
}

/// How the rounds ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct RoundsEnd {
    /// The signal that ended them early.
    pub stopped_by: Option<i32>,
    /// What ended them early.
    pub failure: Option<Failure>,
}

/// The end of the pipe in the process of rank 0. Without a launcher that supervises, it says nothing.
pub struct Teller(Option<File>);

impl Teller {
    /// Takes this descriptor, which no child inherits from now on.
    pub fn new(descriptor: Option<RawFd>) -> Self {
        Self(descriptor.map(|descriptor| {
            // SAFETY: the launcher opened it for this process, which uses it only here.
            let pipe = unsafe {
                libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
                OwnedFd::from_raw_fd(descriptor)
            };
            File::from(pipe)
        }))
    }

    /// Tells the launcher. If the launcher has ended, [`crate::rank_watch`] notices it.
    pub fn tell(&mut self, told: &Told) {
        if let Some(pipe) = &mut self.0 {
            let bytes = wire::encode(told).unwrap_or_default();
            let length = u32::try_from(bytes.len()).unwrap_or_default().to_le_bytes();
            let _ = pipe.write_all(&[&length, &bytes[..]].concat());
        }
    }
}

/// The launcher's end of the pipe.
pub struct Hearer<R> {
    pipe: R,
    bytes: Vec<u8>,
}

impl<R: Read> Hearer<R> {
    /// Of a pipe that has only messages of a [`Teller`].
    pub fn new(pipe: R) -> Self {
        Self { pipe, bytes: Vec::new() }
    }

    /// The pipe.
    pub fn pipe(&self) -> &R {
        &self.pipe
    }

    /// Waits for something to read, and gives the messages that are complete; `None` after the last one.
    pub fn hear(&mut self) -> Option<Vec<Told>> {
        let mut part = [0; 4096];
        match self.pipe.read(&mut part) {
            Ok(0) => return None,
            Ok(read) => self.bytes.extend_from_slice(&part[..read]),
            Err(e)
                if matches!(e.kind(), std::io::ErrorKind::Interrupted | std::io::ErrorKind::WouldBlock) => {}
            Err(_) => return None,
        }
        let mut all = Vec::new();
        while let Some((length, rest)) = self.bytes.split_first_chunk() {
            let Some((message, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else {
                break;
            };
            all.extend(wire::decode(message).ok());
            self.bytes = rest.to_vec();
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::pipe;
    use std::os::fd::IntoRawFd;

    #[test]
    fn the_launcher_hears_each_message_whatever_the_parts_in_which_it_comes() {
        let (reader, writer) = pipe().expect("a pipe");
        let mut teller = Teller::new(Some(OwnedFd::from(writer).into_raw_fd()));
        teller.tell(&Told::Begins("round 1 of the kernel triad".to_owned()));
        let file = PathBuf::from(format!("/{}", "long".repeat(3000)));
        teller.tell(&Told::Saved(file.clone()));
        teller.tell(&Told::Ended(RoundsEnd { stopped_by: Some(15), failure: Some(Failure::own("full")) }));
        drop(teller);
        let mut hearer = Hearer::new(reader);
        let mut all = Vec::new();
        while let Some(some) = hearer.hear() {
            all.extend(some);
        }
        let [Told::Begins(work), Told::Saved(saved), Told::Ended(ending)] = &all[..] else {
            panic!("{all:?}")
        };
        assert_eq!((work.as_str(), saved), ("round 1 of the kernel triad", &file));
        assert_eq!(ending.stopped_by, Some(15));
        assert_eq!(ending.failure.as_ref().expect("a failure").message, "full");
    }
}
