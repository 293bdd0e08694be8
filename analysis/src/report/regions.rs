//! Regions that programs named: how long each took, over all its entries.

use crate::report::counters::{self, CounterReport};
use crate::report::metrics::{self, Flag, MetricReport};
use crate::report::null_reasons::RunNullReason;
use crate::report::run_flags;
use crate::warnings::of_runs::RanksAtEnd;
use crate::warnings::{FirstFew, RunWarning};
use pmmpi::RankId;
use pmmpi::record::Run;
use pmmpi::regions::{RegionBounds, Whereabouts};
use pmmpi_events::validation::{RunTrust, Trust};
use serde::Serialize;
use std::collections::BTreeMap;

/// One region of one run.
#[derive(Debug, Serialize)]
pub struct RegionReport {
    /// The name in the program.
    pub name: String,
    /// How often all ranks entered the region together.
    pub entries: Option<u64>,
    /// Lower bound of the sum over its entries, each from the first rank's begin to the last rank's end (ns).
    pub lower_ns: Option<i64>,
    /// Upper bound of this sum (ns).
    pub upper_ns: Option<i64>,
    /// Fraction of the run's elapsed time: the middle of the region's bounds divided by the middle of the run's
    /// bounds.
    pub share: Option<f64>,
    /// Mean over ranks of their time between the barriers, divided by the longest time: 1 if all ranks are equally
    /// busy.
    pub balance: Option<f64>,
    /// Time of all ranks at the barriers that end the region, as a fraction of their time from its begin. It also
    /// shows imbalance when another rank comes last in each entry.
    pub waiting_share: Option<f64>,
    /// The rank with the longest time.
    pub slowest_rank: RankId,
    /// Its host name.
    pub slowest_node: Option<String>,
    /// The shortest and the longest time of one entry on one rank (ns).
    pub entry_ns: [i64; 2],
    /// Counters over all entries and ranks.
    pub counters: Vec<CounterReport>,
    /// Metrics computed from these counters.
    pub metrics: Vec<MetricReport>,
    /// Conclusions about the measurement of this region.
    pub flags: Vec<Flag>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
}

/// The regions of one run, in the order of their first entry.
pub fn of(run: &Run, trust: &Trust, of_run: &RunTrust) -> Vec<RegionReport> {
    let elapsed = run.elapsed().filter(|elapsed| elapsed.consistent);
    let middle = |lower: i64, upper: i64| (lower as f64 + upper as f64) / 2.0;
    let whole = elapsed.map(|elapsed| middle(elapsed.lower_ns, elapsed.upper_ns)).filter(|ns| *ns > 0.0);
    let bounds = run.regions.bounds(run.size as usize, run.max_drift());
    let of = |bounds: &RegionBounds| {
        let metrics = metrics::of_region(run, bounds.name, trust);
        let mut flags = metrics::flags_of_region(run, bounds.name, trust);
        flags.extend(run_flags::of_region(&metrics, bounds.mean_entry_ns as f64));
        RegionReport {
            counters: counters::of_region(run, bounds.name, of_run),
            metrics,
            flags,
            ..RegionReport::new(run, bounds, whole, middle)
        }
    };
    bounds.iter().map(of).collect()
}

impl RegionReport {
    fn new(run: &Run, bounds: &RegionBounds, whole: Option<f64>, middle: fn(i64, i64) -> f64) -> Self {
        let (lower_ns, upper_ns) = (bounds.lower_ns, bounds.upper_ns);
        let agreed = bounds.entries.filter(|_| lower_ns <= upper_ns);
        let share = agreed.and(whole).map(|whole| middle(lower_ns, upper_ns) / whole);
        let mut null_reasons = BTreeMap::new();
        let why = match bounds.entries {
            None => &RunNullReason::EntriesDiffer,
            Some(_) => &RunNullReason::RegionTimesContradict,
        };
        let mut explain = |key, is_null: bool, why: &RunNullReason| {
            if is_null {
                null_reasons.insert(key, why.clone());
            }
        };
        explain("entries", bounds.entries.is_none(), why);
        explain("lower_ns", agreed.is_none(), why);
        explain("upper_ns", agreed.is_none(), why);
        explain("balance", agreed.is_none(), why);
        explain(
            "share",
            share.is_none(),
            if agreed.is_none() { why } else { &RunNullReason::ElapsedUnknown },
        );
        let (work, wait) = (bounds.mean_ns as f64, bounds.mean_wait_ns as f64);
        let waiting_share = agreed.map(|_| if wait == 0.0 { 0.0 } else { wait / (work + wait) });
        let waiting_share = waiting_share.filter(|share| (0.0..=1.0).contains(share));
        explain("waiting_share", waiting_share.is_none(), why);
        let (slowest_rank, longest_ns) = bounds.slowest;
        let node = run.ranks.iter().find(|rank| rank.rank == slowest_rank).map(|rank| rank.node);
        let node =
            node.or_else(|| run.lost.iter().find(|lost| lost.rank == slowest_rank).map(|lost| lost.node));
        let host = node.and_then(|node| run.nodes.get(node.index())).map(|node| node.key.hostname.clone());
        explain("slowest_node", host.is_none(), &RunNullReason::NodeUnknown);
        Self {
            name: bounds.name.to_owned(),
            entries: bounds.entries,
            lower_ns: agreed.map(|_| lower_ns),
            upper_ns: agreed.map(|_| upper_ns),
            share,
            balance: agreed
                .map(|_| if longest_ns > 0 { bounds.mean_ns as f64 / longest_ns as f64 } else { 1.0 }),
            waiting_share,
            slowest_rank,
            slowest_node: host,
            entry_ns: bounds.entry_ns,
            counters: Vec::new(),
            metrics: Vec::new(),
            flags: Vec::new(),
            null_reasons,
        }
    }
}

/// Warnings about entries that the table does not contain.
pub fn warnings(run: &Run) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    let entries = run.regions.unrecorded;
    if entries > 0 {
        warnings.push(RunWarning::RegionsLeftOut { entries });
    }
    if let Some((longest_rank, longest_ns)) = run.regions.paused.iter().max_by_key(|(_, ns)| ns) {
        warnings.push(RunWarning::Paused {
            paused: run.regions.paused.len(),
            ranks: run.size,
            longest_rank: *longest_rank,
            longest_ns: *longest_ns,
        });
    }
    warnings.extend(expected_of_nothing(run));
    warnings.extend(where_it_ended(run));
    warnings
}

/// Warns if `--expect` names a region or probe that the program never entered.
fn expected_of_nothing(run: &Run) -> Option<RunWarning> {
    let is_known = |part: &&str| run.regions.names.iter().chain(&run.probes.names).any(|name| name == part);
    let parts = run.expected.iter().filter_map(|expected| expected.part.as_deref());
    let unknown: Vec<String> = parts.filter(|part| !is_known(part)).map(str::to_owned).collect();
    (!unknown.is_empty()).then_some(RunWarning::ExpectedOfNothing { parts: unknown })
}

/// Warns if a rank waited at a region's begin or end when the job ended, while other ranks were elsewhere: the
/// program hangs there.
fn where_it_ended(run: &Run) -> Option<RunWarning> {
    const NAMED: usize = 8;
    let mut places: BTreeMap<Option<&Whereabouts>, Vec<RankId>> = BTreeMap::new();
    for lost in &run.lost {
        places.entry(lost.whereabouts.as_ref()).or_default().push(lost.rank);
    }
    let at = |(place, ranks): (&Option<&Whereabouts>, &Vec<RankId>)| RanksAtEnd {
        place: place.cloned(),
        ranks: FirstFew::of(ranks.iter(), NAMED, |rank| *rank),
    };
    let is_in_region = places.keys().any(Option::is_some);
    is_in_region.then(|| RunWarning::EndedInRegion { places: places.iter().map(at).collect() })
}
