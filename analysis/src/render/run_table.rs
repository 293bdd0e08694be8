//! The table of runs. What all runs have in common is above the table, and not in a column.

use super::cells::{elapsed, shortened};
use super::node_names::without_middle;
use super::tabular::{Cell, Table, left, name, right, words};
use super::{more, one_line, shown};
use crate::report::run::RunReport;
use crate::table::instant;
use crate::table::run_name::ShortIds;
use pmmpi::text::count;
use std::collections::BTreeSet;

/// The latest runs. In at most `width` characters, if possible: commands and labels are cut.
pub fn of(runs: &[RunReport], top: usize, width: Option<usize>) -> Table {
    let (_, hidden) = shown(runs.len(), top);
    let ids = ShortIds::of(runs.iter().map(|run| run.run_id.as_str()));
    let common = Common::of(runs);
    let mut columns = vec![left("Run"), left("Start, UTC")];
    columns.extend(common.sizes.is_none().then(|| [right("Ranks"), right("Nodes")]).into_iter().flatten());
    columns.push(left("Elapsed between, s"));
    columns.extend(common.command.is_none().then(|| left("Command")));
    columns.extend((!common.varying.is_empty()).then(|| left("Labels")));
    let room = width.map(|width| common.room(&runs[hidden..], &ids, width));
    let long = |text: String| match room {
        Some(room) => Cell::Text(without_middle(&one_line(&text), room)),
        None => name(&text),
    };
    let row = |run: &RunReport| {
        let mut cells = vec![name(ids.short(&run.run_id)), words(common.start(run))];
        if common.sizes.is_none() {
            cells.extend([words(run.ranks), words(run.nodes)]);
        }
        cells.push(words(elapsed(run)));
        if common.command.is_none() {
            cells.push(long(command(run)));
        }
        if !common.varying.is_empty() {
            cells.push(long(labels(run, &common.varying)));
        }
        cells
    };
    let rows = runs[hidden..].iter().map(row).collect();
    Table {
        before: common.sentence(runs.len()),
        columns,
        rows,
        more: more(hidden, "earlier run"),
        ..Table::default()
    }
}

/// What all runs have in common.
struct Common<'a> {
    command: Option<String>,
    /// Numbers of ranks and nodes.
    sizes: Option<(usize, usize)>,
    /// The date of the start.
    date: Option<String>,
    /// Keys and values.
    labels: Vec<(&'a str, &'a str)>,
    /// The keys of all other labels.
    varying: BTreeSet<&'a str>,
}

impl<'a> Common<'a> {
    fn of(runs: &'a [RunReport]) -> Self {
        let keys: BTreeSet<&str> =
            runs.iter().flat_map(|run| run.labels.keys().map(String::as_str)).collect();
        let of_all = |key: &&str| same(runs, |run| run.labels.get(*key)).flatten().is_some();
        let (common, varying): (BTreeSet<&str>, BTreeSet<&str>) = keys.into_iter().partition(of_all);
        let value = |key: &str| runs.first().and_then(|run| run.labels.get(key)).map(String::as_str);
        Self {
            command: same(runs, |run| &run.command).and_then(|_| runs.first().map(command)),
            sizes: same(runs, |run| (run.ranks, run.nodes)),
            date: same(runs, |run| date_and_time(run)[0].clone()),
            labels: common.into_iter().filter_map(|key| Some((key, value(key)?))).collect(),
            varying,
        }
    }

    /// For example "all runs: hpcc; 2 ranks on 2 nodes; 2026-11-23". `None` if the runs have nothing in common.
    fn sentence(&self, runs: usize) -> Option<String> {
        let sizes = |(ranks, nodes)| format!("{} on {}", count(ranks, "rank"), count(nodes, "node"));
        let labels = self.labels.iter().map(|(key, value)| shortened(&format!("{key}={value}")));
        let facts: Vec<String> = [self.command.as_deref().map(shortened), self.sizes.map(sizes)]
            .into_iter()
            .flatten()
            .chain(labels)
            .chain(self.date.clone())
            .collect();
        let which = if runs == 1 { "run" } else { "all runs" };
        (!facts.is_empty()).then(|| format!("{which}: {}", facts.join("; ")))
    }

    /// The time of the day, and the day unless the line above the table has it.
    fn start(&self, run: &RunReport) -> String {
        let [date, time] = date_and_time(run);
        if self.date.is_some() { time } else { format!("{date} {time}") }
    }

    /// The characters that are left in a line for the command and for the labels, each.
    fn room(&self, runs: &[RunReport], ids: &ShortIds, width: usize) -> usize {
        const GAP: usize = 2;
        const LEAST: usize = 8;
        let widest = |of: &dyn Fn(&RunReport) -> usize, title: usize| {
            runs.iter().map(of).max().unwrap_or_default().max(title) + GAP
        };
        let id = widest(&|run| ids.short(&run.run_id).chars().count(), 3);
        let start = widest(&|run| self.start(run).len(), "Start, UTC".len());
        let sizes = if self.sizes.is_some() { 0 } else { 2 * (5 + GAP) };
        let took = widest(&|run| elapsed(run).chars().count(), "Elapsed between, s".len());
        let columns = usize::from(self.command.is_none()) + usize::from(!self.varying.is_empty());
        let gaps = GAP * columns.saturating_sub(1);
        (width.saturating_sub(id + start + sizes + took + gaps) / columns.max(1)).max(LEAST)
    }
}

/// The value that all runs have.
fn same<'a, T: PartialEq>(runs: &'a [RunReport], of: impl Fn(&'a RunReport) -> T) -> Option<T> {
    let mut values = runs.iter().map(of);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn command(run: &RunReport) -> String {
    run.command.join(" ")
}

fn labels(run: &RunReport, keys: &BTreeSet<&str>) -> String {
    let of_run = keys.iter().filter_map(|key| Some(format!("{key}={}", run.labels.get(*key)?)));
    of_run.collect::<Vec<_>>().join(" ")
}

/// Of the start (UTC).
fn date_and_time(run: &RunReport) -> [String; 2] {
    instant::utc(run.started_unix_ns)
}
