//! The median of a few runs, and how sure it is.

/// The least coverage of an interval that is given: what [y_1, y_5] has for five runs.
pub const LEAST_COVERAGE: f64 = 0.9375;

/// The median run of ascending values is an actual run, so that what else is known of it can be shown:
/// for an even number the lower of the middle two.
pub fn position(count: usize) -> Option<usize> {
    count.checked_sub(1).map(|last| last / 2)
}

/// Which ascending values, the j-th from either end, hold the true median, and with what probability:
/// the narrowest pair with at least [`LEAST_COVERAGE`]. `None` below five values.
///
/// The number of values below the median is Binomial(k, 1/2), so the pair holds it with probability
/// 1 - 2 P(Bin(k, 1/2) < j): T. Hoefler and R. Belli, "Scientific Benchmarking of Parallel Computing
/// Systems", SC15, section 3.1.3.
pub fn interval(count: usize) -> Option<(usize, usize, f64)> {
    let (mut found, mut below) = (None, 0.0);
    let mut probability = 0.5f64.powi(i32::try_from(count).ok()?);
    // Beyond 1,074 values 2^-k is below the smallest number: then the normal approximation is exact
    // enough, and the binomial's tail is summed from where it is not zero.
    if probability == 0.0 {
        return Some(normal_interval(count));
    }
    for j in 0..count / 2 {
        below += probability; // P(Bin <= j)
        let coverage = 1.0 - 2.0 * below;
        if coverage < LEAST_COVERAGE {
            break;
        }
        found = Some((j, count - 1 - j, coverage));
        probability *= (count - j) as f64 / (j + 1) as f64;
    }
    found
}

/// For many values: the median's rank is k/2 plus or minus z sqrt(k)/2, z = 1.96, rounded outward.
fn normal_interval(count: usize) -> (usize, usize, f64) {
    let half = (1.96 * (count as f64).sqrt() / 2.0).ceil() as usize;
    let low = (count / 2).saturating_sub(half + 1);
    (low, count - 1 - low, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_book() {
        for count in 0..5 {
            assert_eq!(interval(count), None);
        }
        assert_eq!(interval(5), Some((0, 4, 0.9375)));
        assert_eq!(interval(6), Some((0, 5, 0.96875)));
        assert_eq!(interval(7), Some((0, 6, 0.984375)));
        let (low, high, coverage) = interval(9).unwrap();
        assert_eq!((low, high, (coverage * 1000.0).round()), (1, 7, 961.0));
        // The 41st and the 60th hold the median with 94.3 % (binomial), the 42nd and the 59th with 91.1 %.
        assert_eq!(interval(100).map(|(low, high, _)| (low + 1, high + 1)), Some((41, 60)));
    }

    #[test]
    fn many_values_have_an_interval_too() {
        let (low, high, _) = interval(10_000).unwrap();
        assert!((4_890..4_905).contains(&low) && low + high == 9_999);
    }

    #[test]
    fn the_median_run_is_a_run() {
        assert_eq!(
            (0..6).map(position).collect::<Vec<_>>(),
            [None, Some(0), Some(0), Some(1), Some(1), Some(2)]
        );
    }
}
