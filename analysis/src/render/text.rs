//! The report for a terminal: the most important lines first, warnings last.

mod bounds;
mod goes_with_slowness;
mod lateness;
mod node_names;
mod nodes;

pub use bounds::bounds;

use super::{answer, cells, more, one_line, shown};
use crate::report::Report;
use crate::report::run::RunReport;
use node_names::NodeNames;
use pmmpi::text::{count, seconds_between};
use std::collections::BTreeMap;

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
    // If nodes are compared, the comparison comes first; otherwise the time of the jobs comes first.
    let compared = report.nodes.iter().any(|node| node.verdict.is_some() || node.history.verdict.is_some());
    let names = NodeNames::of(all_nodes(report));
    if compared {
        nodes::answer(&mut text, report);
        about_nodes(&mut text, report, &names, top);
    } else if let Some(waited_for) = answer::waited_for(report) {
        line(&mut text, &waited_for);
    }
    runs(&mut text, &report.runs, top);
    lateness::table(&mut text, &report.runs, top);
    regions(&mut text, &report.runs, top);
    metrics(&mut text, &report.runs, top);
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
    nodes::table(text, &report.nodes, names, top);
    nodes::sessions_needed(text, report);
}

fn all_nodes(report: &Report) -> impl Iterator<Item = &str> {
    let nodes = report.nodes.iter().map(|node| node.node.as_str());
    let of_runs = report.slow_runs.iter().map(|run| run.node.as_str());
    nodes.chain(of_runs).chain(report.drift.iter().map(|drift| drift.node.as_str()))
}

/// Adds one line; a line end in a name does not break it.
fn line(text: &mut String, content: &str) {
    text.push_str(&one_line(content.trim_end()));
    text.push('\n');
}

fn and_more(text: &mut String, hidden: usize, what: &str) {
    if let Some(more) = more(hidden, what) {
        line(text, &more);
    }
}

/// The latest runs.
fn runs(text: &mut String, runs: &[RunReport], top: usize) {
    if runs.is_empty() {
        return;
    }
    line(text, "");
    line(text, &format!("{:<42}  {:>6} {:>5}  ELAPSED BETWEEN, s", "RUN", "RANKS", "NODES"));
    let (shown, hidden) = shown(runs.len(), top);
    for run in runs.iter().skip(runs.len() - shown) {
        let elapsed = cells::elapsed(run);
        line(text, &format!("{:<42}  {:>6} {:>5}  {elapsed}", run.run_id, run.ranks, run.nodes));
    }
    and_more(text, hidden, "earlier runs");
}

/// The regions of the latest run that has any, longest first.
fn regions(text: &mut String, runs: &[RunReport], top: usize) {
    let Some(run) = runs.iter().rfind(|run| !run.regions.is_empty()) else { return };
    let mut regions: Vec<_> = run.regions.iter().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.upper_ns));
    line(text, "");
    line(
        text,
        &format!(
            "{:<20} {:>7}  {:<21} {:>6} BALANCE WAITING RANK",
            "REGION (last run)", "ENTRIES", "TOOK BETWEEN, s", "SHARE"
        ),
    );
    let (shown, hidden) = shown(regions.len(), top);
    for region in &regions[..shown] {
        let took = region.lower_ns.zip(region.upper_ns).map_or("unknown".to_owned(), |(lower, upper)| {
            let (lower, upper) = seconds_between(lower, upper);
            format!("{lower} and {upper}")
        });
        let entries = region.entries.map_or("differ".to_owned(), |entries| entries.to_string());
        let balance = region.balance.map_or("-".to_owned(), |balance| format!("{balance:.2}"));
        let part =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        let (share, waiting, rank) = (part(region.share), part(region.waiting_share), region.slowest_rank);
        let times = format!("{took:<21} {share:>6} {balance:>7} {waiting:>7} {rank:>4}");
        line(text, &format!("{:<20} {entries:>7}  {times}", region.name));
    }
    and_more(text, hidden, "more regions");
    line(
        text,
        "WAITING: part of the ranks' time at the end of the region; RANK: the rank with the longest time",
    );
}

/// The metrics of the latest run with counters, and why the others are missing.
fn metrics(text: &mut String, runs: &[RunReport], top: usize) {
    let Some(run) = runs.iter().rfind(|run| !run.metrics.is_empty()) else { return };
    let measured: Vec<_> = run.metrics.iter().filter(|metric| metric.value.is_some()).collect();
    line(text, "");
    line(text, &format!("{:<42} {:>12}  QUALITY", "METRIC (of the last run)", "VALUE"));
    let (shown, hidden) = shown(measured.len(), top);
    for metric in &measured[..shown] {
        let (value, unit) = in_unit(metric.value.unwrap_or_default(), metric.unit);
        let worth = metric.reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
        let worth = format!("{}{worth}", metric.quality);
        line(text, &format!("{:<42} {:>12}  {worth}", metric.name, format!("{value} {unit}").trim_end()));
    }
    and_more(text, hidden, "more metrics");
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    // A sum has no value because one of its members has none; the member gives the reason.
    let alone = run.counters.iter().filter(|counter| counter.sum_of.is_empty());
    for counter in alone.filter(|counter| counter.value.is_none()) {
        let reason = counter.reason.as_deref().unwrap_or("unknown");
        // The part before the colon names the place. Nearly always all places have the same reason, and the JSON
        // format has all.
        let reason = reason.split_once(": ").map_or(reason, |(_, reason)| reason);
        missing.entry(reason).or_default().push(&counter.name);
    }
    for (reason, names) in missing {
        line(text, &format!("no value for {}: {reason}", names.join(", ")));
    }
    for flag in &run.flags {
        line(text, &format!("{}: {}", flag.code, flag.message));
    }
}

/// Three digits, with a prefix for large values.
fn in_unit(value: f64, unit: &str) -> (String, String) {
    let unit = unit.strip_prefix('1').unwrap_or(unit);
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let prefix =
        prefixes.iter().find(|(size, _)| value.abs() >= *size && unit.starts_with(char::is_alphabetic));
    let (scaled, prefix) = prefix.map_or((value, ""), |(size, prefix)| (value / size, *prefix));
    if scaled.abs() >= 1e9 {
        return (format!("{scaled:.2e}"), format!("{prefix}{unit}"));
    }
    let digits = if scaled == 0.0 { 0 } else { (2 - scaled.abs().log10().floor() as i32).clamp(0, 9) };
    (format!("{scaled:.*}", digits as usize), format!("{prefix}{unit}"))
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
