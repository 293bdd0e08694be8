//! Why values of a run's report are null.

use pmmpi::counters::count_and_quality::Gap;

/// Why a value of a run, or of its nodes, regions and probes, is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunNullReason {
    /// The run belongs to no series.
    NoSeries,
    /// No batch system that pmmpi knows started the run.
    NoBatchSystem,
    /// Not every rank completed the measurement.
    Incomplete,
    /// No rank completed the measurement.
    NoRankCompleted,
    /// No rank reported the time that counting took.
    NoCountingTime,
    /// No rank was measured.
    NoRankMeasured,
    /// No process observed the end of the rank, or of the whole run.
    NoEndSeen,
    /// The stamps of the nodes contradict one another: a clock jumped, or a barrier let a rank through too early.
    StampsContradict,
    /// No other rank waits.
    OneRank,
    /// No other node waits.
    OneNode,
    /// The clocks show that no time elapsed.
    NoElapsedTime,
    /// The ranks did not enter the region the same number of times.
    EntriesDiffer,
    /// The ranks' times of the region contradict one another.
    RegionTimesContradict,
    /// The elapsed time of the run is unknown.
    ElapsedUnknown,
    /// The rank left no record of its node.
    NodeUnknown,
    /// No thread lacks counts, so there is no reason for a lack.
    AllThreadsCounted,
    /// pmmpi discarded all entries of the probe, so it has neither times nor counts.
    AllDiscarded,
    /// The threads that entered the probe have no counts.
    NotCounted(Gap),
    /// `--expect` gives no number of instructions for the probe.
    NoInstructionsExpected {
        /// The probe's name.
        probe: String,
    },
}
