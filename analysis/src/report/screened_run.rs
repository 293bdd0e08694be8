//! What a round of `pmmpi screen` measured with one kernel, as far as a report needs it.

use super::job_nodes;
use crate::input::node_rows;
use crate::table::NoTime;
use pmmpi::network::{self, Reading};
use pmmpi::record::{KernelMeasure, KernelResult, RankRecord, Run};
use pmmpi::{NodeId, RankId};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// A hardware thread that is worse than the median thread of the run by more than this fraction is kept by name.
const SLOW_THREAD: f64 = 0.02;

/// One kernel in one round.
#[derive(Debug, Serialize)]
pub struct ScreenedRun {
    /// The kernel, or the file name of the user's program.
    pub kernel: String,
    /// True for a kernel of pmmpi.
    #[serde(skip)]
    pub is_kernel: bool,
    /// Number of the round, from 0.
    pub round: u32,
    /// True for a further round of suspects and of nodes beside them.
    #[serde(skip)]
    pub is_further: bool,
    /// The quantity that stands for the kernel; `None` for the user's program, and if no rank has a value.
    #[serde(serialize_with = "by_unit")]
    pub unit: Option<KernelMeasure>,
    /// The value of each host.
    #[serde(skip)]
    pub values: BTreeMap<String, f64>,
    /// Hosts whose kernel failed ([`NoTime::Failed`]) or computed a wrong result ([`NoTime::Wrong`]).
    #[serde(skip)]
    pub without_time: BTreeMap<String, NoTime>,
    /// Hardware threads that are worse than the median thread of the run: host, number in the kernel, fraction (0.1: 10 %
    /// worse).
    #[serde(skip)]
    pub slow_threads: Vec<(String, u32, f64)>,
    /// How many hardware threads of each host the kernel used; none if it has no values of hardware threads.
    #[serde(skip)]
    pub threads: BTreeMap<String, usize>,
    /// What each node measured with its partners; nodes are indices into [`super::run::RunReport::hosts`]. Only of the
    /// kernel net.
    #[serde(skip)]
    pub readings: Vec<Reading<u32>>,
    /// The nodes of its job, in Slurm's syntax; `None` if the run has no list of them.
    #[serde(skip)]
    pub job_nodes: Option<String>,
    /// What the reader of the values must know, with the number of ranks.
    pub notes: BTreeMap<String, usize>,
    /// The time of each node, preparation included, added up (s).
    pub node_seconds: f64,
}

fn by_unit<S: Serializer>(measure: &Option<KernelMeasure>, serializer: S) -> Result<S::Ok, S::Error> {
    measure.as_ref().map(|measure| measure.unit.as_str()).serialize(serializer)
}

impl ScreenedRun {
    /// `None` if the run is no round of `pmmpi screen`.
    pub fn of(run: &Run) -> Option<Self> {
        let screened = run.screened.as_ref()?;
        let host_of: BTreeMap<RankId, &str> =
            run.ranks.iter().map(|rank| (rank.rank, host(run, rank.node))).collect();
        let unit = screened.measures.first().cloned();
        let is_worse = |value: f64, than: f64| match unit.as_ref().is_some_and(|unit| unit.larger_is_better) {
            true => value < than,
            false => value > than,
        };
        let mut values: BTreeMap<String, f64> = BTreeMap::new();
        let mut notes: BTreeMap<String, usize> = BTreeMap::new();
        for result in &screened.results {
            for note in &result.notes {
                *notes.entry(note.clone()).or_default() += 1;
            }
            // Several ranks of a host each have some of its cores: the worst one counts.
            if let (Some(host), Some(value)) = (host_of.get(&result.rank), result.values.first()) {
                let known = values.entry((*host).to_owned()).or_insert(*value);
                if is_worse(*value, *known) {
                    *known = *value;
                }
            }
        }
        Some(Self {
            kernel: screened.kernel.clone().unwrap_or_else(|| program(run)),
            is_kernel: screened.kernel.is_some(),
            round: run.header.series.as_ref().map_or(0, |series| series.round),
            is_further: !screened.suspects.is_empty(),
            values,
            slow_threads: slow_threads(run, &host_of, is_worse),
            threads: threads(&screened.results, &host_of),
            unit,
            without_time: node_rows::without_time_in_screen(run)
                .into_iter()
                .map(|(host, (why, _))| (host, why))
                .collect(),
            readings: readings(run),
            job_nodes: job_nodes::of(run),
            notes,
            node_seconds: node_seconds(run),
        })
    }
}

/// The host names of a screen, each once, in order; of other runs none.
pub fn hosts(run: &Run) -> Vec<&str> {
    let nodes = run.nodes.iter().filter(|_| run.screened.is_some());
    nodes.map(|node| node.key.hostname.as_str()).collect::<BTreeSet<&str>>().into_iter().collect()
}

fn readings(run: &Run) -> Vec<Reading<u32>> {
    let hosts = hosts(run);
    let index = |host: &str| hosts.binary_search(&host).ok().map(|at| at as u32);
    let numbered = |reading: Reading<&str>| {
        let (node, partner) = (index(reading.node)?, index(reading.partner)?);
        let Reading { latency_ns, gigabytes_per_s, .. } = reading;
        Some(Reading { node, partner, latency_ns, gigabytes_per_s })
    };
    network::readings(run).filter_map(numbered).collect()
}

fn host(run: &Run, node: NodeId) -> &str {
    run.nodes[node.index()].key.hostname.as_str()
}

fn program(run: &Run) -> String {
    let path = run.header.command.first().map(String::as_str).unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn threads(results: &[KernelResult], host_of: &BTreeMap<RankId, &str>) -> BTreeMap<String, usize> {
    let mut threads: BTreeMap<String, usize> = BTreeMap::new();
    for result in results.iter().filter(|result| !result.threads.is_empty()) {
        if let Some(host) = host_of.get(&result.rank) {
            *threads.entry((*host).to_owned()).or_default() += result.threads.len();
        }
    }
    threads
}

fn slow_threads(
    run: &Run,
    host_of: &BTreeMap<RankId, &str>,
    is_worse: impl Fn(f64, f64) -> bool,
) -> Vec<(String, u32, f64)> {
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    let threads = results.flat_map(|result| {
        let host = host_of.get(&result.rank).copied();
        result.threads.iter().filter_map(move |(number, value)| Some((host?, *number, f64::from(*value))))
    });
    let mut sorted: Vec<f64> = threads.clone().map(|(_, _, value)| value).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(median) = pmmpi::order_statistics::of_ascending(&sorted).filter(|median| *median > 0.0) else {
        return Vec::new();
    };
    // As a fraction of time: a rate that is half as large takes twice the time.
    let worse_by = |value: f64| match value > median {
        true => value / median - 1.0,
        false => median / value.max(f64::MIN_POSITIVE) - 1.0,
    };
    let slow = threads.filter(|(_, _, value)| is_worse(*value, median) && worse_by(*value) > SLOW_THREAD);
    slow.map(|(host, number, value)| (host.to_owned(), number, worse_by(value))).collect()
}

/// From the start of the kernel's process to the end of the last barrier, for each node.
fn node_seconds(run: &Run) -> f64 {
    let mut nodes: BTreeMap<&str, i64> = BTreeMap::new();
    let spent = |rank: &RankRecord| rank.setup_ns.saturating_add(rank.stamps.outer_ns());
    for rank in &run.ranks {
        let node = nodes.entry(host(run, rank.node)).or_default();
        *node = spent(rank).max(*node);
    }
    nodes.values().map(|ns| *ns as f64 / 1e9).sum()
}
