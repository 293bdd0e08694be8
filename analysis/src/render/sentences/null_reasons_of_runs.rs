//! Why values of a run's report are null, in English and as JSON.

use crate::report::null_reasons::RunNullReason;
use std::fmt::{Display, Formatter, Result};

impl Display for RunNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::NoSeries => "the run belongs to no series",
            Self::NoBatchSystem => "no batch system that pmmpi knows (Slurm, PBS, LSF, Flux) started the run",
            Self::Incomplete => "not every rank completed the measurement",
            Self::NoRankCompleted => "no rank completed the measurement",
            Self::NoCountingTime => {
                "no rank reported this time: pmmpi measured the program without barriers, no rank completed the \
                 measurement, or the run file has a schema before 3"
            }
            Self::NoRankMeasured => "no rank was measured",
            Self::NoEndSeen => "pmmpi did not see the end: the program may still be running",
            Self::StampsContradict => "the stamps of the nodes contradict one another",
            Self::OneRank => "the run has only one rank, so no other rank waits",
            Self::OneNode => "the run has only one node, so no other node waits",
            Self::NoElapsedTime => "the clocks show no elapsed time",
            Self::EntriesDiffer => "the ranks did not enter this region the same number of times",
            Self::RegionTimesContradict => "the ranks' times contradict one another: a clock jumped",
            Self::ElapsedUnknown => "the elapsed time of the run is unknown",
            Self::NodeUnknown => "this rank left no record of its node",
            Self::AllThreadsCounted => "all threads have counts",
            Self::AllDiscarded => "pmmpi discarded all entries",
            Self::NotCounted(gap) => return gap.fmt(f),
            Self::NoInstructionsExpected { probe } => {
                return write!(
                    f,
                    "--expect gives no number of instructions for this probe; to give one: \
                     --expect '{probe}:instructions=N'"
                );
            }
        })
    }
}
