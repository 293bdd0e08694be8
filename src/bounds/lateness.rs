//! Lateness: how much later each node reaches the end barrier than the others, for any offsets of the clocks.
//!
//! In the notation of `src/bounds/elapsed.rs`, let A_n be the true instant of node n's last t2, which its clock
//! reads as c_n. Two values are wanted:
//! - A_n - max over m != n of A_m: how long all others wait for n. This is above zero for at most one node. Below
//!   zero, the value shows how much sooner than the last node the node n is done.
//! - A_n - (the median of all A_m).
//!
//! # The bounds
//! A barrier lets no rank leave before every rank has entered. So, with primes for true durations,
//!
//! `(c_n - b_n)' <= A_n - X1 <= (c_n - a_n)'`, `0 <= X2 - A_n <= (d_n - c_n)'` and `L0' <= X2 - X1 <= U0'`.
//!
//! Two nodes share only X1 and X2. With P = c - a, L = c - b and w = d - c (how long the node's last rank waits),
//! the paths from one node to the other give
//!
//! `A_m - A_n <= min(P_m' - L_n', w_n', P_m' + w_n' - L0', U0' - L_n')`,
//!
//! by X1, by X2, and by both in either order. With perfect rates no tighter bounds exist: eliminating the offsets
//! leaves a constraint graph, and these are its shortest paths. Paths that visit a release twice are no shorter.
//! All m can be at their latest relative to n at once, and all at their earliest. So the wait for n lies between
//! minus the largest of these bounds over m and the smallest bound of A_n - A_m over m. Both ends depend only on
//! the largest P, the largest L and the least w of the other nodes: O(nodes) for all nodes together.
//!
//! The k-th smallest of some values grows with each of them. So the median of A, its k-th smallest, is at most A_n
//! plus the k-th smallest upper bound of A_m - A_n; the lower end follows likewise. (A bound that is the least of
//! several terms uses the k-th smallest of each term, so this end may not be the tightest possible.)
//!
//! # What limits the result
//! The end barrier alone cannot compare two nodes: a node that waits long may have come early, or the barrier may
//! have released it late. Only the first barrier makes nodes comparable. Two things stay uncertain: how long the
//! nodes were in the first barrier together and, in a long run, the rates of the clocks (each term uses its own
//! worst case). Pings to a hub (`src/bounds/ping_bounds.rs`) place each A_n in an interval of the hub's time,
//! without a long difference on any clock. So A_m - A_n is also at most the end of m's interval minus the start of
//! n's.

use super::drift::MaxDrift;
use super::elapsed::JobStamps;
use super::interval::{Between, Interval};
use super::ping_bounds::{Anchors, Placed};
use crate::ids::NodeId;

/// How much later a node's last rank reaches the end barrier. Below zero means earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLateness {
    /// The node.
    pub node: NodeId,
    /// Relative to the last rank of all other nodes. A lower bound above zero proves that this node came last.
    pub behind_others_ns: Interval,
    /// Relative to the last rank of the median node; for an even number of nodes, the earlier of the middle two.
    pub behind_median_ns: Interval,
}

/// Bounds for one node (ns).
struct Terms {
    node: NodeId,
    /// Upper bound of c - a.
    p: i128,
    /// Lower bound of c - b.
    l: i128,
    /// Upper bound of d - c.
    w: i128,
    /// Interval of A_n by pings, relative to E2.
    placed: Option<Between>,
}

impl JobStamps {
    /// One entry per node, by node number. Empty with fewer than two nodes, and if no clocks within `drift` can
    /// give these stamps. O(nodes log nodes).
    pub fn lateness(&self, anchors: Option<&Anchors>, drift: MaxDrift) -> Vec<NodeLateness> {
        let bounds = match anchors {
            Some(anchors) => self.elapsed_with(anchors, drift),
            None => self.elapsed(drift),
        };
        if !bounds.is_some_and(|bounds| bounds.consistent) {
            return Vec::new();
        }
        let longest = |until: i64, from: i64| drift.longest(i128::from(until) - i128::from(from));
        let shortest = |until: i64, from: i64| drift.shortest(i128::from(until) - i128::from(from));
        let mut nodes: Vec<Terms> = self
            .numbered()
            .map(|(node, n)| Terms {
                node,
                p: longest(n.c_ns, n.a_ns),
                l: shortest(n.c_ns, n.b_ns),
                w: longest(n.d_ns, n.c_ns),
                placed: None,
            })
            .collect();
        let between = [
            nodes.iter().map(|n| n.l).max().unwrap_or_default(),
            self.numbered().map(|(_, n)| longest(n.d_ns, n.a_ns)).min().unwrap_or_default(),
        ];
        let placed = anchors.map_or_else(Vec::new, |anchors| self.placed(anchors, drift));
        if nodes.len() == placed.len() {
            let let_go = placed.iter().map(|node| node.releases()[1].1).min().unwrap_or_default();
            nodes.iter_mut().zip(&placed).for_each(|(node, placed)| node.place(placed, let_go));
        }
        let lateness = if nodes.len() > 1 { of_nodes(&nodes, between) } else { Vec::new() };
        let agree =
            lateness.iter().all(|n| n.behind_others_ns.is_possible() && n.behind_median_ns.is_possible());
        if agree { lateness } else { Vec::new() }
    }
}

impl Terms {
    /// No rank enters the end barrier after the first rank has left it.
    fn place(&mut self, placed: &Placed, let_go: i128) {
        let [low, high] = placed.arrival();
        self.placed = Some([low, high.min(let_go)]);
    }
}

/// X2 - X1 lies between `l0` and `u0`.
fn of_nodes(nodes: &[Terms], [l0, u0]: [i128; 2]) -> Vec<NodeLateness> {
    let column = |of: fn(&Terms) -> i128| -> Vec<i128> { nodes.iter().map(of).collect() };
    // Without pings these ends are not used.
    let ends =
        [column(|n| n.placed.map_or(0, |[_, high]| high)), column(|n| n.placed.map_or(0, |[low, _]| low))];
    // The greatest -w is the least w.
    let [p, l, w] = [column(|n| n.p), column(|n| n.l), column(|n| -n.w)].map(Column::new);
    let [high, low] = ends.map(Column::new);
    let of_node = |(at, n): (usize, &Terms)| {
        let by_pings = |later: i128, sooner: i128| n.placed.map_or(i128::MAX, |_| later - sooner);
        let [own_low, own_high] = n.placed.unwrap_or_default();
        // Upper bound of another node's A minus this node's.
        let after = |p: i128, high: i128| {
            let (by_first, by_end) = ((-n.l).min(n.w - l0), n.w.min(u0 - n.l));
            (p + by_first).min(by_end).min(by_pings(high, own_low))
        };
        // Upper bound of this node's A minus another's.
        let before = |l: i128, w: i128, low: i128| {
            (n.p.min(u0) - l).min((n.p - l0).min(0) - w).min(by_pings(own_high, low))
        };
        let others = |column: &Column| column.greatest_of_others(at);
        let behind_others = [-after(others(&p), others(&high)), before(others(&l), others(&w), others(&low))];
        let behind_median = [-after(p.median, high.median), before(l.median, w.median, low.median)];
        NodeLateness {
            node: n.node,
            behind_others_ns: behind_others.into(),
            behind_median_ns: behind_median.into(),
        }
    };
    nodes.iter().enumerate().map(of_node).collect()
}

/// One value per node.
struct Column {
    values: Vec<i128>,
    /// For an even number, the smaller of the middle two.
    median: i128,
    /// The second greatest, then the greatest.
    greatest: [i128; 2],
}

impl Column {
    /// Needs at least two values.
    fn new(values: Vec<i128>) -> Self {
        let mut ascending = values.clone();
        ascending.sort_unstable();
        let count = ascending.len();
        Self {
            values,
            median: ascending[(count - 1) / 2],
            greatest: [ascending[count - 2], ascending[count - 1]],
        }
    }

    fn greatest_of_others(&self, at: usize) -> i128 {
        let [second, first] = self.greatest;
        if self.values[at] == first { second } else { first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Stamps;

    fn job(stamps: &[(u32, [i64; 4])]) -> JobStamps {
        let mut job = JobStamps::new();
        stamps.iter().for_each(|(node, t)| job.add(NodeId(*node), Stamps::try_from(*t).unwrap()));
        job
    }

    fn lateness(stamps: &[(u32, [i64; 4])]) -> Vec<NodeLateness> {
        job(stamps).lateness(None, MaxDrift::from_ppm(0.0).unwrap())
    }

    /// Nodes 0, 1 and 2 work for 100, 130 and 90 ns; the barriers take 2 and 3 ns; the clocks' offsets are large.
    #[test]
    fn a_small_case_is_as_worked_by_hand() {
        let shifted = |node: u32, offset: i64, t: [i64; 4]| (node, t.map(|t| t + offset));
        let stamps = [
            shifted(0, 0, [0, 2, 102, 135]),
            shifted(1, -1_000_000, [0, 2, 132, 135]),
            shifted(2, 77_000_000, [0, 2, 92, 135]),
        ];
        // L0 = 130, U0 = 135. Others after node 1, by X1: P = 102 (node 0), 102 - 130 = -28; by X2: w = 3.
        // Node 1 after node 0: P = 132, L = 100: 32; by the end: w_0 = 33, P - L0 + w_0 = 35, U0 - L_0 = 35.
        let found = lateness(&stamps);
        assert_eq!(found[1].behind_others_ns, Interval { low: 28, high: 32 });
        // Node 0 is the median: the same.
        assert_eq!(found[1].behind_median_ns, Interval { low: 28, high: 32 });
        assert_eq!(found[0].behind_others_ns, Interval { low: -32, high: -28 });
        assert_eq!(found[2].behind_others_ns, Interval { low: -42, high: -38 });
    }

    #[test]
    fn one_node_and_clocks_that_contradict_say_nothing() {
        assert_eq!(lateness(&[(0, [0, 1, 2, 3]), (0, [0, 1, 2, 3])]), []);
        assert_eq!(lateness(&[]), []);
        assert_eq!(lateness(&[(0, [0, 1, 100, 101]), (1, [0, 1, 300, 301])]), []);
    }

    /// Equal stamps: the intervals are as wide as the barriers.
    #[test]
    fn equal_nodes_are_not_told_apart() {
        let found = lateness(&[(0, [0, 5, 100, 107]), (1, [0, 5, 100, 107]), (3, [0, 5, 100, 107])]);
        assert_eq!(found.iter().map(|n| n.node).collect::<Vec<_>>(), [0, 1, 3].map(NodeId));
        let all = Interval { low: -5, high: 5 };
        assert!(found.iter().all(|n| n.behind_others_ns == all && n.behind_median_ns == all));
    }
}
