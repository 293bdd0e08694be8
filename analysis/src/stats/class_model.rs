//! The model of a class: how much healthy nodes differ, which nodes are slow, and how sure that is.
//!
//! The median m_i of a node's runs is c + theta_i + e_i. c is the level of the class, and theta_i is how much
//! slower the node is. e_i ~ N(0, v_k sigma_w^2) is the error of the median of k runs. With probability 1 -
//! w, a node is healthy, and theta_i ~ N(0, t^2). With probability w, it is slow, and theta_i is exponential
//! with a mean of 10 %. (Such a mixture is called a spike and a slab.) All promises about a node come from
//! the probabilities of theta_i given the data.

use super::resolution::{self, Units};
use super::{node_median, normal, within_nodes};

/// The time of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeTime {
    /// Median of its runs (ln seconds).
    pub median: f64,
    /// Variance of the error of the median (ln T), v_k sigma_w^2. 0 if it is unknown: the error then counts
    /// as a difference between nodes.
    pub variance: f64,
}

/// The model of a class, fitted to the medians of its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassModel {
    /// ln seconds: the median of the nodes' medians.
    pub centre: f64,
    /// t: the standard deviation of healthy nodes in ln T, without the error of their medians.
    pub spread: f64,
    /// w: the probability that a node is slow.
    pub slow_share: f64,
    /// In the order of the input.
    pub nodes: Vec<NodeEstimate>,
}

/// What the data say about theta of one node. All differences are in ln T.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeEstimate {
    /// The node's median minus the median of the *other* nodes of the class.
    pub difference: f64,
    /// `difference`, or the part of it that rounding of the times cannot explain.
    pub proved: f64,
    /// Standard deviation of the error of `difference`.
    pub error: f64,
    /// `proved` / sqrt(t^2 + error^2) / (1 + 4 / n) for n nodes. For a healthy node it is N(0, 1), or closer
    /// to 0.
    pub score: f64,
    /// The probability that the node is slow.
    pub slow: f64,
    /// theta if the node is healthy: mean and standard deviation.
    healthy: [f64; 2],
    /// If the node is slow, theta is normal with this mean and the standard deviation `error`, limited to
    /// values above 0.
    slow_centre: f64,
    /// The probability that a value of the normal distribution without this limit is above 0.
    slow_above_0: f64,
}

/// What the model assumes before it sees a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassPrior {
    /// Least spread of healthy nodes (in ln T): real nodes are never more equal.
    pub floor: f64,
    /// The spread of healthy nodes, and the number of nodes that this assumption counts for.
    pub spread: (f64, f64),
    /// Mean slowdown of slow nodes.
    pub slow_mean: f64,
    /// b: w ~ Beta(1, b), as if the model had seen b - 1 healthy nodes before.
    pub healthy_before: f64,
}

impl Default for ClassPrior {
    fn default() -> Self {
        Self { floor: 0.002, spread: (0.01, 10.0), slow_mean: 0.1, healthy_before: 20.0 }
    }
}

/// For n nodes, the standard deviation of scores is multiplied by 1 plus this number divided by n.
const WIDENED: f64 = 4.0;

/// The median of chi^2 with one degree of freedom.
const CHI2_MEDIAN: f64 = 0.454_936_423_119_572_8;

impl ClassModel {
    /// Fits the model. `units` has the resolution of the times. `None` with fewer than two nodes.
    ///
    /// - A node is compared with the median of the *other* nodes, whose error counts too.
    /// - t^2 solves median(d_i^2 / (t^2 + error_i^2)) = median of chi^2_1, d_i the differences. Unlike a
    ///   standard deviation, this is right for nodes with unequal errors, and slow nodes hardly change it.
    ///   The prior counts like further nodes.
    /// - w is the mode of its posterior, by the EM algorithm.
    pub fn fit(times: &[NodeTime], units: &Units, prior: &ClassPrior) -> Option<Self> {
        let count = times.len();
        if count < 2 {
            return None;
        }
        let mut ascending: Vec<f64> = times.iter().map(|node| node.median).collect();
        ascending.sort_unstable_by(f64::total_cmp);
        let centre = node_median::of_ascending(&ascending)?;
        let own: Vec<f64> = times.iter().map(|node| node.variance).collect();
        let typical = within_nodes::median_of(&mut own.clone())?;
        let of_reference = within_nodes::variance_factor(count - 1);
        let error2 = |t2: f64, own: f64| own + of_reference * (t2 + typical);
        let difference: Vec<f64> =
            times.iter().map(|node| node.median - others(&ascending, node.median)).collect();
        let proved: Vec<f64> = times
            .iter()
            .zip(&difference)
            .enumerate()
            .map(|(at, (node, difference))| resolution::proved(units.of_node(at), node.median, *difference))
            .collect();
        let floor = prior.floor.max(resolution::deviation(units.class, centre));
        let t2 = match units.class {
            None => spread(&difference, &own, &error2, prior.spread, floor),
            Some(unit) => spread(&unrounded(times, &ascending, unit), &own, &error2, prior.spread, floor),
        };
        let error: Vec<f64> = own.iter().map(|own| error2(t2, *own).sqrt()).collect();
        // Likelihood ratios of slow to healthy.
        let ratio: Vec<f64> = proved
            .iter()
            .zip(&error)
            .map(|(d, error)| slab(*d, *error, prior) / spike(*d, *error, t2))
            .collect();
        let slow_share = slow_share(&ratio, prior);
        // The spread of few nodes is uncertain, so a score must not rely on it.
        let widened = 1.0 + WIDENED / count as f64;
        let estimate = |at: usize| {
            let (proved, error) = (proved[at], error[at]);
            let total = t2 + error * error;
            let slow_centre = slow_centre(proved, error, prior);
            NodeEstimate {
                difference: difference[at],
                proved,
                error,
                score: proved / (total.sqrt() * widened),
                slow: posterior(slow_share, ratio[at]),
                healthy: [proved * t2 / total, (t2 / total).sqrt() * error],
                slow_centre,
                slow_above_0: tail(0.0, slow_centre, error),
            }
        };
        let nodes = (0..count).map(estimate).collect();
        Some(Self { centre, spread: t2.sqrt(), slow_share, nodes })
    }
}

impl NodeEstimate {
    /// P(theta > limit).
    pub fn above(&self, limit: f64) -> f64 {
        let [mean, sd] = self.healthy;
        let slow = match self.slow_above_0 > 0.0 {
            true => tail(limit.max(0.0), self.slow_centre, self.error) / self.slow_above_0,
            false => 0.0,
        };
        (1.0 - self.slow) * tail(limit, mean, sd) + self.slow * slow
    }

    /// The probability density of theta.
    fn density(&self, theta: f64) -> f64 {
        let of = |mean: f64, sd: f64| normal::density((theta - mean) / sd) / sd;
        let [mean, sd] = self.healthy;
        let slow = match theta > 0.0 && self.slow_above_0 > 0.0 {
            true => of(self.slow_centre, self.error) / self.slow_above_0,
            false => 0.0,
        };
        (1.0 - self.slow) * of(mean, sd) + self.slow * slow
    }

    /// The largest difference for which P(theta > difference) is at least `certainty`, by Newton's method between two
    /// limits. It is within a millionth of `error`.
    pub fn at_least(&self, certainty: f64) -> f64 {
        const PRECISION: f64 = 1e-6;
        let [mean, sd] = self.healthy;
        let reach = 12.0 * self.error;
        let (mut low, mut high) = (mean.min(0.0) - reach, self.proved.max(0.0) + reach);
        let z = normal::quantile(1.0 - certainty);
        let mut limit = if self.slow < 0.5 { mean + z * sd } else { self.slow_centre + z * self.error };
        for _ in 0..60 {
            let missing = certainty - self.above(limit);
            if missing <= 0.0 {
                low = limit
            } else {
                high = limit
            }
            let next = limit - missing / self.density(limit);
            let next = if low < next && next < high { next } else { (low + high) / 2.0 };
            if (next - limit).abs() < PRECISION * self.error {
                return next;
            }
            limit = next;
        }
        low
    }

    /// The mean of theta.
    pub fn mean(&self) -> f64 {
        let slow = match self.slow_above_0 > 0.0 {
            true => {
                let z = self.slow_centre / self.error.max(f64::MIN_POSITIVE);
                self.slow_centre + self.error * normal::density(z) / self.slow_above_0
            }
            false => 0.0,
        };
        (1.0 - self.slow) * self.healthy[0] + self.slow * slow
    }
}

/// The mean of theta of a slow node before it is limited to values above 0.
fn slow_centre(proved: f64, error: f64, prior: &ClassPrior) -> f64 {
    proved - error * error / prior.slow_mean
}

/// P(N(centre, sd^2) > limit).
fn tail(limit: f64, centre: f64, sd: f64) -> f64 {
    match sd > 0.0 {
        true => normal::upper((limit - centre) / sd),
        false => f64::from(centre > limit),
    }
}

/// The median of the ascending values without one value that equals `own`.
fn others(ascending: &[f64], own: f64) -> f64 {
    let at = ascending.partition_point(|value| *value < own);
    let get = |place: usize| ascending[place + usize::from(place >= at)];
    let (low, high) = (get((ascending.len() - 2) / 2), get((ascending.len() - 1) / 2));
    low + (high - low) / 2.0
}

/// The differences of rounded times as they may have been before rounding, for a spread.
fn unrounded(times: &[NodeTime], ascending: &[f64], unit: f64) -> Vec<f64> {
    let spread = resolution::spread(ascending, unit);
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by(|a, b| times[*a].median.total_cmp(&times[*b].median));
    let mut differences = vec![0.0; times.len()];
    for (at, value) in order.into_iter().zip(&spread) {
        differences[at] = value - others(&spread, *value);
    }
    differences
}

/// t^2, by bisection. `assumed` is the prior: a spread, and the number of differences that it counts for.
pub(super) fn spread(
    difference: &[f64],
    own: &[f64],
    error2: &impl Fn(f64, f64) -> f64,
    (assumed, weight): (f64, f64),
    floor: f64,
) -> f64 {
    /// Half-normal quantiles that stand for the nodes of the prior.
    const POINTS: usize = 9;
    let points: [f64; POINTS] = std::array::from_fn(|at| {
        (assumed * normal::quantile(0.5 + (at as f64 + 0.5) / (2 * POINTS) as f64)).powi(2)
    });
    let is_below = |t2: f64| {
        let seen = difference
            .iter()
            .zip(own)
            .filter(|(d, own)| *d * *d < CHI2_MEDIAN * (t2 + error2(t2, **own)))
            .count();
        let before = points.iter().filter(|square| **square < CHI2_MEDIAN * t2).count();
        // Differences from the others of n nodes are worth n - 1: those of two nodes are the same.
        let n = difference.len() as f64;
        let each = (n - 1.0) / n;
        each * seen as f64 + before as f64 * weight / POINTS as f64 >= (n - 1.0 + weight) / 2.0
    };
    let (mut low, mut high) = (2.0 * floor.ln(), 2.0);
    if is_below(low.exp()) {
        return floor * floor;
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if is_below(middle.exp()) { high = middle } else { low = middle }
    }
    high.exp()
}

/// The density of a healthy node's difference.
fn spike(d: f64, error: f64, t2: f64) -> f64 {
    let sd = (t2 + error * error).sqrt();
    (normal::density(d / sd) / sd).max(f64::MIN_POSITIVE)
}

/// The density of a slow node's difference: exponential plus normal.
fn slab(d: f64, error: f64, prior: &ClassPrior) -> f64 {
    let rate = 1.0 / prior.slow_mean;
    let tail = tail(0.0, slow_centre(d, error, prior), error);
    if tail > 0.0 { rate * (rate * rate * error * error / 2.0 - rate * d).exp() * tail } else { 0.0 }
}

/// w, by the EM algorithm.
fn slow_share(ratio: &[f64], prior: &ClassPrior) -> f64 {
    let all = ratio.len() as f64 + prior.healthy_before - 1.0;
    // Where no node is slow, the next may be.
    let least = 1.0 / (all + 2.0);
    let mut share = 2.0 * least;
    for _ in 0..100 {
        let sum: f64 = ratio.iter().map(|ratio| posterior(share, *ratio)).sum();
        let next = (sum / all).max(least);
        if (next - share).abs() < 1e-3 * share {
            return next;
        }
        share = next;
    }
    share
}

fn posterior(share: f64, ratio: f64) -> f64 {
    let odds = share / (1.0 - share) * ratio;
    if odds.is_infinite() { 1.0 } else { odds / (1.0 + odds) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    fn fitted(medians: &[f64], sd: f64) -> ClassModel {
        let times: Vec<NodeTime> =
            medians.iter().map(|median| NodeTime { median: *median, variance: sd * sd }).collect();
        ClassModel::fit(&times, &Units::default(), &ClassPrior::default()).unwrap()
    }

    #[test]
    fn a_node_is_compared_with_the_others() {
        let model = fitted(&[0.0, 0.01, 0.02, 0.3], 0.001);
        let differences: Vec<f64> = model.nodes.iter().map(|node| node.difference).collect();
        assert_eq!((model.centre, differences), (0.015, vec![-0.02, -0.01, 0.01, 0.29]));
        assert!(model.nodes[3].slow > 0.99 && model.nodes[..3].iter().all(|node| node.slow < 0.1));
    }

    #[test]
    fn noisy_nodes_do_not_widen_the_class() {
        let spread: Vec<f64> = (1..200).map(|at| 0.01 * normal::quantile(f64::from(at) / 200.0)).collect();
        let mut random = Random::new(5);
        let mut times = |noise: f64| -> Vec<NodeTime> {
            let of = |(at, median): (usize, &f64)| match at % 2 {
                0 => NodeTime { median: *median, variance: 0.0 },
                _ => NodeTime { median: median + noise * random.normal(), variance: noise * noise },
            };
            spread.iter().enumerate().map(of).collect()
        };
        for noise in [0.0, 0.05] {
            let model = ClassModel::fit(&times(noise), &Units::default(), &ClassPrior::default()).unwrap();
            assert!((0.008..0.013).contains(&model.spread), "{noise}: {}", model.spread);
        }
    }

    proptest! {
        #[test]
        fn a_limit_has_its_certainty(
            medians in proptest::collection::vec(-0.5..0.5f64, 2..40),
            sd in 1e-6..0.3f64,
            certainty in 0.6..0.999f64,
        ) {
            for node in fitted(&medians, sd).nodes {
                let (limit, near) = (node.at_least(certainty), 2e-6 * node.error);
                prop_assert!(node.above(limit - near) >= certainty, "{node:?}");
                prop_assert!(node.above(limit + near) <= certainty, "{node:?}");
            }
        }
    }
}
