//! Why values of a comparison are null, in English and as JSON.

use crate::comparison::ComparisonNullReason;
use crate::report::against_baseline::BaselineNullReason;
use pmmpi::order_statistics::FEWEST_OF_INTERVAL;
use pmmpi::text::count;
use std::fmt::{self, Display, Formatter};

impl Display for ComparisonNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FewRuns => "A or B has too few runs to show how much the times vary",
            Self::NotPositive => "some values are 0 or below, so there is no ratio",
        })
    }
}

impl Display for BaselineNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTimeInScreen => f.write_str("this screen has no time of this kernel"),
            Self::SmallClass => write!(
                f,
                "the class has fewer than {FEWEST_OF_INTERVAL} nodes, and fewer than half of the nodes that ran this \
                 kernel"
            ),
            Self::NoEarlierTime => {
                f.write_str("the baseline has no time of these nodes from before this screen")
            }
            Self::NoEarlierTimeOfWork { work } => write!(
                f,
                "in the baseline, these nodes have no time from before this screen for this work: {work}"
            ),
            Self::FewNodes { measured, nodes } => {
                write!(f, "the earlier screen has times of only {measured} of {}", count(*nodes, "node"))
            }
            Self::FewRuns => f.write_str("too few runs to show how much the times vary"),
        }
    }
}
