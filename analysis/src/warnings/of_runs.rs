//! Warnings about one run of pmmpi.

use super::{FirstFew, WarningCode};
use pmmpi::RankId;
use pmmpi::counters::requested::Uncounted;
use pmmpi::regions::Whereabouts;

/// A warning about one run of pmmpi. Nodes are host names.
#[derive(Clone, Debug, PartialEq)]
pub enum RunWarning {
    /// The program failed on a rank, or a node was lost.
    FailedRun {
        /// The rank that best explains this, its node and its end.
        reason: String,
    },
    /// Not every rank reached the end barrier.
    IncompleteRun {
        /// All ranks.
        ranks: u32,
        /// Ranks that reached the end barrier.
        completed: usize,
        /// Ranks that did not, but left data.
        lost: usize,
        /// Ranks that left no data.
        unknown: usize,
    },
    /// MPI saw fewer ranks than the launcher started.
    SeparateJobs {
        /// How many ranks both saw, and what to do about it.
        reason: String,
    },
    /// The run has no record of the hardware of some nodes.
    NodeUnknown {
        /// These nodes.
        nodes: Vec<String>,
    },
    /// The same facts of some nodes changed after pmmpi had read them.
    NodeChanged {
        /// These nodes.
        nodes: FirstFew<String>,
        /// What changed, as the run file says it.
        changed: String,
    },
    /// A rank has no time stamps.
    NoStamps {
        /// The first such rank.
        rank: RankId,
    },
    /// The stamps of the nodes contradict one another.
    InconsistentClocks {
        /// The largest rate error that the bounds allow for (parts per million).
        max_drift_ppm: f64,
        /// The least rate error that explains the stamps (parts per million); `None` if no rate error does.
        least_ppm: Option<f64>,
        /// Nodes whose clocks disagree with the others.
        suspects: Vec<String>,
    },
    /// The two bounds of the elapsed time are far apart.
    WideBounds {
        /// The lower bound (ns).
        lower_ns: i64,
        /// The upper bound (ns).
        upper_ns: i64,
    },
    /// pmmpi itself took a part of the job's time that matters.
    Overhead {
        /// This time (ns).
        overhead_ns: i64,
    },
    /// The rate error of a clock was larger than the user allows.
    SlewedClock {
        /// The node with the largest rate error.
        node: String,
        /// Its rate error (parts per million); above zero if the clock was too fast.
        slew_ppm: f64,
        /// The largest rate error that the bounds allow for (parts per million).
        max_drift_ppm: f64,
    },
    /// The other nodes waited for one node at the end barrier.
    LateNode {
        /// This node.
        node: String,
        /// Its last rank.
        rank: RankId,
        /// Number of the other nodes.
        others: usize,
        /// How much later the node came than all others: lower and upper bound (s).
        lateness_s: [f64; 2],
        /// The lower bound as a fraction of the elapsed time.
        share: f64,
    },
    /// pmmpi did not count some entries of regions.
    RegionsLeftOut {
        /// Number of these entries.
        entries: u64,
    },
    /// The program paused its regions with MPI_Pcontrol(0).
    Paused {
        /// Number of the ranks that paused.
        paused: usize,
        /// All ranks.
        ranks: u32,
        /// The rank with the longest pause.
        longest_rank: RankId,
        /// Its pause (ns).
        longest_ns: i64,
    },
    /// `--expect` names regions or probes that the program never entered.
    ExpectedOfNothing {
        /// These names.
        parts: Vec<String>,
    },
    /// The job ended while ranks were in a region.
    EndedInRegion {
        /// Where the ranks were. Each place occurs once.
        places: Vec<RanksAtEnd>,
    },
    /// pmmpi did not record some entries of probes.
    ProbesLeftOut {
        /// Number of these entries.
        entries: u64,
    },
    /// Some events that the user requested have no count.
    UncountedEvents {
        /// These events, with the reasons.
        uncounted: Vec<Uncounted>,
    },
    /// `pmmpi validate` found that some events do not count what their names say.
    UnusableCounters {
        /// The names of these events.
        events: Vec<String>,
    },
}

/// The ranks that were at one place when the job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct RanksAtEnd {
    /// The place; `None` if the ranks were in no region.
    pub place: Option<Whereabouts>,
    /// These ranks.
    pub ranks: FirstFew<RankId>,
}

impl RunWarning {
    /// The kind of warning.
    pub fn code(&self) -> WarningCode {
        match self {
            Self::FailedRun { .. } => WarningCode::FailedRun,
            Self::IncompleteRun { .. } => WarningCode::IncompleteRun,
            Self::SeparateJobs { .. } => WarningCode::SeparateJobs,
            Self::NodeUnknown { .. } => WarningCode::NodeUnknown,
            Self::NodeChanged { .. } => WarningCode::NodeChanged,
            Self::NoStamps { .. } => WarningCode::NoStamps,
            Self::InconsistentClocks { .. } => WarningCode::InconsistentClocks,
            Self::WideBounds { .. } => WarningCode::WideBounds,
            Self::Overhead { .. } => WarningCode::Overhead,
            Self::SlewedClock { .. } => WarningCode::SlewedClock,
            Self::LateNode { .. } => WarningCode::LateNode,
            Self::RegionsLeftOut { .. } => WarningCode::RegionsLeftOut,
            Self::Paused { .. } => WarningCode::Paused,
            Self::ExpectedOfNothing { .. } => WarningCode::ExpectedOfNothing,
            Self::EndedInRegion { .. } => WarningCode::EndedInRegion,
            Self::ProbesLeftOut { .. } => WarningCode::ProbesLeftOut,
            Self::UncountedEvents { .. } => WarningCode::UncountedEvents,
            Self::UnusableCounters { .. } => WarningCode::UnusableCounters,
        }
    }
}
