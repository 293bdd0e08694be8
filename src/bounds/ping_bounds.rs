//! Bounds from pings to a hub, in addition to those from the barriers (`src/bounds/elapsed.rs`).
//!
//! Let e1 be the hub's latest reading before the work, and E1 the instant at which its clock read e1. Let e2 and E2
//! be the same for the hub's earliest reading after the work. A ping proves that the hub's reading h happened
//! between s and e on the node's clock, whatever the offset. So an event that the node's clock read as x happened,
//! measured from E1,
//!
//! not before `(x - e) + (h - e1)` and not after `(x - s) + (h - e1)`.
//!
//! Each difference is on a single clock and uses its worst rate (see [`MaxDrift`]). Each of several pings gives its
//! own bounds. On the hub's node x - e1 is known. With a = max t0, b = min t1, c = max t2 and d = min t3 of each
//! node, no first t1 precedes a last t0, and no last t2 follows a first t3, so
//!
//! W >= (E2 - E1) + max lo(c) - min hi(b),
//! W <= (E2 - E1) + min(max hi(c), min hi(d)) - max(min lo(b), max lo(a)).
//!
//! E2 - E1 is a difference on the hub's clock alone. All other differences are short, so that a clock's rate error
//! changes them very little. The barriers' bounds hold as well, so the code takes the tighter of each. (J. D.
//! McCalpin asks for synchronised clocks; these bounds need none.)

use super::drift::MaxDrift;
use super::interval::Between;
use super::pings::{Ping, Pings};
use super::stamps::NodeStamps;
use crate::ids::NodeId;
use std::collections::HashMap;

/// The pings that the nodes of a job exchanged with the hub.
pub struct Anchors<'a> {
    /// The hub's node.
    hub: NodeId,
    pings: HashMap<NodeId, &'a Pings>,
    /// e1 and e2: what the hub's clock read.
    hub_ns: [i64; 2],
}

/// Bounds of W from the pings (ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub lower: i128,
    pub upper: Option<i128>,
}

/// One node's last entries and first exits, relative to E1 (a, b) and to E2 (c, d).
pub(crate) struct Placed {
    pub node: NodeId,
    a: Between,
    b: Between,
    c: Between,
    d: Between,
}

impl Placed {
    /// The intervals in which the first and the second barrier's release lie by this node: from its own last entry
    /// to its own first exit.
    pub fn releases(&self) -> [(i128, i128); 2] {
        [(self.a[0], self.b[1]), (self.c[0], self.d[1])]
    }

    /// When the node's last rank enters the second barrier, relative to E2.
    pub fn arrival(&self) -> Between {
        self.c
    }

    fn is_possible(&self) -> bool {
        [self.a, self.b, self.c, self.d].iter().all(|[low, high]| low <= high)
    }
}

impl<'a> Anchors<'a> {
    /// `None` if no node has pings both before and after the work. `hub` is rank 0's node.
    pub fn new(hub: NodeId, nodes: &'a [(NodeId, Pings)]) -> Option<Self> {
        let usable = nodes.iter().filter(|(_, pings)| !pings.before.is_empty() && !pings.after.is_empty());
        let pings: HashMap<NodeId, &Pings> = usable.map(|(node, pings)| (*node, pings)).collect();
        let before = pings.values().flat_map(|pings| &pings.before).map(|ping| ping.hub_ns).max()?;
        let after = pings.values().flat_map(|pings| &pings.after).map(|ping| ping.hub_ns).min()?;
        Some(Self { hub, pings, hub_ns: [before, after] })
    }

    /// Places a node's stamps; `None` for a node without pings.
    pub(crate) fn place(&self, node: NodeId, stamps: &NodeStamps, drift: MaxDrift) -> Option<Placed> {
        let [e1, e2] = self.hub_ns;
        let (before, after) = match self.pings.get(&node) {
            // The hub's node reads the hub's own clock: a ping that takes no time.
            _ if node == self.hub => (&[at_once(e1)][..], &[at_once(e2)][..]),
            Some(pings) => (&pings.before[..], &pings.after[..]),
            None => return None,
        };
        Some(Placed {
            node,
            a: between(before, stamps.a_ns, e1, drift),
            b: between(before, stamps.b_ns, e1, drift),
            c: between(after, stamps.c_ns, e2, drift),
            d: between(after, stamps.d_ns, e2, drift),
        })
    }

    /// Bounds of W from the placed nodes. The upper bound needs all `nodes` placed. `None` if the nodes contradict
    /// each other.
    pub(crate) fn elapsed(&self, placed: &[Placed], nodes: usize, drift: MaxDrift) -> Option<Said> {
        let all = |of: fn(&Placed) -> i128| placed.iter().map(of);
        let [shortest, longest] = self.between_hub_readings(drift);
        let [first, second] = releases(placed)?;
        let lower = shortest + second.0 - first.1;
        let upper = (placed.len() == nodes).then_some({
            let last = all(|n| n.c[1]).max()?.min(second.1);
            let start = all(|n| n.b[0]).min()?.max(first.0);
            longest + last - start
        });
        upper.is_none_or(|upper| lower <= upper).then_some(Said { lower, upper })
    }

    /// The interval for X2 - X1 from the pings of all placed nodes; `None` if the nodes contradict each other.
    pub(crate) fn between_releases(&self, placed: &[Placed], drift: MaxDrift) -> Option<Between> {
        let [shortest, longest] = self.between_hub_readings(drift);
        let [first, second] = releases(placed)?;
        Some([shortest + second.0 - first.1, longest + second.1 - first.0])
    }

    /// Nodes whose clock disagrees with the hub's clock about the time between the pings before and after the work,
    /// whatever the stamps are. If most nodes disagree, the hub alone. If the hub has only one other node, both:
    /// the pings cannot tell which of two clocks is wrong.
    pub(crate) fn stepped(&self, drift: MaxDrift) -> Vec<NodeId> {
        let difference = |a: i64, b: i64| i128::from(a) - i128::from(b);
        let agree = |before: &Ping, after: &Ping| {
            let hub = difference(after.hub_ns, before.hub_ns);
            let least = difference(after.sent_ns, before.back_ns);
            let most = difference(after.back_ns, before.sent_ns);
            drift.shortest(hub) <= drift.longest(most) && drift.shortest(least) <= drift.longest(hub)
        };
        let others = || self.pings.iter().filter(|(node, _)| **node != self.hub);
        let is_right = |pings: &Pings| {
            pings.before.iter().all(|before| pings.after.iter().all(|after| agree(before, after)))
        };
        let mut wrong: Vec<NodeId> =
            others().filter(|(_, pings)| !is_right(pings)).map(|(node, _)| *node).collect();
        wrong.sort_unstable();
        match (wrong.len(), others().count()) {
            (1, 1) => vec![self.hub.min(wrong[0]), self.hub.max(wrong[0])],
            (few, all) if 2 * few <= all => wrong,
            _ => vec![self.hub],
        }
    }

    /// E2 - E1.
    fn between_hub_readings(&self, drift: MaxDrift) -> Between {
        let [e1, e2] = self.hub_ns.map(i128::from);
        [drift.shortest(e2 - e1), drift.longest(e2 - e1)]
    }

    /// Nodes whose pings contradict their stamps.
    pub(crate) fn impossible(placed: &[Placed]) -> impl Iterator<Item = NodeId> {
        placed.iter().filter(|node| !node.is_possible()).map(|node| node.node)
    }
}

/// The intervals of both barriers' releases that all nodes allow; `None` if there are none.
fn releases(placed: &[Placed]) -> Option<[(i128, i128); 2]> {
    let all = |of: fn(&Placed) -> i128| placed.iter().map(of);
    let first = (all(|n| n.a[0]).max()?, all(|n| n.b[1]).min()?);
    let second = (all(|n| n.c[0]).max()?, all(|n| n.d[1]).min()?);
    let possible = placed.iter().all(Placed::is_possible) && first.0 <= first.1 && second.0 <= second.1;
    possible.then_some([first, second])
}

fn at_once(hub_ns: i64) -> Ping {
    Ping { sent_ns: hub_ns, hub_ns, back_ns: hub_ns }
}

/// The instant at which the node's clock read `x`, relative to the hub's reading `e`.
fn between(pings: &[Ping], x: i64, e: i64, drift: MaxDrift) -> Between {
    let difference = |a: i64, b: i64| i128::from(a) - i128::from(b);
    let low = |p: &Ping| drift.shortest(difference(x, p.back_ns)) + drift.shortest(difference(p.hub_ns, e));
    let high = |p: &Ping| drift.longest(difference(x, p.sent_ns)) + drift.longest(difference(p.hub_ns, e));
    // `pings` is never empty: see [`Anchors::new`].
    [pings.iter().map(low).max().unwrap_or(0), pings.iter().map(high).min().unwrap_or(0)]
}
