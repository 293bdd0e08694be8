//! Shows which counters, metrics and facts go with slow runs and slow nodes.

use super::{and_more, line, shown};
use crate::render::cells::probability;
use crate::render::goes_with_slowness::{meaning, rows};
use crate::report::Report;

/// What is significant, the strongest first.
pub fn table(text: &mut String, report: &Report, top: usize) {
    let rows = rows(report);
    if rows.is_empty() {
        return;
    }
    let of_class = if rows.iter().any(|row| row.class.is_some()) { " CLASS" } else { "" };
    line(text, "");
    line(
        text,
        &format!(
            "{:<28} {:<5} {:>5} {:<14} {:>8} {:<12}{of_class}",
            "GOES WITH SLOWNESS", "OF", "RHO", "ITS INTERVAL", "P", "RATIO"
        ),
    );
    let (shown, hidden) = shown(rows.len(), top);
    for row in &rows[..shown] {
        let class = row.class.map_or(String::new(), |class| format!(" {class:>5}"));
        let (rho, interval, ratio) = (row.rho(), row.interval(), row.ratio());
        let p = probability(row.found.p_adjusted);
        line(
            text,
            &format!("{:<28} {:<5} {rho:>5} {interval:<14} {p:>8} {ratio:<12}{class}", row.name, row.of),
        );
    }
    and_more(text, hidden, "more row");
    meaning(report, &rows).iter().for_each(|remark| line(text, remark));
}
