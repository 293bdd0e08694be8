//! What a run records, and where two runs differ, as text.

use super::one_line;
use crate::recorded::{Differences, Recorded};
use pmmpi::text::count;

/// Values of a section that are shown: a job may have a million ranks.
const LISTED: usize = 100;

/// One block per section; the JSON has all values.
pub fn show(recorded: &Recorded) -> String {
    let mut text = String::new();
    for section in &recorded.sections {
        let width = section.values.iter().map(|of| of.name.chars().count()).max().unwrap_or_default();
        text += &format!("{}\n", section.name);
        for of in section.values.iter().take(LISTED) {
            text += &format!("  {:<width$}  {}\n", one_line(&of.name), one_line(&of.value));
        }
        let hidden = section.values.len().saturating_sub(LISTED);
        if hidden > 0 {
            text += &format!("  ... and {hidden} more (--format json has all)\n");
        }
    }
    text
}

/// Three lines per difference, as of diff(1); one line if there is none.
pub fn diff(found: &Differences) -> String {
    let [a, b] = found.runs.each_ref().map(|run| one_line(run));
    if found.differences.is_empty() {
        return format!("{a} and {b} do not differ in anything that pmmpi diff compares\n");
    }
    let mut text = format!("< {a}\n> {b}\n");
    for of in found.differences.iter().take(LISTED) {
        let value =
            |value: &Option<String>| value.as_deref().map_or_else(|| "(not set)".to_owned(), one_line);
        text +=
            &format!("{}: {}\n  < {}\n  > {}\n", of.section, one_line(&of.name), value(&of.a), value(&of.b));
    }
    let hidden = found.differences.len().saturating_sub(LISTED);
    if hidden > 0 {
        text += &format!("... and {} (--format json has all)\n", count(hidden, "more difference"));
    }
    text
}
