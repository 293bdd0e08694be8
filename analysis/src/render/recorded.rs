//! What a run records, and where two runs differ, as text.

use super::one_line;
use crate::recorded::{Differences, Recorded};

/// One block per section.
pub fn show(recorded: &Recorded) -> String {
    let mut text = String::new();
    for section in &recorded.sections {
        let width = section.values.iter().map(|of| of.name.chars().count()).max().unwrap_or_default();
        text += &format!("{}\n", section.name);
        for of in &section.values {
            text += &format!("  {:<width$}  {}\n", one_line(&of.name), one_line(&of.value));
        }
    }
    text
}

/// Three lines per difference, as of diff(1); one line if there is none.
pub fn diff(found: &Differences) -> String {
    let [a, b] = found.runs.each_ref().map(|run| one_line(run));
    if found.differences.is_empty() {
        return format!(
            "{a} and {b} do not differ in anything that their run files record about the stack\n"
        );
    }
    let mut text = format!("< {a}\n> {b}\n");
    for of in &found.differences {
        let value =
            |value: &Option<String>| value.as_deref().map_or_else(|| "(not set)".to_owned(), one_line);
        text +=
            &format!("{}: {}\n  < {}\n  > {}\n", of.section, one_line(&of.name), value(&of.a), value(&of.b));
    }
    text
}
