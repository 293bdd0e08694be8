//! The content of table cells. Numbers have few digits.

use crate::report::run::RunReport;
pub use crate::verdicts::node_report::class_numbers;
use crate::verdicts::node_report::{NodeReport, OddFact};
use crate::warnings::WarningCode;
use pmmpi::text::seconds_between;

/// Smaller values are shown as "less than this".
const LEAST_P: f64 = 1e-99;

/// For example "+8.1 %". A value that rounds to 0 has no sign of its own.
pub fn percent(fraction: f64, digits: usize) -> String {
    let least = 0.5 * 0.1f64.powi(digits as i32);
    let percent = fraction * 100.0;
    let percent = if percent.abs() < least { 0.0 } else { percent };
    match percent.abs() < 1e6 {
        true => format!("{percent:+.digits$} %"),
        false => format!("{percent:+.digits$e} %"),
    }
}

/// About six digits.
pub fn seconds(value: f64) -> String {
    if value.abs() >= 1e9 || (value != 0.0 && value.abs() < 1e-4) {
        return format!("{value:.4e}");
    }
    let before = value.abs().log10().floor().clamp(0.0, 5.0) as usize;
    format!("{value:.*}", 5 - before)
}

/// For example "1.20 .. 1.41".
pub fn interval(ci_s: Option<[f64; 2]>) -> String {
    ci_s.map_or("-".to_owned(), |[low, high]| format!("{} .. {}", seconds(low), seconds(high)))
}

/// For example "1.2e-9".
pub fn probability(p: f64) -> String {
    match p {
        p if p < LEAST_P => format!("<{LEAST_P:.0e}"),
        p => format!("{p:.1e}"),
    }
}

/// The two bounds, or why they are missing.
pub fn elapsed(run: &RunReport) -> String {
    match &run.elapsed {
        Some(e) if e.consistent => {
            let (lower, upper) = seconds_between(e.lower_ns, e.upper_ns);
            let failed = run.warnings.iter().any(|warning| warning.code() == WarningCode::FailedRun);
            let end = run.end.filter(|_| failed).map(|end| format!("; {end}"));
            format!("{lower} and {upper}{}", end.unwrap_or_default())
        }
        Some(_) => "unknown: see the warnings".to_owned(),
        None => {
            let end = run.end.map(|end| end.to_string());
            let why = end.or_else(|| run.null_reasons.get("end").map(ToString::to_string));
            format!("not complete: {}", why.unwrap_or_default())
        }
    }
}

/// A fact in which a node differs from its peers.
pub struct OddRow<'a> {
    pub node: &'a str,
    pub key: &'a str,
    pub value: &'a str,
    pub class_value: &'a str,
}

/// One row per node and fact.
pub fn odd(nodes: &[NodeReport]) -> Vec<OddRow<'_>> {
    let facts = nodes.iter().flat_map(|node| node.odd.iter().map(move |fact| (node, fact)));
    facts.map(|(node, fact)| odd_row(node, fact)).collect()
}

fn odd_row<'a>(node: &'a NodeReport, fact: &'a OddFact) -> OddRow<'a> {
    OddRow {
        node: &node.node,
        key: &fact.key,
        value: fact.value.as_deref().unwrap_or("unknown"),
        class_value: fact.class_value.as_deref().unwrap_or("unknown"),
    }
}

/// Nodes that are slower than they were, the largest change first; then nodes that are faster.
pub fn changed(nodes: &[NodeReport]) -> Vec<&NodeReport> {
    let is_changed = |node: &&NodeReport| node.is_current() && node.history.events.course.is_some();
    let mut changed: Vec<&NodeReport> = nodes.iter().filter(is_changed).collect();
    let change = |node: &NodeReport| node.history.change.unwrap_or_default();
    changed.sort_by(|a, b| {
        (change(a) < 0.0)
            .cmp(&(change(b) < 0.0))
            .then_with(|| change(b).abs().total_cmp(&change(a).abs()))
            .then_with(|| (&a.node, &a.class).cmp(&(&b.node, &b.class)))
    });
    changed
}

/// The classes, sorted by number.
pub fn classes(nodes: &[NodeReport]) -> Vec<&str> {
    let mut classes: Vec<_> = class_numbers(nodes).into_iter().collect();
    classes.sort_by_key(|(_, number)| *number);
    classes.into_iter().map(|(class, _)| class).collect()
}

/// Shortens a class name in the middle. A command line may be long, and its end says how many ranks there were.
pub fn shortened(name: &str) -> String {
    const MOST: usize = 240;
    let length = name.chars().count();
    if length <= MOST {
        return name.to_owned();
    }
    let head: String = name.chars().take(MOST * 3 / 4).collect();
    let tail: String = name.chars().skip(length - MOST / 4).collect();
    format!("{head} ... {tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_longer_than_people_read() {
        assert_eq!((percent(0.0793, 1), percent(-0.0004, 2)), ("+7.9 %".into(), "-0.04 %".into()));
        assert_eq!((percent(1e300, 1), percent(-1e-17, 2)), ("+1.0e302 %".into(), "+0.00 %".into()));
        assert_eq!((seconds(1.36156), seconds(12345.678)), ("1.36156".into(), "12345.7".into()));
        assert_eq!(
            (seconds(1e300), seconds(2.5e-9), seconds(0.0)),
            ("1.0000e300".into(), "2.5000e-9".into(), "0.00000".into())
        );
        assert_eq!((probability(0.0), probability(0.25)), ("<1e-99".into(), "2.5e-1".into()));
        for exponent in -300..300 {
            let value = 1.234_567_8 * 10f64.powi(exponent);
            assert!(seconds(value).len() <= 11 && percent(value, 2).len() <= 13, "{value}");
        }
    }
}
