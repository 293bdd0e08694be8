//! Explains slow runs from the counts: each is compared with the other runs of its node in the session.

use super::cause_text::{self, Among};
use super::judged_session::JudgedSession;
use super::node_report::WhyReport;
use super::null_reasons::NullReasons;
use super::{health, why};
use crate::stats::cause::NoCause;
use crate::table::{RunTable, Shared};
use std::borrow::Cow;

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
            let told = cause_text::told(&explanation.cause, &health.unusual, Among::RunsOfNode);
            let mut null_reasons = NullReasons::default();
            if told.is_none() {
                let reason = explanation.cause.as_ref().err();
                let reason =
                    reason.map(|none| cause_text::of_no_cause(none, Among::RunsOfNode)).unwrap_or_default();
                unknown(&mut null_reasons, reason);
            }
            if told.as_ref().is_some_and(|told| told.share.is_none()) {
                null_reasons.insert("cause_share", cause_text::NO_SHARE.into());
            }
            let why = WhyReport {
                facts_changed: health.changes,
                cause_share: told.as_ref().and_then(|told| told.share),
                cause: told.as_ref().map(|told| told.name.clone()),
                cause_text: told.map(|told| told.text),
                terms: explanation.terms,
                term_parts: explanation.parts,
            };
            (why.shared(), null_reasons)
        };
        Self { explained: (0..count).map(of_run).collect() }
    }

    /// Why a run is slow; and if that is not known, the reasons.
    pub fn of_run(&self, run: usize) -> (Shared<WhyReport>, NullReasons) {
        self.explained.get(run).cloned().unwrap_or_else(|| {
            let mut null_reasons = NullReasons::default();
            unknown(&mut null_reasons, cause_text::of_no_cause(&NoCause::NothingCounted, Among::RunsOfNode));
            (WhyReport::none(), null_reasons)
        })
    }
}

fn unknown(null_reasons: &mut NullReasons, reason: Cow<'static, str>) {
    for key in ["cause", "cause_text", "cause_share"] {
        null_reasons.insert(key, reason.clone());
    }
}
