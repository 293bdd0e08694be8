//! How much the runs of one node differ, pooled over the nodes of a class.

use super::class_runs::ClassRuns;
use super::node_median::{self, NodeMedian};
use super::normal;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Factors for the median of k normal values of standard deviation 1, for k = 2 to 15: C_k, the standard deviation
/// that [`sigma`] would find without a correction, and v_k, the variance of the median. They come from quadrature of
/// the joint density of order statistics (H. A. David and H. N. Nagaraja, "Order Statistics", 2003, section 2.2). A
/// test simulates them.
const FACTORS: [(f64, f64); 14] = [
    (FRAC_1_SQRT_2, 0.5), // 2
    (0.465216, 0.448671), // 3
    (0.720918, 0.298200), // 4
    (0.727064, 0.286834), // 5
    (0.782389, 0.214743), // 6
    (0.817894, 0.210447), // 7
    (0.835116, 0.168181), // 8
    (0.863634, 0.166101), // 9
    (0.871237, 0.138327), // 10
    (0.891097, 0.137162), // 11
    (0.895419, 0.117517), // 12
    (0.909388, 0.116799), // 13
    (0.912224, 0.102169), // 14
    (0.922435, 0.101695), // 15
];

/// C_k: see [`sigma`]. Beyond the table it is a fit to the same quadrature for k = 16 to 51, accurate to 0.02 %.
/// `None` below 2 values.
pub fn residual_factor(count: usize) -> Option<f64> {
    let place = count.checked_sub(2)?;
    let (k, second) = (count as f64, if count % 2 == 1 { 1.37 } else { 2.2 });
    let beyond = 1.0 - (1.072 + second / k) / k;
    Some(FACTORS.get(place).map_or(beyond, |factors| factors.0))
}

/// The median over nodes of the median absolute deviation (MAD) of k normal runs of standard deviation 1, for k = 2 to
/// 15: from 4,000,000 to 30,000,000 simulated nodes each. A test simulates them again.
const MAD_FACTORS: [f64; 14] = [
    0.4769, 0.3608, 0.4534, 0.5034, 0.5338, 0.5581, 0.5724, 0.5863, 0.5949, 0.6035, 0.6091, 0.6150, 0.6190,
    0.6233,
];

/// sigma_w from summaries: the median over the nodes of MAD / (the MAD of k normal runs of standard deviation 1). `nodes`
/// has the number of runs of each node, and their MAD (ln T). `None` if no node has two runs.
pub fn sigma_of_deviations(nodes: impl Iterator<Item = (usize, f64)>) -> Option<f64> {
    let of = |(runs, deviation): (usize, f64)| {
        Some(deviation / mad_factor(runs)?).filter(|sigma| sigma.is_finite())
    };
    median_of(&mut nodes.filter_map(of).collect::<Vec<_>>())
}

/// Quantiles of the normal distribution: a probability of 99 %, and the upper end of an interval with
/// [`node_median::LEAST_COVERAGE`]. An archive has millions of medians, so they are not computed each time.
const Z_CERTAIN: f64 = 2.326_347_874_040_841;
const Z_INTERVAL: f64 = 1.862_731_867_421_652;

/// The median of runs that are unknown (ln T). Only their number and `sigma` are known: `sigma` is the
/// standard deviation of the runs of a node (ln T). In place of the single runs, the function takes the
/// distribution of the median: normal, with the variance v_k sigma^2.
pub fn known_median(runs: usize, median: f64, sigma: Option<f64>) -> NodeMedian {
    let error = variance_factor(runs).sqrt() * sigma.unwrap_or_default();
    let lower = if runs >= node_median::FEWEST_OF_INTERVAL { Z_INTERVAL * error } else { 0.0 };
    NodeMedian {
        runs,
        median,
        median_run: 0,
        upper_run: 0,
        lower: median - lower,
        reach: [Z_CERTAIN * error; 2],
        interval: None,
    }
}

/// The factor of [`sigma_of_deviations`]. Beyond the table it is a fit to a simulation of k = 16 to 101,
/// accurate to 0.2 %. `None` below 2 runs.
fn mad_factor(count: usize) -> Option<f64> {
    let place = count.checked_sub(2)?;
    let k = count as f64;
    let beyond = || normal::quantile(0.75) * (1.0 - (1.06 + 1.3 / k) / k);
    Some(MAD_FACTORS.get(place).copied().unwrap_or_else(beyond))
}

/// v_k = Var(median of k normal values) / Var(a value). Beyond the table it uses the first two terms of the
/// expansion, pi / 2k (1 - (4 - pi) / 2k) for odd k, accurate to 0.4 %. For an even number, it uses the odd
/// number above, which is hardly better. 1 for a single value.
pub fn variance_factor(count: usize) -> f64 {
    let odd = (count | 1) as f64;
    let beyond = PI / 2.0 / odd * (1.0 - (4.0 - PI) / 2.0 / odd);
    count.checked_sub(2).map_or(1.0, |place| FACTORS.get(place).map_or(beyond, |factors| factors.1))
}

/// sigma_w: the standard deviation of ln T over the runs of a node, robust against slow runs: 1.4826 median
/// |y_ij - m_i| / C_k over all runs of the nodes with at least two runs. C_k corrects for the fact that the
/// median comes from the same runs. `None` if no node has two runs.
pub fn sigma(class: &ClassRuns, medians: &[NodeMedian]) -> Option<f64> {
    let mut residuals = Vec::with_capacity(class.run_count());
    for (runs, node) in class.nodes().zip(medians) {
        if let Some(factor) = residual_factor(runs.len()) {
            residuals.extend(runs.iter().map(|time| (time - node.median).abs() / factor));
        }
    }
    Some(median_of(&mut residuals)? / normal::quantile(0.75))
}

/// The median of values in any order; the function reorders them.
pub fn median_of(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, high, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    let low = below.iter().copied().max_by(f64::total_cmp).filter(|_| even);
    Some(low.map_or(*high, |low| low + (*high - low) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::node_median;
    use crate::stats::random::Random;

    /// f_k: the standard deviation of (value - median of k values that include it) / sigma. It is exactly
    /// sqrt(1 + v_k - 2/k). The mean is independent of the deviations from it (Basu), so the covariance of median and
    /// mean is 1/k. This is also the average covariance of the median and a value.
    fn deviation_factor(count: usize) -> f64 {
        (1.0 + variance_factor(count) - 2.0 / count as f64).sqrt()
    }

    /// 40,000 nodes with k normal runs each: sigma_w is 1, medians vary by v_k, deviations by f_k.
    #[test]
    fn factors_are_those_of_a_simulation() {
        for count in (2..=18).chain([31, 52]) {
            let mut random = Random::new(count as u64);
            let nodes = 600_000 / count;
            let times: Vec<f64> = (0..nodes * count).map(|_| random.normal()).collect();
            let ends: Vec<usize> = (1..=nodes).map(|node| node * count).collect();
            let class = ClassRuns::new(&times, &ends).unwrap();
            let medians = node_median::of_nodes(&class);
            let sigma = sigma(&class, &medians).unwrap();
            assert!((sigma - 1.0).abs() < 0.006, "C_{count}: {sigma}");
            let variance = medians.iter().map(|node| node.median.powi(2)).sum::<f64>() / nodes as f64;
            let error = 4.0 * (2.0 / nodes as f64).sqrt(); // four of its standard errors
            assert!((variance / variance_factor(count) - 1.0).abs() < error, "v_{count}: {variance}");
            let squares =
                class.nodes().zip(&medians).flat_map(|(runs, node)| runs.iter().map(|y| y - node.median));
            let deviation = (squares.map(|d| d * d).sum::<f64>() / times.len() as f64).sqrt();
            assert!((deviation / deviation_factor(count) - 1.0).abs() < 0.006, "f_{count}: {deviation}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        assert!((Z_CERTAIN - normal::quantile(0.99)).abs() < 1e-12);
        assert!((Z_INTERVAL - normal::quantile((1.0 + node_median::LEAST_COVERAGE) / 2.0)).abs() < 1e-12);
        let enough = |runs| node_median::interval(runs).is_some();
        assert!(enough(node_median::FEWEST_OF_INTERVAL) && !enough(node_median::FEWEST_OF_INTERVAL - 1));
    }

    /// Nodes of equal and of unequal numbers of runs.
    #[test]
    fn deviations_give_the_same_sigma() {
        let mut random = Random::new(11);
        let mut mad = |runs: usize| {
            let mut times: Vec<f64> = (0..runs).map(|_| random.normal()).collect();
            let middle = median_of(&mut times).unwrap();
            times.iter_mut().for_each(|time| *time = (*time - middle).abs());
            (runs, median_of(&mut times).unwrap())
        };
        for runs in (2..=18).chain([31, 52]) {
            let sigma = sigma_of_deviations((0..1_000_000 / runs).map(|_| mad(runs))).unwrap();
            assert!((sigma - 1.0).abs() < 0.015, "{runs}: {sigma}");
        }
        let mixed = sigma_of_deviations((0..30_000).map(|node| mad(1 + node % 20))).unwrap();
        assert!((mixed - 1.0).abs() < 0.02, "{mixed}");
        assert_eq!(sigma_of_deviations([(1, 0.0), (0, 0.0), (7, f64::NAN)].into_iter()), None);
    }

    /// The digits of the table in docs/method.md.
    #[test]
    fn factors_are_the_designs() {
        for (count, c, v) in
            [(3, 0.465, 0.448), (5, 0.727, 0.288), (7, 0.817, 0.209), (9, 0.863, 0.166), (15, 0.922, 0.102)]
        {
            assert!((residual_factor(count).unwrap() - c).abs() < 0.0025, "{count}");
            assert!((variance_factor(count) - v).abs() < 0.0025, "{count}");
        }
        for (count, f) in [(3, 0.884), (5, 0.941), (7, 0.961)] {
            assert!((deviation_factor(count) - f).abs() < 0.001, "{count}");
        }
        assert_eq!((residual_factor(1), variance_factor(1)), (None, 1.0));
    }

    #[test]
    fn a_median_needs_no_order() {
        assert_eq!(median_of(&mut []), None);
        assert_eq!(median_of(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_of(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn single_runs_say_nothing_of_it() {
        let class = ClassRuns::new(&[1.0, 2.0], &[1, 2]).unwrap();
        assert_eq!(sigma(&class, &node_median::of_nodes(&class)), None);
    }
}
