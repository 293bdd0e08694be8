//! The median of a few values, and two of the values with the true median between them.

/// Least coverage of an interval: the coverage of [y_1, y_5] for five values.
pub const LEAST_COVERAGE: f64 = 0.9375;

/// The fewest values that have such an interval.
pub const FEWEST_OF_INTERVAL: usize = 5;

/// The index of the median run among ascending values: for an even number the lower of the middle two. It is an
/// actual run, so that reports can show its other data.
pub fn position(count: usize) -> Option<usize> {
    count.checked_sub(1).map(|last| last / 2)
}

/// The median of ascending values. For an even number it is the mean of the middle two, which is as often too high as
/// too low. `None` without values.
pub fn of_ascending(values: &[f64]) -> Option<f64> {
    let low = values.get(position(values.len())?)?;
    let high = values.get(values.len() / 2)?;
    Some(middle(*low, *high))
}

/// The mean of two values.
pub fn middle(low: f64, high: f64) -> f64 {
    low + (high - low) / 2.0
}

/// The indices of two ascending values that contain the true median between them, and the probability of that: the
/// narrowest symmetric pair with at least [`LEAST_COVERAGE`]. `None` below five values.
///
/// The number of values below the median is Binomial(k, 1/2), so the j-th values from both ends contain it with
/// probability 1 - 2 P(Bin(k, 1/2) < j). Source: T. Hoefler and R. Belli, "Scientific Benchmarking of Parallel
/// Computing Systems", SC15, section 3.1.3.
pub fn interval(count: usize) -> Option<(usize, usize, f64)> {
    let (rank, below) = rank(count, (1.0 - LEAST_COVERAGE) / 2.0);
    let low = rank.checked_sub(1)?;
    Some((low, count - rank, 1.0 - 2.0 * below))
}

/// The largest r (from 1) for which the r-th smallest of `count` values is above the true median with a probability
/// of at most `alpha`; and that probability, P(Bin(k, 1/2) < r). r = 0 if there is none.
pub fn rank(count: usize, alpha: f64) -> (usize, f64) {
    // Exact from the first value as long as 2^-k does not underflow. For more values it starts 30 standard deviations
    // below the median; the part below that is negligible.
    let first = match count {
        0..1000 => 0,
        _ => (count as f64 / 2.0 - 15.0 * (count as f64).sqrt()) as usize,
    };
    let mut probability = match first {
        0 => 0.5f64.powi(count as i32),
        _ => probability_of(first, count),
    };
    let (mut rank, mut below) = (first, 0.0);
    while rank < count && below + probability <= alpha {
        below += probability;
        probability *= (count - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    (rank, below)
}

/// P(Bin(k, 1/2) = x) for an x below which the rest is negligible: 1 divided by the sum of all probabilities, each as a
/// multiple of this one.
fn probability_of(x: usize, count: usize) -> f64 {
    let next = |term: &mut f64, x: usize| {
        let this = *term;
        *term *= (count - x) as f64 / (x + 1) as f64;
        Some(this)
    };
    1.0 / (x..=count - x).scan(1.0, next).sum::<f64>()
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
        // The 41st and the 60th value contain the median with 94.3 % (binomial), the 42nd and the 59th with 91.1 %.
        assert_eq!(interval(100).map(|(low, high, _)| (low + 1, high + 1)), Some((41, 60)));
    }

    #[test]
    fn ranks_of_one_per_cent() {
        assert_eq!((0..6).map(|count| rank(count, 0.01).0).collect::<Vec<_>>(), [0; 6]);
        assert_eq!((rank(7, 0.01), rank(11, 0.01).0, rank(21, 0.01).0), ((1, 1.0 / 128.0), 2, 5));
    }

    #[test]
    fn the_median_run_is_a_run() {
        assert_eq!(
            (0..6).map(position).collect::<Vec<_>>(),
            [None, Some(0), Some(0), Some(1), Some(1), Some(2)]
        );
        assert_eq!(
            (of_ascending(&[]), of_ascending(&[1.0, 2.0]), of_ascending(&[1.0])),
            (None, Some(1.5), Some(1.0))
        );
    }
}
