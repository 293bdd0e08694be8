//! What the report says of one run.

use super::counters::{self, CounterReport, CountingCost};
use super::lateness::{self, Lateness, NodeWait, WaitedFor};
use super::metrics::{self, Flag, MetricReport};
use super::places::{self, PlaceReport};
use super::regions::{self, RegionReport};
use super::warnings::about;
use crate::warning::Warning;
use pmmpi::record::{End, Overhead, Run};
use pmmpi::regions::At;
use pmmpi_events::validation::Trust;
use serde::Serialize;
use std::collections::BTreeMap;

/// A job of 20,000 ranks may lose all of them; a file of some bytes may say so of four thousand million.
pub const MOST_LISTED: usize = 4096;

/// One run.
#[derive(Debug, Serialize)]
pub struct RunReport {
    /// Its name.
    pub run_id: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Shared by runs that were started together.
    pub series: Option<String>,
    /// The user's.
    pub labels: BTreeMap<String, String>,
    /// The batch system's.
    pub job_id: Option<String>,
    /// When it began, ns since 1970.
    pub started_unix_ns: i64,
    /// How many took part.
    pub ranks: usize,
    /// Host names, each counted once.
    pub nodes: usize,
    /// finalized, exited N, signal N, ...
    pub end: Option<String>,
    /// How long it took.
    pub elapsed: Option<Elapsed>,
    /// The node that came last.
    pub waited_for: Option<WaitedFor>,
    /// How long the ranks of each node worked and waited, the last one to come first: the first
    /// [`MOST_LISTED`].
    pub node_waits: Vec<NodeWait>,
    /// How many nodes there are in all.
    pub node_waits_count: usize,
    /// Parts of it that the program named.
    pub regions: Vec<RegionReport>,
    /// What was counted, over all ranks.
    pub counters: Vec<CounterReport>,
    /// What was counted at places of the nodes: the first [`MOST_LISTED`] of them.
    pub places: Vec<PlaceReport>,
    /// How many there are in all.
    pub places_count: usize,
    /// What all that means.
    pub metrics: Vec<MetricReport>,
    /// What it says of the measurement.
    pub flags: Vec<Flag>,
    /// What counting took.
    pub counting: Option<CountingCost>,
    /// none, or pingpong: what tightened the bounds beside the barriers.
    pub sync: &'static str,
    /// Ranks that did not come to the end of the measurement, or of which nothing is known: the first
    /// [`MOST_LISTED`] of them.
    pub missing_ranks: Vec<u32>,
    /// How many there are in all.
    pub missing_count: u32,
    /// What is known of those among them that began.
    pub lost_ranks: Vec<LostRankReport>,
    /// What the tool itself took between MPI_Init and MPI_Finalize.
    pub overhead_ns: Option<i64>,
    /// Its parts.
    pub overhead: Option<Overhead>,
    /// About this run.
    pub warnings: Vec<Warning>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// A rank that began and did not come to the end.
#[derive(Debug, Serialize)]
pub struct LostRankReport {
    /// Its number.
    pub rank: u32,
    /// Host name.
    pub node: String,
    /// exited N, signal N, ...
    pub end: Option<String>,
    /// From t1 to t2, where its work was over; else to its end, where a launcher saw that (s).
    pub worked_s: Option<f64>,
    /// True where its work was over and it waited for other ranks.
    pub finished: bool,
    /// The region that it was in, if any, and where in it: waiting at its begin or end, or inside.
    pub region: Option<String>,
    /// See `region`.
    pub region_at: Option<&'static str>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, String>,
}

/// The bounds of a run; suspects by host name.
#[derive(Debug, Serialize)]
pub struct Elapsed {
    /// See [`pmmpi::bounds::ElapsedBounds`], also for the others.
    pub lower_ns: i64,
    /// ns
    pub upper_ns: i64,
    /// ns
    pub rank_lower_ns: i64,
    /// ns
    pub rank_upper_ns: i64,
    /// False: the two bounds prove nothing.
    pub consistent: bool,
    /// Parts per million.
    pub rho_min_ppm: f64,
    /// Host names.
    pub suspects: Vec<String>,
}

impl RunReport {
    /// With what is known of its counters.
    pub fn new(run: &Run, trust: &Trust) -> Self {
        let trusted = trust.of_run(run);
        let header = &run.header;
        let elapsed = run.elapsed();
        let mut null_reasons = BTreeMap::new();
        let mut explain = |key, is_null, reason: &str| {
            if is_null {
                null_reasons.insert(key, reason.to_owned());
            }
        };
        explain("series", header.series.is_none(), "a run on its own");
        explain("job_id", header.job.job_id.is_none(), "no batch system started it");
        let incomplete = "not every rank came to the end of the measurement";
        explain("elapsed", elapsed.is_none(), incomplete);
        for key in ["overhead_ns", "overhead"] {
            explain(key, run.overhead().is_none(), "no rank came to the end of the measurement");
        }
        explain("counting", run.counts.cost.is_none(), "counters are part of run files of schema 3");
        let began = run.ranks.len() + run.lost.len() > 0;
        let why = if began { NO_END_SEEN } else { "no rank was measured" };
        explain("end", run.end().is_none(), why);
        let lateness = lateness::of(run, MOST_LISTED);
        let warnings = about(run, &trusted, &lateness);
        let Lateness { waited_for, nodes: node_waits, nodes_count: node_waits_count } = lateness;
        if let Err(why) = &waited_for {
            explain("waited_for", true, why);
        }
        let (places, places_count) = places::of(run, MOST_LISTED);
        let host = |node: &u32| run.nodes.get(*node as usize).map(|n| n.key.hostname.clone());
        let mut present = run.ranks.iter().map(|rank| rank.rank).peekable();
        let missing = (0..run.size).filter(|rank| present.next_if_eq(rank).is_none());
        Self {
            run_id: header.run_id.clone(),
            command: header.command.clone(),
            series: header.series.as_ref().map(|series| series.id.clone()),
            labels: header.labels.iter().cloned().collect(),
            job_id: header.job.job_id.clone(),
            started_unix_ns: header.started_unix_ns,
            ranks: run.ranks.len() + run.lost.len(),
            nodes: run.host_count(),
            end: run.end().map(|end| end.to_string()),
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
            regions: regions::of(run, &trusted),
            counters: counters::of(run, &trusted),
            places,
            places_count,
            metrics: metrics::of(run, trust),
            flags: metrics::flags(run, trust),
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

/// Nobody saw it end, who would have if it had.
const NO_END_SEEN: &str = "no end was seen: it may still run";

fn lost_rank(run: &Run, lost: &pmmpi::record::LostRank) -> LostRankReport {
    let until = lost.t_ns.get(2).copied().or(lost.ended_ns);
    let worked_ns = until.zip(lost.t_ns.get(1)).and_then(|(until, t1)| until.checked_sub(*t1));
    let end = (lost.end != End::Lost).then(|| lost.end.to_string());
    let mut null_reasons = BTreeMap::new();
    if end.is_none() {
        null_reasons.insert("end", NO_END_SEEN.to_owned());
    }
    if worked_ns.is_none() {
        null_reasons.insert("worked_s", NO_END_SEEN.to_owned());
    }
    LostRankReport {
        rank: lost.rank,
        node: run.nodes[lost.node as usize].key.hostname.clone(),
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
