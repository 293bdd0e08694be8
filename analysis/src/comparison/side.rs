//! The runs of A, or of B.

use super::selector::Selector;
use crate::report::run::RunReport;
use crate::table::node_class::{ClassBy, Key, Parts};
use crate::table::{RunTable, UNDATED};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// One run of a unit.
pub struct SideRun {
    /// A node; for a job on several nodes all of them, with "+" between them.
    pub unit: String,
    /// The run's name, unique on its node and session.
    pub run: String,
    /// One of its rows in the table.
    pub row: usize,
    /// Where and how it was made.
    pub parts: Parts,
    /// `None` if there is no session.
    pub session: Option<String>,
    /// ns since 1970; [`UNDATED`] if unknown.
    pub started_unix_ns: i64,
    /// s.
    pub elapsed_s: f64,
    /// Other measured values, by name.
    pub values: BTreeMap<String, f64>,
    /// Its nodes.
    pub nodes: BTreeSet<String>,
}

/// Takes the runs out of both sets that both have. Gives their number.
pub fn take_out_shared(sides: &mut [Side; 2], same_table: bool) -> usize {
    let [a, b] = sides
        .each_ref()
        .map(|side| side.runs.iter().filter_map(|run| run.identity(same_table)).collect::<HashSet<String>>());
    let before = sides[0].runs.len();
    let is_shared =
        |run: &SideRun| run.identity(same_table).is_some_and(|run| a.contains(&run) && b.contains(&run));
    sides.iter_mut().for_each(|side| side.runs.retain(|run| !is_shared(run)));
    before - sides[0].runs.len()
}

/// The runs of a set.
pub struct Side {
    /// In the order of their start.
    pub runs: Vec<SideRun>,
}

impl Side {
    /// The runs of `table` that `selector` selects. `own` has the runs of pmmpi, by id.
    pub fn of(table: &RunTable, own: &HashMap<&str, &RunReport>, selector: &Selector, by: &ClassBy) -> Self {
        let mut jobs: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let is_run = |row: &usize| table.median_of(*row).is_none();
        for row in (0..table.len()).filter(is_run).filter(|row| is_selected(table, *row, selector)) {
            match table.is_own(row) {
                true => jobs.entry(table.run.at(row)).or_default().push(row),
                false => groups.push(vec![row]),
            }
        }
        groups.extend(jobs.into_values());
        let run = |rows: &Vec<usize>| {
            let run = SideRun::of(table, rows, by);
            SideRun { values: values_at(table, own, run.row), ..run }
        };
        let mut runs: Vec<SideRun> = groups.iter().map(run).collect();
        runs.sort_by(|a, b| {
            (a.started_unix_ns, &a.unit)
                .cmp(&(b.started_unix_ns, &b.unit))
                .then(a.elapsed_s.total_cmp(&b.elapsed_s))
        });
        Self { runs }
    }

    /// Each node once.
    pub fn nodes(&self) -> BTreeSet<&str> {
        self.runs.iter().flat_map(|run| run.nodes.iter().map(String::as_str)).collect()
    }

    /// The values of each key: what is the same in all runs has one.
    pub fn texts(&self) -> BTreeMap<Key, BTreeSet<Option<String>>> {
        let keys: BTreeSet<&Key> =
            self.runs.iter().flat_map(|run| run.parts.iter().map(|(key, _)| key)).collect();
        let of = |key: &Key| self.runs.iter().map(|run| run.parts.get(key).map(str::to_owned)).collect();
        keys.into_iter().map(|key| (key.clone(), of(key))).collect()
    }
}

impl SideRun {
    /// Equal for the same run in both sets. `None` if nothing tells whether two runs are the same.
    fn identity(&self, same_table: bool) -> Option<String> {
        let time = (self.started_unix_ns, self.elapsed_s.to_bits());
        match same_table {
            true => Some(self.row.to_string()),
            false => (time.0 != UNDATED).then(|| format!("{} {} {time:?}", self.unit, self.run)),
        }
    }

    /// A run on several nodes takes as long as on its slowest node. The result has no values yet.
    fn of(table: &RunTable, rows: &[usize], by: &ClassBy) -> Self {
        let slowest = rows.iter().copied().max_by(|a, b| table.elapsed_s[*a].total_cmp(&table.elapsed_s[*b]));
        let row = slowest.unwrap_or(rows[0]);
        let nodes: BTreeSet<String> = rows.iter().map(|row| table.node_name(*row).to_owned()).collect();
        let is_own = table.is_own(row);
        let parts = parts_of(table, row);
        Self {
            unit: nodes.iter().map(String::as_str).collect::<Vec<_>>().join("+"),
            run: table.run_id(row),
            row,
            parts: parts.map(|parts| parts.making_up(by, is_own)).unwrap_or_default(),
            session: table.session_name(row).map(str::to_owned),
            started_unix_ns: table.started_unix_ns[row],
            elapsed_s: table.elapsed_s[row],
            values: BTreeMap::new(),
            nodes,
        }
    }
}

/// True for a round of a screen: not for a median, because other runs of it may be in the table.
pub fn is_of_screen(table: &RunTable, row: usize) -> bool {
    table.median_of(row).is_none() && parts_of(table, row).is_some_and(Parts::are_of_screen)
}

/// What the class of a row consists of.
pub fn parts_of(table: &RunTable, row: usize) -> Option<&Parts> {
    table.parts.get(row).and_then(|parts| table.all_parts.get(*parts as usize))
}

/// The values of a row beside its time. `own` has the runs of pmmpi, by id.
fn values_at(table: &RunTable, own: &HashMap<&str, &RunReport>, row: usize) -> BTreeMap<String, f64> {
    let report = own.get(table.runs.get(table.run.at(row)).unwrap_or_default());
    match report.filter(|_| table.is_own(row)) {
        Some(report) => values_of(report),
        None => {
            let counter = |(name, values): (&String, &Vec<f64>)| (name.clone(), values[row]);
            table.counters.iter().map(counter).filter(|(_, value)| value.is_finite()).collect()
        }
    }
}

/// The seconds of regions, the median times of probes, and the metrics.
fn values_of(run: &RunReport) -> BTreeMap<String, f64> {
    let regions = run.regions.iter().filter_map(|region| {
        let [lower, upper] = [region.lower_ns?, region.upper_ns?].map(|ns| ns as f64 / 1e9);
        Some((format!("region {}, s", region.name), (lower + upper) / 2.0))
    });
    let metrics = run.metrics.iter().filter(|metric| metric.supports_verdict);
    let metrics = metrics.filter_map(|metric| Some((metric.name.to_owned(), metric.value?)));
    let probes = run.probing.iter().flat_map(|of| &of.probes);
    let probes = probes.filter_map(|probe| Some((format!("probe {}, ns", probe.name), probe.median_ns?)));
    regions.chain(probes).chain(metrics).collect()
}

fn is_selected(table: &RunTable, row: usize, selector: &Selector) -> bool {
    match selector {
        Selector::Path(_) => true,
        Selector::Session(name) => table.session_name(row).unwrap_or_default() == name,
        Selector::Label(key, value) => {
            let parts = parts_of(table, row);
            parts.is_some_and(|parts| parts.get(&Key::Named(key.clone())) == Some(value))
        }
        Selector::Time(from, to) => {
            let started = table.started_unix_ns[row];
            started != UNDATED && from.is_none_or(|from| from <= started) && to.is_none_or(|to| started < to)
        }
    }
}
