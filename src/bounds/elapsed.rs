//! Bounds on a job's elapsed time that hold whatever the offsets of the clocks are.
//!
//! Source of the question: J. D. McCalpin, "Timing Methodology for MPI Programs" (2019). Every rank takes
//! `t0; barrier B1; t1; WORK; t2; barrier B2; t3` on its own node's clock. A node's clock reads true time plus an
//! unknown offset. The wanted duration is
//!
//! W = (true time of the last t2) - (true time of the first t1).
//!
//! # The bounds
//! A barrier guarantees only that every entry precedes every exit. Let X1 be an instant at which all ranks have
//! entered B1 and none has left it, and X2 the same for B2. On node n, let a = max t0, b = min t1, c = max t2,
//! d = min t3. Then `a <= X1 <= b` and `c <= X2 <= d` on the node's clock. With primes for true durations, for
//! every n
//!
//! `c_n - b_n <= X2 - X1 <= d_n - a_n`, that is `L0' <= X2 - X1 <= U0'`,
//! L0 = max (c - b), U0 = min (d - a).
//!
//! Let m be the node with the last t2 and n the node with the first t1. Then W is at least `c_k - b_k` for every k,
//! and at most each of
//! - `X2 - X1 <= U0'`,
//! - `P_m' = (c_m - a_m)'`, since the first t1 is not before X1 and X1 is not before a_m,
//! - `Q_n' = (d_n - b_n)'`, likewise at the end.
//!
//! With perfect rates LB = L0 and UB = max(L0, max over m != n of min(U0, P_m, Q_n)), and no tighter bounds exist:
//! eliminating the offsets leaves a constraint graph whose shortest paths have at most two hops. (One more path
//! gives `W <= P_m + Q_n - L0`. This bound never matters: if Q_n >= L0, it is not below P_m; if Q_n < L0, the pair
//! cannot raise the maximum above L0.) One node alone (m = n) gives W = c - b exactly. `tests/bounds.rs` checks
//! this against a linear program and against simulated clusters.
//!
//! # Clock rates
//! No clock's rate is exact. If rho limits the rate error of every clock, a measured difference D stands for a true
//! difference in [D / (1 + rho), D / (1 - rho)]. Each term above uses its own worst case. Results are rounded
//! outward.
//!
//! # When the stamps cannot be true
//! rho_min = max(0, (L0 - U0) / (L0 + U0)) is the least rate error that explains the stamps. If rho_min exceeds
//! rho, or if a node's first exit precedes its own last entry, a clock was stepped or a barrier did not
//! synchronise. The suspects are the nodes whose interval [c - b, d - a] misses the point where most intervals
//! overlap (K. Marzullo, 1984).

use super::drift::{MaxDrift, least, to_i64};
use super::interval::Between;
use super::ping_bounds::{Anchors, Placed};
use super::stamps::{NodeStamps, Stamps};
use crate::ids::NodeId;
use serde::Serialize;

/// The value of [`ElapsedBounds::rho_min_ppm`] if no clock rates explain the stamps.
pub const NO_RATE_PPM: f64 = 1e6;

/// The interval in which a job's elapsed time W must lie.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ElapsedBounds {
    /// W is not shorter than this (ns).
    pub lower_ns: i64,
    /// W is not longer than this (ns).
    pub upper_ns: i64,
    /// max over ranks of t2 - t1, each on its own clock (ns).
    pub rank_lower_ns: i64,
    /// min over ranks of t3 - t0, each on its own clock (ns): McCalpin's bound.
    pub rank_upper_ns: i64,
    /// False if no clocks within the allowed rate error can give these stamps. `lower_ns` and `upper_ns` then span
    /// the values of the nodes and prove nothing.
    pub consistent: bool,
    /// The least rate error that explains the stamps (parts per million); [`NO_RATE_PPM`] if none does.
    pub rho_min_ppm: f64,
    /// Nodes that disagree with the others; empty where `consistent`.
    #[serde(skip)]
    pub suspects: Vec<NodeId>,
}

/// The stamps of a job's ranks, joined per clock as they come: memory grows with nodes, not ranks.
#[derive(Clone, Debug, Default)]
pub struct JobStamps {
    nodes: Vec<Option<NodeStamps>>,
    rank_lower_ns: i64,
    rank_upper_ns: i64,
    ranks: u64,
}

impl JobStamps {
    /// No rank yet.
    pub fn new() -> Self {
        Self { nodes: Vec::new(), rank_lower_ns: i64::MIN, rank_upper_ns: i64::MAX, ranks: 0 }
    }

    /// Adds one rank. `node` is the clock that it read; the numbers of clocks should be dense, from 0.
    pub fn add(&mut self, node: NodeId, stamps: Stamps) {
        let node = node.index();
        if node >= self.nodes.len() {
            self.nodes.resize(node + 1, None);
        }
        match &mut self.nodes[node] {
            Some(known) => known.join(stamps),
            empty => *empty = Some(NodeStamps::of(stamps)),
        }
        self.rank_lower_ns = self.rank_lower_ns.max(stamps.inner_ns());
        self.rank_upper_ns = self.rank_upper_ns.min(stamps.outer_ns());
        self.ranks += 1;
    }

    /// Ranks added so far.
    pub fn ranks(&self) -> u64 {
        self.ranks
    }

    /// The joined stamps of the ranks on clock `node`; `None` without ranks.
    pub fn node(&self, node: NodeId) -> Option<&NodeStamps> {
        self.nodes.get(node.index())?.as_ref()
    }

    /// The clocks that have a rank, with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (NodeId, &NodeStamps)> {
        let nodes = self.nodes.iter().zip((0..).map(NodeId));
        nodes.filter_map(|(stamps, node)| Some((node, stamps.as_ref()?)))
    }

    /// Number of clocks that have a rank.
    pub fn node_count(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// The bounds on W; `None` without a rank. O(nodes), and O(nodes log nodes) where the stamps are
    /// inconsistent.
    pub fn elapsed(&self, drift: MaxDrift) -> Option<ElapsedBounds> {
        if self.ranks == 0 {
            return None;
        }
        let nodes = || self.nodes.iter().enumerate().filter_map(|(i, n)| Some((i, n.as_ref()?)));
        let l0 = nodes().map(|(_, n)| n.c_ns - n.b_ns).max()?;
        let u0 = nodes().map(|(_, n)| n.d_ns - n.a_ns).min()?;
        let impossible = nodes().any(|(_, n)| n.impossible());
        let rho_min = if impossible { 1.0 } else { rho_min(l0, u0) };
        let feasible = drift.shortest(l0.into()) <= drift.longest(u0.into());
        let consistent = feasible && !impossible;
        let (lower, upper) = if consistent {
            let p = Largest::of(nodes().map(|(i, n)| (i, n.c_ns - n.a_ns)));
            let q = Largest::of(nodes().map(|(i, n)| (i, n.d_ns - n.b_ns)));
            (drift.shortest(l0.into()), upper_bound(l0, u0, &p, &q, drift))
        } else {
            (drift.shortest(l0.min(u0).into()).max(0), drift.longest(l0.max(u0).into()).max(0))
        };
        Some(ElapsedBounds {
            lower_ns: to_i64(lower),
            upper_ns: to_i64(upper),
            rank_lower_ns: self.rank_lower_ns,
            rank_upper_ns: self.rank_upper_ns,
            consistent,
            rho_min_ppm: rho_min * 1e6,
            suspects: if consistent { Vec::new() } else { self.suspects(drift) },
        })
    }

    /// Like [`Self::elapsed`], but tightened by the pings that nodes exchanged with a hub.
    pub fn elapsed_with(&self, anchors: &Anchors, drift: MaxDrift) -> Option<ElapsedBounds> {
        let bounds = self.elapsed(drift)?;
        if !bounds.consistent {
            return Some(bounds);
        }
        let placed = self.placed(anchors, drift);
        let nodes = self.node_count();
        let tightened = |bounds: &ElapsedBounds, placed: &[Placed], drift| {
            let said = anchors.elapsed(placed, nodes, drift).filter(|_| anchors.stepped(drift).is_empty())?;
            let lower_ns = bounds.lower_ns.max(to_i64(said.lower));
            let upper_ns = said.upper.map_or(bounds.upper_ns, |upper| bounds.upper_ns.min(to_i64(upper)));
            (lower_ns <= upper_ns).then_some((lower_ns, upper_ns))
        };
        if let Some((lower_ns, upper_ns)) = tightened(&bounds, &placed, drift) {
            return Some(ElapsedBounds { lower_ns, upper_ns, ..bounds });
        }
        let explains = |drift| {
            let bounds = self.elapsed(drift).filter(|bounds| bounds.consistent);
            bounds.is_some_and(|bounds| tightened(&bounds, &self.placed(anchors, drift), drift).is_some())
        };
        let rho_min_ppm = least(explains).map_or(NO_RATE_PPM, MaxDrift::ppm);
        let mut suspects = anchors.stepped(drift);
        if suspects.is_empty() {
            suspects = match anchors.between_releases(&placed, drift) {
                Some(said) => self.outside(said, drift),
                None => disagreeing(&placed),
            };
        }
        Some(ElapsedBounds { consistent: false, rho_min_ppm, suspects, ..bounds })
    }

    pub(crate) fn placed(&self, anchors: &Anchors, drift: MaxDrift) -> Vec<Placed> {
        self.numbered().filter_map(|(node, stamps)| anchors.place(node, stamps, drift)).collect()
    }

    /// Nodes whose interval misses the point that most intervals share, and nodes whose own stamps are impossible.
    fn suspects(&self, drift: MaxDrift) -> Vec<NodeId> {
        let sound = self.nodes.iter().flatten().filter(|node| !node.impossible());
        // This point is missing only if the stamps of all nodes are impossible.
        let point = shared_by_most(sound.map(|node| between_releases(node, drift))).unwrap_or(0);
        self.outside([point; 2], drift)
    }

    /// Nodes whose interval for X2 - X1 does not overlap `said`, and nodes whose own stamps are impossible.
    fn outside(&self, said: Between, drift: MaxDrift) -> Vec<NodeId> {
        let agrees = |node: &NodeStamps| {
            let (low, high) = between_releases(node, drift);
            !node.impossible() && low <= said[1] && said[0] <= high
        };
        self.numbered().filter(|(_, stamps)| !agrees(stamps)).map(|(node, _)| node).collect()
    }
}

/// The interval for X2 - X1 (ns) by one node's stamps.
fn between_releases(node: &NodeStamps, drift: MaxDrift) -> (i128, i128) {
    (drift.shortest((node.c_ns - node.b_ns).into()), drift.longest((node.d_ns - node.a_ns).into()))
}

/// A point that lies in the largest number of intervals (K. Marzullo).
fn shared_by_most(intervals: impl Iterator<Item = (i128, i128)>) -> Option<i128> {
    // At the same place, an opening edge sorts before a closing one: intervals include their ends.
    let mut edges: Vec<(i128, u8)> = intervals.flat_map(|(low, high)| [(low, 0), (high, 1)]).collect();
    edges.sort_unstable();
    let (mut depth, mut deepest, mut point) = (0i64, 0i64, None);
    for (at, closes) in edges {
        depth += if closes == 1 { -1 } else { 1 };
        if depth > deepest {
            (deepest, point) = (depth, Some(at));
        }
    }
    point
}

/// Nodes that place a barrier's release where most others do not, and nodes whose pings contradict their stamps.
fn disagreeing(placed: &[Placed]) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = Anchors::impossible(placed).collect();
    for barrier in [0, 1] {
        let release = |node: &Placed| node.releases()[barrier];
        let point = shared_by_most(placed.iter().map(release));
        let elsewhere = |node: &&Placed| point.is_none_or(|p| p < release(node).0 || release(node).1 < p);
        nodes.extend(placed.iter().filter(elsewhere).map(|node| node.node));
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The two largest values and their nodes. They suffice for the maximum over pairs m != n of any function that
/// grows with both values.
struct Largest([Option<(usize, i64)>; 2]);

impl Largest {
    fn of(values: impl Iterator<Item = (usize, i64)>) -> Self {
        let mut best: [Option<(usize, i64)>; 2] = [None, None];
        for value in values {
            if best[0].is_none_or(|b| value.1 > b.1) {
                best = [Some(value), best[0]];
            } else if best[1].is_none_or(|b| value.1 > b.1) {
                best[1] = Some(value);
            }
        }
        Self(best)
    }
}

fn upper_bound(l0: i64, u0: i64, p: &Largest, q: &Largest, drift: MaxDrift) -> i128 {
    // Start at l0: the first t1 and the last t2 may be on one clock (m = n).
    let mut upper = l0;
    for &(m, p_m) in p.0.iter().flatten() {
        for &(_, q_n) in q.0.iter().flatten().filter(|(n, _)| *n != m) {
            upper = upper.max(p_m.min(q_n));
        }
    }
    let longest_between = drift.longest(u0.into());
    drift.longest(upper.into()).min(longest_between).max(drift.shortest(l0.into()))
}

fn rho_min(l0: i64, u0: i64) -> f64 {
    let (l0, u0) = (l0 as f64, u0 as f64);
    if l0 <= u0 {
        return 0.0;
    }
    // No rates explain u0 <= 0 < l0: one clock stood still. The formula's limit there is 1.
    if u0 <= 0.0 { 1.0 } else { (l0 - u0) / (l0 + u0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::{Ping, Pings};

    fn job(ranks: &[(u32, [i64; 4])]) -> JobStamps {
        let mut job = JobStamps::new();
        for (node, t) in ranks {
            job.add(NodeId(*node), Stamps::try_from(*t).unwrap());
        }
        job
    }

    const EXACT: MaxDrift = MaxDrift::NONE;

    #[test]
    fn one_node_is_exact_and_widens_only_by_its_rate() {
        let job = job(&[(0, [0, 10, 1_000_010, 1_000_020]), (0, [5, 11, 1_000_000, 1_000_030])]);
        let exact = job.elapsed(EXACT).unwrap();
        assert_eq!((exact.lower_ns, exact.upper_ns), (1_000_000, 1_000_000));
        assert_eq!((exact.rank_lower_ns, exact.rank_upper_ns), (1_000_000, 1_000_020));
        let drifting = job.elapsed(MaxDrift::DEFAULT).unwrap();
        assert_eq!((drifting.lower_ns, drifting.upper_ns), (999_900, 1_000_101));
    }

    #[test]
    fn an_offset_of_a_node_changes_nothing() {
        let here = job(&[(0, [0, 10, 100, 120]), (1, [3, 12, 105, 121])]);
        let hours = 7_200_000_000_000;
        let there = job(&[(0, [0, 10, 100, 120]), (1, [hours + 3, hours + 12, hours + 105, hours + 121])]);
        assert_eq!(here.elapsed(EXACT), there.elapsed(EXACT));
        let bounds = here.elapsed(EXACT).unwrap();
        // L0 = max(90, 93), U0 = min(120, 118); P = 100, 102; Q = 110, 109; the pair (node 1, node 0)
        // gives the most: min(118, 102, 110) = 102.
        assert_eq!((bounds.lower_ns, bounds.upper_ns), (93, 102));
    }

    #[test]
    fn a_stepped_clock_is_named_and_never_a_negative_width() {
        let good = [0, 10, 1_000_000, 1_000_020];
        let stepped = [0, 10, 1_500_000, 1_500_020];
        let bounds =
            job(&[(0, good), (1, good), (2, stepped), (3, good)]).elapsed(MaxDrift::DEFAULT).unwrap();
        assert!(!bounds.consistent);
        assert_eq!(bounds.suspects, [NodeId(2)]);
        assert!(bounds.lower_ns <= bounds.upper_ns);
        assert!((bounds.rho_min_ppm - 499_970.0 / 2_500_010.0 * 1e6).abs() < 1e-6);
    }

    #[test]
    fn an_exit_before_an_entry_is_proof_without_any_other_node() {
        let bounds = job(&[(0, [0, 10, 100, 110]), (0, [20, 25, 90, 115])]).elapsed(EXACT).unwrap();
        assert!(!bounds.consistent);
        assert_eq!(bounds.suspects, [NodeId(0)]);
    }

    /// The clocks step in the middle of the work. Each half of a node's stamps agrees with its pings. The barriers
    /// alone show nothing, because they take longer than the step.
    #[test]
    fn a_step_that_only_pings_can_show_is_named() {
        const SECOND: i64 = 1_000_000_000;
        // `steps`: each node's step (ns), the hub's first. All ranks enter 5 ms early and leave 5 ms late.
        let elapsed = |steps: &[i64]| {
            let ping = |at: i64, step: i64| Ping {
                sent_ns: at + step - 10_000,
                hub_ns: at + if at < 0 { 0 } else { steps[0] },
                back_ns: at + step + 10_000,
            };
            let pings = |step: i64| Pings {
                before: vec![ping(-20_000_000, 0), ping(-19_000_000, 0)],
                after: vec![ping(SECOND + 20_000_000, step), ping(SECOND + 21_000_000, step)],
            };
            let own = |step| [-5_010_000, 10_000, SECOND + step - 10_000, SECOND + step + 5_010_000];
            let ranks: Vec<_> = (0..).zip(steps.iter().map(|step| own(*step))).collect();
            let nodes: Vec<_> = (1..).map(NodeId).zip(steps[1..].iter().map(|step| pings(*step))).collect();
            assert!(job(&ranks).elapsed(MaxDrift::DEFAULT).unwrap().consistent);
            job(&ranks).elapsed_with(&Anchors::new(NodeId(0), &nodes).unwrap(), MaxDrift::DEFAULT).unwrap()
        };
        assert!(elapsed(&[0; 3]).consistent);
        for step in [3_000_000, -3_000_000] {
            let named = [
                (vec![0, step, 0], vec![1]),
                (vec![0, 0, step], vec![2]),
                (vec![step, 0, 0], vec![0]),
                (vec![0, step], vec![0, 1]),
            ];
            for (steps, suspects) in named {
                let bounds = elapsed(&steps);
                let suspects = suspects.into_iter().map(NodeId).collect();
                assert_eq!((bounds.consistent, bounds.suspects), (false, suspects), "{steps:?}");
            }
        }
    }

    #[test]
    fn no_rank_has_no_elapsed_time() {
        assert_eq!(JobStamps::new().elapsed(EXACT), None);
    }
}
