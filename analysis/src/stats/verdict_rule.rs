//! Decides which nodes are slower than their class.
//!
//! A verdict needs the answers to three questions. A: does the node stand out from its class, given the
//! number of nodes tested? B: is it slower by more than delta? C: are most of its runs slow, too? A alone is
//! no reason to act, and it also finds healthy nodes in classes that are not normally distributed. B alone
//! finds the slow tail of every class.

use super::class_model::{ClassModel, ClassPrior, NodeEstimate, NodeTime};
use super::node_median::NodeMedian;
use super::resolution::Units;
use super::{benjamini_hochberg, normal};

/// The limits of verdicts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerdictSettings {
    /// B: the node must be slower than its class by more than this fraction.
    pub delta: f64,
    /// A node slower by more than this fraction should be drained.
    pub drain_delta: f64,
    /// A: accepted share of false discoveries.
    pub q: f64,
    /// A node with fewer runs is at most SUSPECT.
    pub min_runs: usize,
    /// In a smaller class no node can stand out: only B and C apply, and no node is SLOW.
    pub min_nodes: usize,
    /// SLOW promises, with this probability, that the node is slower by `delta`.
    pub certainty: f64,
    /// The same for SLOW-TAIL, and (with `drain_delta`) for drains.
    pub tail_certainty: f64,
    /// What the model of a class assumes.
    pub prior: ClassPrior,
}

impl Default for VerdictSettings {
    fn default() -> Self {
        Self {
            delta: 0.03,
            drain_delta: 0.05,
            q: 0.01,
            min_runs: 5,
            min_nodes: 20,
            certainty: 0.99,
            tail_certainty: 0.97,
            prior: ClassPrior::default(),
        }
    }
}

/// The verdict on a node. A verdict never means that a node is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// It stands out, and is faster by more than delta. A healthy node is not so fast: its results may be
    /// wrong, or it is another kind of node.
    Fast,
    /// No test finds the node slow, and it is not FAST.
    Ok,
    /// It stands out, but it is not certain that it is slower by more than delta.
    Unusual,
    /// It seems to stand out or to be slower by more than delta, but it has too few runs, only some of its
    /// runs are slow, or its median is too uncertain.
    Suspect,
    /// It is slower by more than delta. But it does not stand out (its class varies as much, or is too
    /// small), or the slowdown is not certain enough for SLOW.
    SlowTail,
    /// It is slower by more than delta, and stands out.
    Slow,
    /// A result of the node is wrong: its times mean nothing. The statistics never give this verdict.
    Wrong,
}

impl Verdict {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Fast => "FAST",
            Verdict::Ok => "OK",
            Verdict::Unusual => "UNUSUAL",
            Verdict::Suspect => "SUSPECT",
            Verdict::SlowTail => "SLOW-TAIL",
            Verdict::Slow => "SLOW",
            Verdict::Wrong => "WRONG",
        }
    }
}

/// The comparison of a node with the other nodes of its class. All values are `None` in a class with one node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeJudgement {
    /// Slowdown as a fraction of the median of the other nodes: 0.05 is 5 % slower.
    pub slowdown: Option<f64>,
    /// The node is slower than the other nodes by at least this fraction, with the probability `certainty`
    /// (99 %). `None` also if no node of the class ran twice.
    pub slower_by_at_least: Option<f64>,
    /// The node is slower by at most this fraction, with a probability of 99 %. This limit comes from the measured
    /// difference, its error and the node's own runs; `slower_by_at_least` also uses how healthy nodes differ.
    pub slower_by_at_most: Option<f64>,
    /// Its distance from the others in standard deviations. `None` in a small class.
    pub score: Option<f64>,
    /// A: the probability that a healthy node has such a score. `None` in a small class.
    pub p: Option<f64>,
    /// The same, adjusted for the number of nodes tested (Benjamini-Hochberg). At most q if the node stands out.
    pub adjusted_p: Option<f64>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The verdict is SLOW, or SLOW-TAIL in a small class, and the node is slower by more than `drain_delta`
    /// with the probability `tail_certainty`.
    pub suggests_drain: bool,
    /// For sorting: the expected slowdown, given the noise of the node's runs and how much nodes differ.
    /// `None` also if no node of the class ran twice.
    pub shrunken: Option<f64>,
}

/// If the error of a node exceeds delta, the tails of the model decide, and these are less well known. Then
/// the difference of the node must be so large that errors alone cause such a difference in at most this
/// share of classes.
const NOISY_SHARE: f64 = 1e-4;

/// A node for [`judge`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredNode {
    /// Its median (ln seconds).
    pub median: f64,
    /// The variance of the error of the median: see [`NodeTime::variance`]. `None` if no node of the class
    /// ran twice, so that errors are unknown.
    pub variance: Option<f64>,
    /// Number of runs.
    pub runs: usize,
    /// How far [`NodeMedian::lower`] is below the median (ln T).
    pub own_reach: f64,
    /// How far the true median may be above the median (ln T): see [`NodeMedian::reach`].
    pub reach_above: f64,
}

impl MeasuredNode {
    /// From the median of its runs.
    pub fn new(node: &NodeMedian, variance: Option<f64>) -> Self {
        Self {
            median: node.median,
            variance,
            runs: node.runs,
            own_reach: node.median - node.lower,
            reach_above: node.reach[1],
        }
    }
}

/// Judges each node of a class. `units` has the rounding units of the nodes' times, by the index of the node.
///
/// A: p = 1 - Phi(score), Benjamini-Hochberg at q. B: P(theta > ln(1 + delta)) is at least the certainty,
/// with theta and its distribution from [`ClassModel`]. C: most runs of the node are slower by more than
/// delta, too (for UNUSUAL: by more than 0). C is necessary because the error of a median is the error for a
/// usual node of the class. A node with many slow runs is not a usual node.
pub fn judge(nodes: &[MeasuredNode], units: &Units, settings: &VerdictSettings) -> Vec<NodeJudgement> {
    judge_first(nodes.len(), nodes, units, settings)
}

/// Like [`judge`], but only the first `count` nodes of the class get a judgement.
pub fn judge_first(
    count: usize,
    nodes: &[MeasuredNode],
    units: &Units,
    settings: &VerdictSettings,
) -> Vec<NodeJudgement> {
    let VerdictSettings { prior, .. } = settings;
    let time = |node: &MeasuredNode| NodeTime { median: node.median, variance: node.variance.unwrap_or(0.0) };
    let times: Vec<NodeTime> = nodes.iter().map(time).collect();
    let Some(model) = ClassModel::fit(&times, units, prior) else {
        return vec![NodeJudgement::default(); count];
    };
    let is_small = nodes.len() < settings.min_nodes;
    let tested = if is_small { &[] } else { &model.nodes[..] };
    let p: Vec<f64> = tested.iter().map(|node| normal::upper(node.score)).collect();
    let adjusted = benjamini_hochberg::adjusted(&p);
    let adjusted_fast = benjamini_hochberg::adjusted(
        &tested.iter().map(|node| normal::upper(-node.score)).collect::<Vec<_>>(),
    );
    let (delta, noisy_score) = (settings.delta.ln_1p(), -normal::quantile(NOISY_SHARE / nodes.len() as f64));
    let certain = normal::quantile(settings.certainty);
    let may_drain = |verdict| verdict == Verdict::Slow || (is_small && verdict == Verdict::SlowTail);
    let judgement = |(at, (node, estimate)): (usize, (&MeasuredNode, &NodeEstimate))| {
        let adjusted_p = adjusted.get(at).copied();
        let stands_out = adjusted_p.is_some_and(|p| p <= settings.q);
        let is_slower = estimate.above(delta);
        let own = estimate.proved - node.own_reach;
        let needed = if is_slower >= settings.tail_certainty { delta } else { 0.0 };
        // The model has no fast nodes: a difference that its error does not explain is real.
        let is_fast = adjusted_fast.get(at).is_some_and(|p| *p <= settings.q)
            && node.runs >= settings.min_runs
            && estimate.proved + certain * estimate.error < -delta
            && estimate.proved + node.reach_above < -delta;
        let verdict = match (stands_out, is_slower) {
            (false, p) if p < settings.tail_certainty && is_fast => Verdict::Fast,
            (false, p) if p < settings.tail_certainty => Verdict::Ok,
            _ if node.runs < settings.min_runs || own <= needed => Verdict::Suspect,
            _ if estimate.error > delta && estimate.proved < noisy_score * estimate.error => Verdict::Suspect,
            (true, p) if p >= settings.certainty => Verdict::Slow,
            (_, p) if p >= settings.tail_certainty => Verdict::SlowTail,
            _ => Verdict::Unusual,
        };
        let most = estimate.difference.max(estimate.proved);
        let drains = || estimate.above(settings.drain_delta.ln_1p()) >= settings.tail_certainty;
        NodeJudgement {
            slowdown: Some(estimate.difference.exp_m1()),
            slower_by_at_least: node
                .variance
                .map(|_| estimate.at_least(settings.certainty).min(own).exp_m1()),
            slower_by_at_most: node
                .variance
                .map(|_| (most + (certain * estimate.error).max(node.reach_above)).exp_m1()),
            score: (!is_small).then_some(estimate.score),
            p: p.get(at).copied(),
            adjusted_p,
            verdict: Some(verdict),
            suggests_drain: may_drain(verdict) && drains(),
            shrunken: node.variance.map(|_| estimate.mean().exp_m1()),
        }
    };
    nodes.iter().zip(&model.nodes).enumerate().take(count).map(judgement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::class_runs::ClassRuns;
    use crate::stats::random::Random;
    use crate::stats::{node_median, within_nodes};
    use proptest::prelude::*;

    fn judged(nodes: &[Vec<f64>]) -> Vec<NodeJudgement> {
        let ends: Vec<usize> = (1..=nodes.len()).map(|n| nodes[..n].iter().map(Vec::len).sum()).collect();
        let times = nodes.concat();
        let class = ClassRuns::new(&times, &ends).unwrap();
        let medians = node_median::of_nodes(&class);
        let sigma = within_nodes::sigma(&class, &medians);
        let variance = |runs| sigma.map(|sigma| within_nodes::variance_factor(runs) * sigma * sigma);
        let of = |node: &NodeMedian| MeasuredNode::new(node, variance(node.runs));
        judge(&medians.iter().map(of).collect::<Vec<_>>(), &Units::default(), &VerdictSettings::default())
    }

    /// `count` healthy nodes with an even spread of `sd`, followed by the `slow` nodes.
    fn fleet(count: usize, runs: usize, sd: f64, slow: &[f64]) -> Vec<Vec<f64>> {
        let mut random = Random::new(7);
        let healthy = (1..=count).map(|i| sd * normal::quantile(i as f64 / (count + 1) as f64));
        let all = healthy.chain(slow.iter().map(|slow| slow.ln_1p()));
        all.map(|node| (0..runs).map(|_| node + 0.001 * random.normal()).collect()).collect()
    }

    fn last(nodes: &[Vec<f64>]) -> NodeJudgement {
        *judged(nodes).last().unwrap()
    }

    #[test]
    fn each_verdict_is_said() {
        for (nodes, expected, drain) in [
            (fleet(100, 7, 0.005, &[0.08]), Verdict::Slow, true),
            (fleet(100, 7, 0.005, &[0.04]), Verdict::Slow, false),
            (fleet(100, 7, 0.002, &[0.02]), Verdict::Unusual, false),
            (fleet(100, 7, 0.03, &[0.07]), Verdict::SlowTail, false),
            (fleet(100, 4, 0.005, &[0.08]), Verdict::Suspect, false),
            (fleet(100, 4, 0.002, &[0.02]), Verdict::Suspect, false),
            (fleet(100, 7, 0.005, &[0.005]), Verdict::Ok, false),
            (fleet(2, 7, 0.005, &[0.08]), Verdict::SlowTail, true),
            (fleet(2, 7, 0.005, &[0.065]), Verdict::SlowTail, false),
            (fleet(2, 4, 0.005, &[0.08]), Verdict::Suspect, false),
            (fleet(18, 7, 0.002, &[0.02]), Verdict::Ok, false),
        ] {
            let found = last(&nodes);
            assert_eq!((found.verdict, found.suggests_drain), (Some(expected), drain), "{found:?}");
        }
    }

    #[test]
    fn a_node_that_is_too_fast_is_named() {
        for (nodes, expected) in [
            (fleet(100, 7, 0.002, &[-0.2]), Verdict::Fast),
            (fleet(100, 7, 0.005, &[-0.05]), Verdict::Fast),
            (fleet(100, 7, 0.005, &[-0.02]), Verdict::Ok),
            (fleet(100, 4, 0.002, &[-0.2]), Verdict::Ok),
            (fleet(18, 7, 0.002, &[-0.2]), Verdict::Ok),
            (fleet(100, 7, 0.03, &[-0.06]), Verdict::Ok),
        ] {
            let found = last(&nodes);
            assert_eq!((found.verdict, found.suggests_drain), (Some(expected), false), "{found:?}");
        }
    }

    /// The error of the model, and the slow runs of the node itself.
    #[test]
    fn a_node_is_slower_by_at_most_the_upper_end() {
        let most = |nodes: &[Vec<f64>]| last(nodes).slower_by_at_most.unwrap();
        let quiet = most(&fleet(20, 7, 0.005, &[0.02]));
        assert!((0.02..0.03).contains(&quiet), "{quiet}");
        assert!(most(&fleet(5, 7, 0.005, &[0.02])) > quiet);
        let mut nodes = fleet(20, 7, 0.005, &[0.0]);
        nodes.last_mut().unwrap().iter_mut().skip(4).for_each(|time| *time += 0.08);
        let slow_runs = most(&nodes);
        assert!((0.07..0.1).contains(&slow_runs), "{slow_runs}");
    }

    #[test]
    fn the_only_node_has_no_verdict() {
        assert_eq!(last(&fleet(1, 7, 0.0, &[])), NodeJudgement::default());
        assert_eq!(judged(&[]), []);
    }

    /// Equal times: no division by 0, and no node is slow.
    #[test]
    fn equal_times_are_ok() {
        for count in [2, 3, 19, 20, 500] {
            let judged = judged(&vec![vec![1.5; 7]; count]);
            for node in judged {
                assert_eq!((node.verdict, node.slowdown), (Some(Verdict::Ok), Some(0.0)));
                assert!(node.shrunken.unwrap() < 1e-3);
                assert!(node.score.is_none_or(|score| score == 0.0));
                assert!(node.slower_by_at_most.is_some_and(|most| 0.0 < most && most < 0.03));
            }
        }
    }

    /// A floor of 0.2 %: a node 0.5 % slower than equal nodes is only 2.5 spreads away.
    #[test]
    fn the_spread_has_a_floor() {
        let mut nodes = vec![vec![0.0; 7]; 100];
        nodes.push(vec![0.005; 7]);
        let found = last(&nodes);
        assert!((found.score.unwrap() - 2.5).abs() < 0.15 && found.verdict == Some(Verdict::Ok));
    }

    #[test]
    fn what_is_less_sure_shrinks_more() {
        let mut nodes = fleet(60, 7, 0.01, &[]);
        nodes
            .iter_mut()
            .for_each(|runs| runs.iter_mut().zip(0..).for_each(|(y, i)| *y += [0.0, 0.02][i % 2]));
        nodes.push(vec![0.05; 3]);
        nodes.push(vec![0.05; 21]);
        let judged = judged(&nodes);
        let [few, many] = [60, 61].map(|node: usize| judged[node]);
        assert_eq!(few.slowdown, many.slowdown);
        assert!(0.0 < few.shrunken.unwrap() && few.shrunken < many.shrunken && many.shrunken < many.slowdown);
    }

    proptest! {
        /// A SLOW node is at least delta slower in any class, and the order of nodes does not matter.
        #[test]
        fn slow_is_true(
            nodes in proptest::collection::vec(proptest::collection::vec(-1.0..1.0f64, 1..12), 1..50),
            turn in 0..50usize
        ) {
            let found = judged(&nodes);
            let mut turned = nodes.clone();
            turned.rotate_left(turn % nodes.len());
            let mut again = judged(&turned);
            again.rotate_right(turn % nodes.len());
            for (node, same) in found.iter().zip(&again) {
                prop_assert_eq!(node.verdict, same.verdict);
                if node.verdict >= Some(Verdict::SlowTail) {
                    prop_assert!(node.slowdown > Some(0.03) && node.slowdown >= node.slower_by_at_least);
                }
                if node.verdict == Some(Verdict::Slow) {
                    prop_assert!(node.slower_by_at_least.unwrap() >= 0.03 - 1e-6);
                }
            }
        }

        /// Twice the time on every node changes nothing.
        #[test]
        fn units_do_not_matter(nodes in proptest::collection::vec(0..60i32, 20..60)) {
            let times = |scale: f64| -> Vec<Vec<f64>> {
                nodes.iter().map(|node| vec![scale + f64::from(*node) / 256.0; 7]).collect()
            };
            let verdicts = |scale: f64| -> Vec<_> {
                judged(&times(scale)).iter().map(|node| node.verdict).collect()
            };
            prop_assert_eq!(verdicts(0.0), verdicts(4.0));
        }
    }
}
