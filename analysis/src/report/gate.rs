//! Repaired nodes: is each fit to return to service? One answer per node.

use super::screen::{ScreenReport, ScreenedNode};
use crate::table::host_list::HostList;
use crate::verdicts::kernels_of_node::ScreenVerdict;
use serde::Serialize;

/// A node with fewer runs of a kernel is not fit for certain.
const FEWEST_RUNS: usize = 5;

/// The answer for one node.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct GateAnswer {
    /// Host name.
    pub node: String,
    /// FIT, NOT-FIT or UNDECIDED.
    pub answer: Fitness,
    /// Why it is not fit, or what is missing for an answer; empty if it is fit.
    pub reason: String,
}

/// Whether a node is fit to return to service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Fitness {
    /// All kernels are as fast as usual, and their results are right.
    Fit,
    /// A kernel is slow, failed, or computed a wrong result.
    NotFit,
    /// The measurement shows neither.
    Undecided,
}

impl Fitness {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fit => "FIT",
            Self::NotFit => "NOT-FIT",
            Self::Undecided => "UNDECIDED",
        }
    }
}

/// The answers for the nodes of `list`, in its order.
pub fn answers(screen: &ScreenReport, list: &HostList) -> Vec<GateAnswer> {
    let answer = |name: &str| {
        let node = screen.screened.iter().find(|node| &*node.node == name);
        let (answer, reason) = match node {
            None => (Fitness::Undecided, "it did not take part in the screen".to_owned()),
            Some(node) => of(node),
        };
        GateAnswer { node: name.to_owned(), answer, reason }
    };
    list.names().map(answer).collect()
}

fn of(node: &ScreenedNode) -> (Fitness, String) {
    let kernel = node.kernel.as_deref().unwrap_or("a kernel");
    match node.verdict {
        ScreenVerdict::Wrong => (Fitness::NotFit, format!("{kernel} computed a wrong result")),
        ScreenVerdict::Failed => (Fitness::NotFit, format!("{kernel} failed")),
        ScreenVerdict::Slow | ScreenVerdict::SlowTail => {
            (Fitness::NotFit, format!("{kernel} is slower than its class"))
        }
        ScreenVerdict::Slowed => (Fitness::NotFit, format!("{kernel} is slower than it was")),
        ScreenVerdict::Suspect | ScreenVerdict::Unusual => {
            (Fitness::Undecided, format!("{kernel} may be slow"))
        }
        ScreenVerdict::Fast => (Fitness::Undecided, format!("{kernel} is much faster than its class")),
        ScreenVerdict::Ok => {
            let open = node.kernels.iter().find(|(_, of)| of.verdict.is_none() || of.runs < FEWEST_RUNS);
            match open {
                None => (Fitness::Fit, String::new()),
                Some((kernel, of)) if of.verdict.is_none() => (
                    Fitness::Undecided,
                    format!("{kernel} cannot be compared: add healthy nodes of its class, or --archive"),
                ),
                Some((kernel, of)) => (
                    Fitness::Undecided,
                    format!("{kernel} has {} of the {FEWEST_RUNS} runs that are needed", of.runs),
                ),
            }
        }
    }
}
