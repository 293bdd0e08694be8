//! What goes with slowness: how a counter, a metric or a fact is correlated with the time.
//!
//! The correlation is that of Savage scores of ranks, "top-down correlation": R. L. Iman and W. J. Conover,
//! "A measure of top-down correlation", Technometrics 29 (1987). Slow runs have high scores, fast and usual
//! runs have nearly equal ones. Slow runs are few, so with Spearman's correlation the noise of the many usual
//! runs would hide them. For a value that falls when the time rises, the scores begin at the largest value.
//!
//! The test compares values only within blocks. Without an association each order of a block's values is
//! equally likely (W. Hoeffding, "A combinatorial central limit theorem", Ann. Math. Statist. 22, 1951), so
//! differences between blocks do not matter. Within nodes, a block is a node in a session. Between nodes
//! there is one block, whose values belong to one node each.

use super::ranks::savage;
use super::{normal, within_nodes};

/// The test needs at least this many more values than blocks.
pub const FEWEST: usize = 9;
/// From this many blocks on, the interval comes from the differences between blocks.
const MANY_BLOCKS: usize = 20;
/// With at least this number of slow runs, the ratio uses the slow runs; with fewer, it uses the slowest quarter.
const FEWEST_SLOW: usize = 3;

/// How a value is correlated with the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Association {
    /// The top-down correlation, -1 to 1: above 0 if slow runs have higher values.
    pub rho: f64,
    /// An interval of about 95 % (docs/simulation.md says how often it contains the truth).
    pub interval: [f64; 2],
    /// The probability of such a correlation without an association, in either direction.
    pub p: f64,
    /// Number of values that count.
    pub values: usize,
    /// Number of blocks that count.
    pub blocks: usize,
}

/// Why there is no correlation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAssociation {
    /// No value is known.
    Unknown,
    /// Fewer than [`FEWEST`] values in addition to the blocks.
    Few,
    /// The times, or the values, do not differ within any block.
    Constant,
}

/// Times in blocks.
#[derive(Clone, Debug)]
pub struct Slowness {
    times: Vec<f64>,
    /// The end of each block.
    ends: Vec<usize>,
    scores: Vec<f64>,
}

impl Slowness {
    /// `times` are relative to those of the block (ln T), so that times of different blocks can be ranked together; `ends`
    /// has the end of each block.
    pub fn new(times: Vec<f64>, ends: Vec<usize>) -> Self {
        let scores = savage(&times);
        Self { times, ends, scores }
    }

    /// The times, relative to those of the block (ln T).
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// The correlation of `values` with the times. The values are relative to those of the block, as the times are; NaN
    /// if missing.
    pub fn association(&self, values: &[f64]) -> Result<Association, NoAssociation> {
        if values.iter().any(|value| value.is_nan()) {
            let (known, values) = self.known(values);
            return known.association(&values);
        }
        let (count, blocks) = (values.len(), self.ends.len());
        if count == 0 {
            return Err(NoAssociation::Unknown);
        }
        if count < blocks + FEWEST {
            return Err(NoAssociation::Few);
        }
        let rising = self.product(&savage(values));
        let negated: Vec<f64> = values.iter().map(|value| -value).collect();
        let falling = self.product(&savage(&negated));
        let [up, down] = [&rising, &falling].map(Product::p);
        let (product, sign) = if up <= down { (&rising, 1.0) } else { (&falling, -1.0) };
        // Rounding makes the mean of equal scores differ from them.
        const NONE: f64 = 1e-20;
        if !product.squares.iter().all(|sum| *sum > NONE) {
            return Err(NoAssociation::Constant);
        }
        let [low, high] = product.interval().map(|rho| sign * rho);
        Ok(Association {
            rho: sign * product.rho(),
            interval: [low.min(high), low.max(high)],
            p: (2.0 * up.min(down)).min(1.0),
            values: count,
            blocks,
        })
    }

    /// exp(median of the values of slow runs - median of the values of fast runs), for values that are
    /// logarithms. The slow runs are those of `slow`, if there are at least three; otherwise the slowest
    /// quarter. The fast runs are the fastest quarter. `None` if no value is known.
    pub fn ratio(&self, values: &[f64], slow: &[bool]) -> Option<f64> {
        let mut order: Vec<usize> = (0..values.len()).filter(|at| !values[*at].is_nan()).collect();
        order.sort_by(|a, b| self.times[*a].total_cmp(&self.times[*b]));
        let quarter = order.len().div_ceil(4);
        let mut known_slow: Vec<f64> = order.iter().filter(|at| slow[**at]).map(|at| values[*at]).collect();
        if known_slow.len() < FEWEST_SLOW {
            known_slow = order[order.len() - quarter..].iter().map(|at| values[*at]).collect();
        }
        let mut fast: Vec<f64> = order[..quarter].iter().map(|at| values[*at]).collect();
        let [slow, fast] = [&mut known_slow, &mut fast].map(|values| within_nodes::median_of(values));
        Some((slow? - fast?).exp())
    }

    /// The [`Self::ratio`] of the times.
    pub fn time_ratio(&self, slow: &[bool]) -> Option<f64> {
        self.ratio(&self.times, slow)
    }

    /// True if the values (logarithms) are the times, or their reciprocals, in another unit: a line with the slope 1 or -1
    /// explains 99.8 % of their variance within blocks.
    pub fn is_time_itself(&self, values: &[f64]) -> bool {
        const SLOPE: f64 = 0.02;
        const EXPLAINED: f64 = 0.998;
        let [mut tt, mut tv, mut vv] = [0.0f64; 3];
        let (known, values) = self.known(values);
        for (times, values) in known.blocks(&known.times).zip(known.blocks(&values)) {
            let [time, value] = [times, values].map(mean);
            for (t, v) in times.iter().zip(values).map(|(t, v)| (t - time, v - value)) {
                (tt, tv, vv) = (tt + t * t, tv + t * v, vv + v * v);
            }
        }
        (tv.abs() / tt - 1.0).abs() <= SLOPE && tv * tv >= EXPLAINED * tt * vv
    }

    /// The part whose values are known; blocks without a known value are left out.
    fn known(&self, values: &[f64]) -> (Self, Vec<f64>) {
        let (mut times, mut some, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (of_times, of_values) in self.blocks(&self.times).zip(self.blocks(values)) {
            for (time, value) in of_times.iter().zip(of_values).filter(|(_, value)| !value.is_nan()) {
                times.push(*time);
                some.push(*value);
            }
            if ends.last().copied().unwrap_or(0) < times.len() {
                ends.push(times.len());
            }
        }
        (Self::new(times, ends), some)
    }

    fn blocks<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &values[start..*end])
    }

    /// The sum over the blocks of the products of scores, and its distribution over all orders of the values in each
    /// block.
    ///
    /// With scores a and b of the k runs of a block, less the block's means, the sum of products has the mean 0, the variance
    /// sum(a^2) sum(b^2) / (k - 1) and the third moment sum(a^3) sum(b^3) k / ((k - 1) (k - 2)): E. J. G. Pitman, "Significance
    /// tests which may be applied to samples from any populations. II. The correlation coefficient test", Suppl. J. Roy.
    /// Statist. Soc. 4 (1937). Blocks are independent, so their moments add up.
    fn product(&self, scores: &[f64]) -> Product {
        let mut all = Product::default();
        let many = self.ends.len() >= MANY_BLOCKS;
        for (of_times, of_values) in self.blocks(&self.scores).zip(self.blocks(scores)) {
            let k = of_times.len() as f64;
            let [time, value] = [of_times, of_values].map(mean);
            let pairs = || of_times.iter().zip(of_values).map(|(a, b)| (a - time, b - value));
            let mut block = [0.0; 3];
            let mut cubes = [0.0; 2];
            for (a, b) in pairs() {
                block = [block[0] + a * b, block[1] + a * a, block[2] + b * b];
                cubes = [cubes[0] + a.powi(3), cubes[1] + b.powi(3)];
            }
            all.product += block[0];
            all.squares[0] += block[1];
            all.squares[1] += block[2];
            if k > 1.0 {
                all.variance += block[1] * block[2] / (k - 1.0);
            }
            if k > 2.0 {
                all.third += cubes[0] * cubes[1] * k / ((k - 1.0) * (k - 2.0));
            }
            match many {
                true => all.pieces.push(block),
                false if k > 1.0 => {
                    let factor = (k / (k - 1.0)).sqrt();
                    all.pieces.extend(pairs().map(|(a, b)| [a * b, a * a, b * b].map(|of| of * factor)));
                }
                false => {}
            }
        }
        all
    }
}

/// Values relative to the median of the known values of their block; NaN stays NaN.
pub fn relative(values: &mut [f64], ends: &[usize]) {
    let mut start = 0;
    let mut known = Vec::new();
    for end in ends {
        let block = &mut values[start..*end];
        known.clear();
        known.extend(block.iter().copied().filter(|value| !value.is_nan()));
        let middle = within_nodes::median_of(&mut known).unwrap_or_default();
        block.iter_mut().for_each(|value| *value -= middle);
        start = *end;
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of products of scores of times and of values.
#[derive(Default)]
struct Product {
    product: f64,
    /// The sums of squares of both.
    squares: [f64; 2],
    variance: f64,
    /// The third central moment.
    third: f64,
    /// Products and squares of independent parts: of blocks, or of runs.
    pieces: Vec<[f64; 3]>,
}

impl Product {
    fn size(&self) -> f64 {
        (self.squares[0] * self.squares[1]).sqrt()
    }

    fn rho(&self) -> f64 {
        self.product / self.size()
    }

    /// The probability that the sum is at least as large, from a gamma distribution with the same mean, variance and
    /// third moment (Pearson's type III), by E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", PNAS
    /// 17 (1931). A negative third moment counts as 0, because the distribution would end too early. Without a
    /// variance, the result is 1.
    fn p(&self) -> f64 {
        if self.variance <= 0.0 {
            return 1.0;
        }
        let deviation = self.variance.sqrt();
        let (z, skewness) = (self.product / deviation, self.third / deviation.powi(3));
        const NONE: f64 = 1e-6;
        if skewness < NONE {
            return normal::upper(z);
        }
        let base = (1.0 + skewness * z / 2.0).max(0.0);
        normal::upper(6.0 / skewness * (base.cbrt() - 1.0) + skewness / 6.0)
    }

    /// An interval of about 95 % for rho, by Fisher's transformation atanh(rho). The variance comes from the delta
    /// method, with the differences of the independent parts. It is at least the variance without an association.
    fn interval(&self) -> [f64; 2] {
        const Z: f64 = 1.959_963_984_540_054;
        const LARGEST: f64 = 0.9999;
        let rho = self.rho().clamp(-LARGEST, LARGEST);
        let weight = (self.squares[1] / self.squares[0]).sqrt();
        let influence =
            |[product, time, value]: &[f64; 3]| product - rho / 2.0 * (time * weight + value / weight);
        let count = self.pieces.len() as f64;
        let sum: f64 = self.pieces.iter().map(|piece| influence(piece).powi(2)).sum();
        let error = (sum * count / (count - 1.0)).sqrt() / self.size() / (1.0 - rho * rho);
        let reach = Z * error.max(self.variance.sqrt() / self.size());
        [rho.atanh() - reach, rho.atanh() + reach].map(f64::tanh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    /// All orders of four values.
    fn orders() -> Vec<[usize; 4]> {
        let all = (0..256usize).map(|code| [code % 4, code / 4 % 4, code / 16 % 4, code / 64]);
        all.filter(|order| (0..4).all(|value| order.contains(&value))).collect()
    }

    #[test]
    fn moments_are_those_of_all_orders() {
        let (a, b) = ([0.3, -1.0, 2.5, 0.1], [1.0, 4.0, -0.5, 0.2]);
        let blocks = Slowness { times: a.to_vec(), scores: a.to_vec(), ends: vec![4] };
        let found = blocks.product(&b);
        let centre = mean(&a) * mean(&b) * 4.0;
        let of_order = |order: [usize; 4]| (0..4).map(|at| a[at] * b[order[at]]).sum::<f64>() - centre;
        let all: Vec<f64> = orders().into_iter().map(of_order).collect();
        assert_eq!(all.len(), 24);
        let moment = |power| all.iter().map(|sum| sum.powi(power)).sum::<f64>() / 24.0;
        assert!(moment(1).abs() < 1e-12);
        assert!((moment(2) - found.variance).abs() < 1e-12, "{} {}", moment(2), found.variance);
        assert!((moment(3) - found.third).abs() < 1e-12, "{} {}", moment(3), found.third);
        assert!((found.product - of_order([0, 1, 2, 3])).abs() < 1e-12);
    }

    /// 100 nodes of 7 runs; each tenth node has a slow run, in which `by` is added to the value.
    fn fleet(seed: u64, by: f64) -> (Slowness, Vec<f64>, Vec<bool>) {
        let mut random = Random::new(seed);
        let (mut times, mut values, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        for run in 0..700 {
            let is_slow = run % 70 == 3;
            times.push(0.003 * random.normal() + if is_slow { 0.2 } else { 0.0 });
            values.push(0.1 * random.normal() + if is_slow { by } else { 0.0 });
            slow.push(is_slow);
        }
        let ends: Vec<usize> = (1..=100).map(|node| node * 7).collect();
        relative(&mut times, &ends);
        relative(&mut values, &ends);
        (Slowness::new(times, ends), values, slow)
    }

    #[test]
    fn what_rises_or_falls_in_few_slow_runs_is_found() {
        for (by, sign) in [(0.7, 1.0), (-0.7, -1.0)] {
            let (slowness, values, slow) = fleet(1, by);
            let found = slowness.association(&values).unwrap();
            let ratio = slowness.ratio(&values, &slow).unwrap();
            assert!(found.rho * sign > 0.15 && found.p < 1e-3, "{found:?}");
            assert!(found.interval[0] <= found.rho && found.rho <= found.interval[1], "{found:?}");
            assert_eq!((found.values, found.blocks), (700, 100));
            assert!((ratio.ln() / by - 1.0).abs() < 0.3, "{ratio}");
            assert!((slowness.time_ratio(&slow).unwrap() - f64::exp(0.2)).abs() < 0.02);
            assert!(!slowness.is_time_itself(&values));
        }
        let (slowness, values, slow) = fleet(1, 0.0);
        assert!(slowness.association(&values).unwrap().p > 0.01);
        // Without slow runs the slowest quarter counts.
        let none = vec![false; slow.len()];
        assert!((slowness.time_ratio(&none).unwrap() - 1.0).abs() < 0.02);
        assert!(slowness.is_time_itself(&slowness.times));
        assert!(slowness.is_time_itself(&slowness.times.iter().map(|time| -time).collect::<Vec<_>>()));
    }

    #[test]
    fn what_cannot_be_tested_has_a_reason() {
        let (slowness, mut values, _) = fleet(2, 0.7);
        assert_eq!(slowness.association(&[1.0; 700]), Err(NoAssociation::Constant));
        assert_eq!(slowness.association(&[f64::NAN; 700]), Err(NoAssociation::Unknown));
        // Two nodes with a value in each run.
        values[14..].fill(f64::NAN);
        let two = slowness.association(&values).unwrap();
        assert_eq!((two.values, two.blocks), (14, 2));
        values[10..].fill(f64::NAN);
        assert_eq!(slowness.association(&values), Err(NoAssociation::Few));
        assert_eq!(Slowness::new(vec![], vec![]).association(&[]), Err(NoAssociation::Unknown));
    }

    proptest! {
        #[test]
        fn units_and_order_do_not_matter(seed in 0u64..1000, unit in 0.001..1000.0f64) {
            let (slowness, values, _) = fleet(seed, 0.1);
            let found = slowness.association(&values).unwrap();
            let scaled: Vec<f64> = values.iter().map(|value| value * unit).collect();
            prop_assert_eq!(slowness.association(&scaled).unwrap(), found);
            let turned = |values: &[f64]| values.iter().rev().copied().collect::<Vec<f64>>();
            let other = Slowness::new(turned(&slowness.times), slowness.ends.clone());
            let other = other.association(&turned(&values)).unwrap();
            prop_assert!((other.rho - found.rho).abs() < 1e-9 && (other.p / found.p - 1.0).abs() < 1e-6);
            prop_assert!(found.rho.abs() <= 1.0 && (0.0..=1.0).contains(&found.p));
        }

        #[test]
        fn no_number_is_a_panic(
            blocks in proptest::collection::vec(proptest::collection::vec(
                (proptest::num::f64::ANY, proptest::num::f64::ANY), 1..9), 0..20)
        ) {
            let ends: Vec<usize> = (1..=blocks.len()).map(|n| blocks[..n].iter().map(Vec::len).sum()).collect();
            let (times, mut values): (Vec<f64>, Vec<f64>) = blocks.concat().into_iter().unzip();
            relative(&mut values, &ends);
            let slow = vec![true; times.len()];
            let slowness = Slowness::new(times, ends);
            let _ = slowness.association(&values);
            slowness.ratio(&values, &slow);
            slowness.is_time_itself(&values);
        }
    }
}
