//! At which places of a node a run differs from the other runs: cores, sockets or ranks.
//!
//! The test is the test of slow runs ([`super::slow_runs`]); each place has the role of a node. A place has a value in
//! each run, and the noise of values is estimated over all places together. Benjamini-Hochberg covers all places and
//! runs.

use super::class_runs::ClassRuns;
use super::resolution::Units;
use super::slow_runs::{SlowRunSettings, SlowRunTest, slow};
use super::{node_median, within_nodes};

/// A place at which a run differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowPlace {
    /// Index of the place.
    pub place: usize,
    /// Index of the run.
    pub run: usize,
    /// By how much the value is larger than the median over the runs: 0.5 is 50 %.
    pub more: f64,
}

/// The places where a run has a larger value than the other runs, by place and run. `values` has the
/// logarithms of each place's values, one per run; NaN if the place has none in this run. The function leaves
/// out a place that has values in fewer than half of the runs.
pub fn slow_places(values: &[Vec<f64>], settings: &SlowRunSettings) -> Vec<SlowPlace> {
    let mut all: Vec<f64> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    // The place and the runs of each part of `all`.
    let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
    for (place, values) in values.iter().enumerate() {
        let runs: Vec<usize> = (0..values.len()).filter(|run| values[*run].is_finite()).collect();
        if !runs.is_empty() && 2 * runs.len() >= values.len() {
            all.extend(runs.iter().map(|run| values[*run]));
            ends.push(all.len());
            parts.push((place, runs));
        }
    }
    let Some(class) = ClassRuns::new(&all, &ends) else { return Vec::new() };
    let medians = node_median::of_nodes(&class);
    let Some(sigma) = within_nodes::sigma(&class, &medians) else { return Vec::new() };
    let found = slow(&class, &medians, sigma, &Units::default(), settings);
    let of = |of: &SlowRunTest| {
        let (place, runs) = &parts[of.node];
        SlowPlace { place: *place, run: runs[of.run], more: of.slowdown }
    };
    found.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// Places with levels of their own, ten runs, noise of 1 %; in these runs and places, 60 % more.
    fn found(places: usize, more: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let mut random = Random::new(7);
        let values: Vec<Vec<f64>> = (0..places)
            .map(|place| {
                let level = 20.0 + random.normal();
                let more = |run| if more.contains(&(place, run)) { 0.47 } else { 0.0 };
                (0..10).map(|run| level + more(run) + 0.01 * random.normal()).collect()
            })
            .collect();
        let found = slow_places(&values, &SlowRunSettings::default());
        found.into_iter().map(|of| (of.place, of.run)).collect()
    }

    #[test]
    fn places_with_more_are_named_and_no_others() {
        assert_eq!(found(48, &[]), []);
        let some = [(3, 7), (4, 7), (20, 2)];
        assert_eq!(found(48, &some), some);
        let all: Vec<(usize, usize)> = (0..48).map(|place| (place, 5)).collect();
        assert_eq!(found(48, &all), all);
        assert_eq!(found(1, &[(0, 9)]), [(0, 9)]);
    }

    #[test]
    fn a_place_without_a_value_in_most_runs_is_left_out() {
        let mut values = vec![vec![1.0; 7]; 4];
        values[1][..4].fill(f64::NAN);
        values[2][0] = f64::NAN;
        (values[2][6], values[1][6]) = (1.5, 1.5);
        let found = slow_places(&values, &SlowRunSettings::default());
        assert_eq!(found.iter().map(|of| (of.place, of.run)).collect::<Vec<_>>(), [(2, 6)]);
        assert!((found[0].more - 0.5f64.exp_m1()).abs() < 1e-12);
        assert_eq!(slow_places(&[], &SlowRunSettings::default()), []);
    }
}
