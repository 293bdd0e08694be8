//! Warnings about the nodes and runs of a class.

use super::{FirstFew, WarningCode};
use pmmpi::counters::open_counters::Scope;

/// A warning about the nodes and runs of a class, or of several classes. A session that is `None` stands for the runs
/// without a session.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassWarning {
    /// The nodes form two groups.
    Bimodal {
        /// Number of fast nodes.
        fast: usize,
        /// Number of slow nodes.
        slow: usize,
        /// How much slower the slow nodes are, as a fraction.
        slower: f64,
        /// The class.
        class: String,
    },
    /// Two sessions measured different nodes.
    CompositionChanged {
        /// The later session.
        session: Option<String>,
        /// The session before.
        earlier_session: Option<String>,
        /// Number of nodes that only the session before has.
        gone: usize,
        /// Number of nodes that only the later session has.
        new: usize,
        /// The class.
        class: String,
    },
    /// Nodes of a class have, or used, different numbers of hardware threads.
    CoresDiffer {
        /// True for threads that a kernel used, false for threads that are online.
        are_used: bool,
        /// The different numbers, most nodes first.
        numbers: FirstFew<NodesWithThreads>,
    },
    /// Successive runs of a node are alike.
    DependentRuns {
        /// The correlation of successive runs.
        correlation: f64,
        /// The most runs of a node.
        runs: usize,
        /// This number of independent runs gives as much information.
        independent_runs: f64,
        /// Of the median of these runs; `None` if they are too few for an interval.
        interval: Option<IntervalCoverage>,
        /// The class.
        class: String,
    },
    /// A session has suspects, but cannot compare them with the class.
    FewAnchors {
        /// The latest session of this kind.
        session: Option<String>,
        /// Number of its suspects.
        suspects: usize,
        /// Number of its nodes that were OK or FAST before.
        anchors: usize,
        /// A comparison needs this number of anchors.
        needed: usize,
        /// True if the times are too coarse for a comparison, even with enough anchors.
        is_coarse: bool,
        /// Number of earlier sessions of this kind.
        earlier_sessions: usize,
        /// The class.
        class: String,
    },
    /// Nodes of a screen have few runs of a kernel.
    FewRounds {
        /// These nodes, the one with the fewest runs first.
        nodes: FirstFew<NodeRuns>,
        /// Number of runs that the report needs.
        needed: usize,
    },
    /// Nodes have few runs in a class.
    FewRuns {
        /// These nodes, the one with the fewest runs first.
        nodes: FirstFew<NodeRuns>,
        /// Number of runs that the report needs.
        needed: usize,
    },
    /// A node has more slow runs than expected by chance.
    FlakyNode {
        /// Host name.
        node: String,
        /// Number of its slow runs.
        slow_runs: usize,
        /// Number of its runs that were tested.
        runs: usize,
        /// The class.
        class: String,
    },
    /// A kernel or program of a screen failed on all nodes in all rounds.
    KernelFailedEverywhere {
        /// The name of the kernel or program.
        kernel: String,
        /// True for a kernel of pmmpi, false for the user's program.
        is_kernel: bool,
        /// Number of nodes of the screen.
        nodes: usize,
        /// A host on which it failed.
        host: String,
        /// Why it failed there, as its run records it.
        reason: String,
    },
    /// A table by place shows the counts of one scope only, and some runs have counts of another scope.
    MixedScopes {
        /// The level of the places: the value of `--by`.
        by: &'static str,
        /// Number of runs whose counts are not in the table.
        left_out: usize,
        /// Number of all runs.
        runs: usize,
        /// The scope of the counts that the table shows.
        shown: Scope,
        /// The class.
        class: String,
    },
    /// Most nodes became slower.
    Moved {
        /// How much slower they are, as a fraction.
        slower: f64,
        /// The session since which they are slower.
        since: Option<String>,
        /// The class.
        class: String,
    },
    /// The user asked for places, but pmmpi measured none of the runs.
    NoPlaces,
    /// The uncertainty of times hides a slow node.
    NoiseFloor {
        /// What is uncertain.
        uncertain: Uncertain,
        /// How uncertain it is, as a fraction.
        by: f64,
        /// The slowdown that the report cannot detect, as a fraction: `--delta`.
        delta: f64,
        /// The class.
        class: String,
    },
    /// All nodes were slower in some rounds than in others.
    RoundEffects {
        /// How much slower the slowest round is than the fastest one, as a fraction.
        slower: f64,
        /// The class.
        class: String,
    },
    /// The times have a coarse resolution.
    RoundedTimes {
        /// The number of nodes with coarser times than the class; `None`: the times of all nodes are meant.
        nodes: Option<usize>,
        /// The smallest unit of a node's times (s), if it is below `unit_s`.
        least_unit_s: Option<f64>,
        /// The times are multiples of this (s).
        unit_s: f64,
        /// The unit as a fraction of the median of the class.
        of_median: f64,
        /// The smallest slowdown of a node that the report can detect, as a fraction.
        detectable: f64,
        /// The class.
        class: String,
    },
    /// Runs differ in a setting that may change their speed.
    SettingsDiffer {
        /// The name of the setting or fact.
        setting: String,
        /// True if runs of the same node differ in one session.
        is_on_one_node: bool,
        /// The different values, most runs first.
        values: FirstFew<RunsWithValue>,
        /// The class.
        class: String,
    },
    /// A label puts runs of the same work in many classes.
    SplitByLabel {
        /// The name of the label.
        label: String,
        /// Number of its values.
        values: usize,
        /// Number of runs with these values.
        runs: usize,
        /// The program of these runs and its arguments.
        command: Vec<String>,
    },
    /// In the session that judges most nodes, times may depend on the moment of the measurement.
    TimeOrder {
        /// What this limits.
        limit: TimeOrderLimit,
        /// The class.
        class: String,
    },
    /// The same for another session.
    TimeOrderOfSession {
        /// The session.
        session: Option<String>,
        /// What this limits.
        limit: TimeOrderLimit,
        /// The class.
        class: String,
    },
    /// Some sessions have no start.
    UndatedSessions,
    /// Some nodes have several times as many runs as others.
    UnequalRuns {
        /// The fewest runs of a node.
        fewest: usize,
        /// The most runs of a node.
        most: usize,
        /// The class.
        class: String,
    },
}

/// Nodes with the same number of hardware threads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodesWithThreads {
    /// Number of hardware threads.
    pub threads: usize,
    /// The nodes by name; the usual number of threads keeps no name.
    pub nodes: FirstFew<String>,
}

/// How often the interval of a median contains the true median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalCoverage {
    /// The probability if runs are independent.
    pub nominal: f64,
    /// The real probability.
    pub real: f64,
}

/// A node with few runs.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRuns {
    /// Host name.
    pub node: String,
    /// Number of its runs.
    pub runs: usize,
    /// The number of the class in which it has so few; `None` if the class does not matter.
    pub class: Option<usize>,
}

/// What hides a slow node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncertain {
    /// The bounds of a run's elapsed time are far apart.
    ElapsedTimes,
    /// The runs of a node differ.
    NodeMedians,
}

/// Runs with the same value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsWithValue {
    /// The value.
    pub value: String,
    /// The runs by id; the most frequent value keeps no id.
    pub runs: FirstFew<String>,
}

/// What the order of measurements limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeOrderLimit {
    /// What shows that the order matters.
    pub evidence: TimeOrderEvidence,
    /// The largest slowdown that the moment of the measurement may explain, as a fraction.
    pub explained: f64,
    /// A node is slow only if it is certainly slower than its class by more than this fraction.
    pub needed: f64,
}

/// What shows that the order of measurements matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeOrderEvidence {
    /// Nodes that were measured one after another have similar times.
    Neighbours {
        /// Von Neumann's ratio of ranks; about 2 if the order has no effect.
        ratio: f64,
    },
    /// Nodes that were measured at similar hours of several days have similar times.
    Hours {
        /// Von Neumann's ratio of ranks; about 2 if the order has no effect.
        ratio: f64,
    },
    /// Nodes were measured together, apart from the other nodes, and many of them are slow.
    SlowTogether {
        /// Number of these nodes.
        nodes: usize,
    },
    /// Nodes were measured in other rounds than most nodes, and rounds differ.
    OtherRounds {
        /// Number of these nodes.
        nodes: usize,
    },
}

impl ClassWarning {
    /// The kind of warning.
    pub fn code(&self) -> WarningCode {
        match self {
            Self::Bimodal { .. } => WarningCode::BimodalClass,
            Self::CompositionChanged { .. } => WarningCode::CompositionChanged,
            Self::CoresDiffer { .. } => WarningCode::CoresDiffer,
            Self::DependentRuns { .. } => WarningCode::DependentRuns,
            Self::FewAnchors { .. } => WarningCode::FewAnchors,
            Self::FewRounds { .. } => WarningCode::FewRounds,
            Self::FewRuns { .. } => WarningCode::FewRuns,
            Self::FlakyNode { .. } => WarningCode::FlakyNode,
            Self::KernelFailedEverywhere { .. } => WarningCode::KernelFailedEverywhere,
            Self::MixedScopes { .. } => WarningCode::MixedScopes,
            Self::Moved { .. } => WarningCode::ClassMoved,
            Self::NoPlaces => WarningCode::NoPlaces,
            Self::NoiseFloor { .. } => WarningCode::NoiseFloor,
            Self::RoundEffects { .. } => WarningCode::RoundEffects,
            Self::RoundedTimes { .. } => WarningCode::RoundedTimes,
            Self::SettingsDiffer { .. } => WarningCode::SettingsDiffer,
            Self::SplitByLabel { .. } => WarningCode::SplitByLabel,
            Self::TimeOrder { .. } | Self::TimeOrderOfSession { .. } => WarningCode::TimeOrder,
            Self::UndatedSessions => WarningCode::UndatedSessions,
            Self::UnequalRuns { .. } => WarningCode::UnequalRuns,
        }
    }
}
