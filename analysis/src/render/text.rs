//! The report for a terminal: the most important lines first, warnings last.
//!
//! The order of the parts, and tables that only a terminal has, belong here. Sentences are in `answer`; tables that
//! all formats share are in modules beside this one, and `aligned` sets their columns.

mod bounds;
mod goes_with_slowness;
mod lateness;
mod nodes;
mod screen;

pub use bounds::bounds;
pub use screen::screen;

use super::aligned::aligned;
use super::node_names::NodeNames;
use super::tabular::Table;
use super::{answer, by_place, more, one_line, run_table, shown, tables_of_last_run};
use crate::report::Report;
use pmmpi::text::count;

/// Characters of a terminal's line.
const WIDTH: usize = 80;

/// How much input a report has.
#[derive(Clone, Copy, Debug)]
pub struct ReadCounts {
    /// Number of runs: pmmpi's runs, plus each run on a node that another tool measured.
    pub runs: usize,
    /// Number of medians that stand for runs: of a node in a session.
    pub medians: usize,
    /// Number of hosts; each counts once.
    pub hosts: usize,
    /// Number of files that were read.
    pub files: usize,
}

/// A report with at most `top` rows per table (0: all).
pub fn report(report: &Report, read: &ReadCounts, top: usize) -> String {
    let mut text = String::new();
    let medians = (read.medians > 0).then(|| count(read.medians, "median"));
    let counts = [count(read.runs, "run")].into_iter().chain(medians);
    let counts = counts.chain([count(read.hosts, "node"), count(read.files, "file")]);
    line(&mut text, &counts.collect::<Vec<_>>().join(", "));
    if let Some(selected) = &report.selected {
        line(&mut text, &format!("selected: {selected}"));
    }
    let names = NodeNames::of(all_nodes(report));
    if let Some(result) = &report.screen {
        line(&mut text, "");
        screen::result(&mut text, result, &[], &names, top);
    }
    // If nodes are compared, the comparison comes first; otherwise the time of the jobs comes first.
    let compared = report.nodes.iter().any(|node| node.verdict.is_some() || node.history.verdict.is_some());
    if compared {
        nodes::answer(&mut text, report);
        about_nodes(&mut text, report, &names, top);
    } else {
        let sentences = answer::waited_for(report).into_iter().chain(answer::accounted(report));
        sentences.for_each(|sentence| line(&mut text, &sentence));
    }
    table(&mut text, &run_table::of(&report.runs, top, Some(WIDTH)), &names);
    lateness::table(&mut text, &report.runs, &names, top);
    by_place::table(report, top).iter().for_each(|found| table(&mut text, found, &names));
    tables_of_last_run::of(report, top).for_each(|found| table(&mut text, &found, &names));
    if !compared {
        about_nodes(&mut text, report, &names, top);
    }
    warnings(&mut text, report);
    text
}

fn about_nodes(text: &mut String, report: &Report, names: &NodeNames, top: usize) {
    nodes::slow_runs(text, &report.slow_runs, names, top);
    goes_with_slowness::table(text, report, top);
    nodes::odd(text, &report.nodes, names, top);
    nodes::changed(text, &report.nodes, names, top);
    nodes::drift(text, &report.drift, names, top);
    nodes::table(text, report, names, top);
    nodes::sessions_needed(text, report);
}

fn all_nodes(report: &Report) -> impl Iterator<Item = &str> {
    let nodes = report.nodes.iter().map(|node| node.node.as_str());
    let of_runs = report.slow_runs.iter().map(|run| run.node.as_str());
    let of_drift = report.drift.iter().map(|drift| drift.node.as_str());
    let screened = report.screen.iter().flat_map(|screen| &screen.screened).map(|node| node.node.as_str());
    let places = report.by_place.iter().flat_map(|by| &by.places).map(|place| place.node.as_str());
    let waited_for = lateness::nodes(&report.runs);
    nodes.chain(of_runs).chain(of_drift).chain(screened).chain(places).chain(waited_for)
}

/// Adds one line; a line end in a name does not break it.
fn line(text: &mut String, content: &str) {
    text.push_str(&one_line(content.trim_end()));
    text.push('\n');
}

fn and_more(text: &mut String, hidden: usize, noun: &str) {
    if let Some(more) = more(hidden, noun) {
        line(text, &more);
    }
}

fn table(text: &mut String, table: &Table, names: &NodeNames) {
    if !table.rows.is_empty() {
        text.push('\n');
        text.push_str(&aligned(table, names));
    }
}

fn warnings(text: &mut String, report: &Report) {
    for (number, warning) in super::first_warnings::few(report).into_iter().enumerate() {
        if number == 0 {
            line(text, "");
        }
        line(text, &format!("warning: {} [{}]", warning.message, warning.code.name()));
        line(text, &format!("         {}", warning.code.advice()));
    }
}
