//! Frames: what a carrier writes to the disk at once, and how readers find it again.

use super::SUFFIX;
use crate::counters::counts::Counts;
use crate::counters::expected::ExpectedInstructions;
use crate::counters::requested::AskedFor;
use crate::ids::RankId;
use crate::record::run_file::VERSION;
use crate::record::{Part, RunHeader, wire};
use crate::regions::Whereabouts;
use crate::session::launcher_request::Keep;
use crate::session::live_record::{self, LiveRecord, Phase};
use crate::session::shared_memory::{Blob, SharedMemory};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// An agent's note to its carrier: what the shared memory does not contain otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CarrierNote {
    /// The folder in which rank 0 wants to keep the run.
    pub folder: PathBuf,
    /// What the rank will send to rank 0, still without measured values.
    pub part: Part,
}

/// The run to which a file belongs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The rank whose launcher wrote this. Readers use the entry of the lowest rank.
    pub rank: RankId,
    /// Ranks in the job.
    pub size: u32,
    /// The header from that launcher.
    pub header: RunHeader,
    /// The options that asked for events: see [`crate::record::Run`].
    pub asked: Vec<AskedFor>,
    /// What `--expect` gives.
    pub expected: Vec<ExpectedInstructions>,
}

/// The data of one rank so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptRank {
    /// Its [`LiveRecord`], as it was in memory.
    pub live: Vec<u8>,
    /// Its node, its regions, its counts, and one record with what the live record does not hold.
    pub part: Part,
    /// The region that it is in, if it is in one.
    pub whereabouts: Option<Whereabouts>,
}

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

impl CarrierNote {
    /// The note of the agent that uses this shared memory; `None` if it left none.
    pub fn read(shared: &SharedMemory) -> Option<Self> {
        let told = shared.take(Blob::Kept).ok().filter(|told| !told.is_empty())?;
        wire::decode(&told)
            .ok()
            .filter(|told: &Self| told.part.nodes.len() == 1 && told.part.ranks.len() == 1)
    }

    /// Leaves the note in the shared memory.
    pub fn write(&self, shared: &SharedMemory) -> io::Result<()> {
        shared.put(Blob::Kept, &wire::encode(self).map_err(io::Error::other)?)
    }
}

impl KeptRank {
    /// The data in a rank's shared memory, with its agent's note; `None` before the rank has started its work.
    pub fn of(shared: &SharedMemory, told: &CarrierNote) -> Option<Self> {
        let live = LiveRecord::default();
        shared.live().copy_to(&live);
        if live.phase() < Phase::Started {
            return None;
        }
        let regions = shared.regions().regions(live.rank());
        // Counts that cannot be read are left out.
        let counts = shared.take(Blob::Counted).ok().and_then(|counts| wire::decode::<Counts>(&counts).ok());
        let part = Part { regions, counts: counts.unwrap_or_default(), ..told.part.clone() };
        let whereabouts = shared.regions().whereabouts();
        Some(Self { live: live.to_bytes().to_vec(), part, whereabouts })
    }
}

impl About {
    /// From the launcher of the rank in `shared`. `keep` is the launcher's, `folder` is where the run is kept.
    pub fn of(shared: &SharedMemory, keep: Keep, folder: &Path) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.strip_suffix(SUFFIX)?;
        let Keep { mut header, asked, expected, .. } = keep;
        // Each launcher has its own run id. Rank 0's is valid, and the folder is named after it.
        name.clone_into(&mut header.run_id);
        let live = shared.live();
        Some(Self { rank: live.rank(), size: live.size.load(Relaxed), header, asked, expected })
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
