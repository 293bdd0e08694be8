//! The counters of a run's ranks.

use pmmpi::counters::counts::CountRow;
use pmmpi::counters::event::Event;
use pmmpi::node::Hardware;
use pmmpi::record::Run;
use pmmpi_events::errata;
use pmmpi_events::totals::{Sum, Total, sums, totals};
use pmmpi_events::validation::{EventVerdict, RunTrust};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One event, over all measured ranks.
#[derive(Debug, Serialize)]
pub struct CounterReport {
    /// The name in `pmmpi list events`.
    pub name: String,
    /// Where the event was counted: task, core or socket.
    pub scope: &'static str,
    /// Unit of the value; empty for counts.
    pub unit: String,
    /// The sum over all ranks or places; scaled if the event was not counted all the time.
    pub value: Option<CounterValue>,
    /// Quality: exact, scaled, partial, unsupported, denied, unavailable or overflowed.
    pub quality: &'static str,
    /// Why the value is not exact: the first rank or place with this quality, and its reason.
    pub reason: Option<String>,
    /// The smallest part of the time that the event was counted at any place.
    pub running_share: Option<f64>,
    /// Result of `pmmpi validate` for this event on these processors: trusted, within, unusable; or unknown.
    pub trust: &'static str,
    /// The vendor's errata for this event on these processors: their numbers, and the effect if known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errata: Vec<String>,
    /// The events in this sum: one per kind of core or per memory controller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sum_of: Vec<String>,
}

/// A count, or a count in a unit.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CounterValue {
    /// The number as counted.
    Count(u64),
    /// The number in the event's unit.
    Scaled(f64),
}

/// The time that counting took (ns): on the rank with the least, and on the rank with the most.
#[derive(Debug, Serialize)]
pub struct CountingCost {
    /// Time to open the counters, before the program began.
    pub opening_ns: [i64; 2],
    /// Time of the snapshot after t1.
    pub start_snapshot_ns: [i64; 2],
    /// Time of the snapshot before t2.
    pub stop_snapshot_ns: [i64; 2],
    /// What an entry of a region without content counts, by event, on the rank with the most; empty if not measured.
    pub empty_region: BTreeMap<String, u64>,
}

/// The counters of a run in the order of the event set, then sums of events that several parts of a machine count.
pub fn of(run: &Run, trust: &RunTrust) -> Vec<CounterReport> {
    of_rows(run, trust, |row| row.region.is_none())
}

/// The counters of all entries of one region.
pub fn of_region(run: &Run, name: &str, trust: &RunTrust) -> Vec<CounterReport> {
    let region = run.counts.regions.iter().position(|known| known == name).map(|at| at as u32);
    let Some(region) = region else { return Vec::new() };
    of_rows(run, trust, |row| row.region == Some(region))
}

fn of_rows(run: &Run, trust: &RunTrust, wanted: impl Fn(&CountRow) -> bool) -> Vec<CounterReport> {
    let totals = totals(&run.counts, wanted);
    let sums = sums(&totals);
    let alone = totals.into_iter().filter(|total| !sums.iter().any(|sum| sum.is_named_like(total)));
    let processors = processors(run);
    let mut all: Vec<CounterReport> =
        alone.map(|total| CounterReport::new(total, trust, &processors)).collect();
    all.extend(sums.iter().map(|sum| CounterReport::of_sum(sum, trust, &processors)));
    all
}

/// The processors of the run's nodes, each model once.
fn processors(run: &Run) -> Vec<&Hardware> {
    let all = run.nodes.iter().filter_map(|node| node.facts.as_ref()).map(|facts| &facts.hardware);
    let model = |cpu: &Hardware| (cpu.cpu_vendor.clone(), cpu.cpu_family, cpu.cpu_model);
    let models: BTreeMap<_, &Hardware> = all.map(|cpu| (model(cpu), cpu)).collect();
    models.into_values().collect()
}

/// The errata for one of these events on one of these processors, each once.
fn known_errata(processors: &[&Hardware], events: &[&Event]) -> Vec<String> {
    let of = |event: &&Event| processors.iter().filter_map(|cpu| errata::of(cpu, event)).collect::<Vec<_>>();
    let said: BTreeSet<String> = events.iter().flat_map(of).map(ToString::to_string).collect();
    said.into_iter().collect()
}

/// The cost of counting in a run; `None` if the run has no counters.
pub fn cost_of(run: &Run) -> Option<CountingCost> {
    let [least, most] = run.counts.cost?;
    let snapshots = |at: usize| [least.snapshots_ns[at], most.snapshots_ns[at]];
    Some(CountingCost {
        opening_ns: [least.opening_ns, most.opening_ns],
        start_snapshot_ns: snapshots(0),
        stop_snapshot_ns: snapshots(1),
        empty_region: run.empty_entry.counts.clone(),
    })
}

impl CounterReport {
    fn new(total: Total, trust: &RunTrust, processors: &[&Hardware]) -> Self {
        Self {
            name: total.event.name.clone(),
            scope: total.scope.name(),
            unit: total.event.unit.clone(),
            value: CounterValue::of(total.count, total.event.scale),
            quality: total.quality.name(),
            reason: total.reason.map(|why| why.to_string()),
            running_share: total.running_share,
            trust: word(trust.of(total.event)),
            errata: known_errata(processors, &[total.event]),
            sum_of: Vec::new(),
        }
    }

    fn of_sum(sum: &Sum, trust: &RunTrust, processors: &[&Hardware]) -> Self {
        Self {
            value: CounterValue::of(sum.count, sum.scale),
            name: sum.name.clone(),
            scope: sum.scope.name(),
            unit: sum.unit.clone(),
            quality: sum.quality.name(),
            reason: Some(sum.reason.clone()),
            running_share: sum.running_share,
            trust: word(trust.of_sum(&sum.of)),
            errata: known_errata(processors, &sum.of),
            sum_of: sum.of.iter().map(|event| event.name.clone()).collect(),
        }
    }
}

impl CounterValue {
    fn of(count: Option<u64>, scale: f64) -> Option<Self> {
        match scale {
            1.0 => count.map(CounterValue::Count),
            _ => count
                .map(|count| count as f64 * scale)
                .filter(|value| value.is_finite())
                .map(CounterValue::Scaled),
        }
    }
}

/// The word of `pmmpi validate`; "unknown" if it did not check the event.
fn word(verdict: EventVerdict) -> &'static str {
    if verdict == EventVerdict::Unknown { "unknown" } else { verdict.name() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::counters::event::{Encoding, kind};

    #[test]
    fn errata_are_those_of_every_processor_and_are_said_once() {
        let cpu = |vendor: &str, cpu_family, cpu_model| Hardware {
            cpu_vendor: Some(vendor.into()),
            cpu_family: Some(cpu_family),
            cpu_model: Some(cpu_model),
            ..Hardware::default()
        };
        let [milan, skylake, sapphire] =
            [cpu("AuthenticAMD", 0x19, 1), cpu("GenuineIntel", 6, 0x55), cpu("GenuineIntel", 6, 0x8f)];
        let instructions = Event::counted("instructions", Encoding::new(kind::HARDWARE, 1));
        let raw = Event::counted("r0c0", Encoding::new(kind::RAW, 0xc0));
        let both = known_errata(&[&milan, &skylake, &sapphire], &[&instructions, &raw]);
        assert_eq!(both, ["1292: may overcount", "SKL091 SKL044"]);
        assert!(known_errata(&[&sapphire], &[&instructions]).is_empty());
        assert!(known_errata(&[], &[&instructions]).is_empty());
    }
}
