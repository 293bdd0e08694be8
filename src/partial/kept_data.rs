//! What a carrier keeps: the data of the ranks of its node, and the run to which they belong.

use super::SUFFIX;
use crate::counters::counts::Counts;
use crate::counters::expected::ExpectedInstructions;
use crate::counters::requested::AskedFor;
use crate::ids::RankId;
use crate::record::{Part, RunHeader, wire};
use crate::regions::Whereabouts;
use crate::session::launcher_request::Keep;
use crate::session::live_record::{LiveRecord, Phase};
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
