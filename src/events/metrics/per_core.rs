//! Metrics of cores: each is computed from the counts of a core's hardware threads, then averaged over the cores that
//! have a value.

use super::catalogue::{CpuTable, Meaning, Metric, Per, Sibling, catalogue};
use super::cpu::{CpuKind, has_tsc};
use super::evaluate::{FormulaValue, Lack, MetricValue, evaluate_one};
use super::inputs::{MetricInput, MetricInputs, worse};
use crate::readings::readings;
use crate::validation::RunTrust;
use pmmpi::clock::Crystal;
use pmmpi::counters::count_and_quality::{Quality, Reading, WhyUnavailable};
use pmmpi::counters::counts::CountRow;
use pmmpi::counters::event::Event;
use pmmpi::counters::open_counters::Scope;
use pmmpi::record::{RankRecord, Run};
use pmmpi::{NodeId, RankId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Every metric of cores; empty if no rank was to count on siblings.
pub(super) fn of_cores(run: &Run, trust: &RunTrust) -> Vec<MetricValue> {
    let metrics = catalogue().metrics.iter().filter(|metric| metric.per == Per::Core);
    let mut means: Vec<(&'static Metric, Mean)> = metrics.map(|metric| (metric, Mean::default())).collect();
    for node in nodes(run) {
        let Some(table) = node.table else { continue };
        for core in node.cores() {
            let inputs = node.inputs(&core, trust);
            for (metric, mean) in &mut means {
                mean.add(evaluate_one(table, &inputs, metric), || node.name(&core));
            }
        }
    }
    let value =
        |(metric, mean): (&'static Metric, Mean)| Some(MetricValue { metric, result: mean.result()? });
    means.into_iter().filter_map(value).collect()
}

/// A node with a rank that was to count on siblings.
struct Node<'a> {
    run: &'a Run,
    /// Limit of a clock's rate error, as a fraction.
    drift: f64,
    host: &'a str,
    /// The record of that rank; `None` if the rank did not reach its end.
    record: Option<&'a RankRecord>,
    table: Option<&'static CpuTable>,
    crystal: Crystal,
    /// Names of the events that siblings count.
    siblings: Vec<(&'static str, Sibling)>,
    /// By hardware thread; `None` holds what could be counted on no hardware thread.
    rows: BTreeMap<Option<u32>, Vec<&'a CountRow>>,
    /// Hardware threads of each core; empty if the node's topology is unknown.
    cores: BTreeMap<u32, Vec<u32>>,
}

struct Core<'a> {
    /// The number in the node's topology.
    number: Option<u32>,
    threads: &'a [u32],
}

fn nodes(run: &Run) -> Vec<Node<'_>> {
    let records: HashMap<RankId, &RankRecord> = run.ranks.iter().map(|rank| (rank.rank, rank)).collect();
    let ended = run.ranks.iter().map(|rank| (rank.rank, rank.node));
    let of: HashMap<RankId, NodeId> =
        ended.chain(run.lost.iter().map(|rank| (rank.rank, rank.node))).collect();
    let drift = run.max_drift().ppm() * 1e-6;
    let mut nodes: BTreeMap<RankId, Node> = BTreeMap::new();
    for row in run.counts.rows.iter().filter(|row| row.region.is_none()) {
        let set = &run.counts.sets[row.set as usize];
        let Some(node) = of.get(&row.rank).filter(|_| set.scope == Scope::Core) else { continue };
        let record = records.get(&row.rank).copied();
        let node = nodes.entry(row.rank).or_insert_with(|| Node::new(run, drift, *node, record));
        if set.events.iter().any(|(event, _)| node.sibling(&event.name).is_some()) {
            node.rows.entry(row.cpu).or_default().push(row);
        }
    }
    nodes.into_values().filter(|node| !node.rows.is_empty()).collect()
}

impl<'a> Node<'a> {
    /// Without its rows.
    fn new(run: &'a Run, drift: f64, node: NodeId, record: Option<&'a RankRecord>) -> Self {
        let node = &run.nodes[node.index()];
        let hardware = node.facts.as_ref().map(|facts| &facts.hardware);
        let kind = hardware.map(CpuKind::of_node).unwrap_or_default();
        let crystal = hardware.map(|hardware| hardware.crystal).unwrap_or_default();
        let table = catalogue().table(&kind);
        let sibling = |(name, meaning): (&'static String, &'static Meaning)| match meaning {
            Meaning::Event(event) => Some((name.as_str(), event.sibling?)),
            _ => None,
        };
        let siblings = table.into_iter().flat_map(|table| &table.names).filter_map(sibling).collect();
        let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let topology = node.topology.map(|topology| &run.topologies[topology as usize]);
        for thread in topology.into_iter().flat_map(|topology| &topology.threads) {
            cores.entry(thread.core).or_default().push(thread.cpu);
        }
        let host = &node.key.hostname;
        Self { run, drift, host, record, table, crystal, siblings, rows: BTreeMap::new(), cores }
    }

    fn sibling(&self, name: &str) -> Option<Sibling> {
        self.siblings.iter().find(|(known, _)| *known == name).map(|(_, sibling)| *sibling)
    }

    /// The cores of the topology, and another one for each first sibling that the topology lacks.
    fn cores(&self) -> Vec<Core<'_>> {
        let known = self.cores.iter().map(|(number, threads)| Core { number: Some(*number), threads });
        let placed: BTreeSet<u32> = self.cores.values().flatten().copied().collect();
        let is_first = |row: &&CountRow| {
            let events = &self.run.counts.sets[row.set as usize].events;
            events.iter().any(|(event, _)| self.sibling(&event.name) == Some(Sibling::A))
        };
        let unplaced = self.rows.iter().filter_map(|(cpu, rows)| {
            let cpu = cpu.as_ref().filter(|cpu| !placed.contains(cpu))?;
            rows.iter().any(is_first).then_some(std::slice::from_ref(cpu))
        });
        let unplaced = unplaced.map(|threads| Core { number: None, threads });
        let mut cores: Vec<Core> = known.chain(unplaced).collect();
        if cores.is_empty() {
            cores.push(Core { number: None, threads: &[] });
        }
        cores
    }

    fn name(&self, core: &Core) -> String {
        match (core.number, core.threads) {
            (Some(number), _) => format!("core {number} of {}", self.host),
            (None, [cpu, ..]) => format!("hardware thread {cpu} of {}", self.host),
            (None, []) => format!("an unknown core of {}", self.host),
        }
    }

    /// What was counted on a core between t1 and t2 of the counting rank.
    fn inputs(&self, core: &Core, trust: &RunTrust) -> MetricInputs {
        let mut inputs = MetricInputs::new();
        for (name, sibling) in &self.siblings {
            let at = |place| self.input(name, place, trust);
            let here = core.threads.iter().filter_map(|cpu| at(Some(*cpu))).reduce(MetricInput::plus);
            let input = match (here.or_else(|| at(None)), self.why_not(core, *sibling)) {
                (Some(input), Some(why)) if input.value.is_some() => Some(unavailable(why)),
                (None, Some(why)) => Some(unavailable(why)),
                (input, _) => input,
            };
            // The user did not ask for a missing count; the engine reports that.
            input.into_iter().for_each(|input| inputs.add(name, input));
        }
        let Crystal { crystal_hz, .. } = self.crystal;
        crystal_hz.into_iter().for_each(|hz| inputs.set("crystal_hz", hz as f64));
        self.crystal.tsc_per_crystal().into_iter().for_each(|ratio| inputs.set("tsc_per_crystal", ratio));
        if let Some(record) = self.record {
            self.add_times(&mut inputs, record);
        }
        inputs
    }

    /// The sum of an event's readings at a place.
    fn input(&self, name: &str, place: Option<u32>, trust: &RunTrust) -> Option<MetricInput> {
        let readings = self.rows.get(&place)?.iter().flat_map(|row| readings(&self.run.counts, row));
        let named = readings.filter(|(event, _)| event.name == name);
        let input = |(event, reading): (&Event, Reading)| MetricInput {
            trust: trust.of(event),
            ..MetricInput::reading(&reading, event.scale)
        };
        named.map(input).reduce(MetricInput::plus)
    }

    /// Why a count, if there is one, is not what its name says.
    fn why_not(&self, core: &Core, sibling: Sibling) -> Option<String> {
        match (self.record, sibling, core.number, core.threads.len()) {
            (None, ..) => Some(WhyUnavailable::NoSnapshot.to_string()),
            (_, Sibling::A, ..) | (_, _, Some(_), 2) => None,
            (_, _, None, _) => {
                Some("pmmpi does not know which hardware threads of the node share a core".to_owned())
            }
            (_, _, _, 1) => Some("only one hardware thread of the core is online".to_owned()),
            (_, _, _, more) => {
                Some(format!("the core has {more} hardware threads, but this metric needs two"))
            }
        }
    }

    fn add_times(&self, inputs: &mut MetricInputs, record: &RankRecord) {
        let worked_ns = record.stamps.inner_ns() as f64;
        let ticks = record.tsc.map(|[from, to]| to.wrapping_sub(from) as f64);
        ticks.into_iter().for_each(|ticks| inputs.set("tsc", ticks));
        if worked_ns <= 0.0 {
            return;
        }
        let has_tsc = has_tsc(self.run);
        ticks
            .filter(|_| has_tsc)
            .into_iter()
            .for_each(|ticks| inputs.set("tsc_hz", ticks / (worked_ns * 1e-9)));
        // All siblings are read within one snapshot, and tsc_hz is as exact as the clock.
        let [start_ns, stop_ns] = self.run.counts.cost.map_or([0; 2], |[_, most]| most.snapshots_ns);
        let apart = (start_ns as f64 + stop_ns as f64).max(0.0) / worked_ns;
        inputs.set("smt_slack", apart + self.drift);
    }
}

fn unavailable(reason: String) -> MetricInput {
    let missing = MetricInput { value: None, quality: Quality::Unavailable, ..MetricInput::exact(0) };
    MetricInput { reason: Some(reason), ..missing }
}

/// The mean over the cores that have a value.
#[derive(Default)]
struct Mean {
    cores: usize,
    sum: f64,
    /// The worst quality and trust of these cores.
    worth: Option<FormulaValue>,
    held: usize,
    /// The first core that is left out, and why.
    without: Option<(String, Lack)>,
}

impl Mean {
    fn add(&mut self, result: Result<FormulaValue, Lack>, name: impl FnOnce() -> String) {
        self.cores += 1;
        match result {
            Ok(value) => {
                self.held += 1;
                self.sum += value.value;
                self.worth = Some(match self.worth.take() {
                    Some(worth) => worth.taint(value),
                    None => value,
                });
            }
            Err(lack) => {
                self.without.get_or_insert_with(|| (name(), lack));
            }
        }
    }

    /// `None` without any core.
    fn result(self) -> Option<Result<FormulaValue, Lack>> {
        let Some(worth) = self.worth else { return self.without.map(|(_, lack)| Err(lack)) };
        let value = self.sum / self.held as f64;
        if !value.is_finite() {
            return Some(Err(Lack::NotFinite));
        }
        let Some((name, lack)) = self.without else { return Some(Ok(FormulaValue { value, ..worth })) };
        let out = self.cores - self.held;
        let (are, which) = if out == 1 { ("is", "this is") } else { ("are", "the first of these is") };
        let left_out = format!("{out} of {} cores {are} left out; {which} {name}: {lack}", self.cores);
        let remarks: Vec<String> = [Some(left_out), worth.remark].into_iter().flatten().collect();
        Some(Ok(FormulaValue {
            value,
            quality: worse(worth.quality, Quality::Partial),
            remark: Some(remarks.join("; ")),
            ..worth
        }))
    }
}
