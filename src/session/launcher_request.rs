//! What the `pmmpi` process of a rank asks of the agent in the rank's program. Rank 0's request applies to all ranks:
//! if ranks did different things, they would wait for each other forever.

use crate::counters::expected::ExpectedInstructions;
use crate::counters::requested::AskedFor;
use crate::record::{RunHeader, wire};
use crate::transport::collectives;
use crate::transport::fabric::{Fabric, FabricError};
use crate::transport::node_meeting::Meeting;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From a launcher to its agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LauncherRequest {
    /// Where to keep the run while it runs, if at all.
    pub keep: Option<Keep>,
    /// What ranks do beside the barriers.
    pub extras: Extras,
    /// Number of ranks on this node, if the launcher of the ranks reports it.
    pub local_ranks: Option<u32>,
}

/// Where to keep a run while it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Keep {
    /// Its own folder. The first process that has something to keep creates it.
    pub folder: PathBuf,
    /// The header of the run.
    pub header: RunHeader,
    /// The options that asked for events: see [`crate::record::Run`].
    pub asked: Vec<AskedFor>,
    /// What `--expect` gives.
    pub expected: Vec<ExpectedInstructions>,
}

/// What ranks do together beside the barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    /// Pings with the hub.
    pub pings: bool,
    /// Which calls of the program make regions.
    pub marks: Marks,
    /// [`crate::transport::fabric::Fabric::prepare_end`]: worth its cost if ranks have several clocks. With one
    /// clock the bounds are exact.
    pub tight_end: bool,
}

/// Which calls make regions. Each region has barriers of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marks {
    /// Nothing.
    #[default]
    Off,
    /// pmmpi_begin and pmmpi_end.
    Names,
    /// MPI_Pcontrol as well.
    NamesAndNumbers,
}

/// What rank 0 asks of all ranks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SharedRequest {
    /// Where to keep the run while it runs, if at all.
    pub folder: Option<PathBuf>,
    /// The extras that rank 0's launcher asks for.
    pub extras: Extras,
    /// Where the ranks of each node leave their measurements.
    pub meeting: Meeting,
}

impl SharedRequest {
    /// Collective: returns rank 0's request on every rank.
    pub fn share<F: Fabric>(fabric: &mut F, say: impl FnOnce() -> Self) -> Result<Self, FabricError> {
        let said = if fabric.rank() == 0 { say() } else { Self::default() };
        // Encoding into memory does not fail. All ranks run the same version, so decoding does not fail either.
        let told = collectives::spread(fabric, wire::encode(&said).unwrap_or_default())?;
        Ok(wire::decode(&told).unwrap_or_default())
    }
}
