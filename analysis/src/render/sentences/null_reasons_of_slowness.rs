//! Why values of what goes with slowness are null, in English.

use crate::stats::goes_with_slowness::{FEWEST, NoAssociation};
use crate::verdicts::goes_with_slowness::SlownessNullReason;
use std::fmt::{Display, Formatter, Result};

impl Display for SlownessNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let text = match self {
            Self::OnlyMedians => "the input has only medians of the runs of the class, not the runs",
            Self::NoSession => "there is no session by which the report judges the nodes of the class",
            Self::NoLabel => "the runs have no label `session`",
            Self::TimeItself => {
                "the counter measures the time itself: cpi, frequency_active, utilisation and busy_threads show \
                 what makes the time longer"
            }
            Self::NoRatio => "some values are 0 or below, so there is no ratio",
            Self::WithinNodes(NoAssociation::Unknown) | Self::BetweenNodes(NoAssociation::Unknown) => {
                "no run has a value of this counter, metric or fact"
            }
            Self::WithinNodes(NoAssociation::Few) => {
                return write!(
                    f,
                    "too few runs: the test needs {FEWEST} runs, plus one run for each node in each session"
                );
            }
            Self::BetweenNodes(NoAssociation::Few) => {
                return write!(
                    f,
                    "fewer than {} nodes have a value of this counter, metric or fact",
                    FEWEST + 1
                );
            }
            Self::WithinNodes(NoAssociation::Constant) => {
                "the value, or the time, is the same in all runs of each node"
            }
            Self::BetweenNodes(NoAssociation::Constant) => "the value, or the time, is the same on all nodes",
        };
        f.write_str(text)
    }
}
