//! Adjusts p values for many tests at once.

/// One test of many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The caller's number of the test.
    pub index: usize,
    /// The p value; after [`adjust`], the adjusted p value.
    pub p: f64,
}

/// Benjamini and Hochberg's adjusted p values of a family, in the given order. If a caller rejects all tests
/// with a value of at most q, at most the share q of the rejections is false on average. NaN (no test) stays
/// NaN and does not belong to the family.
///
/// Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate", JRSS B 57 (1995).
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut tests: Vec<Test> = p.iter().enumerate().map(|(index, p)| Test { index, p: *p }).collect();
    tests.retain(|test| !test.p.is_nan());
    let family = tests.len();
    adjust(&mut tests, family);
    let mut adjusted = vec![f64::NAN; p.len()];
    for test in tests {
        adjusted[test.index] = test.p;
    }
    adjusted
}

/// Adjusts the smallest p values of a family of `family` tests and sorts them, the smallest first, equal ones by
/// index. The caller may omit p values above q: the rejected tests are then exactly the same.
///
/// The i-th smallest p becomes the smallest of p_j `family` / j over all j >= i, at most 1.
pub fn adjust(tests: &mut [Test], family: usize) {
    tests.sort_unstable_by(|a, b| a.p.total_cmp(&b.p).then(a.index.cmp(&b.index)));
    let mut least = 1.0f64;
    for (place, test) in tests.iter_mut().enumerate().rev() {
        least = least.min(test.p * family as f64 / (place + 1) as f64);
        test.p = least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The step-up procedure of the paper: the largest i with p_(i) <= i q / m rejects the first i.
    fn rejected_by_hand(p: &[f64], q: f64) -> Vec<bool> {
        let valid: Vec<f64> = p.iter().copied().filter(|p| !p.is_nan()).collect();
        let mut limit = -1.0;
        for candidate in &valid {
            let rank = valid.iter().filter(|other| *other <= candidate).count();
            if *candidate <= q * rank as f64 / valid.len() as f64 && *candidate > limit {
                limit = *candidate;
            }
        }
        p.iter().map(|p| *p <= limit).collect()
    }

    fn p_values() -> impl Strategy<Value = Vec<f64>> {
        let p = prop_oneof![
            4 => 0.0..1.0f64,
            4 => (-8.0..0.0f64).prop_map(|exponent| 10f64.powf(exponent)),
            1 => (0..5u32).prop_map(|fifth| f64::from(fifth) / 500.0),
            1 => Just(f64::NAN),
        ];
        proptest::collection::vec(p, 0..60)
    }

    /// An example from the paper: fifteen p values, of which four are rejected at 5 %.
    #[test]
    fn the_papers_example() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        assert_eq!(adjusted(&p).iter().filter(|p| **p <= 0.05).count(), 4);
    }

    proptest! {
        #[test]
        fn rejections_are_those_of_the_procedure(p in p_values(), q in 0.001..0.3f64) {
            let found: Vec<bool> = adjusted(&p).iter().map(|p| *p <= q).collect();
            prop_assert_eq!(found, rejected_by_hand(&p, q));
        }

        #[test]
        fn the_smallest_are_enough(p in p_values(), q in 0.001..0.3f64) {
            let all = adjusted(&p);
            let family = p.iter().filter(|p| !p.is_nan()).count();
            let all_tests = p.iter().enumerate().map(|(index, p)| Test { index, p: *p });
            let mut few: Vec<Test> = all_tests.filter(|test| test.p <= q).collect();
            adjust(&mut few, family);
            let rejected: Vec<usize> = (0..p.len()).filter(|i| all[*i] <= q).collect();
            few.retain(|test| test.p <= q);
            prop_assert!(few.iter().all(|test| test.p == all[test.index]));
            let mut found: Vec<usize> = few.iter().map(|test| test.index).collect();
            found.sort_unstable();
            prop_assert_eq!(found, rejected);
        }

        /// In any order.
        #[test]
        fn order_does_not_matter(p in p_values(), turn in 0..60usize) {
            let mut turned = p.clone();
            turned.rotate_left(turn.min(p.len()));
            let mut found = adjusted(&turned);
            found.rotate_right(turn.min(p.len()));
            prop_assert!(found.iter().zip(adjusted(&p)).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}
