//! What raises a flag of a run or of a region, as data.

use crate::warnings::FirstFew;
use pmmpi::RankId;

/// What raises a flag.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A rule over metrics.
    Rule {
        /// The rule's own text.
        text: &'static str,
    },
    /// Anything else.
    Run(RunFinding),
}

/// What raises a flag, except the rules over metrics.
#[derive(Clone, Debug, PartialEq)]
pub enum RunFinding {
    /// Ranks that may run on all hardware threads of their node.
    UnboundRanks(FirstFew<RankId>),
    /// Ranks that are bound to hardware threads that other ranks may use, too.
    OverlappingRanks(FirstFew<RankId>),
    /// The ranks of a node share cores.
    MoreRanksThanCores {
        /// The first such node: its host name.
        node: String,
        /// Number of its ranks.
        ranks: usize,
        /// Number of the cores that these ranks may use.
        cores: usize,
        /// Number of the hardware threads that these ranks may use.
        hardware_threads: usize,
        /// Number of the other such nodes.
        more_nodes: usize,
    },
    /// Ranks that began and ended on different cores.
    MovedRanks(FirstFew<RankId>),
    /// Facts in which nodes of the run differ.
    UnequalNodes(FirstFew<UnequalFact>),
    /// Metrics that were counted for a small part of the time, by name.
    LowRunningShare(FirstFew<String>),
    /// Cores were slower than the frequency that they could reach.
    BelowTurboStep {
        /// Mean frequency of all cores while they were active (Hz).
        hz: f64,
        /// The frequency that the cores could reach on the socket of which least may be expected (Hz).
        expected_hz: f64,
        /// This frequency is the turbo step for so many active cores per socket. `None` if it is the highest frequency
        /// that is set.
        active_cores: Option<usize>,
        /// The node of this socket: its host name.
        node: String,
    },
    /// The entries of a region are too short for the reads of its counters.
    ShortEntries {
        /// Mean time of an entry (ns).
        mean_entry_ns: f64,
    },
}

/// A fact that has different values on nodes of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct UnequalFact {
    /// Its name.
    pub name: String,
    /// The value that most nodes have.
    pub usual: String,
    /// The most frequent other values, each with its nodes.
    pub others: Vec<(String, FirstFew<String>)>,
}
