//! Detects slow runs of nodes that are not slow, and nodes with too many slow runs.

use super::benjamini_hochberg::{self, Test};
use super::class_runs::ClassRuns;
use super::median::NodeMedian;
use super::{binomial, normal, within_nodes};

/// When a run is slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowRunSettings {
    /// Accepted share of false discoveries.
    pub q: f64,
    /// The run must be slower than the node's median by more than this fraction.
    pub delta: f64,
    /// Nodes with fewer runs are left out: with two runs, either may be the unusual one.
    pub min_runs: usize,
}

impl Default for SlowRunSettings {
    fn default() -> Self {
        Self { q: 0.01, delta: 0.02, min_runs: 3 }
    }
}

/// A run that was slower than the others of its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowRunTest {
    /// Index of the node in the class.
    pub node: usize,
    /// Index of the run among the node's runs.
    pub run: usize,
    /// Fraction of the node's median: 0.05 is 5 % slower.
    pub slowdown: f64,
    /// r: the distance from the node's median, in standard deviations of such a distance. `None` if the runs of the
    /// class do not differ at all, sigma_w = 0.
    pub score: Option<f64>,
    /// The probability that a healthy run is so slow.
    pub p: f64,
    /// The same, adjusted for the number of runs tested (Benjamini-Hochberg).
    pub adjusted_p: f64,
}

/// The slow runs of a class, by node and run. `sigma` is the result of [`within_nodes::sigma`].
///
/// r = (y_ij - m_i) / (sigma_w f_k); p = 1 - Phi(r). Benjamini-Hochberg covers all runs of nodes with enough runs. A
/// slow run must also be slower than `delta`.
pub fn slow(
    class: &ClassRuns,
    medians: &[NodeMedian],
    sigma: f64,
    settings: &SlowRunSettings,
) -> Vec<SlowRunTest> {
    let (least, gate) = (-normal::quantile(settings.q), settings.delta.ln_1p());
    let (mut family, mut candidates, mut tests) = (0, Vec::new(), Vec::new());
    for (node, (runs, middle)) in class.nodes().zip(medians).enumerate() {
        let Some(factor) = within_nodes::deviation_factor(runs.len()) else { continue };
        if runs.len() < settings.min_runs {
            continue;
        }
        family += runs.len();
        let unit = sigma * factor;
        for (run, time) in runs.iter().enumerate() {
            let excess = time - middle.median;
            // A p above q cannot be rejected: see benjamini_hochberg::adjust.
            if excess > 0.0 && excess >= least * unit {
                let score = (unit > 0.0).then(|| excess / unit);
                let p = normal::upper(score.unwrap_or(f64::INFINITY));
                tests.push(Test { index: candidates.len(), p });
                candidates.push(SlowRunTest {
                    node,
                    run,
                    slowdown: excess.exp_m1(),
                    score,
                    p,
                    adjusted_p: f64::NAN,
                });
            }
        }
    }
    benjamini_hochberg::adjust(&mut tests, family);
    for test in tests {
        candidates[test.index].adjusted_p = test.p;
    }
    candidates.retain(|run| run.adjusted_p <= settings.q && run.slowdown.ln_1p() > gate);
    candidates
}

/// For each node, the number of its runs and of its slow runs.
pub fn counts(medians: &[NodeMedian], slow: &[SlowRunTest]) -> Vec<(usize, usize)> {
    let mut counts: Vec<(usize, usize)> = medians.iter().map(|node| (node.runs, 0)).collect();
    slow.iter().for_each(|run| counts[run.node].1 += 1);
    counts
}

/// A node with more slow runs than the others of its class explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flaky {
    /// Index of the node in the class.
    pub node: usize,
    /// Number of all its runs.
    pub runs: usize,
    /// Number of its slow runs.
    pub slow: usize,
    /// The probability of this number of slow runs if the node is like the others.
    pub p: f64,
    /// The same, adjusted for the number of nodes tested (Benjamini-Hochberg).
    pub adjusted_p: f64,
}

/// The flaky nodes of a class, by node. `counts` has the number of runs and of slow runs of each node.
///
/// Tests X slow runs of k against Binomial(k, p_0), with Benjamini-Hochberg at `q`. p_0 is the share of slow runs of
/// all *other* nodes, plus one slow run and one other run (Laplace's rule of succession). So a node does not hide
/// behind its own slow runs, and p_0 is not 0 if the others had none.
pub fn flaky(counts: &[(usize, usize)], q: f64) -> Vec<Flaky> {
    let all = counts.iter().fold((0, 0), |all, of_node| (all.0 + of_node.0, all.1 + of_node.1));
    let mut nodes = Vec::new();
    for (node, (runs, slow)) in counts.iter().copied().enumerate().filter(|(_, (_, slow))| *slow > 0) {
        let p0 = (all.1 - slow + 1) as f64 / (all.0 - runs + 2) as f64;
        let p = binomial::at_least(runs, p0, slow);
        nodes.push(Flaky { node, runs, slow, p, adjusted_p: f64::NAN });
    }
    // Nodes without a slow run have p = 1. They belong to the family and are the larger part of it.
    let mut tests: Vec<Test> =
        nodes.iter().enumerate().map(|(index, node)| Test { index, p: node.p }).collect();
    benjamini_hochberg::adjust(&mut tests, counts.len());
    for test in tests {
        nodes[test.index].adjusted_p = test.p;
    }
    nodes.retain(|node| node.adjusted_p <= q);
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::median;
    use crate::stats::random::Random;

    /// Nodes with `runs` runs each and noise of 0.3 %; some runs are slower by a fraction.
    fn found(nodes: usize, runs: usize, slow_ones: &[(usize, usize, f64)]) -> (Vec<SlowRunTest>, Vec<Flaky>) {
        let mut random = Random::new(3);
        let mut times: Vec<f64> = (0..nodes * runs).map(|_| 2.0 + 0.003 * random.normal()).collect();
        for (node, run, by) in slow_ones {
            times[node * runs + run] += by.ln_1p();
        }
        of_times(&times, nodes, runs)
    }

    fn of_times(times: &[f64], nodes: usize, runs: usize) -> (Vec<SlowRunTest>, Vec<Flaky>) {
        let ends: Vec<usize> = (1..=nodes).map(|node| node * runs).collect();
        let class = ClassRuns::new(times, &ends).unwrap();
        let medians = median::of_nodes(&class);
        let slow = slow(
            &class,
            &medians,
            within_nodes::sigma(&class, &medians).unwrap(),
            &SlowRunSettings::default(),
        );
        let flaky = flaky(&counts(&medians, &slow), 0.01);
        (slow, flaky)
    }

    #[test]
    fn slow_runs_are_named() {
        let (slow, flaky) = found(100, 7, &[(3, 6, 0.2), (40, 0, 0.03), (99, 2, 0.1)]);
        assert_eq!(
            slow.iter().map(|run| (run.node, run.run)).collect::<Vec<_>>(),
            [(3, 6), (40, 0), (99, 2)]
        );
        assert!((slow[0].slowdown - 0.2).abs() < 0.02);
        assert!(
            slow.iter().all(|run| run.p <= run.adjusted_p && run.adjusted_p <= 0.01 && run.score > Some(3.0))
        );
        assert_eq!(flaky, []);
    }

    /// Significant, but less than delta.
    #[test]
    fn the_gate_holds() {
        let mut times = vec![0.0; 700];
        (times[5], times[105]) = (0.015, 0.025);
        let (slow, _) = of_times(&times, 100, 7);
        assert_eq!(slow.len(), 1);
        assert_eq!((slow[0].node, slow[0].run, slow[0].score, slow[0].p), (15, 0, None, 0.0));
    }

    #[test]
    fn two_runs_do_not_say_which_is_slow() {
        assert_eq!(found(100, 2, &[(3, 1, 0.2)]).0, []);
        assert_eq!(found(100, 3, &[(3, 1, 0.2)]).0.len(), 1);
    }

    #[test]
    fn a_node_with_too_many_is_flaky() {
        let (slow, flaky) = found(100, 9, &[(7, 0, 0.2), (7, 4, 0.1), (7, 8, 0.1), (50, 1, 0.2)]);
        assert_eq!(slow.len(), 4);
        assert_eq!(
            flaky.iter().map(|node| (node.node, node.slow, node.runs)).collect::<Vec<_>>(),
            [(7, 3, 9)]
        );
        // Not in a class of two nodes: it has too few other runs to compare with.
        assert_eq!(found(2, 9, &[(0, 0, 0.2), (0, 4, 0.1)]).1, []);
    }
}
