//! The law of a healthy run: how far above the median of its node it is, when the node has only a few runs and their
//! standard deviation is known only approximately.

use super::{normal, within_nodes};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// P(y_j - m > g sigma_hat) of a run y_j among k, with m the median of all k, for one k and one precision of sigma_hat.
#[derive(Clone, Debug)]
pub struct RunLaw {
    /// ln P for a known sigma, at each [`distance`].
    known: Arc<[f64]>,
    /// Standard deviation of ln(sigma_hat / sigma).
    sd: f64,
}

/// Var(ln sigma_hat) times the number of deviations.
const SIGMA_VARIANCE: f64 = 1.36;
/// Below this standard deviation of ln sigma_hat, sigma counts as known: P changes by a few per cent at most.
const KNOWN_SD: f64 = 0.01;
/// For more runs than this, P is that of the next number in a list of odd numbers, each about 5 % larger than
/// the number before. P is nearly the same there, and not smaller. So few tables are enough for nodes that
/// all have different numbers of runs.
const MOST_EXACT: usize = 30;
/// The number of steps of a table, and its largest distance in standard deviations, where P is 0.
const STEPS: usize = 128;
const FARTHEST: f64 = 40.0;

impl RunLaw {
    /// For `runs` >= 2 runs. `deviations` is the number of deviations behind sigma_hat: sum over nodes of k - 1. The
    /// robust estimate [`within_nodes::sigma`] has ln(sigma_hat / sigma) close to normal, with variance 1.36 /
    /// deviations (simulated for classes of 1 to 2000 nodes); P is averaged over it.
    pub fn new(runs: usize, deviations: usize) -> Self {
        let sd = (SIGMA_VARIANCE / deviations.max(1) as f64).sqrt();
        Self { known: known(tabled(runs.max(2))), sd }
    }

    /// P for a distance g >= 0 in units of sigma_hat: the mean over ln(sigma_hat / sigma) ~ N(0, sd^2), by the
    /// trapezoidal rule.
    pub fn above(&self, g: f64) -> f64 {
        const HALF: i32 = 48;
        const STEP: f64 = 6.0 / HALF as f64;
        if self.sd < KNOWN_SD {
            return interpolated(&self.known, g);
        }
        let at = |at: i32| {
            let z = f64::from(at) * STEP;
            STEP * normal::density(z) * interpolated(&self.known, g * (self.sd * z).exp())
        };
        (-HALF..=HALF).map(at).sum()
    }

    /// A lower limit of all distances with P <= q.
    pub fn least(&self, q: f64) -> f64 {
        let (mut low, mut high) = (0.0, FARTHEST);
        for _ in 0..20 {
            let middle = (low + high) / 2.0;
            if self.above(middle) > q { low = middle } else { high = middle }
        }
        low
    }
}

/// The number of runs whose table stands for `runs`.
fn tabled(runs: usize) -> usize {
    let mut tabled = MOST_EXACT;
    while tabled < runs {
        tabled = (tabled + tabled / 20) | 1;
    }
    if runs <= MOST_EXACT { runs } else { tabled }
}

/// The table for a number of runs. To compute it takes up to 0.1 s, so it is kept.
fn known(runs: usize) -> Arc<[f64]> {
    static TABLES: Mutex<BTreeMap<usize, Arc<[f64]>>> = Mutex::new(BTreeMap::new());
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    let table = || {
        let exact = Exact::new(runs);
        (0..=STEPS).map(|step| exact.above(distance(step)).ln()).collect()
    };
    Arc::clone(tables.entry(runs).or_insert_with(table))
}

fn distance(step: usize) -> f64 {
    (step as f64 / STEPS as f64 * FARTHEST.ln_1p()).exp_m1()
}

/// P from a table of ln P over ln(1 + g).
fn interpolated(ln_p: &[f64], g: f64) -> f64 {
    let place = g.max(0.0).ln_1p() / FARTHEST.ln_1p() * STEPS as f64;
    let at = (place as usize).min(STEPS - 1);
    let share = (place - at as f64).min(1.0);
    let (low, high) = (ln_p[at], ln_p[at + 1]);
    match high == f64::NEG_INFINITY {
        true => {
            if share < 1.0 {
                low.exp()
            } else {
                0.0
            }
        }
        false => (low + share * (high - low)).exp(),
    }
}

/// P with sigma known, by quadrature over the median (odd k) or over the middle two (even k).
struct Exact {
    runs: usize,
    /// ln of k! / (h! h!) or k! / ((h-1)! (h-1)!), with h = k / 2.
    ln_choices: f64,
}

impl Exact {
    fn new(runs: usize) -> Self {
        let ln_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
        let tail = (runs - 1) / 2;
        Self { runs, ln_choices: ln_factorial(runs) - 2.0 * ln_factorial(tail) }
    }

    fn above(&self, g: f64) -> f64 {
        if self.runs % 2 == 1 { self.above_odd(g) } else { self.above_even(g) }
    }

    /// k = 2h + 1. Given the median m, the h runs above it are independent: P = (h/k) E[Phi(-(m+g)) / Phi(-m)], with
    /// m distributed as k! / (h! h!) Phi(m)^h Phi(-m)^h phi(m).
    fn above_odd(&self, g: f64) -> f64 {
        let above = (self.runs / 2) as f64;
        let density = |m: f64| {
            (self.ln_choices + above * (normal::lower(m).ln() + normal::upper(m).ln())).exp()
                * normal::density(m)
        };
        let of = |m: f64| {
            let tail = normal::upper(m);
            if tail > 0.0 { density(m) * normal::upper(m + g) / tail } else { 0.0 }
        };
        let reach = REACH.min(12.0 * within_nodes::variance_factor(self.runs).sqrt());
        above / self.runs as f64 * trapezoid(-reach, reach, of)
    }

    /// k = 2h. The median is the mean of the middle two, a < b, whose density is k! / ((h-1)! (h-1)!) Phi(a)^(h-1)
    /// Phi(-b)^(h-1) phi(a) phi(b). A run above the median is b (1 of k), or one of the h - 1 above b.
    fn above_even(&self, g: f64) -> f64 {
        let others = ((self.runs - 2) / 2) as f64;
        let k = self.runs as f64;
        // With b = a + d. b itself is that far above the median if d >= 2 g.
        let joint = |a: f64, b: f64| {
            let powers =
                if others == 0.0 { 0.0 } else { others * (normal::lower(a).ln() + normal::upper(b).ln()) };
            (self.ln_choices + powers).exp() * normal::density(a) * normal::density(b)
        };
        let of_a = |a: f64| {
            let is_b = trapezoid_from(a + 2.0 * g, |b| joint(a, b));
            let is_above = trapezoid_from(a, |b| {
                let tail = normal::upper(b);
                let limit = b.max((a + b) / 2.0 + g);
                if tail > 0.0 { joint(a, b) * normal::upper(limit) / tail } else { 0.0 }
            });
            (is_b + others * is_above) / k
        };
        trapezoid(-REACH, REACH, of_a)
    }
}

/// Medians further out have no weight: Phi(-8.5) is 1e-17.
const REACH: f64 = 8.5;

fn trapezoid(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const POINTS: usize = 84;
    let step = (to - from) / POINTS as f64;
    step * (0..=POINTS)
        .map(|at| of(from + at as f64 * step) * if at % POINTS == 0 { 0.5 } else { 1.0 })
        .sum::<f64>()
}

/// From `from` to infinity, of a function with normal tails: x = from + e^(t - e^-t) (double exponential).
fn trapezoid_from(from: f64, of: impl Fn(f64) -> f64) -> f64 {
    const STEP: f64 = 0.16;
    (-25..=23)
        .map(|at| {
            let t = f64::from(at) * STEP;
            let x = (t - (-t).exp()).exp();
            let weight = x * (1.0 + (-t).exp());
            STEP * weight * of(from + x)
        })
        .filter(|term| term.is_finite())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// Two runs: the higher one is |y1 - y2| / 2 above the median, |N(0, 2)| / 2: P = 1/2 * 2 Phi(-g sqrt 2).
    #[test]
    fn two_runs_in_closed_form() {
        let law = Exact::new(2);
        for g in [0.0, 0.3, 1.0, 2.0, 4.0] {
            let exact = normal::upper(g * 2f64.sqrt());
            assert!((law.above(g) / exact - 1.0).abs() < 1e-6, "{g}: {} {exact}", law.above(g));
        }
    }

    #[test]
    fn many_runs_are_nearly_normal() {
        let law = RunLaw::new(100_000, 100_000_000);
        for g in [0.5, 1.0, 2.0, 3.0, 4.0] {
            let ratio = law.above(g) / normal::upper(g);
            assert!((0.99..1.01).contains(&ratio), "{g}: {ratio}");
        }
    }

    #[test]
    fn p_falls_with_the_distance() {
        for law in [RunLaw::new(3, 2), RunLaw::new(4, 300), RunLaw::new(40, 1_000_000)] {
            let p: Vec<f64> = (0..2000).map(|g| law.above(f64::from(g) / 10.0)).collect();
            assert!(p.windows(2).all(|pair| pair[0] >= pair[1]) && p.iter().all(|p| (0.0..=1.0).contains(p)));
            let least = law.least(0.01);
            assert!(law.above(least) >= 0.01 && law.above(least + 0.01) <= 0.01, "{least}");
        }
    }

    #[test]
    fn the_law_is_that_of_a_simulation() {
        for runs in [3, 4, 5, 6, 7, 8, 15, 30, 32, 101] {
            let law = Exact::new(runs);
            let mut random = Random::new(runs as u64);
            let limits = [0.5, 1.0, 2.0, 3.0];
            let mut counts = [0usize; 4];
            let nodes = 400_000 / runs;
            for _ in 0..nodes {
                let mut y: Vec<f64> = (0..runs).map(|_| random.normal()).collect();
                y.sort_unstable_by(f64::total_cmp);
                let m = (y[(runs - 1) / 2] + y[runs / 2]) / 2.0;
                for (limit, count) in limits.iter().zip(&mut counts) {
                    *count += y.iter().filter(|y| **y - m > *limit).count();
                }
            }
            let all = (nodes * runs) as f64;
            for (limit, count) in limits.iter().zip(counts) {
                let (p, found) = (law.above(*limit), count as f64 / all);
                let error = 5.0 * (p / all).sqrt();
                assert!((found - p).abs() < error, "{runs} runs, {limit}: {found} {p}");
            }
        }
    }
}
