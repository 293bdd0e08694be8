//! Shows the result of `pmmpi screen`.

use super::{line, table, warnings};
use crate::render::answer::own_history;
use crate::render::screen::{answer, gate, kernels, links, measured, nodes, wrong_links};
use crate::report::Report;
use crate::report::screen::ScreenReport;

/// The result; with `suggest`, also the commands that would drain nodes.
pub fn screen(report: &Report, suggest: bool, top: usize) -> String {
    let mut text = String::new();
    if let Some(screen) = &report.screen {
        result(&mut text, screen, &own_history::classes(report), top);
        if suggest {
            suggestions(&mut text, screen);
        }
    }
    warnings(&mut text, report);
    text
}

/// What was measured, the answer, and the tables. `more` are further sentences of the answer.
pub fn result(text: &mut String, screen: &ScreenReport, more: &[String], top: usize) {
    line(text, &measured(screen));
    line(text, "");
    gate(screen).iter().for_each(|sentence| line(text, sentence));
    answer(screen).iter().chain(more).for_each(|sentence| line(text, sentence));
    table(text, &nodes(screen, top));
    table(text, &links(screen, top));
    table(text, &wrong_links(screen, top));
    table(text, &kernels(screen));
}

fn suggestions(text: &mut String, screen: &ScreenReport) {
    line(text, "");
    if screen.suggestions.is_empty() {
        line(text, "no node should be drained");
        return;
    }
    line(text, "commands that would drain these nodes:");
    for suggestion in &screen.suggestions {
        line(text, &suggestion.command);
    }
}
