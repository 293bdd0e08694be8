//! The normal distribution, also far out in its tails.

use std::f64::consts::{PI, SQRT_2};

/// Phi^-1: a normal variable is below this value with probability `p`. Infinite at 0 and 1; NaN outside of them.
///
/// Newton's method on the logarithm of the tail, which is concave. It starts from sqrt(-2 ln p), which is never below
/// the root, so no step overshoots.
pub fn quantile(p: f64) -> f64 {
    if p > 0.5 {
        return -lower_quantile(1.0 - p);
    }
    lower_quantile(p)
}

fn lower_quantile(p: f64) -> f64 {
    match p {
        0.0 => return f64::NEG_INFINITY,
        0.5 => return 0.0,
        p if !(0.0..0.5).contains(&p) => return f64::NAN,
        _ => {}
    }
    let logarithm = p.ln();
    let mut z = (-2.0 * logarithm).sqrt().min(38.0); // beyond, the tail underflows
    for _ in 0..60 {
        let tail = upper(z);
        let step = (tail.ln() - logarithm) * tail / density(z);
        z += step;
        if step.abs() <= 1e-15 * z.abs() {
            break;
        }
    }
    -z
}

/// The probability that a normal variable is above `z`: 1 - Phi(z), to twelve digits even if it is small. NaN for
/// NaN.
pub fn upper(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The probability that a normal variable is below `z`: Phi(z).
pub fn lower(z: f64) -> f64 {
    upper(-z)
}

/// phi(z).
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Abramowitz and Stegun, tables 26.1 and 26.2; far out in the tail, digits from mpmath.
    #[test]
    fn tails_are_those_of_the_tables() {
        for (z, tail) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (3.0, 1.349_898_031_630_094_6e-3),
            (6.0, 9.865_876_450_376_98e-10),
            (10.0, 7.619_853_024_160_526e-24),
            (30.0, 4.906_713_927_148_187e-198),
        ] {
            assert!((upper(z) / tail - 1.0).abs() < 1e-12, "{z}: {}", upper(z));
            assert_eq!(lower(-z), upper(z));
        }
        assert_eq!(upper(f64::INFINITY), 0.0);
        assert!(upper(f64::NAN).is_nan());
    }

    #[test]
    fn quantiles_have_ends() {
        assert_eq!((quantile(0.0), quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(quantile(0.5), 0.0);
        assert!([-0.1, 1.1, f64::NAN].iter().all(|p| quantile(*p).is_nan()));
        assert!((quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
        assert!((quantile(0.625) - 0.318_639_363_964_375_14).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_inverse(exponent in -307.0..-0.302f64) {
            let p = 10f64.powf(exponent);
            prop_assert!((lower(quantile(p)) / p - 1.0).abs() < 1e-10, "{p}");
        }
    }
}
