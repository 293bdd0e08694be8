//! Regions and metrics of the latest run that has any.

use super::tabular::{Cell, Table, left, name, right, words};
use super::{more, shown};
use crate::report::metrics::MetricReport;
use crate::report::regions::RegionReport;
use crate::report::run::RunReport;
use crate::report::series::{SeriesMetric, SeriesReport};
use crate::table::run_name::ShortIds;
use pmmpi::text::{count, seconds_between};
use std::collections::{BTreeMap, HashSet};

/// The latest run that has some, and its short id among all runs.
pub(super) fn latest(runs: &[RunReport], has: impl Fn(&RunReport) -> bool) -> Option<(&RunReport, &str)> {
    let run = runs.iter().rfind(|run| has(run))?;
    let ids = ShortIds::of(runs.iter().map(|run| run.run_id.as_str()));
    Some((run, ids.short(&run.run_id)))
}

/// "regions of the last run, 97b5".
pub(super) fn whose(what: &str, of: &RunReport, id: &str, runs: &[RunReport]) -> String {
    let is_last = runs.last().is_some_and(|last| last.run_id == of.run_id);
    let of = what.rsplit(' ').next().unwrap_or(what);
    let which = if is_last { String::new() } else { format!(" with {of}") };
    format!("{what} of the last run{which}, {id}")
}

/// The regions, longest first.
pub fn regions(runs: &[RunReport], top: usize) -> Option<Table> {
    let (run, id) = latest(runs, |run| !run.regions.is_empty())?;
    let mut regions: Vec<&RegionReport> = run.regions.iter().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.upper_ns));
    let (shown, hidden) = shown(regions.len(), top);
    let row = |region: &&RegionReport| {
        let took = region.lower_ns.zip(region.upper_ns).map_or("unknown".to_owned(), |(lower, upper)| {
            let (lower, upper) = seconds_between(lower, upper);
            format!("{lower} and {upper}")
        });
        let part =
            |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        vec![
            name(&region.name),
            words(region.entries.map_or("differ".to_owned(), |entries| entries.to_string())),
            words(took),
            words(part(region.share)),
            words(region.balance.map_or("-".to_owned(), |balance| format!("{balance:.2}"))),
            words(part(region.waiting_share)),
            words(region.slowest_rank),
        ]
    };
    Some(Table {
        before: Some(whose("regions", run, id, runs)),
        columns: vec![
            left("Region"),
            right("Entries"),
            left("Took between, s"),
            right("Share"),
            right("Balance"),
            right("Waiting"),
            right("Rank"),
        ],
        rows: regions[..shown].iter().map(row).collect(),
        more: more(hidden, "more region"),
        notes: vec![
            "WAITING: the ranks' waiting time at the end of the region, as a share of their time in the region; \
             RANK: the rank with the longest time in the region"
                .to_owned(),
        ],
    })
}

/// The metrics of the regions, and what they say about the measurement.
pub fn metrics_of_regions(runs: &[RunReport], top: usize) -> Option<Table> {
    let (run, id) = latest(runs, |run| !run.regions.is_empty())?;
    let mut regions: Vec<&RegionReport> = run.regions.iter().collect();
    regions.sort_by_key(|region| std::cmp::Reverse(region.upper_ns));
    let measured = |region: &&RegionReport| {
        let metrics = region.metrics.iter().filter(|metric| metric.value.is_some());
        metrics.map(|metric| (region.name.clone(), metric.clone())).collect::<Vec<_>>()
    };
    let measured: Vec<(String, MetricReport)> = regions.iter().flat_map(measured).collect();
    let (shown, hidden) = shown(measured.len(), top);
    let row = |(region, metric): &(String, MetricReport)| {
        let [metric, value, quality] = cells(metric);
        vec![name(region), metric, value, quality]
    };
    let flag = |region: &&RegionReport| {
        let flags = region.flags.iter();
        flags.map(|flag| format!("{}: {}: {}", region.name, flag.code, flag.finding)).collect::<Vec<_>>()
    };
    let notes: Vec<String> = regions.iter().flat_map(flag).collect();
    (!measured.is_empty() || !notes.is_empty()).then(|| Table {
        before: Some(whose("metrics of the regions", run, id, runs)),
        columns: vec![left("Region"), left("Metric"), right("Value"), left("Quality")],
        rows: measured[..shown].iter().map(row).collect(),
        more: more(hidden, "more metric"),
        notes,
    })
}

/// The metrics, and why the others are missing. If the runs of the last run's series counted different events, the metrics
/// are those of the series.
pub fn metrics(runs: &[RunReport], series: &[SeriesReport], top: usize) -> Option<Table> {
    let (run, id) = latest(runs, |run| !run.metrics.is_empty())?;
    if let Some(series) = series.iter().find(|series| Some(&series.series) == run.series.as_ref()) {
        return Some(of_series(series, runs, top));
    }
    let measured: Vec<_> = run.metrics.iter().filter(|metric| metric.value.is_some()).collect();
    let (shown, hidden) = shown(measured.len(), top);
    let row = |metric: &&MetricReport| {
        let [metric, value, quality] = cells(metric);
        vec![metric, value, quality]
    };
    Some(Table {
        before: Some(whose("metrics", run, id, runs)),
        columns: vec![left("Metric"), right("Value"), left("Quality")],
        rows: measured[..shown].iter().map(row).collect(),
        more: more(hidden, "more metric"),
        notes: missing(run),
    })
}

/// The metrics of a series, each with the number of runs that have it.
fn of_series(series: &SeriesReport, runs: &[RunReport], top: usize) -> Table {
    let measured: Vec<_> = series.metrics.iter().filter(|of| of.runs > 0).collect();
    let (shown, hidden) = shown(measured.len(), top);
    let row = |of: &&SeriesMetric| {
        let [metric, value, quality] = cells(&of.metric);
        vec![metric, value, words(of.runs), quality]
    };
    let of_series = runs.iter().filter(|run| run.series.as_deref() == Some(&series.series));
    let mut notes: Vec<String> = of_series.flat_map(missing).collect();
    let mut known = HashSet::new();
    notes.retain(|note| known.insert(note.clone()));
    Table {
        before: Some(format!(
            "metrics of the last run's series: its {} did not all count the same events; each metric comes \
             from the run with the median value of this metric",
            count(series.runs, "run")
        )),
        columns: vec![left("Metric"), right("Value"), right("Runs"), left("Quality")],
        rows: measured[..shown].iter().map(row).collect(),
        more: more(hidden, "more metric"),
        notes,
    }
}

/// Name, value and quality.
fn cells(metric: &MetricReport) -> [Cell; 3] {
    let (value, unit) = in_unit(metric.value.unwrap_or_default(), metric.unit);
    let worth = metric.reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
    [
        name(metric.name),
        words(format!("{value} {unit}").trim_end()),
        Cell::Text(format!("{}{worth}", metric.quality)),
    ]
}

/// Why counters have no value, and what the metrics say about the measurement.
fn missing(run: &RunReport) -> Vec<String> {
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
    let missing =
        missing.into_iter().map(|(reason, names)| format!("no value for {}: {reason}", names.join(", ")));
    missing.chain(run.flags.iter().map(|flag| format!("{}: {}", flag.code, flag.finding))).collect()
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
