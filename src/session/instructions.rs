//! What a launcher wants of the agent in its rank. Rank 0's instructions are those of all: ranks that did not do the
//! same would wait for one another.

use crate::counters::requested::AskedFor;
use crate::record::{RunHeader, wire};
use crate::transport::collectives;
use crate::transport::fabric::{Fabric, FabricError};
use crate::transport::node_meeting::Meeting;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From a launcher to its agent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentInstructions {
    /// Where the run is kept while it runs, if it is.
    pub keep: Option<Keep>,
    /// Beside the barriers.
    pub extras: Extras,
    /// Ranks on this node, where the launcher of the ranks says it.
    pub local_ranks: Option<u32>,
}

/// Where a run is to be kept while it runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Keep {
    /// A folder of its own, made by whoever has something to keep first.
    pub folder: PathBuf,
    /// What is known of the run.
    pub header: RunHeader,
    /// What the user asked for, as [`crate::record::Run`] has it.
    pub asked: Vec<AskedFor>,
}

/// What ranks do together beside the barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extras {
    /// Pings with the hub.
    pub pings: bool,
    /// Regions of the program's.
    pub marks: Marks,
    /// [`crate::transport::fabric::Fabric::prepare_end`]: worth its cost where ranks have several clocks. Of one clock bounds are exact.
    pub tight_end: bool,
}

/// What makes regions: each has barriers of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Marks {
    /// Nothing.
    #[default]
    Off,
    /// pmmpi_begin and pmmpi_end.
    Names,
    /// MPI_Pcontrol, too.
    NamesAndNumbers,
}

/// From rank 0 to all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Instructions {
    /// Where the run is kept while it runs, if it is.
    pub folder: Option<PathBuf>,
    /// As the launcher of rank 0 wants it.
    pub extras: Extras,
    /// Where the ranks of each node leave what they measured.
    pub meeting: Meeting,
}

impl Instructions {
    /// Collective: on every rank what rank 0 says.
    pub fn share<F: Fabric>(fabric: &mut F, say: impl FnOnce() -> Self) -> Result<Self, FabricError> {
        let said = if fabric.rank() == 0 { say() } else { Self::default() };
        // An encoder for a memory buffer does not fail, nor do ranks of one tool misunderstand one another.
        let told = collectives::spread(fabric, wire::encode(&said).unwrap_or_default())?;
        Ok(wire::decode(&told).unwrap_or_default())
    }
}
