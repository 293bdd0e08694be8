//! The counts and metrics of one run at each place of a level, from the sums of its counts.

use super::place_table::{Level, Place, PlaceTable};
use pmmpi::counters::count_and_quality::Quality;
use pmmpi::counters::open_counters::Scope;
use pmmpi_events::metrics::{CpuKind, Meaning, MetricInput, MetricInputs, Per, amount, catalogue, evaluate};
use pmmpi_events::validation::EventVerdict;
use polars::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A place of a node. Parts that do not tell places of the level apart are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlaceKey {
    /// Host name.
    pub node: String,
    /// Socket, NUMA node, core and hardware thread.
    pub place: Place,
    /// The rank.
    pub rank: Option<u32>,
    /// The region; `None` for the whole work.
    pub region: Option<String>,
}

impl OfPlace {
    /// A count, if it is above 0.
    pub fn positive(&self, name: &str) -> Option<f64> {
        let at = self.events.binary_search_by(|event| event.name.as_str().cmp(name)).ok()?;
        Some(self.events[at].value).filter(|value| *value > 0.0)
    }
}

/// The values of one run at one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfPlace {
    /// Whose counts these are: of threads of ranks, or of hardware threads. `None` without such counts.
    pub scope: Option<Scope>,
    /// Mean over the ranks of the place, or of the node (s).
    pub elapsed_s: Option<f64>,
    /// Metrics with a value.
    pub metrics: Vec<(&'static str, f64)>,
    /// Metrics without a value, each with the reason.
    pub lacks: Vec<(&'static str, MetricNullReason)>,
    /// Sums of counts, by name.
    pub events: Vec<EventSum>,
}

/// Why a place has no value of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricNullReason {
    /// The metric exists only for cores, and the place is no core.
    OnlyForCores,
    /// The counts of the place do not give the metric.
    NotComputed {
        /// The reason of [`pmmpi_events::metrics::MetricValue::reason`].
        reason: String,
    },
}

/// The scope that most of these values have; a value with another scope cannot be compared with them. Of equally many,
/// hardware threads.
pub fn scope_of_most(scopes: impl Iterator<Item = Option<Scope>>) -> Option<Scope> {
    let (mut ranks, mut threads) = (0, 0);
    for scope in scopes.flatten() {
        *(if scope == Scope::Core { &mut threads } else { &mut ranks }) += 1;
    }
    match (ranks, threads) {
        (0, 0) => None,
        (ranks, threads) if ranks > threads => Some(Scope::Task),
        _ => Some(Scope::Core),
    }
}

/// A sum of counts.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSum {
    /// The event, or an amount that follows from events.
    pub name: String,
    /// The unit of the value; empty for plain counts.
    pub unit: String,
    /// In this unit.
    pub value: f64,
}

/// What the values of a place are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Only counts, and the amounts that follow from them; without the times of nodes.
    Counts,
    /// Also all metrics.
    Metrics,
}

/// Amounts that several events give, or other events on each processor.
const AMOUNTS: [&str; 4] = ["system_read_bytes", "dram_bytes", "dram_read_bytes", "snoop_filter_evictions"];

/// What was summed at one place of a run.
#[derive(Default)]
struct Sums {
    cpu: CpuKind,
    /// By family, each with its unit; a family may have been counted in several scopes.
    counts: BTreeMap<String, Vec<(MetricInput, String)>>,
    /// Means over the ranks of the place: elapsed_s, tsc.
    times: BTreeMap<String, f64>,
    ranks: u32,
    /// Hardware threads with counts of their own (`--scope core`).
    threads: u32,
    place: Place,
}

/// What all places of a node share.
#[derive(Default)]
struct OfNode {
    times: BTreeMap<String, f64>,
    quantities: BTreeMap<String, f64>,
    sockets: u32,
}

/// By run, node and region.
type Nodes = HashMap<(String, String, Option<String>), OfNode>;

/// The values of each run at each place of a level.
pub fn of_table(
    rows: &PlaceTable,
    level: Level,
    wanted: Wanted,
) -> PolarsResult<Vec<(String, PlaceKey, OfPlace)>> {
    let nodes = match wanted {
        Wanted::Counts => Nodes::new(),
        Wanted::Metrics => of_nodes(rows)?,
    };
    let mut all: BTreeMap<(String, PlaceKey), Sums> = BTreeMap::new();
    each_sum(&rows.sums(level)?, |run, mut key, sum| {
        if sum.scope == "node" {
            return;
        }
        let place = key.place;
        if level == Level::Rank {
            key.place = Place::default();
        }
        let sums = all.entry((run.to_owned(), key)).or_default();
        sums.cpu = sum.cpu;
        match sum.scope {
            "rank" => {
                sums.place = place;
                if let Some(value) = sum.input.value {
                    sums.times.insert(sum.family.to_owned(), value / f64::from(sum.rows.max(1)));
                }
                if sum.family == "elapsed_s" {
                    sums.ranks = sum.rows;
                }
            }
            _ => {
                if sum.input.scope == Scope::Core {
                    sums.threads = sums.threads.max(sum.rows);
                }
                sums.counts.entry(sum.family.to_owned()).or_default().push((sum.input, sum.unit.to_owned()));
            }
        }
    })?;
    if wanted == Wanted::Metrics {
        leave_out_ranks(&mut all, level);
    }
    let none = OfNode::default();
    let of = |((run, mut key), sums): ((String, PlaceKey), Sums)| {
        let of_node = nodes.get(&(run.clone(), key.node.clone(), key.region.clone()));
        let whole = nodes.get(&(run.clone(), key.node.clone(), None)).unwrap_or(&none);
        let values = sums.values(level, wanted, of_node.unwrap_or(&none), whole);
        if level == Level::Rank {
            key.place = sums.place;
        }
        (run, key, values)
    };
    Ok(all.into_iter().map(of).collect())
}

/// If places of a node show their hardware threads, a rank that belongs to several places shows nothing: its counts are of
/// another scope. The work and each region are on their own: a region may have counts of ranks only.
fn leave_out_ranks(all: &mut BTreeMap<(String, PlaceKey), Sums>, level: Level) {
    let own = |place: &Place| match level {
        Level::Node | Level::Rank => None,
        Level::Socket => Some(place.socket),
        Level::Numa => Some(place.numa),
        Level::Core => Some(place.core),
        Level::Thread => Some(place.hardware_thread),
    };
    let part = |run: &String, key: &PlaceKey| (run.clone(), key.node.clone(), key.region.clone());
    let with_threads: HashSet<(String, String, Option<String>)> = all
        .iter()
        .filter(|((_, key), sums)| {
            own(&key.place).flatten().is_some() && sums.scope(level) == Some(Scope::Core)
        })
        .map(|((run, key), _)| part(run, key))
        .collect();
    all.retain(|(run, key), _| own(&key.place) != Some(None) || !with_threads.contains(&part(run, key)));
}

impl Sums {
    /// True for an event that the processor counts only on hardware threads.
    fn is_only_on_cores(&self, family: &str) -> bool {
        let meaning = catalogue().table(&self.cpu).and_then(|table| table.meaning(family));
        matches!(meaning, Some(Meaning::Event(event)) if event.scope == Scope::Core)
    }

    /// Threads of ranks, or hardware threads. Only the counts of the second contain the work of other programs, so a metric
    /// must not mix the two. A hardware thread, a core, a NUMA node and a socket show hardware threads if `--scope core`
    /// counted them; a rank and a node show ranks.
    fn scope(&self, level: Level) -> Option<Scope> {
        let has = |scope: Scope| {
            let is_counted =
                |(input, _): &(MetricInput, String)| input.scope == scope && input.value.is_some();
            let mut counts = self.counts.iter().filter(|(family, _)| !self.is_only_on_cores(family));
            counts.any(|(_, counts)| counts.iter().any(is_counted))
        };
        let order = match level {
            Level::Node | Level::Rank => [Scope::Task, Scope::Core],
            _ => [Scope::Core, Scope::Task],
        };
        order.into_iter().find(|scope| has(*scope))
    }

    /// The counts of this scope. Events that the processor counts only on hardware threads, and those of sockets, belong to
    /// either.
    fn of_scope(&self, chosen: Scope) -> impl Iterator<Item = (&str, &(MetricInput, String))> {
        self.counts.iter().filter_map(move |(family, counts)| {
            let of = |scope: Scope| counts.iter().find(|(input, _)| input.scope == scope);
            let other = || of(Scope::Core).filter(|_| self.is_only_on_cores(family));
            let without_value = || counts.iter().find(|(input, _)| input.value.is_none());
            let found = of(chosen).or_else(|| of(Scope::Socket)).or_else(other).or_else(without_value)?;
            Some((family.as_str(), found))
        })
    }

    fn values(&self, level: Level, wanted: Wanted, of_node: &OfNode, whole: &OfNode) -> OfPlace {
        let mut inputs = MetricInputs::new();
        let mut events: BTreeMap<String, EventSum> = BTreeMap::new();
        let scope = self.scope(level);
        if scope == Some(Scope::Core) && self.threads > 0 {
            inputs.set("hardware_threads", f64::from(self.threads));
        }
        for (family, (input, unit)) in self.of_scope(scope.unwrap_or(Scope::Core)) {
            inputs.add(family, input.clone());
            let sum = |value| EventSum { name: family.to_owned(), unit: unit.clone(), value };
            events.extend(input.value.map(|value| (family.to_owned(), sum(value))));
        }
        let time = |name: &str| self.times.get(name).or_else(|| of_node.times.get(name)).copied();
        let elapsed_s = time("elapsed_s").filter(|elapsed| *elapsed > 0.0);
        elapsed_s.into_iter().for_each(|elapsed| inputs.set("elapsed_s", elapsed));
        if let Some(ticks) = time("tsc") {
            inputs.set("tsc", ticks);
        }
        // The rate of the TSC is the same in all regions.
        let rate =
            whole.times.get("tsc").zip(whole.times.get("elapsed_s")).map(|(ticks, elapsed)| ticks / elapsed);
        // On Arm, the TSC says nothing about the rate of the cores.
        let is_x86 = !self.cpu.vendor.starts_with("0x");
        rate.filter(|rate| is_x86 && rate.is_finite())
            .into_iter()
            .for_each(|rate| inputs.set("tsc_hz", rate));
        whole.quantities.iter().for_each(|(name, value)| inputs.set(name, *value));
        if self.ranks > 0 {
            inputs.set("ranks", f64::from(self.ranks));
        }
        let sockets = match level {
            Level::Node => whole.sockets,
            _ => 1,
        };
        if sockets > 0 {
            inputs.set("sockets", f64::from(sockets));
        }
        let table = catalogue().table(&self.cpu);
        for name in AMOUNTS {
            if let Some(value) = table.and_then(|table| amount(table, &inputs, name).ok()) {
                let unit = if name.ends_with("_bytes") { "bytes" } else { "" };
                let sum = EventSum { name: name.to_owned(), unit: unit.to_owned(), value: value.value };
                events.entry(name.to_owned()).or_insert(sum);
            }
        }
        let events = events.into_values().collect();
        let (mut metrics, mut lacks) = (Vec::new(), Vec::new());
        if wanted == Wanted::Counts {
            return OfPlace { scope, elapsed_s, metrics, lacks, events };
        }
        for value in evaluate(&self.cpu, &inputs) {
            let name = value.metric.name.as_str();
            if value.metric.per == Per::Core && level != Level::Core {
                lacks.push((name, MetricNullReason::OnlyForCores));
                continue;
            }
            match value.value() {
                Some(of_place) => metrics.push((name, of_place)),
                None => {
                    let reason = value.reason().unwrap_or_default();
                    lacks.push((name, MetricNullReason::NotComputed { reason }));
                }
            }
        }
        OfPlace { scope, elapsed_s, metrics, lacks, events }
    }
}

/// What the nodes of the runs have in common for all places.
fn of_nodes(rows: &PlaceTable) -> PolarsResult<Nodes> {
    let mut nodes = Nodes::new();
    each_sum(&rows.sums(Level::Node)?, |run, key, sum| {
        let node = nodes.entry((run.to_owned(), key.node, key.region)).or_default();
        let mean = sum.input.value.map(|value| value / f64::from(sum.rows.max(1)));
        let values = match sum.scope {
            "rank" => &mut node.times,
            "node" => &mut node.quantities,
            _ => return,
        };
        values.extend(mean.map(|mean| (sum.family.to_owned(), mean)));
    })?;
    let mut sockets: HashMap<(String, String), HashSet<Option<u32>>> = HashMap::new();
    each_sum(&rows.sums(Level::Socket)?, |run, key, sum| {
        if sum.scope == "socket" && key.region.is_none() {
            sockets.entry((run.to_owned(), key.node)).or_default().insert(key.place.socket);
        }
    })?;
    for ((run, node), sockets) in sockets {
        // With an unknown topology, the sockets of the counts cannot be told apart.
        if !sockets.contains(&None) {
            nodes.entry((run, node, None)).or_default().sockets = sockets.len() as u32;
        }
    }
    Ok(nodes)
}

/// One row of [`PlaceTable::sums`].
struct Sum<'a> {
    cpu: CpuKind,
    family: &'a str,
    scope: &'a str,
    rows: u32,
    unit: &'a str,
    input: MetricInput,
}

/// Calls `with` for each row, with its run and place.
fn each_sum(sums: &DataFrame, mut with: impl FnMut(&str, PlaceKey, Sum<'_>)) -> PolarsResult<()> {
    if sums.height() == 0 {
        return Ok(());
    }
    let text = |name: &str| sums.column(name)?.str();
    // A column that does not tell places of the level apart is not there.
    let number = |name: &str| sums.column(name).ok().and_then(|column| column.u32().ok());
    let [run, node, region, family, scope, vendor, quality, reason] =
        ["run_id", "node", "region", "family", "scope", "cpu_vendor", "quality", "reason"].map(text);
    let (run, node, region, family, scope) = (run?, node?, region?, family?, scope?);
    let (vendor, quality, reason) = (vendor?, quality?, reason?);
    let unit = sums.column("unit")?.str()?;
    let [socket, numa, core, thread, rank, of_family, model, rows] =
        ["socket", "numa", "core", "hardware_thread", "rank", "cpu_family", "cpu_model", "rows"].map(number);
    let (value, share) = (sums.column("value")?.f64()?, sums.column("running_share")?.f64()?);
    let unusable = sums.column("unusable")?.bool()?;
    let at = |column: Option<&UInt32Chunked>, row: usize| column.and_then(|column| column.get(row));
    for row in 0..sums.height() {
        let place = Place {
            socket: at(socket, row),
            numa: at(numa, row),
            core: at(core, row),
            hardware_thread: at(thread, row),
        };
        let key = PlaceKey {
            node: node.get(row).unwrap_or_default().to_owned(),
            place,
            rank: at(rank, row),
            region: region.get(row).map(str::to_owned),
        };
        let cpu = match (vendor.get(row), at(of_family, row), at(model, row)) {
            (Some(vendor), Some(family), Some(model)) => CpuKind { vendor: vendor.to_owned(), family, model },
            _ => CpuKind::default(),
        };
        let scope = scope.get(row).unwrap_or_default();
        let input = MetricInput {
            value: value.get(row),
            quality: quality.get(row).and_then(Quality::named).unwrap_or(Quality::Unavailable),
            running_share: share.get(row),
            reason: reason.get(row).map(str::to_owned),
            trust: match unusable.get(row) {
                Some(true) => EventVerdict::Unusable,
                _ => EventVerdict::Unknown,
            },
            scope: Scope::named(scope).unwrap_or_default(),
        };
        let unit = unit.get(row).unwrap_or_default();
        let (family, rows) = (family.get(row).unwrap_or_default(), at(rows, row).unwrap_or(0));
        with(run.get(row).unwrap_or_default(), key, Sum { cpu, family, scope, rows, unit, input });
    }
    Ok(())
}
