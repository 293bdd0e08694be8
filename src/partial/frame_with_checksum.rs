//! Frames: what a carrier writes to the disk at once, and how readers find it again.

use super::kept_data::{About, KeptRank};
use crate::record::run_file::VERSION;
use crate::record::wire;
use crate::session::live_record::{self, LiveRecord};
use serde::{Deserialize, Serialize};
use std::io;

/// What a carrier writes at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// In the first frame of a file.
    pub about: Option<About>,
    /// The node's [`crate::record::HostPart`] in wire form, in the first frame of a file.
    pub host: Vec<u8>,
    /// The ranks that changed since the previous frame.
    pub ranks: Vec<KeptRank>,
    /// The parts of all nodes that rank 0 gathered, joined with [`wire::join`]. Used only if rank 0 could not make
    /// a run from them.
    pub gathered: Vec<u8>,
}

/// Before the frame: layout, version, length, checksum.
const HEAD_BYTES: usize = 20;

/// What was found in a file.
pub(super) enum FoundFrame {
    Frame(Box<Frame>),
    /// Written by another version of pmmpi.
    OtherVersion,
    /// Written by a later version, with this schema.
    Newer(u32),
}

impl Frame {
    /// The frame as it is in a file.
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let payload = wire::encode(self).map_err(io::Error::other)?;
        let length = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + payload.len());
        bytes.extend_from_slice(&LiveRecord::LAYOUT.to_le_bytes());
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        Ok(bytes)
    }

    /// The first frame in `bytes`, and what follows it; `None` if there is none.
    pub(super) fn find(mut bytes: &[u8]) -> Option<(FoundFrame, &[u8])> {
        loop {
            let at = bytes.windows(8).position(|word| word.starts_with(b"PMMPI\0\0"))?;
            bytes = &bytes[at..];
            if let Some(found) = Self::parse(bytes) {
                return Some(found);
            }
            bytes = &bytes[1..];
        }
    }

    fn parse(bytes: &[u8]) -> Option<(FoundFrame, &[u8])> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if live_record::layout_of(head[..8].try_into().ok()?)? != LiveRecord::LAYOUT {
            return Some((FoundFrame::OtherVersion, &[]));
        }
        if word(8) > VERSION {
            return Some((FoundFrame::Newer(word(8)), &[]));
        }
        let (payload, rest) = rest.split_at_checked(word(12) as usize)?;
        let frame = (crc32fast::hash(payload) == word(16)).then(|| wire::decode(payload).ok()).flatten()?;
        Some((FoundFrame::Frame(Box::new(frame)), rest))
    }
}
