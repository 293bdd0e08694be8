//! Compares the bounds with simulated clusters, whose true times are known, and with a linear program.

use pmmpi::NodeId;
use pmmpi::bounds::{Anchors, ElapsedBounds, Interval, JobStamps, MaxDrift, Ping, Pings, Stamps};
use proptest::prelude::*;
use rig::linear_program::{Solution, maximise};

/// A simulated job: the true instants (ns) of each rank, and each node's clock.
#[derive(Clone, Debug)]
struct Truth {
    /// t0..t3 of each rank, with its node.
    ranks: Vec<(usize, [i64; 4])>,
    /// A node's clock reads `offset + rate * true time`.
    clocks: Vec<(i64, f64)>,
}

impl Truth {
    fn elapsed_ns(&self) -> i64 {
        let last = self.ranks.iter().map(|(_, t)| t[2]).max().unwrap();
        last - self.ranks.iter().map(|(_, t)| t[1]).min().unwrap()
    }

    /// How much later the last rank of each node came to the end than that of all others, and than that of the median
    /// node.
    fn lateness_ns(&self) -> Vec<[i64; 2]> {
        let last =
            |node: usize| self.ranks.iter().filter(|(n, _)| *n == node).map(|(_, t)| t[2]).max().unwrap();
        let last: Vec<i64> = (0..self.clocks.len()).map(last).collect();
        let mut ascending = last.clone();
        ascending.sort_unstable();
        let median = ascending[(ascending.len() - 1) / 2];
        let of = |node: usize| {
            let others = last.iter().enumerate().filter(|(n, _)| *n != node).map(|(_, t)| *t);
            [last[node] - others.max().unwrap(), last[node] - median]
        };
        (0..last.len()).map(of).collect()
    }

    /// Reads a node's clock.
    fn read(&self, node: usize, t: i64) -> i64 {
        let (offset, rate) = self.clocks[node];
        offset + (t as f64 * rate).floor() as i64
    }

    /// Pings of every node except the first with the first node, before the work and after it. `ways` has their times
    /// to the hub and back. They begin `early` before the first entry and after the last exit.
    fn pings(&self, early: i64, ways: &[(i64, i64)]) -> Vec<(NodeId, Pings)> {
        let first = self.ranks.iter().map(|(_, t)| t[0]).min().unwrap() - early;
        let last = self.ranks.iter().map(|(_, t)| t[3]).max().unwrap() + early;
        let of = |node: usize, begin: i64| {
            let ping = |(number, (there, back)): (usize, &(i64, i64))| {
                let sent = begin + number as i64 * 100_000 + node as i64 * 1_000_000;
                Ping {
                    sent_ns: self.read(node, sent),
                    hub_ns: self.read(0, sent + there),
                    back_ns: self.read(node, sent + there + back),
                }
            };
            ways.iter().enumerate().map(ping).collect()
        };
        let node =
            |node: usize| (NodeId(node as u32), Pings { before: of(node, first), after: of(node, last) });
        (1..self.clocks.len()).map(node).collect()
    }

    /// The readings of the ranks' clocks: whole nanoseconds, like those of clock_gettime.
    fn stamps(&self) -> Vec<(NodeId, [i64; 4])> {
        let read = |(node, t): &(usize, [i64; 4])| (NodeId(*node as u32), t.map(|t| self.read(*node, t)));
        self.ranks.iter().map(read).collect()
    }
}

fn job(stamps: &[(NodeId, [i64; 4])]) -> JobStamps {
    let mut job = JobStamps::new();
    for (node, t_ns) in stamps {
        job.add(*node, Stamps::try_from(*t_ns).expect("within range"));
    }
    job
}

fn bounds(stamps: &[(NodeId, [i64; 4])], drift: MaxDrift) -> ElapsedBounds {
    job(stamps).elapsed(drift).expect("there are ranks")
}

/// For each node: lateness behind all others, and behind the median.
fn lateness(stamps: &[(NodeId, [i64; 4])], pings: &[(NodeId, Pings)], drift: MaxDrift) -> Vec<[Interval; 2]> {
    let found = job(stamps).lateness(Anchors::new(NodeId(0), pings).as_ref(), drift);
    assert!(found.iter().map(|n| n.node).eq((0..found.len() as u32).map(NodeId)));
    found.iter().map(|n| [n.behind_others_ns, n.behind_median_ns]).collect()
}

fn bounds_with(stamps: &[(NodeId, [i64; 4])], pings: &[(NodeId, Pings)], drift: MaxDrift) -> ElapsedBounds {
    let anchors = Anchors::new(NodeId(0), pings).expect("there are pings");
    job(stamps).elapsed_with(&anchors, drift).expect("there are ranks")
}

/// Travel times of pings.
fn ways() -> impl Strategy<Value = Vec<(i64, i64)>> {
    proptest::collection::vec((1i64..40_000, 1i64..40_000), 1..=10)
}

fn perfect() -> MaxDrift {
    MaxDrift::from_ppm(0.0).unwrap()
}

/// 1 to 8 nodes with 1 to 6 ranks. Every entry to a barrier precedes every exit; all else is arbitrary.
fn truth(max_rate_error: f64) -> impl Strategy<Value = Truth> {
    let node = (1usize..=6, -(1i64 << 60)..(1i64 << 60), -max_rate_error..=max_rate_error);
    let cluster = proptest::collection::vec(node, 1..=8);
    (cluster, 1i64..5_000_000, 0i64..3_000_000_000)
        .prop_flat_map(|(nodes, spread, work)| {
            let count: usize = nodes.iter().map(|(ranks, ..)| ranks).sum();
            let jitter = proptest::collection::vec(proptest::array::uniform4(0..spread), count);
            (Just(nodes), jitter, Just((spread, work)))
        })
        .prop_map(|(nodes, jitter, (spread, work))| {
            let owners = nodes.iter().enumerate().flat_map(|(node, (ranks, ..))| vec![node; *ranks]);
            // Two releases of barriers; entries are before them and exits after them.
            let (first, second) = (spread, 3 * spread + work);
            let instants = |j: [i64; 4]| [first - j[0], first + j[1], second - j[2], second + j[3]];
            Truth {
                ranks: owners.zip(jitter).map(|(node, j)| (node, instants(j))).collect(),
                clocks: nodes.iter().map(|(_, offset, error)| (*offset, 1.0 + error)).collect(),
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_truth_is_inside_whatever_the_offsets(truth in truth(0.0)) {
        let found = bounds(&truth.stamps(), perfect());
        prop_assert!(found.consistent && found.suspects.is_empty());
        prop_assert!(found.lower_ns <= truth.elapsed_ns() && truth.elapsed_ns() <= found.upper_ns,
            "{} not in {found:?}", truth.elapsed_ns());
        prop_assert!(found.lower_ns >= found.rank_lower_ns && found.upper_ns <= found.rank_upper_ns.max(found.lower_ns));
    }

    #[test]
    fn offsets_change_nothing(truth in truth(0.0), shifts in proptest::collection::vec(-(1i64 << 60)..(1 << 60), 8)) {
        let mut shifted = truth.clone();
        for (clock, shift) in shifted.clocks.iter_mut().zip(&shifts) {
            clock.0 = clock.0 / 2 + shift / 2;
        }
        prop_assert_eq!(bounds(&truth.stamps(), MaxDrift::DEFAULT), bounds(&shifted.stamps(), MaxDrift::DEFAULT));
    }

    /// Reading a clock rounds down, so each difference is off by less than 1 ns. Each term of the bounds is a sum of
    /// at most three differences, so 3 ns are tolerated.
    #[test]
    fn the_truth_is_inside_for_any_rates_within_the_limit(truth in truth(1000e-6)) {
        let found = bounds(&truth.stamps(), MaxDrift::from_ppm(1000.0).unwrap());
        prop_assert!(found.consistent);
        prop_assert!(found.lower_ns - 3 <= truth.elapsed_ns() && truth.elapsed_ns() <= found.upper_ns + 3,
            "{} not in {found:?}", truth.elapsed_ns());
    }

    /// With pings the bounds are never wider and still contain the truth, whatever the offsets and rates.
    #[test]
    fn pings_tighten_and_keep_the_truth(
        truth in truth(100e-6), early in 0i64..50_000_000, ways in ways())
    {
        prop_assume!(truth.clocks.len() > 1);
        let (stamps, pings) = (truth.stamps(), truth.pings(early, &ways));
        let without = bounds(&stamps, MaxDrift::DEFAULT);
        let with = bounds_with(&stamps, &pings, MaxDrift::DEFAULT);
        prop_assert!(with.consistent, "{with:?}");
        prop_assert!(with.lower_ns >= without.lower_ns && with.upper_ns <= without.upper_ns);
        // Readings are rounded down, and a bound has six of them.
        prop_assert!(with.lower_ns - 6 <= truth.elapsed_ns() && truth.elapsed_ns() <= with.upper_ns + 6,
            "{} not in {with:?}", truth.elapsed_ns());
    }

    /// The true lateness is within its bounds, and pings never widen them.
    #[test]
    fn the_true_lateness_is_inside_whatever_the_clocks(
        truth in truth(100e-6), early in 0i64..50_000_000, ways in ways())
    {
        prop_assume!(truth.clocks.len() > 1);
        let (stamps, pings) = (truth.stamps(), truth.pings(early, &ways));
        let truths = truth.lateness_ns();
        let without = lateness(&stamps, &[], MaxDrift::DEFAULT);
        let with = lateness(&stamps, &pings, MaxDrift::DEFAULT);
        prop_assert_eq!((without.len(), with.len()), (truths.len(), truths.len()));
        for found in [&without, &with] {
            for (said, true_ns) in found.iter().flatten().zip(truths.iter().flatten()) {
                // Readings are rounded down, and a bound has six of them.
                prop_assert!(said.low - 6 <= *true_ns && *true_ns <= said.high + 6, "{true_ns} not in {said:?}");
            }
        }
        for (with, without) in with.iter().flatten().zip(without.iter().flatten()) {
            prop_assert!(with.low >= without.low && with.high <= without.high, "{with:?} {without:?}");
        }
    }

    /// At most one node came last, and the order of the ranks does not matter.
    #[test]
    fn at_most_one_node_came_last(truth in truth(0.0), turn in 0usize..48) {
        prop_assume!(truth.clocks.len() > 1);
        let mut stamps = truth.stamps();
        let found = lateness(&stamps, &[], perfect());
        prop_assert!(found.iter().filter(|[others, _]| others.low > 0).count() <= 1, "{found:?}");
        let ranks = stamps.len();
        stamps.rotate_left(turn % ranks);
        prop_assert_eq!(&lateness(&stamps, &[], perfect()), &found);
        stamps.reverse();
        prop_assert_eq!(&lateness(&stamps, &[], perfect()), &found);
    }

    /// The truth is within the bounds even if some nodes have no pings.
    #[test]
    fn some_pings_may_be_missing(truth in truth(0.0), ways in ways()) {
        prop_assume!(truth.clocks.len() > 2);
        let (stamps, mut pings) = (truth.stamps(), truth.pings(1000, &ways));
        pings.pop();
        let with = bounds_with(&stamps, &pings, perfect());
        prop_assert!(with.consistent);
        prop_assert!(with.lower_ns <= truth.elapsed_ns() && truth.elapsed_ns() <= with.upper_ns);
    }

    /// A clock is stepped between the pings and the barrier. Barriers alone do not show this.
    #[test]
    fn a_step_beside_the_barriers_is_the_suspect(truth in truth(0.0), ways in ways(), step in 30_000_000i64..1_000_000_000) {
        prop_assume!(truth.clocks.len() >= 3);
        let (mut stamps, pings) = (truth.stamps(), truth.pings(1000, &ways));
        for (_, t) in stamps.iter_mut().filter(|(node, _)| *node == NodeId(2)) {
            *t = t.map(|t| t + step);
        }
        prop_assert!(bounds(&stamps, perfect()).consistent);
        let with = bounds_with(&stamps, &pings, perfect());
        prop_assert!(!with.consistent && with.rho_min_ppm > 0.0);
        prop_assert_eq!(with.suspects, vec![NodeId(2)]);
    }

    /// If a clock is stepped between the barriers by more than the barriers' width, it is the suspect, provided that
    /// at least two other clocks agree.
    #[test]
    fn a_stepped_clock_is_the_suspect(
        truth in truth(0.0), step in 20_000_000i64..1_000_000_000, back in any::<bool>())
    {
        prop_assume!(truth.clocks.len() >= 3);
        let step = if back { -step } else { step };
        let mut stamps = truth.stamps();
        for (_, t) in stamps.iter_mut().filter(|(node, _)| *node == NodeId(0)) {
            t[2] += step;
            t[3] += step;
        }
        let found = bounds(&stamps, perfect());
        prop_assert!(!found.consistent);
        prop_assert_eq!(found.suspects, vec![NodeId(0)]);
        prop_assert!(found.rho_min_ppm > 0.0);
    }

    /// If a barrier releases a rank before another rank with the same clock enters, it is found, even if the
    /// durations of this node agree with those of all others.
    #[test]
    fn a_barrier_that_leaks_is_the_suspect(truth in truth(0.0), late in 1i64..1000) {
        let mut stamps = truth.stamps();
        let first_exit = stamps.iter().filter(|(node, _)| *node == NodeId(0)).map(|(_, t)| t[1]).min().unwrap();
        stamps[0].1[0] = first_exit + late;
        let found = bounds(&stamps, perfect());
        prop_assert!(!found.consistent);
        prop_assert_eq!(found.suspects, vec![NodeId(0)]);
    }
}

#[test]
fn durations_that_only_touch_agree() {
    // Work of 10 to 20 ns, of 20 to 30 ns, and of 100 to 200 ns.
    let stamps = [[0, 5, 15, 20], [0, 5, 25, 30], [0, 50, 150, 200]];
    let stamps: Vec<_> = (0..).map(NodeId).zip(stamps).collect();
    let found = bounds(&stamps, perfect());
    assert!(!found.consistent);
    assert_eq!(found.suspects, [NodeId(2)]);
}

/// A node's joined stamps: a = max t0, b = min t1, c = max t2, d = min t3.
type Node = [i64; 4];

/// Rows of linear programs over the offsets that the stamps allow.
///
/// The unknowns are y_n = -theta_n for each node, and the releases x1, x2. Shifting all of them together changes
/// nothing, so all may be >= 0. Two more unknowns are the first t1 and the last t2.
struct Program<'a> {
    nodes: &'a [Node],
    rows: Vec<Row>,
}

type Row = (Vec<f64>, f64);

impl<'a> Program<'a> {
    fn new(nodes: &'a [Node]) -> Self {
        let mut program = Self { nodes, rows: Vec::new() };
        let [x1, x2] = [nodes.len(), nodes.len() + 1];
        let row = |plus, minus, limit| program.row(plus, minus, limit);
        let barriers = |(n, [a, b, c, d]): (usize, &Node)| {
            [row(n, x1, -a), row(x1, n, *b), row(n, x2, -c), row(x2, n, *d)]
        };
        program.rows = nodes.iter().enumerate().flat_map(barriers).collect();
        program
    }

    /// The row for one unknown minus another.
    fn row(&self, plus: usize, minus: usize, limit: i64) -> Row {
        let mut row = vec![0.0; self.nodes.len() + 4];
        (row[plus], row[minus]) = (1.0, -1.0);
        (row, limit as f64)
    }

    /// The largest difference of two unknowns under additional rows; `None` if no offsets remain.
    fn most(&self, plus: usize, minus: usize, more: Vec<Row>) -> Option<i64> {
        let (objective, _) = self.row(plus, minus, 0);
        match maximise(&objective, &[self.rows.clone(), more].concat()) {
            Solution::Optimum(value) => Some(value.round() as i64),
            Solution::Infeasible => None,
            Solution::Unbounded => panic!("barriers bound everything: {:?}", self.nodes),
        }
    }
}

/// Shortest and longest W; `None` if no offsets remain.
fn by_linear_program(nodes: &[Node]) -> Option<(i64, i64)> {
    let program = Program::new(nodes);
    let [x1, first, last] = [nodes.len(), nodes.len() + 2, nodes.len() + 3];
    let mut longest = i64::MIN;
    for (m, [_, _, c, _]) in nodes.iter().enumerate() {
        for (n, [_, b, _, _]) in nodes.iter().enumerate() {
            let between =
                if m == n { program.most(x1, x1, vec![]).map(|_| 0)? } else { program.most(m, n, vec![])? };
            longest = longest.max(c - b + between);
        }
    }
    // W = last - first, with last >= c_n + y_n and first <= b_n + y_n: the smallest such value.
    let ends = |(n, [_, b, c, _]): (usize, &Node)| [program.row(n, last, -c), program.row(first, n, *b)];
    let ends = nodes.iter().enumerate().flat_map(ends).collect();
    Some((-program.most(first, last, ends)?, longest))
}

/// Least and most of (the last t2 of node `n`) - (the last t2 of all others); there is exactly one other node.
fn lateness_by_linear_program(nodes: &[Node], n: usize) -> Option<Interval> {
    let program = Program::new(nodes);
    let last = nodes.len() + 3;
    let others = || nodes.iter().enumerate().filter(|(m, _)| *m != n);
    let own = nodes[n][2];
    let come_before_last = others().map(|(m, [_, _, c, _])| program.row(m, last, -c)).collect();
    let high = own + program.most(n, last, come_before_last)?;
    let after = |(m, [_, _, c, _]): (usize, &Node)| Some(c - own + program.most(m, n, vec![])?);
    let low = -others().map(after).collect::<Option<Vec<_>>>()?.into_iter().max()?;
    Some(Interval { low, high })
}

/// The joined stamps of a possible job: entries before the releases at 0 and `work`, and exits after them.
fn possible() -> impl Strategy<Value = Vec<Node>> {
    let node = (proptest::array::uniform4(0i64..40), -1000i64..1000);
    (proptest::collection::vec(node, 1..=8), 80i64..200).prop_map(|(nodes, work)| {
        let stamps = |[a, b, c, d]: [i64; 4]| [-a, b, work - c, work + d];
        nodes.into_iter().map(|(away, offset)| stamps(away).map(|t| t + offset)).collect()
    })
}

/// Arbitrary stamps; many belong to no possible job.
fn doubtful() -> impl Strategy<Value = Vec<Node>> {
    let node = (0i64..60, -2i64..40, 100i64..130, -2i64..60, -1000i64..1000);
    proptest::collection::vec(node, 1..=6).prop_map(|nodes| {
        let stamps = |(a, b, c, d, offset)| [a, a + b, c, c + d].map(|t| t + offset);
        nodes.into_iter().map(stamps).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// The bounds are the tightest possible, and both methods agree on which stamps are impossible.
    #[test]
    fn a_linear_program_finds_the_same(nodes in prop_oneof![possible(), doubtful()]) {
        let stamps: Vec<_> = nodes.iter().enumerate().map(|(node, t)| (NodeId(node as u32), *t)).collect();
        let found = bounds(&stamps, perfect());
        match by_linear_program(&nodes) {
            None => prop_assert!(!found.consistent, "{nodes:?} {found:?}"),
            Some((lower, upper)) => {
                prop_assert!(found.consistent, "{nodes:?} {found:?}");
                prop_assert_eq!((found.lower_ns, found.upper_ns), (lower, upper), "{:?}", nodes);
            }
        }
    }
    /// The bounds of the lateness are also the tightest possible.
    #[test]
    fn a_linear_program_finds_the_same_lateness(nodes in prop_oneof![possible(), doubtful()]) {
        let stamps: Vec<_> = nodes.iter().enumerate().map(|(node, t)| (NodeId(node as u32), *t)).collect();
        let found = lateness(&stamps, &[], perfect());
        prop_assume!(nodes.len() > 1);
        let best: Option<Vec<_>> = (0..nodes.len()).map(|n| lateness_by_linear_program(&nodes, n)).collect();
        match best.filter(|_| bounds(&stamps, perfect()).consistent) {
            Some(best) => prop_assert!(found.iter().map(|n| n[0]).eq(best), "{nodes:?} {found:?}"),
            None => prop_assert!(found.is_empty(), "{nodes:?} {found:?}"),
        }
    }
}
