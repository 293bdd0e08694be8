//! Metrics and counts of each node, socket, NUMA node, core or rank: the median over its runs, with the slow runs apart.

use crate::input::place_source::{PlaceSource, ReadPlaces};
use crate::stats::qn_scale::qn;
use crate::table::RunTable;
use crate::table::place_table::Level;
use crate::table::place_values::{MetricNullReason, OfPlace, PlaceKey, Wanted, of_table, scope_of_most};
use crate::verdicts::node_report::SlowRunReport;
use crate::warnings::{ClassWarning, Warning};
use pmmpi::counters::open_counters::Scope;
use pmmpi_events::metrics::catalogue;
use pmmpi_events::validation::Trust;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Metrics in which places are compared, the most telling first.
pub const COMPARED: [&str; 12] = [
    "utilisation",
    "core_utilisation",
    "frequency_active",
    "frequency_net",
    "ipc",
    "read_bandwidth",
    "dram_bandwidth",
    "snoop_filter_eviction_rate",
    "busy_threads",
    "kernel_cycle_share",
    "context_switch_rate",
    "page_fault_rate",
];

/// With fewer places, their spread is not known.
const FEWEST_COMPARED: usize = 5;
/// Smaller spreads (a fraction of the median) count as this much, as with verdicts on nodes.
const LEAST_SPREAD: f64 = 0.002;
/// Smaller differences (in spreads) are not shown: two of a thousand places differ by more by chance.
const LEAST_SCORE: f64 = 3.0;

/// Every place of the runs.
#[derive(Debug, Serialize)]
pub struct ByPlace {
    /// node, socket, numa, core, thread or rank.
    pub by: &'static str,
    /// The metrics of the default group, and those that some place has.
    pub metrics: Vec<PlaceMetric>,
    /// The units of counts that have one, by the name of the event: bytes, ns, J.
    pub units: BTreeMap<String, String>,
    /// One per class, node, place and region, in this order.
    pub places: Vec<PlaceSummary>,
}

/// One metric.
#[derive(Debug, Serialize)]
pub struct PlaceMetric {
    /// The name in `pmmpi list metrics`.
    pub name: &'static str,
    /// Unit; "1" for ratios.
    pub unit: &'static str,
    /// Number of places with a value.
    pub places: usize,
    /// Why another place has no value; absent if all have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<MetricNullReason>,
}

/// One place.
#[derive(Debug, Serialize)]
pub struct PlaceSummary {
    /// The class of the runs.
    pub class: String,
    /// Host name.
    pub node: String,
    /// The parts of the node that tell the place apart: socket, numa, core, hardware_thread, rank. Null if the place has several.
    #[serde(flatten)]
    pub place: BTreeMap<&'static str, Option<u32>>,
    /// The region; absent for the whole work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whose counts these are: `task` (threads of ranks) or `core` (all that ran on the hardware threads); absent without
    /// such counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'static str>,
    /// The metric in which the place differs most from the others of its class; absent if they are too few, or alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differs: Option<Differs>,
    /// Runs that are not slow.
    #[serde(flatten)]
    pub usual: PlaceValues,
    /// Slow runs of this node; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow: Option<PlaceValues>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, PlaceNullReason>,
}

/// Why a part of a place is null: the place has several of these parts, or may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceNullReason {
    /// The ranks may run on several sockets, or the topology of the node is unknown.
    Sockets,
    /// Likewise, NUMA nodes.
    NumaNodes,
    /// Likewise, cores.
    Cores,
    /// Likewise, hardware threads.
    HardwareThreads,
    /// Several ranks share the place.
    Ranks,
}

/// How a place differs from the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Differs {
    /// The metric.
    pub metric: &'static str,
    /// The difference as a fraction of the median of the places.
    pub by: f64,
    /// The difference in spreads of the places (Qn); without a sign.
    pub score: f64,
}

/// Medians over runs. What a place lacks is absent.
#[derive(Debug, Default, Serialize)]
pub struct PlaceValues {
    /// Number of runs.
    pub runs: usize,
    /// Mean over the ranks of the place, or over those of the node if the place has none of its own (s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// Metrics, by name.
    pub metrics: BTreeMap<&'static str, f64>,
    /// Sums of counts, by the name of the event, in its unit.
    pub events: BTreeMap<String, f64>,
}

/// The values of a place in its runs.
#[derive(Default)]
struct Runs {
    usual: Vec<OfPlace>,
    slow: Vec<OfPlace>,
}

impl ByPlace {
    /// All places of the runs in `table`.
    pub fn of(
        source: &PlaceSource,
        table: &RunTable,
        slow: &[SlowRunReport],
        level: Level,
        trust: &Trust,
    ) -> (Self, Vec<Warning>) {
        let ReadPlaces { parts, mut warnings } =
            source.read(&source.runs(), trust, |rows| of_table(rows, level, Wanted::Metrics));
        let classes: HashMap<(String, &str), &str> = (0..table.len())
            .filter(|row| table.is_own(*row))
            .map(|row| ((table.run_id(row), table.node_name(row)), table.class_name(row)))
            .collect();
        let slow: HashSet<(&str, &str)> =
            slow.iter().map(|run| (run.run_id.as_str(), run.node.as_str())).collect();
        let mut places: BTreeMap<(&str, PlaceKey), Runs> = BTreeMap::new();
        let mut of_classes: BTreeMap<&str, Vec<(String, PlaceKey, OfPlace)>> = BTreeMap::new();
        for (run_id, key, values) in parts.into_iter().flatten() {
            // A node that was not selected, or has no time.
            let Some(class) = classes.get(&(run_id.clone(), key.node.as_str())) else { continue };
            of_classes.entry(class).or_default().push((run_id, key, values));
        }
        for (class, all) in of_classes {
            let (all, warning) = with_one_scope(all, level, class);
            warnings.extend(warning.map(Warning::from));
            for (run_id, key, values) in all {
                let is_slow = slow.contains(&(run_id.as_str(), key.node.as_str()));
                let runs = places.entry((class, key)).or_default();
                if is_slow { runs.slow.push(values) } else { runs.usual.push(values) }
            }
        }
        if source.runs().is_empty() {
            warnings.push(ClassWarning::NoPlaces.into());
        }
        let metrics = metrics(places.values());
        let units = units(places.values());
        let summary =
            |((class, key), runs): ((&str, PlaceKey), Runs)| PlaceSummary::new(class, key, runs, level);
        let mut places: Vec<PlaceSummary> = places.into_iter().map(summary).collect();
        compare(&mut places);
        (Self { by: level.name(), metrics, units, places }, warnings)
    }
}

/// The values of a class without those whose counts are of another scope than most: a median must not mix the two. The
/// work and each region are on their own: regions have counts of ranks only.
fn with_one_scope(
    mut all: Vec<(String, PlaceKey, OfPlace)>,
    level: Level,
    class: &str,
) -> (Vec<(String, PlaceKey, OfPlace)>, Option<ClassWarning>) {
    let regions: HashSet<Option<String>> = all.iter().map(|(_, key, _)| key.region.clone()).collect();
    let of_most = |region: &Option<String>| {
        let of_region = all.iter().filter(|(_, key, _)| key.region == *region);
        scope_of_most(of_region.map(|(.., values)| values.scope))
    };
    let shown: HashMap<Option<String>, Option<Scope>> =
        regions.iter().map(|region| (region.clone(), of_most(region))).collect();
    let runs = |all: &[(String, PlaceKey, OfPlace)]| {
        all.iter().map(|(run, ..)| run.clone()).collect::<BTreeSet<String>>()
    };
    let before = runs(&all);
    let is_shown =
        |region: &Option<String>, values: &OfPlace| values.scope.is_none() || values.scope == shown[region];
    let left_out: BTreeSet<String> = all
        .iter()
        .filter(|(_, key, values)| !is_shown(&key.region, values))
        .map(|(run, ..)| run.clone())
        .collect();
    if left_out.is_empty() {
        return (all, None);
    }
    let warning = ClassWarning::MixedScopes {
        by: level.name(),
        left_out: left_out.len(),
        runs: before.len(),
        // Without counts of the whole work, there are only counts of regions: those of ranks.
        shown: shown.get(&None).copied().flatten().unwrap_or(Scope::Task),
        class: class.to_owned(),
    };
    all.retain(|(_, key, values)| is_shown(&key.region, values));
    (all, Some(warning))
}

/// Places of one class are compared in each metric that shows how fast or how busy they are.
fn compare(places: &mut [PlaceSummary]) {
    for of_class in places.chunk_by_mut(|a, b| a.class == b.class) {
        let mut whole: Vec<&mut PlaceSummary> =
            of_class.iter_mut().filter(|place| place.region.is_none()).collect();
        for metric in COMPARED {
            let values = whole.iter().filter_map(|place| place.usual.metrics.get(metric).copied());
            let mut ascending: Vec<f64> = values.filter(|value| value.is_finite()).collect();
            ascending.sort_unstable_by(f64::total_cmp);
            let Some(middle) = crate::stats::node_median::of_ascending(&ascending) else { continue };
            let Some(spread) = qn(&ascending).filter(|_| ascending.len() >= FEWEST_COMPARED && middle > 0.0)
            else {
                continue;
            };
            for place in &mut whole {
                let Some(value) = place.usual.metrics.get(metric) else { continue };
                let difference = value - middle;
                let score = difference.abs() / spread.max(LEAST_SPREAD * middle);
                let is_more = place.differs.as_ref().is_none_or(|differs| score > differs.score);
                if score >= LEAST_SCORE && is_more {
                    place.differs = Some(Differs { metric, by: difference / middle, score });
                }
            }
        }
    }
}

/// The units of the events.
fn units<'a>(places: impl Iterator<Item = &'a Runs>) -> BTreeMap<String, String> {
    let mut units = BTreeMap::new();
    for event in places.flat_map(|runs| runs.usual.iter().chain(&runs.slow)).flat_map(|of| &of.events) {
        if !event.unit.is_empty() && !units.contains_key(&event.name) {
            units.insert(event.name.clone(), event.unit.clone());
        }
    }
    units
}

fn metrics<'a>(places: impl Iterator<Item = &'a Runs>) -> Vec<PlaceMetric> {
    let mut having: HashMap<&str, usize> = HashMap::new();
    let mut reasons: HashMap<&str, &MetricNullReason> = HashMap::new();
    for runs in places {
        let all = || runs.usual.iter().chain(&runs.slow);
        let names: HashSet<&str> =
            all().flat_map(|values| values.metrics.iter().map(|(name, _)| *name)).collect();
        for (name, reason) in all().flat_map(|values| &values.lacks) {
            if !names.contains(name) {
                reasons.entry(name).or_insert(reason);
            }
        }
        names.into_iter().for_each(|name| *having.entry(name).or_default() += 1);
    }
    let is_default = |groups: &[String]| groups.iter().any(|group| group == "default");
    let all = catalogue().metrics.iter();
    let shown = all.filter(|metric| having.contains_key(metric.name.as_str()) || is_default(&metric.groups));
    let of = |metric: &'static pmmpi_events::metrics::Metric| PlaceMetric {
        name: &metric.name,
        unit: &metric.unit,
        places: having.get(metric.name.as_str()).copied().unwrap_or(0),
        reason: reasons.get(metric.name.as_str()).copied().cloned(),
    };
    shown.map(of).collect()
}

impl PlaceSummary {
    fn new(class: &str, key: PlaceKey, runs: Runs, level: Level) -> Self {
        let PlaceKey { node, place, rank, region } = key;
        let parts = [
            ("socket", place.socket),
            ("numa", place.numa),
            ("core", place.core),
            ("hardware_thread", place.hardware_thread),
            ("rank", rank),
        ];
        let place: BTreeMap<&str, Option<u32>> =
            parts.into_iter().filter(|(name, _)| level.parts().contains(name)).collect();
        let nulls = place.iter().filter(|(_, number)| number.is_none());
        let null_reasons = nulls.map(|(name, _)| (*name, why_null(name))).collect();
        let scope = scope_of_most(runs.usual.iter().chain(&runs.slow).map(|values| values.scope));
        let scope = scope.map(Scope::name);
        let slow = (!runs.slow.is_empty()).then(|| PlaceValues::of(&runs.slow));
        let usual = PlaceValues::of(&runs.usual);
        Self { class: class.to_owned(), node, place, region, scope, differs: None, usual, slow, null_reasons }
    }
}

fn why_null(part: &str) -> PlaceNullReason {
    match part {
        "socket" => PlaceNullReason::Sockets,
        "numa" => PlaceNullReason::NumaNodes,
        "core" => PlaceNullReason::Cores,
        "hardware_thread" => PlaceNullReason::HardwareThreads,
        _ => PlaceNullReason::Ranks,
    }
}

impl PlaceValues {
    fn of(runs: &[OfPlace]) -> Self {
        let mut metrics: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        let mut events: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for run in runs {
            run.metrics.iter().for_each(|(name, value)| metrics.entry(name).or_default().push(*value));
            run.events.iter().for_each(|event| events.entry(&event.name).or_default().push(event.value));
        }
        Self {
            runs: runs.len(),
            elapsed_s: median(runs.iter().filter_map(|run| run.elapsed_s).collect()),
            metrics: metrics.into_iter().filter_map(|(name, values)| Some((name, median(values)?))).collect(),
            events: events
                .into_iter()
                .filter_map(|(name, values)| Some((name.to_owned(), median(values)?)))
                .collect(),
        }
    }
}

/// `None` without a value.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    crate::stats::node_median::of_ascending(&values)
}
