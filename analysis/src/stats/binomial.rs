//! Tails of the binomial distribution, also for thousands of trials.

/// P(Bin(n, p) >= x), computed from the smaller tail. For p outside of 0 < p < 1 the result is 0 or 1.
pub fn at_least(trials: usize, p: f64, x: usize) -> f64 {
    if x == 0 {
        return 1.0;
    }
    if x > trials || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    match x as f64 > (trials + 1) as f64 * p {
        true => upwards(trials, p, x),
        false => 1.0 - upwards(trials, 1.0 - p, trials - x + 1),
    }
}

/// P(Bin(n, p) < x).
pub fn below(trials: usize, p: f64, x: usize) -> f64 {
    match x > trials {
        true => 1.0,
        false => at_least(trials, 1.0 - p, trials - x + 1),
    }
}

/// The sum from x on. x is beyond the mode, so the terms decrease.
fn upwards(trials: usize, p: f64, x: usize) -> f64 {
    let odds = p / (1.0 - p);
    let (mut term, mut sum) = (probability(trials, p, x), 0.0);
    for j in x..=trials {
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
        term *= (trials - j) as f64 / (j + 1) as f64 * odds;
    }
    sum
}

/// P(Bin(n, p) = x), computed with logarithms because n! overflows at n = 171.
pub fn probability(trials: usize, p: f64, x: usize) -> f64 {
    let (n, k) = (trials as f64, x as f64);
    let choices = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    (choices + k * p.ln() + (n - k) * (-p).ln_1p()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pascal's triangle; exact for these values.
    fn by_counting(trials: usize, p: f64, x: usize) -> f64 {
        let mut row = vec![1.0];
        for _ in 0..trials {
            let mut next = vec![0.0; row.len() + 1];
            for (j, value) in row.iter().enumerate() {
                next[j] += value * (1.0 - p);
                next[j + 1] += value * p;
            }
            row = next;
        }
        row.iter().skip(x).sum()
    }

    proptest! {
        #[test]
        fn tails_are_those_of_pascals_triangle(
            trials in 0..200usize, p in 0.001..0.999f64, x in 0..220usize
        ) {
            let (found, counted) = (at_least(trials, p, x), by_counting(trials, p, x));
            prop_assert!((found - counted).abs() <= 1e-11 * counted.max(1e-3), "{found} {counted}");
            prop_assert!((below(trials, p, x) - (1.0 - counted)).abs() < 1e-11);
        }

        #[test]
        fn a_tail_falls(trials in 1..100_000usize, p in 0.0..1.0f64, at in 0.0..1.0f64) {
            let x = (trials as f64 * at) as usize;
            let (here, next) = (at_least(trials, p, x), at_least(trials, p, x + 1));
            prop_assert!((0.0..=1.0 + 1e-9).contains(&here) && next <= here + 1e-9);
        }
    }

    #[test]
    fn what_is_certain() {
        assert_eq!((at_least(5, 0.0, 0), at_least(5, 0.0, 1), at_least(5, 1.0, 5)), (1.0, 0.0, 1.0));
        assert_eq!((at_least(0, 0.5, 0), at_least(0, 0.5, 1), below(3, 0.5, 0)), (1.0, 0.0, 0.0));
    }
}
