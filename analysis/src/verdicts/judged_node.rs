//! The report of one node.

use super::{JudgeSettings, cause_text};
use crate::stats::cause::Explanation;
use crate::stats::median::{self, NodeMedian};
use crate::stats::verdict_rule::NodeJudgement;
use crate::table::RunTable;
use crate::verdicts::node_report::NodeReport;
use std::collections::BTreeMap;

/// `rows` are the table rows of the node's runs, sorted by time; `why` is the explanation from its counts.
pub(super) fn report(
    table: &RunTable,
    settings: &JudgeSettings,
    rows: &[u32],
    middle: &NodeMedian,
    judgement: &NodeJudgement,
    why: Explanation,
) -> NodeReport {
    let row = rows[middle.median_run] as usize;
    let seconds = |row: u32| table.elapsed_s[row as usize];
    let interval = median::interval(rows.len());
    let mut null_reasons = BTreeMap::new();
    let mut explain = |key, is_null: bool, reason: String| {
        if is_null {
            null_reasons.insert(key, reason);
        }
    };
    let settings = &settings.node;
    explain(
        "ci_s",
        interval.is_none(),
        format!("the node has {} of the 5 runs that an interval needs", rows.len()),
    );
    let session = table.session_name(row).map(str::to_owned);
    explain("session", session.is_none(), "the run has no label `session`".to_owned());
    let alone = "no other node of the class was measured";
    for (key, is_null) in [
        ("slowdown", judgement.slowdown.is_none()),
        ("slower_by_at_least", judgement.slower_by_at_least.is_none()),
        ("verdict", judgement.verdict.is_none()),
    ] {
        explain(key, is_null, alone.to_owned());
    }
    let small = match judgement.slowdown {
        None => alone.to_owned(),
        Some(_) => format!("the class has fewer than {} nodes, so no node can stand out", settings.min_nodes),
    };
    for (key, is_null) in [
        ("score", judgement.score.is_none()),
        ("p_value", judgement.p.is_none()),
        ("p_adjusted", judgement.adjusted_p.is_none()),
    ] {
        explain(key, is_null, small.clone());
    }
    let single = "no node of the class ran twice, so the variation between runs is unknown";
    explain(
        "shrunken",
        judgement.shrunken.is_none(),
        if judgement.slowdown.is_none() { alone } else { single }.to_owned(),
    );
    let Explanation { terms, parts, cause } = why.for_verdict(judgement.verdict);
    for key in ["cause", "cause_text", "cause_share"] {
        explain(key, cause.is_err(), cause.as_ref().err().map(cause_text::of_no_cause).unwrap_or_default());
    }
    let cause = cause.ok();
    let owned =
        |terms: BTreeMap<&str, f64>| terms.into_iter().map(|(name, ln)| (name.to_owned(), ln)).collect();
    NodeReport {
        node: table.node_name(row).to_owned(),
        class: table.class_name(row).to_owned(),
        session,
        runs: rows.len(),
        median_run_id: table.run_id(row),
        median_s: table.elapsed_s[row],
        ci_s: interval.map(|(low, high, _)| [seconds(rows[low]), seconds(rows[high])]),
        ci_coverage: interval.map(|(.., coverage)| coverage),
        slowdown: judgement.slowdown,
        slower_by_at_least: judgement.slower_by_at_least,
        score: judgement.score,
        p_value: judgement.p,
        p_adjusted: judgement.adjusted_p,
        shrunken: judgement.shrunken,
        history_score: None,
        verdict: judgement.verdict,
        suggests_drain: judgement.suggests_drain,
        cause: cause.as_ref().map(|cause| cause.kind.name().to_owned()),
        cause_share: cause.as_ref().map(|cause| cause.share),
        cause_text: cause.as_ref().map(cause_text::of_cause),
        terms: owned(terms),
        term_parts: owned(parts),
        null_reasons,
    }
}
