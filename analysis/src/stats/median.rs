//! The median of a few runs, and how sure it is.

use super::binomial;
use super::class_runs::ClassRuns;

/// How sure a node's lower end is, where its runs are enough for that: P(too high) is at most this.
pub const LEAST_ALPHA: f64 = 0.01;

/// The least coverage of an interval that is given: what [y_1, y_5] has for five runs.
pub const LEAST_COVERAGE: f64 = 0.9375;

/// The middle of one node's runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeMedian {
    /// How many there are.
    pub runs: usize,
    /// ln seconds: of an even number the mean of the middle two, [`of_ascending`].
    pub median: f64,
    /// The run that stands for the node, see [`position`]: its place among the node's runs as given, the
    /// first of equal ones.
    pub median_run: usize,
    /// Holds the true median. `None` below five runs.
    pub interval: Option<Interval>,
    /// ln seconds that the true median is not below, but for a probability of [`LEAST_ALPHA`]: the
    /// r-th smallest run, r the largest with P(Bin(k, 1/2) < r) at most that. Below seven runs there is no
    /// such r: then it is the smallest run, and less sure.
    pub least: f64,
}

/// Two runs between which the true median lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// ln seconds.
    pub low: f64,
    /// ln seconds.
    pub high: f64,
    /// With this probability.
    pub coverage: f64,
}

/// Of each node of a class.
pub fn of_nodes(class: &ClassRuns) -> Vec<NodeMedian> {
    let (mut ascending, mut ranks) = (Vec::new(), Ranks::default());
    let summary = |runs: &[f64]| {
        ascending.clear();
        ascending.extend_from_slice(runs);
        ascending.sort_unstable_by(f64::total_cmp);
        let Ranks { interval: interval_of, least, .. } = *ranks.of(runs.len());
        let (low, high) = (ascending[(runs.len() - 1) / 2], ascending[runs.len() / 2]);
        let interval = |(from, to, coverage): (usize, usize, f64)| Interval {
            low: ascending[from],
            high: ascending[to],
            coverage,
        };
        NodeMedian {
            runs: runs.len(),
            median: middle(low, high),
            median_run: runs.iter().position(|time| *time == low).unwrap_or_default(),
            interval: interval_of.map(interval),
            least: ascending[least],
        }
    };
    class.nodes().map(summary).collect()
}

/// Which of so many ascending runs matter: most nodes of a class have equally many.
#[derive(Default)]
struct Ranks {
    count: usize,
    interval: Option<(usize, usize, f64)>,
    least: usize,
}

impl Ranks {
    fn of(&mut self, count: usize) -> &Self {
        if self.count != count {
            let least = rank(count, LEAST_ALPHA).0.saturating_sub(1);
            *self = Self { count, interval: interval(count), least };
        }
        self
    }
}

/// The median run of ascending values is an actual run, so that what else is known of it can be shown:
/// for an even number the lower of the middle two.
pub fn position(count: usize) -> Option<usize> {
    count.checked_sub(1).map(|last| last / 2)
}

/// The median of ascending values: for an even number the mean of the middle two, which is as likely too
/// high as too low. `None` of none.
pub fn of_ascending(values: &[f64]) -> Option<f64> {
    let low = values.get(position(values.len())?)?;
    let high = values.get(values.len() / 2)?;
    Some(middle(*low, *high))
}

fn middle(low: f64, high: f64) -> f64 {
    low + (high - low) / 2.0
}

/// Which ascending values, the j-th from either end, hold the true median, and with what probability:
/// the narrowest pair with at least [`LEAST_COVERAGE`]. `None` below five values.
///
/// The number of values below the median is Binomial(k, 1/2), so the pair holds it with probability
/// 1 - 2 P(Bin(k, 1/2) < j): T. Hoefler and R. Belli, "Scientific Benchmarking of Parallel Computing
/// Systems", SC15, section 3.1.3.
pub fn interval(count: usize) -> Option<(usize, usize, f64)> {
    let (rank, below) = rank(count, (1.0 - LEAST_COVERAGE) / 2.0);
    let low = rank.checked_sub(1)?;
    Some((low, count - rank, 1.0 - 2.0 * below))
}

/// The largest r (from 1) for which the r-th smallest of `count` values lies above the true median with
/// a probability of at most `alpha`, and that probability, P(Bin(k, 1/2) < r). r = 0 where there is none.
pub fn rank(count: usize, alpha: f64) -> (usize, f64) {
    // Exact from the first value where 2^-k is a number; else from 30 standard deviations below the
    // median, where nothing is lost.
    let first = match count {
        0..1000 => 0,
        _ => (count as f64 / 2.0 - 15.0 * (count as f64).sqrt()) as usize,
    };
    let mut probability = match first {
        0 => 0.5f64.powi(count as i32),
        _ => binomial::probability(count, 0.5, first),
    };
    let (mut rank, mut below) = (first, 0.0);
    while rank < count && below + probability <= alpha {
        below += probability;
        probability *= (count - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    (rank, below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        for count in [999, 1000, 1001, 10_000, 1_000_000] {
            let (low, high, coverage) = interval(count).unwrap();
            assert_eq!(low + high, count - 1);
            assert!((coverage - (1.0 - 2.0 * binomial::below(count, 0.5, low + 1))).abs() < 1e-9);
            assert!(1.0 - 2.0 * binomial::below(count, 0.5, low + 2) < LEAST_COVERAGE);
        }
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

    proptest! {
        #[test]
        fn a_nodes_median_is_found_by_sorting(
            nodes in proptest::collection::vec(proptest::collection::vec(0..9i32, 1..24), 1..9)
        ) {
            let nodes: Vec<Vec<f64>> =
                nodes.into_iter().map(|runs| runs.into_iter().map(f64::from).collect()).collect();
            let ends: Vec<usize> =
                nodes.iter().scan(0, |end, runs| { *end += runs.len(); Some(*end) }).collect();
            let times = nodes.concat();
            let found = of_nodes(&ClassRuns::new(&times, &ends).unwrap());
            prop_assert_eq!(found.len(), nodes.len());
            for (node, runs) in found.iter().zip(&nodes) {
                let mut sorted = runs.clone();
                sorted.sort_by(f64::total_cmp);
                let run = sorted[(runs.len() - 1) / 2];
                prop_assert_eq!(runs.iter().position(|time| *time == run), Some(node.median_run));
                prop_assert_eq!(Some(node.median), of_ascending(&sorted));
                prop_assert_eq!(node.interval.map(|i| (i.low, i.high)),
                    interval(runs.len()).map(|(low, high, _)| (sorted[low], sorted[high])));
                prop_assert_eq!(node.least, sorted[rank(runs.len(), LEAST_ALPHA).0.max(1) - 1]);
            }
        }

        #[test]
        fn the_interval_is_the_narrowest(count in 1..3000usize) {
            let coverage = |low: usize| 1.0 - 2.0 * binomial::below(count, 0.5, low + 1);
            let covers = |low: usize| coverage(low) >= LEAST_COVERAGE - 1e-12;
            match interval(count) {
                None => prop_assert!(!covers(0)),
                Some((low, high, _)) => {
                    prop_assert!(low <= high && covers(low) && !(covers(low + 1)));
                }
            }
        }
    }
}
