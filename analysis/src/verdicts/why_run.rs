//! Explains slow runs from the counts: each is compared with the other runs of its node in the session.

use super::health::{self, NodeHealth};
use super::judged_session::JudgedSession;
use super::named_cause::Among;
use super::node_report::WhyReport;
use super::null_reasons::NullReasons;
use super::why;
use crate::stats::cause::Explanation;
use crate::table::{RunTable, Shared};

/// Why runs of one node are slow.
pub(super) struct WhyRuns {
    /// One for each run of the node; empty if the runs have no counts.
    explained: Vec<(Shared<WhyReport>, NullReasons)>,
}

impl WhyRuns {
    /// Explains the runs of a node in a session. `place` is the node's index there.
    ///
    /// The terms are those of nodes: see [`crate::stats::terms`]. Here the runs of the node are the class, so a reference is
    /// the median of the node's own runs.
    pub fn of(table: &RunTable, session: &JudgedSession, place: usize) -> Self {
        let rows = session.nodes[place];
        let (explanations, health) = (why::explain_runs(table, rows), health::of_runs(table, rows));
        let count = explanations.len().max(health.len());
        let of_run = |at: usize| {
            let explanation = explanations.get(at).cloned().unwrap_or_default();
            let health = health.get(at).cloned().unwrap_or_default();
            why_run_report(explanation, health)
        };
        Self { explained: (0..count).map(of_run).collect() }
    }

    /// Why a run is slow; and if that is not known, the reasons.
    pub fn of_run(&self, run: usize) -> (Shared<WhyReport>, NullReasons) {
        let nothing = || why_run_report(Explanation::default(), NodeHealth::default());
        self.explained.get(run).cloned().unwrap_or_else(nothing)
    }
}

fn why_run_report(explanation: Explanation, health: NodeHealth) -> (Shared<WhyReport>, NullReasons) {
    let mut null_reasons = NullReasons::default();
    let why = why::why_report(explanation, health, Among::RunsOfNode, &mut null_reasons);
    (why, null_reasons)
}
