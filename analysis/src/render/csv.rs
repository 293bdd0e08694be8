//! A table for scripts: one row per node. Its columns are a contract (docs/report.md): later versions may only add
//! columns at the end.

use super::one_line;
use crate::report::Report;
use crate::stats::own_history::{Course, OwnVerdict};
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::NodeReport;

/// Keys of [`NodeReport`]; `ci_s` becomes two columns, and `history` one per key.
pub const COLUMNS: [&str; 37] = [
    "node",
    "class",
    "session",
    "runs",
    "median_run_id",
    "median_s",
    "ci_low_s",
    "ci_high_s",
    "ci_coverage",
    "slowdown",
    "slower_by_at_least",
    "score",
    "p_value",
    "p_adjusted",
    "shrunken",
    "history_score",
    "verdict",
    "suggests_drain",
    "cause",
    "cause_share",
    "cause_text",
    "slow_runs",
    "history_verdict",
    "history_sessions",
    "history_before_s",
    "history_now_s",
    "history_change",
    "history_at_least",
    "history_since",
    "history_until",
    "history_course",
    "history_p_adjusted",
    "presence",
    "odd",
    "as_member_slowdown",
    "as_member_verdict",
    "facts_changed",
];

/// All nodes in CSV (RFC 4180, but with Unix line ends). Without a node, only the heading.
pub fn nodes(report: &Report) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for node in &report.nodes {
        writer.write_record(row(node))?;
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(node: &NodeReport) -> [String; COLUMNS.len()] {
    let history = &node.history;
    let member = node.as_member_of.as_ref();
    let odd = node.odd.iter().map(|fact| {
        let [value, class] =
            [&fact.value, &fact.class_value].map(|value| value.as_deref().unwrap_or("unknown"));
        format!("{}: {value} (peers: {class})", fact.key)
    });
    let changed = node.why.facts_changed.iter().map(|of| format!("{}: {}", of.fact, of.change));
    [
        name(&node.node),
        name(&node.class),
        name(node.session.as_deref().unwrap_or_default()),
        node.runs.to_string(),
        name(&node.median_run_id),
        number(Some(node.median_s)),
        number(node.ci_s.map(|[low, _]| low)),
        number(node.ci_s.map(|[_, high]| high)),
        number(node.ci_coverage),
        number(node.slowdown),
        number(node.slower_by_at_least),
        number(node.score),
        number(node.p_value),
        number(node.p_adjusted),
        number(node.shrunken),
        number(node.history_score),
        node.verdict.map_or("", Verdict::name).to_owned(),
        node.should_be_drained().to_string(),
        name(node.why.cause_name().unwrap_or_default()),
        number(node.why.cause.as_ref().and_then(|cause| cause.share())),
        name(&node.why.cause.as_deref().map(ToString::to_string).unwrap_or_default()),
        node.slow_runs.map(|slow| slow.to_string()).unwrap_or_default(),
        history.verdict.map_or("", OwnVerdict::name).to_owned(),
        history.sessions.to_string(),
        number(history.before_s),
        number(history.now_s),
        number(history.change),
        number(history.events.at_least),
        name(history.events.since.as_deref().unwrap_or_default()),
        name(history.events.until.as_deref().unwrap_or_default()),
        history.events.course.map_or("", Course::name).to_owned(),
        number(history.p_adjusted),
        node.presence.name().to_owned(),
        name(&odd.collect::<Vec<_>>().join("; ")),
        number(member.and_then(|member| member.slowdown)),
        member.and_then(|member| member.verdict).map_or("", Verdict::name).to_owned(),
        changed.collect::<Vec<_>>().join("; "),
    ]
}

/// The shortest text that gives the same number when read; empty if there is none.
pub fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| format!("{value:?}")).unwrap_or_default()
}

/// Makes a name one line and no formula. A spreadsheet computes a cell that begins like a formula, whoever wrote it.
pub fn name(name: &str) -> String {
    let name = one_line(name);
    // Also after spaces: some spreadsheets remove them.
    match name.trim_start().starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
    {
        true => format!("'{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_a_formula_nor_a_line() {
        assert_eq!(name("=HYPERLINK(\"x\")"), "'=HYPERLINK(\"x\")");
        assert_eq!(
            (name(" @x"), name("-1"), name("n-1"), name("a\r\nb")),
            ("' @x".into(), "'-1".into(), "n-1".into(), "a??b".into())
        );
    }

    #[test]
    fn numbers_come_back() {
        for value in [0.1, 1e300, -2.5e-9, 7.0, f64::MIN_POSITIVE, 0.1 + 0.2] {
            assert_eq!(number(Some(value)).parse(), Ok(value));
            assert!(number(Some(value)).len() < 25);
        }
        assert_eq!(number(Some(f64::INFINITY)) + &number(Some(f64::NAN)) + &number(None), "");
    }
}
