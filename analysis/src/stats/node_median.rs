//! The median of a few runs, and its uncertainty.

use super::class_runs::ClassRuns;
use pmmpi::order_statistics::middle;
pub use pmmpi::order_statistics::{
    FEWEST_OF_INTERVAL, LEAST_COVERAGE, interval, of_ascending, position, rank,
};

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
    /// Index of the slower of the middle two runs; for an odd number of runs, the same as `median_run`.
    pub upper_run: usize,
    /// ln seconds: a time that most runs exceed. With 5 to 9 runs it is the second fastest run, with more
    /// runs the lower end of `interval`. With fewer than 5 runs it is the median, because so few runs show no
    /// such time.
    pub lower: f64,
    /// How far the true median may be below and above `median` (ln T). The lower end is the slowest run that
    /// is above the true median with a probability of at most 1 %, or else the fastest run. The upper end is
    /// found in the same way from the other side, with one difference: from five runs on, it is at most the
    /// second slowest run, because a single slow run is no evidence.
    pub reach: [f64; 2],
    /// Contains the true median with the given coverage. `None` below five runs.
    pub interval: Option<MedianInterval>,
}

/// Two runs with the true median between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MedianInterval {
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
        let interval = |(from, to, coverage): (usize, usize, f64)| MedianInterval {
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

/// The indices that matter among `count` ascending runs. They are kept for the next node, because most nodes
/// of a class have equally many runs.
#[derive(Default)]
struct Ranks {
    count: usize,
    interval: Option<(usize, usize, f64)>,
    /// The last run that is above the true median with a probability of at most 1 %; 0 if there is no such
    /// run.
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

/// The median of groups of values if only the median and the number of values of each group are known: the median of
/// the medians, where each median counts as often as its group has values. The medians may have any order.
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

#[cfg(test)]
mod tests {
    use super::super::binomial;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn many_values_have_an_interval_too() {
        for count in [999, 1000, 1001, 10_000, 1_000_000] {
            let (low, high, coverage) = interval(count).unwrap();
            assert_eq!(low + high, count - 1);
            assert!((coverage - (1.0 - 2.0 * binomial::below(count, 0.5, low + 1))).abs() < 1e-9);
            assert!(1.0 - 2.0 * binomial::below(count, 0.5, low + 2) < LEAST_COVERAGE);
        }
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
