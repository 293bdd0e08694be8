//! R*: decides which nodes are slower than their class, and by how much at least.
//!
//! A verdict needs the answers to two questions. A: does the node stand out from its class, given the number of nodes
//! tested? B: is it slower by more than delta? A alone is no reason to act, and it also finds healthy nodes in
//! classes that are not normally distributed. B alone finds the slow tail of every class.

use super::median::NodeMedian;
use super::{benjamini_hochberg, median, normal, qn_scale, within_nodes};

/// The limits of R*.
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
    /// In a smaller class no node can stand out: only B applies, and no node is SLOW.
    pub min_nodes: usize,
    /// Least spread of a class (in ln T): real nodes are never more equal.
    pub floor: f64,
}

impl Default for VerdictSettings {
    fn default() -> Self {
        Self { delta: 0.03, drain_delta: 0.05, q: 0.01, min_runs: 5, min_nodes: 20, floor: 0.002 }
    }
}

/// The verdict on a node. A verdict never means that a node is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// The node neither stands out nor is slower by delta.
    Ok,
    /// It stands out, but is not certainly slower by delta.
    Unusual,
    /// It stands out or is slower by delta, but has too few runs.
    Suspect,
    /// It is slower by at least delta, but does not stand out: its class varies that much, or is too small to tell.
    SlowTail,
    /// It is slower by at least delta, and stands out.
    Slow,
}

impl Verdict {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "OK",
            Verdict::Unusual => "UNUSUAL",
            Verdict::Suspect => "SUSPECT",
            Verdict::SlowTail => "SLOW-TAIL",
            Verdict::Slow => "SLOW",
        }
    }
}

/// A class and its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedClass {
    /// ln seconds: the median of the nodes' medians. `None` without nodes.
    pub centre: Option<f64>,
    /// The nodes' spread in ln T: Qn of their medians, without a floor. `None` below two nodes.
    pub spread: Option<f64>,
    /// In the order of the input.
    pub nodes: Vec<NodeJudgement>,
}

/// The comparison of a node with its class. All values are `None` in a class with one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeJudgement {
    /// Fraction of the class median: 0.05 is 5 % slower.
    pub slowdown: Option<f64>,
    /// The node is slower than its class by at least this fraction, see [`NodeMedian::least`].
    pub slower_by_at_least: Option<f64>,
    /// Its distance from the class in spreads. `None` in a small class.
    pub score: Option<f64>,
    /// A: the probability that a healthy node has such a score. `None` in a small class.
    pub p: Option<f64>,
    /// The same, adjusted for the number of nodes tested (Benjamini-Hochberg). At most q if the node stands out.
    pub adjusted_p: Option<f64>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The verdict is SLOW, or SLOW-TAIL in a small class, and the node is slower by more than `drain_delta`.
    pub suggests_drain: bool,
    /// For ranking only: the slowdown, reduced by what the noise of the node's runs may add. `None` if no node of the
    /// class has two runs.
    pub shrunken: Option<f64>,
}

/// Judges each node of a class by the median of its runs; `sigma` is the result of [`within_nodes::sigma`].
///
/// c is the median of the medians m, s = max(Qn(m), floor). A: p = 1 - Phi((m - c) / s), Benjamini-Hochberg at q. B:
/// the r-th smallest run y_(r) satisfies y_(r) - c > ln(1 + delta).
///
/// Shrunken: B (m - c), B = t / (t + v_k sigma_w^2), t = max(s^2 - mean v_k sigma_w^2, 0), the empirical
/// Bayes estimate of normal nodes with normal errors (B. Efron and C. Morris, "Data analysis using Stein's
/// estimator and its generalizations", JASA 70, 1975).
pub fn judge(medians: &[NodeMedian], sigma: Option<f64>, settings: &VerdictSettings) -> JudgedClass {
    let mut ascending: Vec<f64> = medians.iter().map(|node| node.median).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let (centre, spread) = (median::of_ascending(&ascending), qn_scale::qn(&ascending));
    let (Some(c), Some(s)) = (centre, spread) else {
        return JudgedClass { centre, spread, nodes: vec![NodeJudgement::ALONE; medians.len()] };
    };
    let is_small = medians.len() < settings.min_nodes;
    let scores: Vec<f64> = match is_small {
        true => Vec::new(),
        false => medians.iter().map(|node| (node.median - c) / s.max(settings.floor)).collect(),
    };
    let p: Vec<f64> = scores.iter().map(|score| normal::upper(*score)).collect();
    let adjusted = benjamini_hochberg::adjusted(&p);
    let error =
        |node: &NodeMedian| sigma.map(|sigma| within_nodes::variance_factor(node.runs) * sigma * sigma);
    let mean_error = medians.iter().filter_map(error).sum::<f64>() / medians.len() as f64;
    let between = (s * s - mean_error).max(0.0);

    let may_drain = |verdict| verdict == Verdict::Slow || (is_small && verdict == Verdict::SlowTail);
    let judgement = |(at, node): (usize, &NodeMedian)| {
        let (difference, least) = (node.median - c, node.least - c);
        let adjusted_p = adjusted.get(at).copied();
        let stands_out = adjusted_p.is_some_and(|p| p <= settings.q);
        let matters = least > settings.delta.ln_1p();
        let verdict = match (stands_out, matters) {
            (false, false) => Verdict::Ok,
            _ if node.runs < settings.min_runs => Verdict::Suspect,
            (true, true) => Verdict::Slow,
            (false, true) => Verdict::SlowTail,
            (true, false) => Verdict::Unusual,
        };
        let share = |error: f64| if between > 0.0 { between / (between + error) } else { 0.0 };
        NodeJudgement {
            slowdown: Some(difference.exp_m1()),
            slower_by_at_least: Some(least.exp_m1()),
            score: scores.get(at).copied(),
            p: p.get(at).copied(),
            adjusted_p,
            verdict: Some(verdict),
            suggests_drain: may_drain(verdict) && least > settings.drain_delta.ln_1p(),
            shrunken: error(node).map(|error| (share(error) * difference).exp_m1()),
        }
    };
    JudgedClass { centre, spread, nodes: medians.iter().enumerate().map(judgement).collect() }
}

impl NodeJudgement {
    /// A class with one node: there is no other to compare with.
    const ALONE: Self = Self {
        slowdown: None,
        slower_by_at_least: None,
        score: None,
        p: None,
        adjusted_p: None,
        verdict: None,
        suggests_drain: false,
        shrunken: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::class_runs::ClassRuns;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    fn judged(nodes: &[Vec<f64>]) -> JudgedClass {
        let ends: Vec<usize> = (1..=nodes.len()).map(|n| nodes[..n].iter().map(Vec::len).sum()).collect();
        let times = nodes.concat();
        let class = ClassRuns::new(&times, &ends).unwrap();
        let medians = median::of_nodes(&class);
        judge(&medians, within_nodes::sigma(&class, &medians), &VerdictSettings::default())
    }

    /// `count` healthy nodes with an even spread of `sd`, followed by the `slow` nodes.
    fn fleet(count: usize, runs: usize, sd: f64, slow: &[f64]) -> Vec<Vec<f64>> {
        let mut random = Random::new(7);
        let healthy = (1..=count).map(|i| sd * normal::quantile(i as f64 / (count + 1) as f64));
        let all = healthy.chain(slow.iter().map(|slow| slow.ln_1p()));
        all.map(|node| (0..runs).map(|_| node + 0.001 * random.normal()).collect()).collect()
    }

    fn last(nodes: &[Vec<f64>]) -> NodeJudgement {
        *judged(nodes).nodes.last().unwrap()
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
            (fleet(2, 7, 0.005, &[0.04]), Verdict::SlowTail, false),
            (fleet(2, 4, 0.005, &[0.08]), Verdict::Suspect, false),
            (fleet(18, 7, 0.002, &[0.02]), Verdict::Ok, false),
        ] {
            let found = last(&nodes);
            assert_eq!((found.verdict, found.suggests_drain), (Some(expected), drain), "{found:?}");
        }
    }

    #[test]
    fn a_fast_node_is_not_unusual() {
        assert_eq!(last(&fleet(100, 7, 0.002, &[-0.2])).verdict, Some(Verdict::Ok));
    }

    #[test]
    fn the_only_node_has_no_verdict() {
        assert_eq!(last(&fleet(1, 7, 0.0, &[])), NodeJudgement::ALONE);
        assert_eq!(judged(&[]).centre, None);
    }

    /// Equal times: no division by 0, and no node is slow.
    #[test]
    fn equal_times_are_ok() {
        for count in [2, 3, 19, 20, 500] {
            let judged = judged(&vec![vec![1.5; 7]; count]);
            assert_eq!((judged.centre, judged.spread), (Some(1.5), Some(0.0)));
            for node in judged.nodes {
                assert_eq!(
                    (node.verdict, node.slowdown, node.shrunken),
                    (Some(Verdict::Ok), Some(0.0), Some(0.0))
                );
                assert!(node.score.is_none_or(|score| score == 0.0));
            }
        }
    }

    /// A floor of 0.2 %: a node 0.5 % slower than equal nodes is only 2.5 spreads away.
    #[test]
    fn the_spread_has_a_floor() {
        let mut nodes = vec![vec![0.0; 7]; 100];
        nodes.push(vec![0.005; 7]);
        let found = last(&nodes);
        assert!((found.score.unwrap() - 2.5).abs() < 1e-9 && found.verdict == Some(Verdict::Ok));
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
        let [few, many] = [60, 61].map(|node: usize| judged.nodes[node]);
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
            let mut again = judged(&turned).nodes;
            again.rotate_right(turn % nodes.len());
            for (node, same) in found.nodes.iter().zip(&again) {
                prop_assert_eq!(node.verdict, same.verdict);
                if node.verdict >= Some(Verdict::SlowTail) {
                    prop_assert!(node.slower_by_at_least.unwrap() >= 0.03 - 1e-12);
                    prop_assert!(node.slowdown >= node.slower_by_at_least);
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
                judged(&times(scale)).nodes.iter().map(|node| node.verdict).collect()
            };
            prop_assert_eq!(verdicts(0.0), verdicts(4.0));
        }
    }
}
