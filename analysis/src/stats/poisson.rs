//! The tail of the Poisson distribution.

/// P(Poisson(mean) >= x), from the smaller tail.
pub fn at_least(x: usize, mean: f64) -> f64 {
    debug_assert!(!mean.is_nan());
    let at = |j: usize| (j as f64 * mean.ln() - mean - libm::lgamma(j as f64 + 1.0)).exp();
    if x as f64 <= mean {
        return 1.0 - (0..x).map(at).sum::<f64>();
    }
    let (mut term, mut sum) = (at(x), 0.0);
    for j in x.. {
        sum += term;
        term *= mean / (j + 1) as f64;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_the_tables() {
        for (x, mean, tail) in
            [(1, 0.1, 0.095_162_6), (5, 1.0, 0.003_659_85), (2, 3.0, 0.800_851_7), (0, 2.0, 1.0)]
        {
            assert!((at_least(x, mean) / tail - 1.0).abs() < 1e-5, "{x} {mean}");
        }
    }
}
