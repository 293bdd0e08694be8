//! Slow runs of nodes that are otherwise not, and nodes that have too many of them.

use super::bh::{self, Test};
use super::class::Class;
use super::median::NodeMedian;
use super::{binomial, normal, within};

/// What makes a run slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Share of false discoveries that is accepted.
    pub q: f64,
    /// Slower than the node's median by more than this fraction.
    pub delta: f64,
    /// Nodes with fewer runs are left out: of two, nobody knows which is the odd one.
    pub min_runs: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { q: 0.01, delta: 0.02, min_runs: 3 }
    }
}

/// A run that was slower than the others of its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowRun {
    /// Its place in the class.
    pub node: usize,
    /// Its place among the node's runs.
    pub run: usize,
    /// Fraction of the node's median: 0.05 is 5 % slower.
    pub slowdown: f64,
    /// r: its distance from the node's median, in standard deviations of such a distance. `None` where the
    /// runs of the class do not differ at all, sigma_w = 0.
    pub score: Option<f64>,
    /// How probable that is of a healthy run.
    pub p: f64,
    /// The same when that many runs are looked at (Benjamini-Hochberg).
    pub adjusted_p: f64,
}

/// The slow runs of a class, by node and run. `sigma` is that of [`within::sigma`].
///
/// r = (y_ij - m_i) / (sigma_w f_k); p = 1 - Phi(r); Benjamini-Hochberg over all runs of nodes with enough
/// of them; and slower than the gate.
pub fn slow(class: &Class, medians: &[NodeMedian], sigma: f64, settings: &Settings) -> Vec<SlowRun> {
    let (least, gate) = (-normal::quantile(settings.q), settings.delta.ln_1p());
    let (mut family, mut candidates, mut tests) = (0, Vec::new(), Vec::new());
    for (node, (runs, middle)) in class.nodes().zip(medians).enumerate() {
        let Some(factor) = within::deviation_factor(runs.len()) else { continue };
        if runs.len() < settings.min_runs {
            continue;
        }
        family += runs.len();
        let unit = sigma * factor;
        for (run, time) in runs.iter().enumerate() {
            let excess = time - middle.median;
            // What has a p above q cannot be rejected: see bh::adjust.
            if excess > 0.0 && excess >= least * unit {
                let score = (unit > 0.0).then(|| excess / unit);
                let p = normal::upper(score.unwrap_or(f64::INFINITY));
                tests.push(Test { index: candidates.len(), p });
                candidates.push(SlowRun { node, run, slowdown: excess.exp_m1(), score, p, adjusted_p: f64::NAN });
            }
        }
    }
    bh::adjust(&mut tests, family);
    for test in tests {
        candidates[test.index].adjusted_p = test.p;
    }
    candidates.retain(|run| run.adjusted_p <= settings.q && run.slowdown.ln_1p() > gate);
    candidates
}

/// A node with more slow runs than the others of its class explain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flaky {
    /// Its place in the class.
    pub node: usize,
    /// All its runs.
    pub runs: usize,
    /// Of them.
    pub slow: usize,
    /// How probable so many are, were it like the others.
    pub p: f64,
    /// The same when that many nodes are looked at (Benjamini-Hochberg).
    pub adjusted_p: f64,
}

/// The flaky nodes of a class, by node, from those of its runs that are slow.
///
/// X slow runs of k against Binomial(k, p_0), Benjamini-Hochberg at `q`. p_0 is the share of slow runs of
/// all *other* nodes, with one more slow and one more not (Laplace's rule of succession): a node does not
/// hide behind its own slow runs, and p_0 is not 0 where the others had none.
pub fn flaky(medians: &[NodeMedian], slow: &[SlowRun], q: f64) -> Vec<Flaky> {
    let mut counts = vec![0; medians.len()];
    for run in slow {
        counts[run.node] += 1;
    }
    let all: usize = medians.iter().map(|node| node.runs).sum();
    let mut nodes = Vec::new();
    for (node, (middle, count)) in medians.iter().zip(counts).enumerate().filter(|(_, (_, count))| *count > 0) {
        let p0 = (slow.len() - count + 1) as f64 / (all - middle.runs + 2) as f64;
        let p = binomial::at_least(middle.runs, p0, count);
        nodes.push(Flaky { node, runs: middle.runs, slow: count, p, adjusted_p: f64::NAN });
    }
    // Nodes without a slow run have p = 1 and belong to the family: they are the larger part of it.
    let mut tests: Vec<Test> =
        nodes.iter().enumerate().map(|(index, node)| Test { index, p: node.p }).collect();
    bh::adjust(&mut tests, medians.len());
    for test in tests {
        nodes[test.index].adjusted_p = test.p;
    }
    nodes.retain(|node| node.adjusted_p <= q);
    nodes
}
