//! Whether values depend on the order in which they were measured.

use super::ranks::mid_ranks;
use super::{normal, within_nodes};

/// Ratios with a smaller probability count as dependence.
pub const ALPHA: f64 = 1e-3;

/// Von Neumann's ratio of ranks: how much each value resembles the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankRatio {
    /// About 2 if the order does not matter, and less if neighbours resemble each other.
    pub ratio: f64,
    /// The probability of a smaller ratio if the order does not matter.
    pub p: f64,
}

/// The ratio of values in the order of measurement: the sum of squared differences of successive ranks, divided by the
/// sum of squares about the mean rank. `None` below 10 values, or if all are equal.
///
/// Source: R. Bartels, "The rank version of von Neumann's ratio test for randomness", JASA 77 (1982); for ten values
/// and more the ratio is close to N(2, 20 / (5n + 7)).
pub fn rank_ratio(values: &[f64]) -> Option<RankRatio> {
    const LEAST: usize = 10;
    let count = values.len();
    if count < LEAST {
        return None;
    }
    let ranks = mid_ranks(values);
    let mean = (count - 1) as f64 / 2.0;
    let all: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    let steps: f64 = ranks.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let ratio = if all > 0.0 { steps / all } else { return None };
    let deviation = (20.0 / (5.0 * count as f64 + 7.0)).sqrt();
    Some(RankRatio { ratio, p: normal::lower((ratio - 2.0) / deviation) })
}

/// How much the moment of the measurement explains, for values in the order of measurement: the range of the
/// medians of each nine successive values.
pub fn range(values: &[f64]) -> f64 {
    const NEIGHBOURS: usize = 9;
    let of_some = |some: &[f64]| within_nodes::median_of(&mut some.to_vec());
    let middles = values.windows(NEIGHBOURS.min(values.len()).max(1)).filter_map(of_some);
    let (low, high) = middles
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), middle| (low.min(middle), high.max(middle)));
    (high - low).max(0.0)
}

/// Successive runs of a node that resemble each other, as an autoregressive process of first order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// The correlation of successive runs.
    pub correlation: f64,
    /// The probability of such a resemblance, or a larger one, if runs are independent.
    pub p: f64,
}

/// The dependence of runs within nodes, pooled over the nodes of a class; each slice has the runs of a node
/// in the order of time (ln seconds), and `sigma` is the standard deviation of runs. `None` if chance
/// explains the resemblance of successive runs.
///
/// The test is the sum of von Neumann's ratios of ranks, each of which has mean 2 and the variance of
/// Bartels' paper. The function takes the ratio of squared successive differences to the variance within
/// nodes, over all nodes. The result is the correlation that makes such a ratio the expected ratio. A run
/// counts as at most five standard deviations from the median.
pub fn dependence<'a>(nodes: impl Iterator<Item = &'a [f64]>, sigma: f64) -> Option<Dependence> {
    const LEAST: usize = 4;
    let mut times = Vec::new();
    let (mut excess, mut variance) = (0.0, 0.0);
    let (mut steps, mut squares, mut degrees) = (0.0, 0.0, 0.0);
    let mut lengths = 0.0;
    for runs in nodes.filter(|runs| runs.len() >= LEAST) {
        let n = runs.len() as f64;
        let ranks = mid_ranks(runs);
        let centre = (n - 1.0) / 2.0;
        let all: f64 = ranks.iter().map(|rank| (rank - centre).powi(2)).sum();
        if all == 0.0 {
            continue;
        }
        excess += ranks.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>() / all - 2.0;
        variance +=
            4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2));
        times.clear();
        times.extend_from_slice(runs);
        let middle = within_nodes::median_of(&mut times).unwrap_or_default();
        let limited = |time: f64| (time - middle).max(-5.0 * sigma).min(5.0 * sigma);
        let mean = runs.iter().map(|time| limited(*time)).sum::<f64>() / n;
        squares += runs.iter().map(|time| (limited(*time) - mean).powi(2)).sum::<f64>();
        steps += runs.windows(2).map(|pair| (limited(pair[1]) - limited(pair[0])).powi(2)).sum::<f64>();
        degrees += 1.0;
        lengths += n;
    }
    let p = if variance > 0.0 { normal::lower(excess / variance.sqrt()) } else { return None };
    let runs = lengths / degrees;
    let (ratio, mut low, mut high) = (if squares > 0.0 { steps / squares } else { 2.0 }, 0.0, 0.999);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if expected_ratio(middle, runs) > ratio { low = middle } else { high = middle }
    }
    (p < ALPHA).then_some(Dependence { correlation: low, p })
}

/// Var(mean) / sigma^2 of `runs` values of an autoregressive process.
fn variance_of_mean(correlation: f64, runs: f64) -> f64 {
    let r = correlation;
    (1.0 + 2.0 * r / (1.0 - r) * (1.0 - (1.0 - r.powf(runs)) / (runs * (1.0 - r)))) / runs
}

/// The expected variance within a node, relative to sigma^2.
fn variance_within(correlation: f64, runs: f64) -> f64 {
    runs / (runs - 1.0) * (1.0 - variance_of_mean(correlation, runs))
}

fn expected_ratio(correlation: f64, runs: f64) -> f64 {
    2.0 * (1.0 - correlation) / variance_within(correlation, runs)
}

impl Dependence {
    /// The probability that the true median of `runs` runs is between two of the runs: `outside` runs are
    /// below the first of the two, and equally many are above the second.
    ///
    /// The number of runs below the median has the mean k/2. Signs of normal values with the correlation r have the
    /// correlation (2 / pi) asin r, and the runs h apart have r^h. A beta-binomial distribution has this mean and this
    /// variance.
    pub fn coverage(&self, runs: usize, outside: usize) -> f64 {
        let k = runs as f64;
        let of_signs = |h: usize| {
            (1.0 - h as f64 / k) * self.correlation.powi(h as i32).asin() * std::f64::consts::FRAC_2_PI
        };
        // Variance, relative to that of independent runs: (2a + k) / (2a + 1), a = b the parameters of the beta law.
        let inflation = 1.0 + 2.0 * (1..runs.min(10_000)).map(of_signs).sum::<f64>();
        let a = ((k - inflation) / (inflation - 1.0).max(1e-6) / 2.0).max(1e-6);
        let ln_beta = |a: f64, b: f64| libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
        // P(n runs below the median), from one n to the next; as a logarithm, because it may be below all numbers.
        let mut ln_p = ln_beta(a, k + a) - ln_beta(a, a);
        let mut least = 0.0;
        for n in (0..=outside).map(|n| n as f64) {
            least += ln_p.exp();
            ln_p += ((k - n) * (a + n) / ((n + 1.0) * (a + k - n - 1.0))).ln();
        }
        (1.0 - 2.0 * least).clamp(0.0, 1.0)
    }

    /// How much larger the variance of a node's median is than the variance for independent runs with the same
    /// variance within the node; computed for the mean.
    pub fn inflation(&self, runs: usize) -> f64 {
        let k = runs.max(2) as f64;
        k * variance_of_mean(self.correlation, k) / variance_within(self.correlation, k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn order_is_seen_where_there_is_some() {
        let mut random = Random::new(4);
        let noise: Vec<f64> = (0..400).map(|_| random.normal()).collect();
        assert!(rank_ratio(&noise).unwrap().p > 0.01);
        let trend: Vec<f64> = noise.iter().zip(0..).map(|(noise, at)| noise + f64::from(at) / 50.0).collect();
        let found = rank_ratio(&trend).unwrap();
        assert!(found.ratio < 1.0 && found.p < 1e-6, "{found:?}");
        assert_eq!((rank_ratio(&noise[..9]), rank_ratio(&[1.0; 20])), (None, None));
    }

    /// Bartels, table 2: P(RVN <= 1.04) = .05 for n = 10 and P(RVN <= 1.35) = .05 for n = 25.
    #[test]
    fn limits_are_those_of_the_paper() {
        let mut random = Random::new(6);
        for (count, limit) in [(10, 1.04), (25, 1.35)] {
            let below = (0..20_000)
                .filter(|_| {
                    let values: Vec<f64> = (0..count).map(|_| random.uniform()).collect();
                    rank_ratio(&values).unwrap().ratio <= limit
                })
                .count();
            assert!((below as f64 / 20_000.0 - 0.05).abs() < 0.008, "{count}: {below}");
        }
    }

    #[test]
    fn the_correlation_of_runs_is_found() {
        for (correlation, runs) in [(0.0, 7), (0.3, 7), (0.6, 7), (0.9, 7), (0.6, 20)] {
            let mut random = Random::new(8);
            let nodes: Vec<Vec<f64>> = (0..500)
                .map(|_| {
                    let mut y = random.normal();
                    let step = (1.0f64 - correlation * correlation).sqrt();
                    (0..runs)
                        .map(|_| {
                            y = correlation * y + step * random.normal();
                            y
                        })
                        .collect()
                })
                .collect();
            let found = dependence(nodes.iter().map(Vec::as_slice), 1.0);
            match correlation == 0.0 {
                true => assert_eq!(found, None),
                false => assert!(
                    (found.unwrap().correlation - correlation).abs() < 0.12,
                    "{correlation}: {found:?}"
                ),
            }
        }
        let none = Dependence { correlation: 0.0, p: 1.0 };
        assert!((none.inflation(7) - 1.0).abs() < 1e-12);
        assert!(Dependence { correlation: 0.6, p: 0.0 }.inflation(7) > 3.0);
    }

    /// Intervals of the fastest and the slowest of seven runs, as simulated.
    #[test]
    fn intervals_of_alike_runs_cover_less() {
        let mut random = Random::new(8);
        for correlation in [0.3f64, 0.6, 0.9] {
            let nodes = 20_000;
            let covers = |_: &i32| {
                let mut noise = random.normal();
                let (mut low, mut high) = (noise, noise);
                for _ in 1..7 {
                    noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * random.normal();
                    (low, high) = (low.min(noise), high.max(noise));
                }
                low < 0.0 && 0.0 < high
            };
            let covered = (0..nodes).filter(covers).count() as f64 / f64::from(nodes);
            let expected = Dependence { correlation, p: 0.0 }.coverage(7, 0);
            assert!((covered - expected).abs() < 0.025, "{correlation}: {covered} {expected}");
        }
        let none = Dependence { correlation: 0.0, p: 0.0 };
        let (outside, _, exact) = crate::stats::node_median::interval(101).unwrap();
        assert!((none.coverage(101, outside) - exact).abs() < 1e-4);
        assert!(Dependence { correlation: 0.999, p: 0.0 }.coverage(1_000_000, 499_000) < 0.5);
    }
}
