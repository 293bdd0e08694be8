//! What a run counted at each place: the rows of [`PlaceTable`].
//!
//! A rank's own threads are at the smallest place that contains all hardware threads on which the rank may run. The counts of
//! a hardware thread belong to a rank if no other rank may run there.

use crate::table::place_table::{Place, PlaceResult, PlaceRow, PlaceTable, RunOfRows};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::open_counters::Scope;
use pmmpi::node::{CpuSet, HwThread, Topology};
use pmmpi::record::{NodeRecord, RankRecord, Run};
use pmmpi_events::metrics::MetricInput;
use pmmpi_events::names::family;
use pmmpi_events::readings::readings;
use pmmpi_events::validation::{EventVerdict, RunTrust};
use std::collections::{BTreeMap, HashMap};

/// The rows of a run on hosts for which `is_wanted` is true. `trust` says which events are not usable.
pub fn of(run: &Run, trust: &RunTrust, is_wanted: impl Fn(&str) -> bool) -> PlaceResult<PlaceTable> {
    let mut ranks: Vec<Vec<&RankRecord>> = vec![Vec::new(); run.nodes.len()];
    run.ranks.iter().for_each(|rank| ranks[rank.node.index()].push(rank));
    let wanted = run.nodes.iter().map(|record| is_wanted(&record.key.hostname).then_some(record));
    let nodes: Vec<Option<NodePlaces>> =
        wanted.zip(&ranks).map(|(record, ranks)| Some(NodePlaces::of(run, record?, ranks))).collect();
    let mut rows = counts(run, &nodes, trust);
    let of_ranks = run.ranks.iter().filter_map(|rank| Some(times(rank, nodes[rank.node.index()].as_ref()?)));
    rows.extend(of_ranks.flatten());
    rows.extend(regions(run, &nodes));
    rows.extend(nodes.iter().flatten().flat_map(NodePlaces::quantities));
    let of = RunOfRows { run_id: &run.header.run_id, started_unix_ns: run.header.started_unix_ns };
    PlaceTable::of_run(of, &rows)
}

/// The places of one node.
struct NodePlaces<'a> {
    record: &'a NodeRecord,
    by_cpu: HashMap<u32, HwThread>,
    /// The place of each of its ranks.
    of_ranks: HashMap<u32, Place>,
    /// The only rank that may run on a hardware thread; `None` if several may.
    only_ranks: BTreeMap<u32, Option<u32>>,
}

impl<'a> NodePlaces<'a> {
    fn of(run: &'a Run, record: &'a NodeRecord, ranks: &[&'a RankRecord]) -> Self {
        let topology: Option<&Topology> = record.topology.map(|topology| &run.topologies[topology as usize]);
        let threads = topology.map(|topology| topology.threads.as_slice()).unwrap_or_default();
        let mut only_ranks: BTreeMap<u32, Option<u32>> = BTreeMap::new();
        let mut of_ranks = HashMap::new();
        // Many ranks may have equal sets.
        let mut known: HashMap<&CpuSet, (Place, Vec<u32>)> = HashMap::new();
        for rank in ranks {
            let allowed = &rank.allowed;
            let (place, cpus) = known
                .entry(allowed)
                .or_insert_with(|| (place_of(allowed, threads), within(allowed, threads)));
            of_ranks.insert(rank.rank.0, *place);
            for cpu in cpus {
                only_ranks.entry(*cpu).and_modify(|only| *only = None).or_insert(Some(rank.rank.0));
            }
        }
        let by_cpu = threads.iter().map(|thread| (thread.cpu, *thread)).collect();
        Self { record, by_cpu, of_ranks, only_ranks }
    }

    /// A row of this node without anything else.
    fn row(&self) -> PlaceRow<'a> {
        let hardware = self.record.facts.as_ref().map(|facts| &facts.hardware);
        PlaceRow {
            node: &self.record.key.hostname,
            cpu_vendor: hardware.and_then(|hardware| hardware.cpu_vendor.as_deref()),
            cpu_model: hardware.and_then(|hardware| Some([hardware.cpu_family?, hardware.cpu_model?])),
            quality: Quality::Exact.name(),
            ..PlaceRow::default()
        }
    }

    fn of_rank(&self, rank: u32) -> PlaceRow<'a> {
        let place = self.of_ranks.get(&rank).copied().unwrap_or_default();
        PlaceRow { place, rank: Some(rank), ..self.row() }
    }

    fn of_thread(&self, cpu: u32) -> PlaceRow<'a> {
        let thread = self.by_cpu.get(&cpu);
        let place = Place {
            socket: thread.map(|thread| thread.socket),
            numa: thread.map(|thread| thread.numa),
            core: thread.map(|thread| thread.core),
            hardware_thread: Some(cpu),
        };
        PlaceRow { place, rank: self.only_ranks.get(&cpu).copied().flatten(), ..self.row() }
    }

    /// A unit outside the cores is watched from one hardware thread of its socket.
    fn of_socket(&self, cpu: u32) -> PlaceRow<'a> {
        let socket = self.by_cpu.get(&cpu).map(|thread| thread.socket);
        PlaceRow { place: Place { socket, ..Place::default() }, ..self.row() }
    }

    /// What metrics need of the node's processor.
    fn quantities(&self) -> Vec<PlaceRow<'a>> {
        let Some(facts) = &self.record.facts else { return Vec::new() };
        let crystal = &facts.hardware.crystal;
        let quantities = [
            ("crystal_hz", "Hz", crystal.crystal_hz.map(|hz| hz as f64)),
            ("tsc_per_crystal", "", crystal.tsc_per_crystal()),
        ];
        let row = |(name, unit, value): (&'static str, &'static str, Option<f64>)| {
            value.map(|value| quantity(self.row(), "node", name, unit, value))
        };
        quantities.into_iter().filter_map(row).collect()
    }
}

/// The smallest place with all of these hardware threads.
fn place_of(allowed: &CpuSet, threads: &[HwThread]) -> Place {
    let mut here = threads.iter().filter(|thread| allowed.contains(thread.cpu));
    let Some(first) = here.next() else { return Place::default() };
    let whole = Place {
        socket: Some(first.socket),
        numa: Some(first.numa),
        core: Some(first.core),
        hardware_thread: Some(first.cpu),
    };
    here.fold(whole, |place, thread| Place {
        socket: place.socket.filter(|socket| *socket == thread.socket),
        numa: place.numa.filter(|numa| *numa == thread.numa),
        core: place.core.filter(|core| *core == thread.core),
        hardware_thread: None,
    })
}

/// The node's hardware threads in this set.
fn within(allowed: &CpuSet, threads: &[HwThread]) -> Vec<u32> {
    threads.iter().map(|thread| thread.cpu).filter(|cpu| allowed.contains(*cpu)).collect()
}

fn counts<'a>(run: &'a Run, nodes: &[Option<NodePlaces<'a>>], trust: &RunTrust) -> Vec<PlaceRow<'a>> {
    let ended = run.ranks.iter().map(|rank| (rank.rank, rank.node));
    let node_of: HashMap<_, _> = ended.chain(run.lost.iter().map(|rank| (rank.rank, rank.node))).collect();
    let mut rows = Vec::new();
    for row in &run.counts.rows {
        let Some(node) = node_of.get(&row.rank).and_then(|node| nodes[node.index()].as_ref()) else {
            continue;
        };
        let scope = run.counts.sets[row.set as usize].scope;
        let at = match (scope, row.cpu) {
            (Scope::Task, _) => node.of_rank(row.rank.0),
            (Scope::Core, Some(cpu)) => node.of_thread(cpu),
            (Scope::Socket, Some(cpu)) => node.of_socket(cpu),
            // Nothing could be opened, so the place is not known.
            (Scope::Core | Scope::Socket, None) => node.row(),
        };
        let region = row.region.map(|region| run.counts.regions[region as usize].as_str());
        for (event, reading) in readings(&run.counts, row) {
            let input = MetricInput::reading(&reading, event.scale);
            let was_counted = input.value.is_some();
            rows.push(PlaceRow {
                region,
                scope: scope.name(),
                event: &event.name,
                family: family(event),
                unit: &event.unit,
                value: input.value.filter(is_amount),
                quality: input.quality.name(),
                reason: input.reason,
                count: was_counted.then_some(reading.count),
                enabled_ns: was_counted.then_some(reading.enabled_ns),
                running_ns: was_counted.then_some(reading.running_ns),
                is_unusable: trust.of(event) == EventVerdict::Unusable,
                ..at.clone()
            });
        }
    }
    rows
}

/// The times of a rank between its t1 and t2.
fn times<'a>(rank: &RankRecord, node: &NodePlaces<'a>) -> Vec<PlaceRow<'a>> {
    let seconds = |ns: i64| ns as f64 * 1e-9;
    let ticks = rank.tsc.map(|[from, to]| to.wrapping_sub(from) as f64);
    let all = [
        ("elapsed_s", "s", Some(seconds(rank.stamps.inner_ns()))),
        ("cpu_user_s", "s", Some(seconds(rank.cpu_user_ns))),
        ("cpu_system_s", "s", Some(seconds(rank.cpu_system_ns))),
        ("tsc", "", ticks),
    ];
    let at = node.of_rank(rank.rank.0);
    let known = all.into_iter().filter_map(|(name, unit, value)| Some((name, unit, value?)));
    known.map(|(name, unit, value)| quantity(at.clone(), "rank", name, unit, value)).collect()
}

/// How long a rank was in its regions, and how often it entered them.
fn regions<'a>(run: &'a Run, nodes: &[Option<NodePlaces<'a>>]) -> Vec<PlaceRow<'a>> {
    let node_of: HashMap<_, _> = run.ranks.iter().map(|rank| (rank.rank, rank.node)).collect();
    let entered = run.regions.totals.iter().filter(|totals| totals.entries > 0);
    let rows = entered.filter_map(|totals| {
        let node = nodes[node_of.get(&totals.rank)?.index()].as_ref()?;
        let region = run.regions.names.get(totals.region as usize)?;
        let at = PlaceRow { region: Some(region), ..node.of_rank(totals.rank.0) };
        let elapsed = quantity(at.clone(), "rank", "elapsed_s", "s", totals.inner_ns as f64 * 1e-9);
        Some([elapsed, quantity(at, "rank", "entries", "", totals.entries as f64)])
    });
    rows.flatten().collect()
}

fn quantity<'a>(
    at: PlaceRow<'a>,
    scope: &'static str,
    name: &'a str,
    unit: &'a str,
    value: f64,
) -> PlaceRow<'a> {
    PlaceRow { scope, event: name, family: name.to_owned(), unit, value: Some(value).filter(is_amount), ..at }
}

/// A damaged run file may have other values, and a table with these could not be read.
fn is_amount(value: &f64) -> bool {
    value.is_finite() && *value >= 0.0
}
