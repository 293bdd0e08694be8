//! Where slow runs and slow nodes are slow: the cores, sockets or ranks at which the count that shows the cause
//! differs from the other runs of the node, or from the other nodes of the class.

use super::node_report::{NodeReport, SlowRunReport};
use super::slow_places::{PlaceOfRun, SlowPlaces};
use crate::input::place_source::PlaceSource;
use crate::stats::slow_places::{SlowPlace, slow_places};
use crate::stats::slow_runs::SlowRunSettings;
use crate::stats::verdict_rule::Verdict;
use crate::stats::within_nodes;
use crate::table::RunTable;
use crate::table::place_table::{Level, Place, PlaceResult, PlaceTable};
use crate::table::place_values::{OfPlace, PlaceKey, Wanted, of_table, scope_of_most};
use pmmpi::counters::open_counters::Scope;
use pmmpi_events::validation::Trust;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A value that shows where something is slow.
struct Measure {
    name: &'static str,
    /// True: sockets have it; otherwise cores, or ranks that have no core of their own.
    is_of_sockets: bool,
    /// True if a small value makes a place slow.
    is_lower: bool,
    value: fn(&OfPlace) -> Option<f64>,
}

/// All measures; [`measures`] gives those of a cause.
const MEASURES: [Measure; 10] = [
    Measure::lower("cycles/ref_cycles", |place| ratio(place, "cycles", "ref_cycles")),
    Measure::lower("cycles/task_clock_ns", |place| ratio(place, "cycles", "task_clock_ns")),
    Measure::higher("task_clock_ns", |place| place.positive("task_clock_ns")),
    Measure::higher("cycles/instructions", |place| ratio(place, "cycles", "instructions")),
    Measure::higher("system_read_bytes", |place| place.positive("system_read_bytes")),
    Measure::higher("snoop_filter_evictions", |place| place.positive("snoop_filter_evictions")).of_sockets(),
    Measure::higher("dram_bytes", |place| place.positive("dram_bytes")).of_sockets(),
    Measure::higher("instructions", |place| place.positive("instructions")),
    Measure::higher("work", work),
    Measure::lower("utilisation", work),
];

/// Reference cycles, else the task clock.
fn work(place: &OfPlace) -> Option<f64> {
    place.positive("ref_cycles").or_else(|| place.positive("task_clock_ns"))
}

fn ratio(place: &OfPlace, above: &str, below: &str) -> Option<f64> {
    Some(place.positive(above)? / place.positive(below)?)
}

impl Measure {
    const fn higher(name: &'static str, value: fn(&OfPlace) -> Option<f64>) -> Self {
        Self { name, value, is_of_sockets: false, is_lower: false }
    }

    const fn lower(name: &'static str, value: fn(&OfPlace) -> Option<f64>) -> Self {
        Self { is_lower: true, ..Self::higher(name, value) }
    }

    const fn of_sockets(self) -> Self {
        Self { is_of_sockets: true, ..self }
    }

    fn is_of(&self, level: Level) -> bool {
        self.is_of_sockets == (level == Level::Socket)
    }
}

/// What shows the places of a cause, the most telling first.
fn measures(cause: &str) -> &'static [&'static str] {
    match cause.split_once('/').unwrap_or((cause, "")) {
        ("frequency", _) => &["cycles/ref_cycles"],
        ("net-frequency", _) => &["cycles/task_clock_ns"],
        ("on-cpu", _) => &["task_clock_ns"],
        ("cpi", "snoop-filter") => &["system_read_bytes", "snoop_filter_evictions", "cycles/instructions"],
        ("cpi", "memory-traffic") => &["dram_bytes", "cycles/instructions"],
        ("cpi", "cache" | "cache-and-memory") => &["system_read_bytes", "dram_bytes", "cycles/instructions"],
        ("cpi", _) => &["cycles/instructions"],
        ("instructions", _) => &["instructions"],
        ("imbalance", _) => &["work"],
        ("utilisation", _) => &["utilisation"],
        _ => &[],
    }
}

/// Socket, core and rank, as far as they tell places of a level apart.
type Identity = [Option<u32>; 3];

/// The place of a value at a level; `None` if it is of several cores, sockets or ranks.
fn identity(level: Level, key: &PlaceKey) -> Option<Identity> {
    let Place { socket, core, .. } = key.place;
    let (own, identity) = match level {
        Level::Rank => (key.rank, [None, None, key.rank]),
        Level::Core => (core, [socket, core, None]),
        _ => (socket, [socket, None, None]),
    };
    own.map(|_| identity)
}

/// The measures at one place of a run.
struct AtPlace {
    level: Level,
    place: Identity,
    socket: Option<u32>,
    /// Whose counts these are.
    scope: Option<Scope>,
    /// The logarithm of each of [`MEASURES`]; NaN if there is none. A larger value makes the place slower.
    values: [f64; MEASURES.len()],
}

impl AtPlace {
    fn of(level: Level, key: &PlaceKey, of_place: &OfPlace) -> Option<Self> {
        let value = |measure: &Measure| match (measure.value)(of_place).filter(|_| measure.is_of(level)) {
            Some(value) if measure.is_lower => -value.ln(),
            Some(value) => value.ln(),
            None => f64::NAN,
        };
        let values = MEASURES.each_ref().map(value);
        let is_known = values.iter().any(|value| value.is_finite());
        let place = identity(level, key).filter(|_| is_known)?;
        Some(Self { level, place, socket: key.place.socket, scope: of_place.scope, values })
    }
}

/// The places of runs, by run and node.
type Values = HashMap<(String, String), Vec<AtPlace>>;

/// A slow node is compared with at most so many other nodes, or with three times as many as there are slow ones.
const OTHERS: usize = 200;

/// Runs on nodes that are compared with one another.
#[derive(Default)]
struct Group<'a> {
    /// A run, and a node of this run.
    columns: Vec<(String, &'a str)>,
    /// The slow ones among them: the index of the column, and the caller's number.
    slow: Vec<(usize, usize)>,
}

/// Finds the places of slow runs with a cause.
pub fn of_runs(
    slow_runs: &mut [SlowRunReport],
    table: &RunTable,
    source: &PlaceSource,
    trust: &Trust,
    settings: &SlowRunSettings,
) {
    let mut slow: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (at, run) in slow_runs.iter().enumerate() {
        if source.has(&run.run_id) && has_measures(run.why.cause_name()) {
            slow.insert((&run.run_id, &run.node, &run.class), at);
        }
    }
    if slow.is_empty() {
        return;
    }
    let mut groups: BTreeMap<[u32; 3], Group> = BTreeMap::new();
    for row in (0..table.len()).filter(|row| table.is_own(*row) && table.median_of(*row).is_none()) {
        let (run, node) = (table.run_id(row), table.node_name(row));
        let group =
            groups.entry([table.node.at(row), table.class.at(row), table.session.at(row)]).or_default();
        let number = slow.get(&(run.as_str(), node, table.class_name(row)));
        group.slow.extend(number.map(|number| (group.columns.len(), *number)));
        group.columns.push((run, node));
    }
    let cause = |number: usize| slow_runs[number].why.cause_name();
    for (number, places) in find(groups.into_values(), cause, source, trust, settings) {
        slow_runs[number].null_reasons.remove("places");
        slow_runs[number].places = Some(places);
    }
}

/// Finds the places of slow nodes with a cause, by the median run of each node of the class and session.
pub fn of_nodes(nodes: &mut [NodeReport], source: &PlaceSource, trust: &Trust, settings: &SlowRunSettings) {
    let mut groups: BTreeMap<(&str, Option<&str>), Group> = BTreeMap::new();
    for (number, node) in nodes.iter().enumerate().filter(|(_, node)| source.has(&node.median_run_id)) {
        let group = groups.entry((&node.class, node.session.as_deref())).or_default();
        let is_slow = node.verdict.is_some_and(|verdict| verdict >= Verdict::Suspect)
            && has_measures(node.why.cause_name());
        group.slow.extend(is_slow.then_some((group.columns.len(), number)));
        group.columns.push((node.median_run_id.to_string(), &node.node));
    }
    let cause = |number: usize| nodes[number].why.cause_name();
    let groups = groups.into_values().map(Group::sampled);
    for (number, places) in find(groups, cause, source, trust, settings) {
        nodes[number].places = Some(Box::new(places));
    }
}

fn has_measures(cause: Option<&str>) -> bool {
    cause.is_some_and(|cause| !measures(cause).is_empty())
}

/// The places of the slow ones of each group.
fn find<'a, 'n>(
    groups: impl Iterator<Item = Group<'n>>,
    cause: impl Fn(usize) -> Option<&'a str>,
    source: &PlaceSource,
    trust: &Trust,
    settings: &SlowRunSettings,
) -> Vec<(usize, SlowPlaces)> {
    let groups: Vec<Group> = groups.filter(|group| !group.slow.is_empty()).collect();
    let wanted: HashSet<(&str, &str)> =
        groups.iter().flat_map(|group| &group.columns).map(|(run, node)| (run.as_str(), *node)).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let runs: BTreeSet<&str> = wanted.iter().map(|(run, _)| *run).collect();
    let is_wanted = |run: &str, node: &str| wanted.contains(&(run, node));
    let mut values = Values::new();
    // Without rows by place, or with files that are gone by now, the report only lacks the places.
    source.read_each(&runs, is_wanted, trust, by_level, |part| {
        for (run, node, at_place) in part.into_iter().filter(|(run, node, _)| is_wanted(run, node)) {
            values.entry((run, node)).or_default().push(at_place);
        }
    });
    let mut found = Vec::new();
    for group in &groups {
        let mut compared: HashMap<&str, Vec<Compared>> = HashMap::new();
        for (column, number) in &group.slow {
            let measures = cause(*number).map(measures).unwrap_or_default();
            let places = measures.iter().find_map(|measure| {
                let of_measure = || group.compare(measure, &values, settings);
                let levels = compared.entry(measure).or_insert_with(of_measure);
                levels.iter().find_map(|level| level.of(*column))
            });
            found.extend(places.map(|places| (*number, places)));
        }
    }
    found
}

/// The measures at each core and socket, and at each rank if some rank has no core of its own.
fn by_level(rows: &PlaceTable) -> PlaceResult<Vec<(String, String, AtPlace)>> {
    let rows = rows.of_whole_work()?;
    let cores = of_table(&rows, Level::Core, Wanted::Counts)?;
    let ranks = match cores.iter().any(|(_, key, _)| key.place.core.is_none()) {
        true => of_table(&rows, Level::Rank, Wanted::Counts)?,
        false => Vec::new(),
    };
    let sockets = of_table(&rows.of_scope(Scope::Socket)?, Level::Socket, Wanted::Counts)?;
    let all = [(Level::Core, cores), (Level::Rank, ranks), (Level::Socket, sockets)];
    let at = all.into_iter().flat_map(|(level, values)| {
        values.into_iter().filter_map(move |(run, key, of_place)| {
            Some((run, key.node.clone(), AtPlace::of(level, &key, &of_place)?))
        })
    });
    Ok(at.collect())
}

impl Group<'_> {
    /// With all slow ones and, of the others, some at equal distances.
    fn sampled(self) -> Self {
        let most = OTHERS.max(3 * self.slow.len());
        let others = self.columns.len() - self.slow.len();
        let Self { columns, slow } = self;
        let mut slow = slow.into_iter().peekable();
        let (mut sampled, mut passed) = (Self::default(), 0);
        for (at, column) in columns.into_iter().enumerate() {
            if let Some((_, number)) = slow.next_if(|(slow, _)| *slow == at) {
                sampled.slow.push((sampled.columns.len(), number));
                sampled.columns.push(column);
                continue;
            }
            // The share of the others that is in the sample so far.
            let is_next = |passed: usize| passed * most.min(others) / others;
            passed += 1;
            if is_next(passed) > is_next(passed - 1) {
                sampled.columns.push(column);
            }
        }
        sampled
    }

    /// The values of this measure at each place, for each level with at least two places.
    fn compare(&self, measure: &str, values: &Values, settings: &SlowRunSettings) -> Vec<Compared> {
        let Some(number) = MEASURES.iter().position(|known| known.name == measure) else { return Vec::new() };
        let measure = &MEASURES[number];
        let levels = if measure.is_of_sockets { &[Level::Socket][..] } else { &[Level::Core, Level::Rank] };
        let compared = levels.iter().filter_map(|level| {
            let mut by_place: BTreeMap<Identity, Vec<f64>> = BTreeMap::new();
            let mut sockets: BTreeMap<Identity, Option<u32>> = BTreeMap::new();
            let of_column = |(run, node): &(String, &str)| {
                // Of a hundred columns, few share a run.
                let all = values.get(&(run.clone(), (*node).to_owned())).into_iter().flatten();
                all.filter(|at| at.level == *level && at.values[number].is_finite())
            };
            // Counts of ranks and of hardware threads cannot be compared.
            let scope = scope_of_most(self.columns.iter().flat_map(of_column).map(|at| at.scope));
            for (column, run_and_node) in self.columns.iter().enumerate() {
                for at in of_column(run_and_node).filter(|at| at.scope.is_none() || at.scope == scope) {
                    sockets.insert(at.place, at.socket);
                    by_place.entry(at.place).or_insert_with(|| vec![f64::NAN; self.columns.len()])[column] =
                        at.values[number];
                }
            }
            if by_place.len() < 2 {
                return None;
            }
            let places = by_place.keys().copied().collect();
            let values: Vec<Vec<f64>> = by_place.into_values().collect();
            let found = slow_places(&values, settings);
            Some(Compared { measure, level: *level, places, sockets, values, found })
        });
        compared.collect()
    }
}

/// The values of one measure at the places of a level.
struct Compared {
    measure: &'static Measure,
    level: Level,
    places: Vec<Identity>,
    sockets: BTreeMap<Identity, Option<u32>>,
    /// By place and column; NaN if there is none.
    values: Vec<Vec<f64>>,
    /// Where and in which column the value differs.
    found: Vec<SlowPlace>,
}

impl Compared {
    /// The places where the run of this column differs; `None` if there are none.
    fn of(&self, slow: usize) -> Option<SlowPlaces> {
        let at = |place: usize, more: f64| {
            let [_, core, rank] = self.places[place];
            let ratio = if self.measure.is_lower { 1.0 / more } else { more };
            PlaceOfRun { socket: self.sockets[&self.places[place]], core, rank, ratio }
        };
        let of_slow = self.found.iter().filter(|of| of.run == slow);
        let places: Vec<PlaceOfRun> = of_slow.map(|of| at(of.place, 1.0 + of.more)).collect();
        let own = |(place, values): (usize, &Vec<f64>)| {
            let known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
            let usual = within_nodes::median_of(&mut { known })?;
            values[slow].is_finite().then(|| at(place, (values[slow] - usual).exp()))
        };
        (!places.is_empty()).then(|| SlowPlaces {
            measure: self.measure.name,
            by: self.level.name(),
            compared: self.values.len(),
            sockets: self.sockets.values().collect::<BTreeSet<&Option<u32>>>().len(),
            places,
            all: self.values.iter().enumerate().filter_map(own).collect(),
        })
    }
}
