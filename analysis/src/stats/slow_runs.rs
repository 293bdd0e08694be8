//! Detects runs that are slower than the other runs of their node.

use super::benjamini_hochberg::{self, Test};
use super::class_runs::ClassRuns;
use super::node_median::NodeMedian;
use super::resolution::{self, Units};
use super::run_law::RunLaw;
use std::collections::BTreeMap;

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
    /// g: the distance from the node's median, without the part that rounding explains, in standard
    /// deviations of runs. `None` if the runs of the class do not differ at all (sigma_w = 0).
    pub score: Option<f64>,
    /// The probability that a healthy run is so slow.
    pub p: f64,
    /// The same, adjusted for the number of runs tested (Benjamini-Hochberg).
    pub adjusted_p: f64,
}

/// The slow runs of a class, by node and run. `sigma` is the result of [`super::within_nodes::sigma`].
///
/// g = (y_ij - m_i) / sigma_w, without the part of y_ij - m_i that rounding explains; p is that of
/// [`RunLaw`]. Benjamini-Hochberg covers all runs of nodes with enough runs. A slow run must also be slower
/// than the median by more than `delta`. `units` has the resolution of the times.
pub fn slow(
    class: &ClassRuns,
    medians: &[NodeMedian],
    sigma: f64,
    units: &Units,
    settings: &SlowRunSettings,
) -> Vec<SlowRunTest> {
    let gate = settings.delta.ln_1p();
    let deviations = class.nodes().map(|runs| runs.len() - 1).sum();
    let mut laws: BTreeMap<usize, (RunLaw, f64)> = BTreeMap::new();
    let (mut family, mut candidates, mut tests) = (0, Vec::new(), Vec::new());
    for (node, (runs, middle)) in class.nodes().zip(medians).enumerate() {
        if runs.len() < settings.min_runs.max(2) {
            continue;
        }
        family += runs.len();
        let unit = units.of_node(node);
        let sigma = sigma.max(resolution::hidden(unit, middle.median));
        let (law, least) = laws.entry(runs.len()).or_insert_with(|| {
            let law = RunLaw::new(runs.len(), deviations);
            let least = law.least(settings.q);
            (law, least)
        });
        for (run, time) in runs.iter().enumerate() {
            let difference = time - middle.median;
            // A p above q cannot be rejected: see benjamini_hochberg::adjust.
            if difference <= gate || difference < *least * sigma {
                continue;
            }
            let proved = resolution::proved(unit, *time, difference);
            if proved > gate {
                let score = (sigma > 0.0).then(|| proved / sigma);
                let p = score.map_or(0.0, |score| law.above(score));
                tests.push(Test { index: candidates.len(), p });
                candidates.push(SlowRunTest {
                    node,
                    run,
                    slowdown: difference.exp_m1(),
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
    candidates.retain(|run| run.adjusted_p <= settings.q);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use crate::stats::{node_median, within_nodes};

    /// Nodes with `runs` runs each and noise of 0.3 %; some runs are slower by a fraction.
    fn found(nodes: usize, runs: usize, slow_ones: &[(usize, usize, f64)]) -> Vec<SlowRunTest> {
        let mut random = Random::new(3);
        let mut times: Vec<f64> = (0..nodes * runs).map(|_| 2.0 + 0.003 * random.normal()).collect();
        for (node, run, by) in slow_ones {
            times[node * runs + run] += by.ln_1p();
        }
        of_times(&times, nodes, runs)
    }

    fn of_times(times: &[f64], nodes: usize, runs: usize) -> Vec<SlowRunTest> {
        let ends: Vec<usize> = (1..=nodes).map(|node| node * runs).collect();
        let class = ClassRuns::new(times, &ends).unwrap();
        let medians = node_median::of_nodes(&class);
        let sigma = within_nodes::sigma(&class, &medians).unwrap();
        slow(&class, &medians, sigma, &Units::default(), &SlowRunSettings::default())
    }

    #[test]
    fn slow_runs_are_named() {
        let slow = found(100, 7, &[(3, 6, 0.2), (40, 0, 0.03), (99, 2, 0.1)]);
        assert_eq!(
            slow.iter().map(|run| (run.node, run.run)).collect::<Vec<_>>(),
            [(3, 6), (40, 0), (99, 2)]
        );
        assert!((slow[0].slowdown - 0.2).abs() < 0.02);
        assert!(
            slow.iter().all(|run| run.p <= run.adjusted_p && run.adjusted_p <= 0.01 && run.score > Some(3.0))
        );
    }

    /// Significant, but less than delta.
    #[test]
    fn the_gate_holds() {
        let mut times = vec![0.0; 700];
        (times[5], times[105]) = (0.015, 0.025);
        let slow = of_times(&times, 100, 7);
        assert_eq!(slow.len(), 1);
        assert_eq!((slow[0].node, slow[0].run, slow[0].score, slow[0].p), (15, 0, None, 0.0));
    }

    #[test]
    fn two_runs_do_not_say_which_is_slow() {
        assert_eq!(found(100, 2, &[(3, 1, 0.2)]), []);
        assert_eq!(found(100, 3, &[(3, 1, 0.2)]).len(), 1);
    }

    /// Rounded times: the runs differ by nothing or by much.
    #[test]
    fn rounding_makes_no_slow_run() {
        let mut random = Random::new(5);
        let mut times: Vec<f64> =
            (0..700).map(|_| (10.4 * (0.01 * random.normal()).exp()).round().ln()).collect();
        assert!(of_times(&times, 100, 7).len() > 50, "without the unit, many runs of 11 s are slow");
        let whole_seconds = Units { class: Some(1.0), ..Units::default() };
        let of = |times: &[f64]| {
            let ends: Vec<usize> = (1..=100).map(|node| node * 7).collect();
            let class = ClassRuns::new(times, &ends).unwrap();
            let medians = node_median::of_nodes(&class);
            let sigma = within_nodes::sigma(&class, &medians).unwrap();
            slow(&class, &medians, sigma, &whole_seconds, &SlowRunSettings::default()).len()
        };
        assert_eq!(of(&times), 0);
        times[9] = 14f64.ln();
        assert_eq!(of(&times), 1);
    }
}
