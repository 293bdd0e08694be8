//! Which node and rank the others waited for: how much later each came to the end of a job than the others.
//!
//! [`pmmpi::bounds`] proves what holds for nodes. Ranks of one node read one clock, which orders them. The lateness
//! of a rank behind all others is the smaller of two values: its node's lateness, and its distance from the next rank
//! of that node. Times of work and of waiting are each rank's own, on its node's clock without correction.

use super::null_reasons::RunNullReason;
use crate::warnings::RunWarning;
use pmmpi::bounds::{Interval, NodeLateness};
use pmmpi::record::{RankRecord, Run};
use pmmpi::{NodeId, RankId};
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// From this fraction of the elapsed time on, the report mentions a late node.
pub const WORTH_A_WORD: f64 = 0.01;

/// The node that came last.
#[derive(Debug, Serialize)]
pub struct WaitedFor {
    /// Host name; the most likely node if not `sure`.
    pub node: String,
    /// The node's last rank.
    pub rank: RankId,
    /// True if the stamps prove that all ranks of all other nodes finished earlier, whatever clocks and barriers do.
    pub sure: bool,
    /// How much later the node came than the last rank of all other nodes: a lower and an upper bound (s). A negative
    /// value means that it came earlier.
    pub lateness_s: [f64; 2],
    /// The same for the rank and all other ranks, including those of its node (s).
    pub rank_lateness_s: [f64; 2],
    /// How much later the node came than the median node: lower and upper bound (s).
    pub behind_median_s: [f64; 2],
    /// The lower bound of `lateness_s` as a fraction of the elapsed time.
    pub share: Option<f64>,
    /// Time of all ranks at the end barrier, as a fraction of their time from t1 to t3.
    pub waiting_share: Option<f64>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
    /// Equal for runs of one command on the same nodes; `None` if a host has several clocks.
    #[serde(skip)]
    pub peers: Option<u64>,
}

/// How long the ranks of a node worked and waited.
#[derive(Debug, Serialize)]
pub struct NodeWait {
    /// Host name.
    pub node: String,
    /// Number of ranks.
    pub ranks: usize,
    /// The rank that came last to the end.
    pub last_rank: RankId,
    /// The least, median and longest t2 - t1 (s).
    pub work_s: [f64; 3],
    /// The least, median and longest t3 - t2 (s).
    pub wait_s: [f64; 3],
    /// See [`WaitedFor::lateness_s`].
    pub lateness_s: Option<[f64; 2]>,
    /// See [`WaitedFor::behind_median_s`].
    pub behind_median_s: Option<[f64; 2]>,
    /// Why a value is null.
    pub null_reasons: BTreeMap<&'static str, RunNullReason>,
}

/// The lateness in one run.
#[derive(Debug)]
pub struct Lateness {
    /// The node that came last, or why it is not known.
    pub waited_for: Result<WaitedFor, RunNullReason>,
    /// Nodes, the last one first; at most as many as the caller asked for.
    pub nodes: Vec<NodeWait>,
    /// Number of all nodes.
    pub nodes_count: usize,
}

/// The lateness in one run, with at most `most` nodes.
pub fn of(run: &Run, most: usize) -> Lateness {
    let unknown = |why| Lateness { waited_for: Err(why), nodes: Vec::new(), nodes_count: 0 };
    let Some(elapsed) = run.elapsed() else {
        return unknown(RunNullReason::Incomplete);
    };
    if !elapsed.consistent {
        return unknown(RunNullReason::StampsContradict);
    }
    let mut waits = by_node(run);
    let why_not = match (run.ranks.len(), waits.len()) {
        (0 | 1, _) => Some(RunNullReason::OneRank),
        (_, 1) => Some(RunNullReason::OneNode),
        _ => None,
    };
    // Both are in the order of the clocks.
    for (waits, lateness) in waits.iter_mut().zip(run.lateness()) {
        waits.lateness = Some(lateness);
    }
    let nodes_count = waits.len();
    let order = |waits: &Waits| (waits.lateness.map(latest_first), waits.last.0);
    // A run may have many nodes: only those that are shown, and the last one, need an order.
    let ordered = most.max(1).min(nodes_count);
    if ordered < nodes_count {
        waits.select_nth_unstable_by_key(ordered, order);
    }
    waits[..ordered].sort_by_key(order);
    let waited_for = match (why_not, waits.first().and_then(|first| first.lateness)) {
        (Some(why), _) => Err(why),
        (None, None) => Err(RunNullReason::StampsContradict),
        (None, Some(lateness)) => Ok(waited_for(run, &waits, &lateness, elapsed.upper_ns)),
    };
    waits.truncate(most);
    let why = waited_for.as_ref().err();
    let nodes = waits.iter().map(|waits| waits.report(run, why)).collect();
    Lateness { waited_for, nodes, nodes_count }
}

/// Sort key: the largest lower bound comes first, then the largest upper bound.
fn latest_first(lateness: NodeLateness) -> [std::cmp::Reverse<i64>; 2] {
    let Interval { low, high } = lateness.behind_others_ns;
    [low, high].map(std::cmp::Reverse)
}

/// The ranks of one clock.
struct Waits {
    node: NodeId,
    /// Times of the ranks in ascending order (ns).
    work: Vec<i64>,
    wait: Vec<i64>,
    /// The last rank and the time of its arrival; then the arrival of the rank before it (ns of the clock).
    last: (RankId, i64),
    next_ns: Option<i64>,
    lateness: Option<NodeLateness>,
}

fn by_node(run: &Run) -> Vec<Waits> {
    let mut ranks: Vec<Vec<&RankRecord>> = vec![Vec::new(); run.nodes.len()];
    run.ranks.iter().for_each(|rank| ranks[rank.node.index()].push(rank));
    let of = |(node, ranks): (NodeId, Vec<&RankRecord>)| {
        let sorted = |of: fn(&RankRecord) -> i64| {
            let mut values: Vec<i64> = ranks.iter().map(|rank| of(rank)).collect();
            values.sort_unstable();
            values
        };
        // All ranks here read one clock.
        let came = |rank: &RankRecord| <[i64; 4]>::from(rank.stamps)[2];
        let last = ranks.iter().max_by_key(|rank| (came(rank), std::cmp::Reverse(rank.rank)))?;
        let next_ns = ranks.iter().filter(|rank| rank.rank != last.rank).map(|rank| came(rank)).max();
        let work = sorted(|rank| rank.stamps.inner_ns());
        let wait = sorted(|rank| rank.stamps.end_barrier_ns());
        Some(Waits { node, work, wait, last: (last.rank, came(last)), next_ns, lateness: None })
    };
    (0..).map(NodeId).zip(ranks).filter_map(of).collect()
}

impl Waits {
    /// `why` is the reason of an unknown lateness. A node without lateness comes first, so it always has this reason.
    fn report(&self, run: &Run, why: Option<&RunNullReason>) -> NodeWait {
        // The median is an actual rank's value, like a node's median run.
        let summary = |ascending: &[i64]| {
            let at = [0, (ascending.len() - 1) / 2, ascending.len() - 1];
            at.map(|at| seconds(ascending[at]))
        };
        let mut null_reasons = BTreeMap::new();
        if let Some(why) = why.filter(|_| self.lateness.is_none()) {
            for key in ["lateness_s", "behind_median_s"] {
                null_reasons.insert(key, why.clone());
            }
        }
        NodeWait {
            node: run.nodes[self.node.index()].key.hostname.clone(),
            ranks: self.work.len(),
            last_rank: self.last.0,
            work_s: summary(&self.work),
            wait_s: summary(&self.wait),
            lateness_s: self.lateness.map(|lateness| both_in_seconds(lateness.behind_others_ns)),
            behind_median_s: self.lateness.map(|lateness| both_in_seconds(lateness.behind_median_ns)),
            null_reasons,
        }
    }
}

/// `waits` begins with the node that came last.
fn waited_for(run: &Run, waits: &[Waits], lateness: &NodeLateness, elapsed_ns: i64) -> WaitedFor {
    let (drift, latest) = (run.max_drift(), &waits[0]);
    let Interval { low, high } = lateness.behind_others_ns;
    let rank_ns = match latest.next_ns.map(|next_ns| latest.last.1 - next_ns) {
        Some(apart_ns) => {
            Interval { low: low.min(drift.at_least(apart_ns)), high: high.min(drift.at_most(apart_ns)) }
        }
        None => lateness.behind_others_ns,
    };
    let share = (elapsed_ns > 0).then(|| low as f64 / elapsed_ns as f64);
    let sum = |of: fn(&Waits) -> &[i64]| -> f64 { waits.iter().flat_map(of).map(|ns| *ns as f64).sum() };
    let (work, wait) = (sum(|waits| &waits.work), sum(|waits| &waits.wait));
    let waiting_share = (work + wait > 0.0).then(|| wait / (work + wait));
    let mut null_reasons = BTreeMap::new();
    for (key, is_null) in [("share", share.is_none()), ("waiting_share", waiting_share.is_none())] {
        if is_null {
            null_reasons.insert(key, RunNullReason::NoElapsedTime);
        }
    }
    WaitedFor {
        node: run.nodes[latest.node.index()].key.hostname.clone(),
        rank: latest.last.0,
        sure: low > 0,
        lateness_s: both_in_seconds(lateness.behind_others_ns),
        rank_lateness_s: both_in_seconds(rank_ns),
        behind_median_s: both_in_seconds(lateness.behind_median_ns),
        share,
        waiting_share,
        null_reasons,
        peers: peers(run, waits),
    }
}

/// Runs with the same number are comparable.
fn peers(run: &Run, waits: &[Waits]) -> Option<u64> {
    let mut hosts: Vec<&str> =
        waits.iter().map(|waits| run.nodes[waits.node.index()].key.hostname.as_str()).collect();
    hosts.sort_unstable();
    let each_once = hosts.windows(2).all(|pair| pair[0] != pair[1]);
    let mut hasher = DefaultHasher::new();
    (&run.header.command, run.size, hosts).hash(&mut hasher);
    each_once.then(|| hasher.finish())
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn both_in_seconds(interval: Interval) -> [f64; 2] {
    <[i64; 2]>::from(interval).map(seconds)
}

impl Lateness {
    /// A warning if one node was late for certain, and by [`WORTH_A_WORD`] or more.
    pub fn warning(&self) -> Option<RunWarning> {
        let waited_for = self.waited_for.as_ref().ok()?;
        let share = waited_for.share.filter(|share| waited_for.sure && *share >= WORTH_A_WORD)?;
        Some(RunWarning::LateNode {
            node: waited_for.node.clone(),
            rank: waited_for.rank,
            others: self.nodes_count - 1,
            lateness_s: waited_for.lateness_s,
            share,
        })
    }
}
