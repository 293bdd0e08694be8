//! What raises a flag of a run or of a region, as data.

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
    UnboundRanks(Few<RankId>),
    /// Ranks that are bound to hardware threads that other ranks may use, too.
    OverlappingRanks(Few<RankId>),
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
    MovedRanks(Few<RankId>),
    /// Facts in which nodes of the run differ.
    UnequalNodes(Few<UnequalFact>),
    /// Metrics that were counted for a small part of the time, by name.
    LowRunningShare(Few<String>),
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

/// The first of some things, and how many there are: a run may have a million ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Few<T> {
    /// The first ones.
    pub first: Vec<T>,
    /// Number of all.
    pub count: usize,
}

/// A fact that has different values on nodes of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct UnequalFact {
    /// Its name.
    pub name: String,
    /// The value that most nodes have.
    pub usual: String,
    /// The most frequent other values, each with its nodes.
    pub others: Vec<(String, Few<String>)>,
}
