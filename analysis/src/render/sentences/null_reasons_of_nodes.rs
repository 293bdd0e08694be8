//! Why values of a node's or a run's report are null, in English.

use crate::stats::cause::NoCause;
use crate::verdicts::named_cause::Among;
use crate::verdicts::null_reasons::NodeNullReason;
use pmmpi::order_statistics::FEWEST_OF_INTERVAL;
use pmmpi::text::count;
use std::fmt::{Display, Formatter, Result};

/// Also the reason why no cause is known.
const ALONE: &str = "no other node of the class was measured in the node's session";

impl Display for NodeNullReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let text = match self {
            Self::NoCause { why, among } => return no_cause(f, why, *among),
            Self::NoShare => "no known term is both unusual and at least half of the slowdown",
            Self::OnlyMedian => "the report read only the median of the node's runs, not the runs",
            Self::NoSession => "the run has no label `session`",
            Self::NoInterval { runs } => {
                return write!(f, "an interval needs {FEWEST_OF_INTERVAL} runs, and the node has {runs}");
            }
            Self::Alone => ALONE,
            Self::FewAnchors => {
                "half or more of the session's nodes are suspects of earlier sessions: see the warning few-anchors"
            }
            Self::SmallClass { needed } => {
                return write!(
                    f,
                    "the class has fewer than {needed} nodes, too few to show that a node stands out"
                );
            }
            Self::NoRepeatedRun => {
                "no node of the class ran twice in the session, so the variation between runs is unknown"
            }
            Self::FewRuns { needed } => {
                return write!(
                    f,
                    "the test for slow runs needs at least {needed} runs of the node in this session"
                );
            }
            Self::NoPlaces => {
                "the report knows no slow core, socket or rank: the run was not counted by place, the cause has no \
                 place, or no place differs enough from its usual value; for a kernel of pmmpi screen, slow_threads \
                 has the slow hardware threads"
            }
            Self::NoChange => "no change is certain",
            Self::NoDate => "the start of the runs is not known, so there is no date",
            Self::FewOthers => {
                "each session of the node (since its last maintenance) has too few nodes of the class, or too many \
                 suspects"
            }
            Self::FewSessions { sessions, since_maintenance } => {
                let since = if *since_maintenance { " since its maintenance" } else { "" };
                let sessions = count(*sessions, "session");
                return write!(
                    f,
                    "the node has {sessions}{since}; a comparison with its own history needs 2"
                );
            }
        };
        f.write_str(text)
    }
}

/// Why no cause is known.
fn no_cause(f: &mut Formatter<'_>, why: &NoCause, among: Among) -> Result {
    let is_of_runs = among == Among::RunsOfNode;
    let text = match why {
        NoCause::Alone => ALONE,
        NoCause::OnlySuspects => {
            "half or more of the session's nodes are new, or are suspects of earlier sessions, so their counts are \
             not a valid reference"
        }
        NoCause::NotSlow => "the verdict is OK",
        NoCause::NothingCounted => "the run has no counts",
        NoCause::Missing { name, reason } => return write!(f, "{name}: {reason}"),
        NoCause::NoTerms => "the run has no counts of instructions and cycles, and no task clock",
        NoCause::NoReference if is_of_runs => {
            "fewer than half of the node's runs have the same counters as this run"
        }
        NoCause::NoReference => {
            "fewer than half of the nodes of the class have the same counters as this node, or the node's time is \
             not above zero"
        }
        NoCause::FewNodes { nodes: number, needed } => {
            let what = if is_of_runs { "runs of the node in this session" } else { "nodes of the class" };
            return write!(
                f,
                "{number} {what} have the same counters, but the report needs {needed} to find a cause"
            );
        }
        NoCause::NoSlower if is_of_runs => {
            "compared with the node's runs that counted the same events, the run is not slower"
        }
        NoCause::NoSlower => {
            "compared with the nodes of the class that counted the same events, the node is not slower"
        }
    };
    f.write_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Shared;

    #[test]
    fn too_few_nodes_or_runs_are_told() {
        let few = |among| {
            let why = Shared::new(NoCause::FewNodes { nodes: 3, needed: 5 });
            NodeNullReason::NoCause { why, among }.to_string()
        };
        assert!(few(Among::NodesOfClass).starts_with("3 nodes of the class have"));
        assert!(few(Among::RunsOfNode).starts_with("3 runs of the node in this session have"));
    }
}
