//! Shows slow nodes and slow runs.

use super::{and_more, line, shown};
use crate::render::answer;
use crate::render::cells::{
    self, class_numbers, classes, interval, percent, probability, seconds, shortened,
};
use crate::render::node_names::NodeNames;
use crate::render::{run_spread, where_slow};
use crate::report::{Report, SessionsNeeded};
use crate::stats::own_history::{Course, OwnVerdict};
use crate::verdicts::node_report::{DriftReport, NodeReport, SlowRunReport};

/// The answer, one sentence per line.
pub fn answer(text: &mut String, report: &Report) {
    line(text, "");
    answer::of(report).iter().for_each(|sentence| line(text, sentence));
}

/// Slow runs of all sessions.
pub fn slow_runs(text: &mut String, runs: &[SlowRunReport], names: &NodeNames, top: usize) {
    const ID_TITLE: &str = "SLOW RUN";
    if runs.is_empty() {
        return;
    }
    line(text, "");
    let of_session = if runs.iter().any(|run| run.session.is_some()) { "  SESSION" } else { "" };
    let (shown, hidden) = shown(runs.len(), top);
    let width = names.width;
    let id_width = runs[..shown].iter().map(|run| run.run_id.chars().count());
    let id_width = id_width.max().unwrap_or_default().max(ID_TITLE.len());
    let cause = |run: &SlowRunReport| run.why.cause_name().unwrap_or("-");
    // Most reports have no counts.
    let of_cause = match runs[..shown].iter().any(|run| run.why.cause.is_some()) {
        true => runs[..shown].iter().map(|run| cause(run).len() + 2).max().unwrap_or_default().max(7),
        false => 0,
    };
    let in_column = |cause: &str| match of_cause {
        0 => String::new(),
        width => format!("  {cause:<0$}", width - 2),
    };
    let head = in_column("CAUSE");
    let head =
        format!("{ID_TITLE:<id_width$} {:<width$} {:>8} {:>8}{head}{of_session}", "NODE", "SLOWER", "P");
    line(text, head.trim_end());
    for run in &runs[..shown] {
        let (slower, p) = (percent(run.slowdown, 1), probability(run.p_adjusted));
        let session = run.session.as_ref().map_or(String::new(), |session| format!("  {session}"));
        let node = names.shown(&run.node);
        let cause = in_column(cause(run));
        let id = &run.run_id;
        let row = format!("{id:<id_width$} {node:<width$} {slower:>8} {p:>8}{cause}{session}");
        line(text, row.trim_end());
    }
    and_more(text, hidden, "more slow run");
    where_slow::of_runs(runs).iter().for_each(|sentence| line(text, sentence));
}

/// Nodes that grew slower, and since when.
pub fn drift(text: &mut String, drifts: &[DriftReport], names: &NodeNames, top: usize) {
    if drifts.is_empty() {
        return;
    }
    line(text, "");
    let (shown, hidden) = shown(drifts.len(), top);
    let width = names.width;
    line(text, &format!("{:<width$} {:>8} {:>8}  SINCE", "GREW SLOWER", "BY", "SCORE"));
    for drift in &drifts[..shown] {
        let since = drift.since.as_deref().unwrap_or("");
        let (node, change) = (names.shown(&drift.node), percent(drift.change, 1));
        line(text, &format!("{node:<width$} {change:>8} {:>8.1}  {since}", drift.score));
    }
    and_more(text, hidden, "more node");
}

/// Nodes whose facts differ from those of their peers.
pub fn odd(text: &mut String, nodes: &[NodeReport], names: &NodeNames, top: usize) {
    let rows = cells::odd(nodes);
    if rows.is_empty() {
        return;
    }
    line(text, "");
    let (shown, hidden) = shown(rows.len(), top);
    let width = names.width;
    line(text, &format!("{:<width$} {:<10} {:<30} PEERS HAVE", "ODD", "FACT", "VALUE"));
    for cells::OddRow { node, key, value, class_value } in &rows[..shown] {
        let node = names.shown(node);
        line(text, &format!("{node:<width$} {key:<10} {:<30} {}", shortened(value), shortened(class_value)));
    }
    and_more(text, hidden, "more fact");
}

/// Nodes that are slower or faster than they were.
pub fn changed(text: &mut String, nodes: &[NodeReport], names: &NodeNames, top: usize) {
    let nodes = cells::changed(nodes);
    if nodes.is_empty() {
        return;
    }
    line(text, "");
    let (shown, hidden) = shown(nodes.len(), top);
    let width = names.width;
    line(
        text,
        &format!(
            "{:<width$} {:>10} {:>10} {:>8} {:>8} {:<8}  SINCE",
            "CHANGED", "BEFORE, s", "NOW, s", "BY", "AT LEAST", "HOW"
        ),
    );
    for node in &nodes[..shown] {
        let history = &node.history;
        let [before, now] = [history.before_s, history.now_s].map(|s| s.map(seconds).unwrap_or_default());
        let [by, least] = [history.change, history.events.at_least]
            .map(|by| by.map(|by| percent(by, 1)).unwrap_or_default());
        let how = history.events.course.map_or("", Course::name);
        let since = history.events.since.as_deref().unwrap_or("");
        let node = names.shown(&node.node);
        line(text, &format!("{node:<width$} {before:>10} {now:>10} {by:>8} {least:>8} {how:<8}  {since}"));
    }
    and_more(text, hidden, "more node");
    if nodes[..shown].iter().any(|node| answer::is_relative(node)) {
        line(
            text,
            "BEFORE is corrected for later changes of the whole class, so BEFORE and NOW are comparable",
        );
    }
}

/// The slowest nodes, and a list of their classes.
pub fn table(text: &mut String, report: &Report, names: &NodeNames, top: usize) {
    let nodes = report.nodes.as_slice();
    if nodes.is_empty() {
        return;
    }
    let numbers = class_numbers(nodes);
    let (shown, hidden) = shown(nodes.len(), top);
    let width = names.width;
    let has_history = nodes.iter().any(|node| node.history.verdict.is_some());
    let is_starred = |node: &NodeReport| node.among_peers().is_member && node.is_current();
    let history_title = if has_history { "HISTORY" } else { "" };
    line(text, "");
    line(
        text,
        &format!(
            "{:<width$} {:>5} {:>4} {:>10} {:<20} {:>8} {:<10} {history_title}",
            "NODE", "CLASS", "RUNS", "MEDIAN, s", "ITS INTERVAL, s", "SLOWER", "VERDICT"
        ),
    );
    for node in &nodes[..shown] {
        let interval = interval(node.ci_s);
        let slower = node.among_peers().slowdown.map_or("-".to_owned(), |slowdown| percent(slowdown, 2));
        let star = if is_starred(node) { "*" } else { "" };
        let verdict = match node.among_peers().verdict {
            _ if !node.is_current() => format!("({})", node.presence.name()),
            Some(verdict) => format!("{}{star}", verdict.name()),
            None => "-".to_owned(),
        };
        let history = node.history.verdict.map_or(if has_history { "-" } else { "" }, OwnVerdict::name);
        line(
            text,
            &format!(
                "{:<width$} {:>5} {:>4} {:>10} {interval:<20} {slower:>8} {verdict:<10} {history}",
                names.shown(&node.node),
                numbers[node.class.as_str()],
                node.runs,
                seconds(node.median_s),
            ),
        );
    }
    and_more(text, hidden, "more row");
    if nodes[..shown].iter().any(is_starred) {
        line(text, "* compared with the class that this node would belong to without its odd facts");
    }
    for node in &nodes[..shown] {
        let is_mixed = node.why.cause_name() == Some("mixed");
        if let Some(why) = node.why.cause.as_deref().filter(|_| !is_mixed) {
            let share = why.share().map(|share| format!(" ({:.0} % of the slowdown)", share * 100.0));
            line(text, &format!("why {}: {why}{}", node.node, share.unwrap_or_default()));
        }
    }
    where_slow::of_nodes(nodes).iter().for_each(|sentence| line(text, sentence));
    line(text, "");
    let classes = classes(nodes);
    let (shown, hidden) = super::shown(classes.len(), top);
    let spreads = run_spread::of_classes(report);
    for (number, class) in classes[..shown].iter().enumerate() {
        line(text, &format!("class {}: {}", number + 1, shortened(class)));
        if let Some(spread) = spreads.get(class) {
            line(text, &format!("         {spread}"));
        }
    }
    and_more(text, hidden, "more class");
}

/// Says how many more sessions show what the report cannot show yet.
pub fn sessions_needed(text: &mut String, report: &Report) {
    let SessionsNeeded { most, history_needs, drift_needs } = report.sessions;
    let has_sessions = report.nodes.iter().any(|node| node.session.is_some());
    let (what, needed) = match most {
        _ if !has_sessions || most == 0 => return,
        few if few < history_needs => ("a comparison with earlier sessions", history_needs),
        few if few < drift_needs => ("a search for drift", drift_needs),
        _ => return,
    };
    let is_maintained = report.nodes.iter().any(|node| node.history.events.maintenance.is_some());
    let since = if is_maintained { " since its last maintenance" } else { "" };
    line(text, &format!("{what} needs {needed} sessions; no node has more than {most}{since}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdicts::node_report::WhyReport;
    use crate::verdicts::null_reasons::NullReasons;

    #[test]
    fn the_columns_of_slow_runs_are_below_their_headings() {
        for run_id in ["20261123T061541.754971819Z-605ee3dd5f8f573f", "7"] {
            let run = SlowRunReport {
                run_id: run_id.to_owned(),
                node: "n07".to_owned(),
                class: "./hpl".to_owned(),
                session: Some("monday".to_owned()),
                elapsed_s: 1.2,
                slowdown: 0.2,
                p_value: 1e-9,
                p_adjusted: 1e-8,
                why: WhyReport::none(),
                places: None,
                null_reasons: NullReasons::default(),
            };
            let mut text = String::new();
            slow_runs(&mut text, &[run], &NodeNames::of(["n07"]), 0);
            let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            let at = |line: &str, word: &str| line.find(word).unwrap();
            assert_eq!(at(lines[0], "NODE"), at(lines[1], "n07"), "{text}");
            assert_eq!(at(lines[0], "SESSION"), at(lines[1], "monday"), "{text}");
        }
    }
}
