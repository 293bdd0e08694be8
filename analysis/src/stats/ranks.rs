//! Ranks of values, and scores that give large values more weight than ranks do.

/// The rank of each value, from 0; equal values share their mean rank.
pub fn mid_ranks(values: &[f64]) -> Vec<f64> {
    scored(values, |place| place as f64)
}

/// Savage scores: the score of the i-th smallest of n values is 1/n + 1/(n-1) + ... + 1/(n-i+1) - 1, the expected value of
/// the i-th smallest of n exponential variables of mean 1, less their mean. Equal values share their mean score.
///
/// The smallest of many values has the score -1, the median -0.3, and the largest one ln(n) - 0.4. Source: I. R. Savage,
/// "Contributions to the theory of rank order statistics: the two-sample case", Ann. Math. Statist. 27 (1956).
pub fn savage(values: &[f64]) -> Vec<f64> {
    let count = values.len();
    let mut sum = -1.0;
    scored(values, |place| {
        sum += 1.0 / (count - place) as f64;
        sum
    })
}

/// Gives each value the score of its place in ascending order; equal values share their mean score. `score` is called
/// once per place, in ascending order.
fn scored(values: &[f64], mut score: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    let value = |at: &u32| values[*at as usize];
    order.sort_unstable_by(|a, b| value(a).total_cmp(&value(b)));
    let mut scores = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| value(a) == value(b)) {
        let sum: f64 = (first..first + equal.len()).map(&mut score).sum();
        equal.iter().for_each(|at| scores[*at as usize] = sum / equal.len() as f64);
        first += equal.len();
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(mid_ranks(&[3.0, 1.0, 3.0, 2.0, -0.0, 0.0]), [4.5, 2.0, 4.5, 3.0, 0.5, 0.5]);
        assert!(mid_ranks(&[]).is_empty());
    }

    /// 1/4, 1/4 + 1/3, ...
    #[test]
    fn savage_scores_are_sums_of_reciprocals() {
        let near = |found: &[f64], expected: &[f64]| {
            assert_eq!(found.len(), expected.len());
            assert!(found.iter().zip(expected).all(|(a, b)| (a + 1.0 - b).abs() < 1e-12), "{found:?}");
        };
        near(&savage(&[7.0, 9.0, 1.0, 8.0]), &[7.0 / 12.0, 25.0 / 12.0, 0.25, 13.0 / 12.0]);
        near(&savage(&[5.0, 5.0, 5.0]), &[1.0; 3]);
        let sum: f64 = savage(&(0..1000).map(f64::from).collect::<Vec<_>>()).iter().sum();
        assert!(sum.abs() < 1e-9);
    }
}
