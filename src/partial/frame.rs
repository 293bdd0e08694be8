//! What is carried to the disk at once, and how it is found again.

use super::SUFFIX;
use crate::counters::counts::Counts;
use crate::counters::requested::AskedFor;
use crate::record::runfile::VERSION;
use crate::record::{Part, RunHeader, wire};
use crate::regions::Whereabouts;
use crate::session::instructions::Keep;
use crate::session::live_record::{self, LiveRecord, Phase};
use crate::session::shared_memory::{Blob, SharedMemory};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// From an agent to whoever carries: what the shared memory does not say otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CarrierNote {
    /// Where rank 0 wants the run to be kept.
    pub folder: PathBuf,
    /// What the rank will send to rank 0, nothing measured yet.
    pub part: Part,
}

/// Whose run it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The rank whose launcher says so: of several, the lowest is believed.
    pub rank: u32,
    /// Ranks in the job.
    pub size: u32,
    /// As that launcher has it.
    pub header: RunHeader,
    /// What the user asked for, as [`crate::record::Run`] has it.
    pub asked: Vec<AskedFor>,
}

/// One rank, as far as it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptRank {
    /// Its [`LiveRecord`], as it was in memory.
    pub live: Vec<u8>,
    /// Its node, one record with what the live record does not hold, its regions and what it counted.
    pub part: Part,
    /// The region that it is in, if it is in one.
    pub whereabouts: Option<Whereabouts>,
}

/// What is carried at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// In the first frame of a file.
    pub about: Option<About>,
    /// The node's [`crate::record::HostPart`] in wire form, in the first frame of a file.
    pub host: Vec<u8>,
    /// Those that changed since the frame before.
    pub ranks: Vec<KeptRank>,
    /// All nodes' parts, as rank 0 gathered them, where no run could be made of them: [`wire::join`]ed.
    pub gathered: Vec<u8>,
}

impl CarrierNote {
    /// What the agent of shared memory told; `None` where it told nothing.
    pub fn read(shared: &SharedMemory) -> Option<Self> {
        let told = shared.take(Blob::Kept).ok().filter(|told| !told.is_empty())?;
        wire::decode(&told)
            .ok()
            .filter(|told: &Self| told.part.nodes.len() == 1 && told.part.ranks.len() == 1)
    }

    /// To whoever carries.
    pub fn write(&self, shared: &SharedMemory) -> io::Result<()> {
        shared.put(Blob::Kept, &wire::encode(self).map_err(io::Error::other)?)
    }
}

impl KeptRank {
    /// What is in the memory of a rank whose agent told `told`; `None` of one that has not come to t1.
    pub fn of(shared: &SharedMemory, told: &CarrierNote) -> Option<Self> {
        let live = LiveRecord::default();
        shared.live().copy_to(&live);
        if live.phase() < Phase::Started {
            return None;
        }
        let regions = shared.regions().regions(live.rank.load(Relaxed));
        // Counts that nobody can read are none.
        let counts = shared.take(Blob::Counted).ok().and_then(|counts| wire::decode::<Counts>(&counts).ok());
        let part = Part { regions, counts: counts.unwrap_or_default(), ..told.part.clone() };
        let whereabouts = shared.regions().whereabouts();
        Some(Self { live: live.to_bytes().to_vec(), part, whereabouts })
    }
}

impl About {
    /// By the launcher of the rank in `shared`, which knows `keep`, for the run that is kept in `folder`.
    pub fn of(shared: &SharedMemory, keep: Keep, folder: &Path) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        let Keep { mut header, asked, .. } = keep;
        // Each launcher has a number for the run; rank 0's counts.
        name.clone_into(&mut header.run_id);
        let live = shared.live();
        Some(Self { rank: live.rank.load(Relaxed), size: live.size.load(Relaxed), header, asked })
    }
}

/// Before the frame: layout, version, length, checksum.
const HEAD_BYTES: usize = 20;

/// What was found in a file.
pub(super) enum Found {
    Frame(Box<Frame>),
    /// Written by another version of pmmpi.
    OtherVersion,
    /// Written by a later version, with this schema.
    Newer(u32),
}

impl Frame {
    /// As it is in a file.
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

    /// The first one in `bytes`, and what follows it; `None` where there is none.
    pub(super) fn find(mut bytes: &[u8]) -> Option<(Found, &[u8])> {
        loop {
            let at = bytes.windows(8).position(|word| word.starts_with(b"PMMPI\0\0"))?;
            bytes = &bytes[at..];
            if let Some(found) = Self::parse(bytes) {
                return Some(found);
            }
            bytes = &bytes[1..];
        }
    }

    fn parse(bytes: &[u8]) -> Option<(Found, &[u8])> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if live_record::layout_of(head[..8].try_into().ok()?)? != LiveRecord::LAYOUT {
            return Some((Found::OtherVersion, &[]));
        }
        if word(8) > VERSION {
            return Some((Found::Newer(word(8)), &[]));
        }
        let (payload, rest) = rest.split_at_checked(word(12) as usize)?;
        let frame = (crc32fast::hash(payload) == word(16)).then(|| wire::decode(payload).ok()).flatten()?;
        Some((Found::Frame(Box::new(frame)), rest))
    }
}
