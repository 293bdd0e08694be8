//! Metrics and counts by place: a table for people, and one row per value for scripts.

use super::cells::{class_numbers, percent};
use super::csv::{name as csv_name, number};
use super::tabular::{Table, left, name, right, words};
use super::{more, shown};
use crate::report::Report;
use crate::report::by_place::{ByPlace, COMPARED, PlaceMetric, PlaceSummary, PlaceValues};
use crate::table::place_table::Level;
use std::collections::BTreeSet;

/// Columns of metrics that fit on a line.
const METRICS: usize = 3;

/// Columns of the CSV: a contract, see docs/report.md.
pub const COLUMNS: [&str; 13] = [
    "class", "node", "socket", "numa", "core", "rank", "region", "runs_are", "runs", "kind", "name", "unit",
    "value",
];
/// One more column, the last one, if the places are hardware threads.
pub const HARDWARE_THREAD: &str = "hardware_thread";

/// The places of the whole work, those that differ most first. `None` if the user did not ask for them.
pub fn table(report: &Report, top: usize) -> Option<Table> {
    let by_place = report.by_place.as_ref()?;
    let numbers = class_numbers(&report.nodes);
    let has_classes = numbers.len() > 1;
    let mut places: Vec<&PlaceSummary> =
        by_place.places.iter().filter(|place| place.region.is_none()).collect();
    let order = |place: &PlaceSummary| [change(place), score(place)];
    places.sort_by(|a, b| {
        let [a, b] = [order(a), order(b)];
        b[0].total_cmp(&a[0]).then(b[1].total_cmp(&a[1]))
    });
    let (shown, hidden) = shown(places.len(), top);
    let metrics = shown_metrics(by_place);
    let parts: BTreeSet<&str> = places.iter().flat_map(|place| place.place.keys().copied()).collect();
    // The level itself always has a column.
    let own = if has_threads(by_place) { HARDWARE_THREAD } else { by_place.by };
    let parts: Vec<&str> = ["socket", "numa", "core", HARDWARE_THREAD, "rank"]
        .into_iter()
        .filter(|part| parts.contains(part) && (*part == own || has_any(part, &places)))
        .collect();
    let has_slow = places.iter().any(|place| place.slow.is_some());
    let has_differences = places.iter().any(|place| place.differs.is_some());
    let mut columns = vec![left("Node")];
    columns.extend(has_classes.then(|| right("Class")));
    columns.extend(parts.iter().map(|part| right(title_of(part))));
    columns.push(right("Runs"));
    columns.extend(metrics.iter().map(|metric| right(column_of(metric.name).0)));
    columns.extend(has_differences.then(|| left("Differs in")));
    columns.extend(has_slow.then(|| left("In slow runs")));
    let row = |place: &&PlaceSummary| {
        let mut row = vec![name(&place.node)];
        row.extend(
            has_classes
                .then(|| words(numbers.get(place.class.as_str()).map_or("-".to_owned(), usize::to_string))),
        );
        row.extend(parts.iter().map(|part| match place.place.get(part) {
            Some(Some(number)) => words(number),
            _ => words("any"),
        }));
        row.push(words(place.usual.runs));
        row.extend(metrics.iter().map(|metric| match place.usual.metrics.get(metric.name) {
            Some(value) => words(format!("{:.3}", value / column_of(metric.name).1)),
            None => words("-"),
        }));
        row.extend(has_differences.then(|| match &place.differs {
            Some(differs) => words(format!("{} {}", differs.metric, percent(differs.by, 1))),
            None => words("-"),
        }));
        row.extend(has_slow.then(|| match in_slow_runs(place) {
            Some((metric, ratio)) => words(format!("{metric} x {ratio:.2}")),
            None => words("-"),
        }));
        row
    };
    let rows = places[..shown].iter().map(row).collect();
    let mut notes = Vec::new();
    if metrics.is_empty()
        && let Some(PlaceMetric { name, reason: Some(reason), .. }) = by_place.metrics.first()
    {
        notes.push(format!("no metric has a value; the reason for {name}: {reason}"));
    }
    if parts.iter().any(|part| places.iter().any(|place| place.place.get(part) == Some(&None))) {
        notes.push(
            "any: pmmpi does not know the place (such as the core), for example because the ranks are not bound"
                .to_owned(),
        );
    }
    Some(Table {
        columns,
        rows,
        more: more(hidden, "more row"),
        notes,
        before: Some(format!("by {}", by_place.by)),
    })
}

/// True if the places are hardware threads.
fn has_threads(by_place: &ByPlace) -> bool {
    by_place.by == Level::Thread.name()
}

/// True if some place has a number of this part.
fn has_any(part: &str, places: &[&PlaceSummary]) -> bool {
    places.iter().any(|place| place.place.get(part).is_some_and(Option::is_some))
}

fn score(place: &PlaceSummary) -> f64 {
    place.differs.as_ref().map_or(0.0, |differs| differs.score)
}

/// The most telling metrics with values.
fn shown_metrics(by_place: &ByPlace) -> Vec<&PlaceMetric> {
    let with_values =
        |name: &&str| by_place.metrics.iter().find(|metric| metric.name == *name && metric.places > 0);
    COMPARED.iter().filter_map(with_values).take(METRICS).collect()
}

/// The metric that differs most between the slow runs and the others, and their quotient.
fn in_slow_runs(place: &PlaceSummary) -> Option<(&'static str, f64)> {
    let slow = place.slow.as_ref()?;
    let ratio = |name: &&'static str| {
        let ratio = slow.metrics.get(name)? / place.usual.metrics.get(name)?;
        (ratio > 0.0 && ratio.is_finite()).then_some((*name, ratio))
    };
    COMPARED.iter().filter_map(ratio).max_by(|a, b| a.1.ln().abs().total_cmp(&b.1.ln().abs()))
}

/// How much the place differs in slow runs (ln); 0 without slow runs.
fn change(place: &PlaceSummary) -> f64 {
    in_slow_runs(place).map_or(0.0, |(_, ratio)| ratio.ln().abs())
}

fn title_of(part: &str) -> &'static str {
    match part {
        "socket" => "Socket",
        "numa" => "NUMA",
        "core" => "Core",
        HARDWARE_THREAD => "Thread",
        _ => "Rank",
    }
}

/// The heading of a metric's column, and its unit there.
fn column_of(metric: &str) -> (&'static str, f64) {
    match metric {
        "utilisation" => ("Utilisation", 1.0),
        "core_utilisation" => ("Core utilisation", 1.0),
        "frequency_active" => ("GHz", 1e9),
        "frequency_net" => ("Net GHz", 1e9),
        "ipc" => ("IPC", 1.0),
        "read_bandwidth" => ("L2 fills, GB/s", 1e9),
        "dram_bandwidth" => ("DRAM, GB/s", 1e9),
        "snoop_filter_eviction_rate" => ("Evictions, M/s", 1e6),
        "busy_threads" => ("Busy threads", 1.0),
        "kernel_cycle_share" => ("Kernel share", 1.0),
        "context_switch_rate" => ("Switches/s", 1.0),
        _ => ("Page faults/s", 1.0),
    }
}

/// One row per place, metric or event, and for the slow runs another one.
pub fn csv(by_place: &ByPlace) -> Result<String, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let threads = has_threads(by_place).then_some(HARDWARE_THREAD);
    writer.write_record(COLUMNS.into_iter().chain(threads))?;
    for place in &by_place.places {
        let part = |part: &str| {
            place.place.get(part).copied().flatten().map(|number| number.to_string()).unwrap_or_default()
        };
        let head = [
            csv_name(&place.class),
            csv_name(&place.node),
            part("socket"),
            part("numa"),
            part("core"),
            part("rank"),
            csv_name(place.region.as_deref().unwrap_or_default()),
        ];
        let both = [("usual", Some(&place.usual)), ("slow", place.slow.as_ref())];
        for (which, values) in both.into_iter().filter_map(|(which, values)| Some((which, values?))) {
            for (kind, name, unit, value) in rows_of(values, by_place) {
                let tail = [
                    which.to_owned(),
                    values.runs.to_string(),
                    kind.to_owned(),
                    csv_name(name),
                    unit.to_owned(),
                    number(Some(value)),
                ];
                let thread = threads.map(part);
                writer.write_record(head.iter().chain(&tail).chain(&thread))?;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn rows_of<'a>(values: &'a PlaceValues, by_place: &'a ByPlace) -> Vec<(&'static str, &'a str, &'a str, f64)> {
    let of_metric = |name: &str| {
        by_place.metrics.iter().find(|metric| metric.name == name).map_or("", |metric| metric.unit)
    };
    let of_event = |name: &str| by_place.units.get(name).map_or("", String::as_str);
    let time = values.elapsed_s.map(|elapsed| ("time", "elapsed_s", "s", elapsed));
    let metrics = values.metrics.iter().map(|(name, value)| ("metric", *name, of_metric(name), *value));
    let events = values.events.iter().map(|(name, value)| ("event", name.as_str(), of_event(name), *value));
    time.into_iter().chain(metrics).chain(events).collect()
}
