//! The report of one run.

use super::counters::{self, CounterReport, CountingCost};
use super::health::{self, HealthReport};
use super::lateness::{self, Lateness, NodeWait, WaitedFor};
use super::metrics::{self, Flag, MetricReport};
use super::null_reasons::RunNullReason;
use super::places::{self, PlaceReport};
use super::probes::{self, ProbesReport};
use super::regions::{self, RegionReport};
use super::run_flags;
use super::run_warnings::warnings_about;
use super::screened_run::ScreenedRun;
use crate::warnings::Warning;
use pmmpi::record::{End, Overhead, Run};
use pmmpi::regions::At;
use pmmpi::{NodeId, RankId};
use pmmpi_events::validation::Trust;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A job of 20,000 ranks may lose all of them, and a damaged file of a few bytes may claim four thousand million.
pub const MOST_LISTED: usize = 4096;

/// One run.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Its name.
    pub run_id: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Id that runs of one series share.
    pub series: Option<String>,
    /// The user's labels.
    pub labels: BTreeMap<String, String>,
    /// The batch system's job id.
    pub job_id: Option<String>,
    /// Start time, ns since 1970.
    pub started_unix_ns: i64,
    /// Number of ranks that took part.
    pub ranks: usize,
    /// Number of host names.
    pub nodes: usize,
    /// finalized, exited N, signal N, ...
    #[serde(serialize_with = "by_name")]
    pub end: Option<End>,
    /// Set if the run is a round of `pmmpi screen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screened: Option<ScreenedRun>,
    /// How long it took.
    pub elapsed: Option<Elapsed>,
    /// The node that came last.
    pub waited_for: Option<WaitedFor>,
    /// How long the ranks of each node worked and waited; the last node comes first. At most [`MOST_LISTED`] nodes.
    pub node_waits: Vec<NodeWait>,
    /// Number of all nodes.
    pub node_waits_count: usize,
    /// Parts of the program that it named.
    pub regions: Vec<RegionReport>,
    /// Short sections of threads that the program named; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probing: Option<ProbesReport>,
    /// Counters over all ranks.
    pub counters: Vec<CounterReport>,
    /// Counters at places of the nodes: the first [`MOST_LISTED`].
    pub places: Vec<PlaceReport>,
    /// Number of all places.
    pub places_count: usize,
    /// Metrics computed from the counters.
    pub metrics: Vec<MetricReport>,
    /// Conclusions about the measurement.
    pub flags: Vec<Flag>,
    /// What the nodes' kernels counted during the run, when hardware did not work as it should: the first [`MOST_LISTED`]
    /// counts above 0.
    pub health: Vec<HealthReport>,
    /// The time that counting took.
    pub counting: Option<CountingCost>,
    /// none, or pingpong: what tightened the bounds in addition to the barriers.
    pub sync: &'static str,
    /// Ranks that did not reach the end of the measurement, and unknown ranks: the first [`MOST_LISTED`].
    pub missing_ranks: Vec<RankId>,
    /// Number of all missing ranks.
    pub missing_count: u32,
    /// Details of those missing ranks that began.
    pub lost_ranks: Vec<LostRankReport>,
    /// The tool's own time between MPI_Init and MPI_Finalize.
    pub overhead_ns: Option<i64>,
    /// The parts of this time.
    pub overhead: Option<Overhead>,
    /// Warnings about this run.
    pub warnings: Vec<Warning>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
}

/// A rank that began and did not reach the end.
#[derive(Debug, Serialize)]
pub struct LostRankReport {
    /// Which rank.
    pub rank: RankId,
    /// Host name.
    pub node: String,
    /// exited N, signal N, ...
    #[serde(serialize_with = "by_name")]
    pub end: Option<End>,
    /// Time from t1 to t2 if the rank finished its work; otherwise from t1 to its end, if a launcher saw the end (s).
    pub worked_s: Option<f64>,
    /// True if the rank finished its work and waited for other ranks.
    pub finished: bool,
    /// The region that it was in, if any. `region_at` says where: waiting at its start or end, or inside.
    pub region: Option<String>,
    /// See `region`.
    pub region_at: Option<&'static str>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
}

/// The bounds of a run, with suspects as host names.
#[derive(Debug, Serialize)]
pub struct Elapsed {
    /// See [`pmmpi::bounds::ElapsedBounds`] for all fields.
    pub lower_ns: i64,
    /// ns
    pub upper_ns: i64,
    /// ns
    pub rank_lower_ns: i64,
    /// ns
    pub rank_upper_ns: i64,
    /// False if the stamps contradict each other: then the bounds prove nothing.
    pub consistent: bool,
    /// Parts per million.
    pub rho_min_ppm: f64,
    /// Host names.
    pub suspects: Vec<String>,
}

/// Whether a format shows counters, places, metrics and flags of runs: they take time and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Details {
    /// The report has them.
    #[default]
    Shown,
    /// Nothing shows them, so the report leaves them out.
    Hidden,
}

impl RunReport {
    /// Builds the report of a run; `trust` says which counters are reliable.
    pub fn new(run: &Run, trust: &Trust, details: Details) -> Self {
        let trusted = trust.of_run(run);
        let header = &run.header;
        let elapsed = run.elapsed();
        let mut null_reasons = BTreeMap::new();
        let mut explain = |key, is_null, reason| {
            if is_null {
                null_reasons.insert(key, reason);
            }
        };
        explain("series", header.series.is_none(), RunNullReason::NoSeries);
        explain("job_id", header.job.job_id.is_none(), RunNullReason::NoBatchSystem);
        explain("elapsed", elapsed.is_none(), RunNullReason::Incomplete);
        for key in ["overhead_ns", "overhead"] {
            explain(key, run.overhead().is_none(), RunNullReason::NoRankCompleted);
        }
        explain("counting", run.counts.cost.is_none(), RunNullReason::NoCountingTime);
        let began = run.ranks.len() + run.lost.len() > 0;
        let why = if began { RunNullReason::NoEndSeen } else { RunNullReason::NoRankMeasured };
        explain("end", run.end().is_none(), why);
        let lateness = lateness::of(run, MOST_LISTED);
        let warnings = warnings_about(run, &trusted, &lateness);
        let Lateness { waited_for, nodes: node_waits, nodes_count: node_waits_count } = lateness;
        if let Err(why) = &waited_for {
            explain("waited_for", true, why.clone());
        }
        let (mut metrics, mut flags, mut places, mut places_count, mut counters) = Default::default();
        if details == Details::Shown {
            (metrics, flags) = metrics::of(run, trust);
            flags.extend(run_flags::of(run, &metrics));
            (places, places_count) = places::of(run, MOST_LISTED);
            counters = counters::of(run, &trusted);
        }
        let host = |node: &NodeId| run.nodes.get(node.index()).map(|n| n.key.hostname.clone());
        let mut present = run.ranks.iter().map(|rank| rank.rank).peekable();
        let missing = (0..run.size).map(RankId).filter(|rank| present.next_if_eq(rank).is_none());
        Self {
            run_id: header.run_id.clone(),
            command: header.command.clone(),
            series: header.series.as_ref().map(|series| series.id.clone()),
            labels: header.labels.iter().cloned().collect(),
            job_id: header.job.job_id.clone(),
            started_unix_ns: header.started_unix_ns,
            ranks: run.ranks.len() + run.lost.len(),
            nodes: run.host_count(),
            end: run.end(),
            screened: ScreenedRun::of(run),
            elapsed: elapsed.map(|e| Elapsed {
                lower_ns: e.lower_ns,
                upper_ns: e.upper_ns,
                rank_lower_ns: e.rank_lower_ns,
                rank_upper_ns: e.rank_upper_ns,
                consistent: e.consistent,
                rho_min_ppm: e.rho_min_ppm,
                suspects: e.suspects.iter().filter_map(host).collect(),
            }),
            waited_for: waited_for.ok(),
            node_waits,
            node_waits_count,
            regions: regions::of(run, trust, &trusted),
            probing: probes::of(run),
            counters,
            places,
            places_count,
            flags,
            metrics,
            health: health::of(run, MOST_LISTED),
            counting: counters::cost_of(run),
            sync: if run.sync.is_empty() { "none" } else { "pingpong" },
            missing_ranks: missing.take(MOST_LISTED).collect(),
            missing_count: run.size.saturating_sub(run.ranks.len() as u32),
            lost_ranks: run.lost.iter().map(|lost| lost_rank(run, lost)).collect(),
            overhead_ns: run.overhead_ns(),
            overhead: run.overhead(),
            warnings,
            null_reasons,
        }
    }
}

fn by_name<S: Serializer>(end: &Option<End>, serializer: S) -> Result<S::Ok, S::Error> {
    end.map(|end| end.to_string()).serialize(serializer)
}

fn lost_rank(run: &Run, lost: &pmmpi::record::LostRank) -> LostRankReport {
    let until = lost.t_ns.get(2).copied().or(lost.ended_ns);
    let worked_ns = until.zip(lost.t_ns.get(1)).and_then(|(until, t1)| until.checked_sub(*t1));
    let end = (lost.end != End::Lost).then_some(lost.end);
    let mut null_reasons = BTreeMap::new();
    if end.is_none() {
        null_reasons.insert("end", RunNullReason::NoEndSeen);
    }
    if worked_ns.is_none() {
        null_reasons.insert("worked_s", RunNullReason::NoEndSeen);
    }
    LostRankReport {
        rank: lost.rank,
        node: run.nodes[lost.node.index()].key.hostname.clone(),
        end,
        worked_s: worked_ns.map(|ns| ns as f64 / 1e9),
        finished: lost.t_ns.len() > 2,
        region: lost.whereabouts.as_ref().map(|place| place.region.clone()),
        region_at: lost.whereabouts.as_ref().map(|place| match place.at {
            At::Begin => "begin",
            At::Inside => "inside",
            At::End => "end",
        }),
        null_reasons,
    }
}
