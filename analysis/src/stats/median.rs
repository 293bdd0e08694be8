//! The median of a few runs, and its uncertainty.

use super::binomial;
use super::class_runs::ClassRuns;

/// Least coverage of an interval: that of [y_1, y_5] for five runs.
pub const LEAST_COVERAGE: f64 = 0.9375;

/// The fewest runs that have such an interval.
pub const FEWEST_OF_INTERVAL: usize = 5;

/// The median of one node's runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeMedian {
    /// Number of runs.
    pub runs: usize,
    /// ln seconds; for an even number of runs the mean of the middle two, see [`of_ascending`].
    pub median: f64,
    /// The run that represents the node, see [`position`]: its index among the node's runs as given; the first of
    /// equal ones.
    pub median_run: usize,
    /// The upper of the middle two runs; the same as `median_run` for an odd number of runs.
    pub upper_run: usize,
    /// ln seconds; most runs are slower: the second fastest of 5 to 9 runs, the lower end of the interval of more runs. Of
    /// fewer runs the median, because they do not tell.
    pub lower: f64,
    /// How far the true median may be below and above `median` (ln T). Below: to the r-th fastest run that is above the
    /// true median with a probability of at most 1 %, or else to the fastest run. Above likewise, but from five runs on
    /// at most to the second slowest run: a single slow run is no evidence.
    pub reach: [f64; 2],
    /// Contains the true median with the given coverage. `None` below five runs.
    pub interval: Option<Interval>,
}

/// Two runs with the true median between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// ln seconds.
    pub low: f64,
    /// ln seconds.
    pub high: f64,
    /// The probability that the true median is between them.
    pub coverage: f64,
}

/// The median of each node of a class.
pub fn of_nodes(class: &ClassRuns) -> Vec<NodeMedian> {
    let (mut ascending, mut ranks) = (Vec::new(), Ranks::default());
    let summary = |runs: &[f64]| {
        ascending.clear();
        ascending.extend_from_slice(runs);
        ascending.sort_unstable_by(f64::total_cmp);
        let Ranks { interval: interval_of, certain, .. } = *ranks.of(runs.len());
        let (low, high) = (ascending[(runs.len() - 1) / 2], ascending[runs.len() / 2]);
        let interval = |(from, to, coverage): (usize, usize, f64)| Interval {
            low: ascending[from],
            high: ascending[to],
            coverage,
        };
        let median_run = runs.iter().position(|time| *time == low).unwrap_or_default();
        let is_upper = |(run, time): (usize, &f64)| *time == high && run != median_run;
        let upper_run = match runs.len().is_multiple_of(2) {
            true => runs.iter().enumerate().position(is_upper).unwrap_or(median_run),
            false => median_run,
        };
        NodeMedian {
            runs: runs.len(),
            median: middle(low, high),
            median_run,
            upper_run,
            lower: interval_of.map_or(middle(low, high), |(from, ..)| ascending[from.max(1)]),
            reach: [
                middle(low, high) - ascending[certain],
                ascending[runs.len() - 1 - certain.max(usize::from(interval_of.is_some()))]
                    - middle(low, high),
            ],
            interval: interval_of.map(interval),
        }
    };
    class.nodes().map(summary).collect()
}

/// The indices that matter among this number of ascending runs. They are kept because most nodes of a class have
/// equally many runs.
#[derive(Default)]
struct Ranks {
    count: usize,
    interval: Option<(usize, usize, f64)>,
    /// Above the true median with a probability of at most 1 %; 0 if there is none.
    certain: usize,
}

impl Ranks {
    fn of(&mut self, count: usize) -> &Self {
        if self.count != count {
            *self = Self { count, interval: interval(count), certain: rank(count, 0.01).0.max(1) - 1 };
        }
        self
    }
}

/// The median of groups of values of which only the medians and the numbers of values are known: the median of the medians,
/// each as often as its group has values. The medians may have any order.
pub fn weighted(medians: &[f64], counts: &[usize]) -> f64 {
    let mut groups: Vec<(f64, usize)> = medians.iter().copied().zip(counts.iter().copied()).collect();
    groups.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let all: usize = groups.iter().map(|(_, count)| count).sum();
    let at = |place: usize| {
        let mut end = 0;
        let has = |(_, count): &&(f64, usize)| {
            end += count;
            place < end
        };
        groups.iter().find(has).map_or(f64::NAN, |(median, _)| *median)
    };
    middle(at(all.saturating_sub(1) / 2), at(all / 2))
}

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

fn middle(low: f64, high: f64) -> f64 {
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
        // The 41st and the 60th value contain the median with 94.3 % (binomial), the 42nd and the 59th with 91.1 %.
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
