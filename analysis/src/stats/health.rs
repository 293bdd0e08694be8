//! Whether a node has an unusually high count of hardware faults, such as throttling or memory errors.
//!
//! Such counts are 0 nearly everywhere, so they have no spread. A node has an unusual count under two conditions. The
//! count per second is clearly higher than the usual count per second of the faster half of the class. And hardly any
//! node of this half has such a high count per second. The counts are per second, because a slow run counts for a
//! longer time. The slower half is no reference: several nodes may be slow for the same reason.

/// A count is unusual only if at most one in this number of nodes of the faster half has such a high count.
const FEW: usize = 20;
/// With fewer nodes in the faster half, the usual count is unknown.
const LEAST: usize = 3;
/// An unusual count is more than this many times the usual count.
const TIMES: f64 = 2.0;
/// An unusual count is more than this many standard deviations above the usual count. The standard deviation
/// is that of independent events (Poisson).
const DEVIATIONS: f64 = 4.0;

/// The usual values of one count in a class.
#[derive(Clone, Debug, Default)]
pub struct HealthColumn {
    /// Counts per second of the faster half, ascending.
    faster: Vec<f64>,
}

impl HealthColumn {
    /// `counts` has the count of each node (NaN if unknown), `ln_times` its time (ln s).
    pub fn new(counts: &[f64], ln_times: &[f64]) -> Self {
        let known = ln_times.iter().copied().zip(counts.iter().copied());
        let mut known: Vec<(f64, f64)> = known.filter(|(_, count)| !count.is_nan()).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        known.truncate(known.len().div_ceil(2));
        let mut faster: Vec<f64> = known.into_iter().map(|(time, count)| count / time.exp()).collect();
        faster.sort_by(f64::total_cmp);
        Self { faster }
    }

    /// The usual count in this time (ln s), from the median of the faster half. `None` if this half has too
    /// few nodes.
    pub fn usual(&self, ln_time: f64) -> Option<f64> {
        (self.faster.len() >= LEAST).then(|| self.faster[(self.faster.len() - 1) / 2] * ln_time.exp())
    }

    /// True if this count is unusually high for this time (ln s).
    pub fn is_unusual(&self, count: f64, ln_time: f64) -> bool {
        let per_second = count / ln_time.exp();
        let as_many = self.faster.len() - self.faster.partition_point(|usual| *usual < per_second);
        let is_more = |usual: f64| count > TIMES * usual && count - usual > DEVIATIONS * usual.sqrt();
        count > 0.0 && self.usual(ln_time).is_some_and(is_more) && FEW * as_many <= self.faster.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_the_faster_nodes_do_not_have_is_unusual() {
        // Nodes 8 and 9 are slow, and both throttle.
        let times = [1.0, 1.01, 1.0, 1.02, 1.0, 1.01, 1.0, 1.0, 1.1, 1.2].map(f64::ln);
        let mut counts = [0.0; 10];
        (counts[8], counts[9]) = (200.0, 214.0);
        let column = HealthColumn::new(&counts, &times);
        assert_eq!(column.usual(times[8]), Some(0.0));
        let is_unusual = |column: &HealthColumn, count: f64| column.is_unusual(count, times[9]);
        assert!(is_unusual(&column, 214.0) && is_unusual(&column, 1.0) && !is_unusual(&column, 0.0));
        // One of the fast nodes has as many per second.
        counts[0] = 214.0;
        let column = HealthColumn::new(&counts, &times);
        assert!(!is_unusual(&column, 214.0) && is_unusual(&column, 300.0));
        assert!(
            !HealthColumn::new(&[0.0, 0.0, 9.0], &[0.0, 0.1, 0.2]).is_unusual(9.0, 0.2),
            "two nodes show nothing"
        );
        assert!(!HealthColumn::new(&[f64::NAN; 8], &[0.0; 8]).is_unusual(9.0, 0.0));
    }

    #[test]
    fn chance_and_a_longer_run_are_not_unusual() {
        let times: Vec<f64> = (0..8).map(|node| 0.01 * f64::from(node)).collect();
        let counts = [100.0, 93.0, 107.0, 98.0, 102.0, 95.0, 104.0, 113.0];
        let column = HealthColumn::new(&counts, &times);
        assert!(!column.is_unusual(113.0, 0.07), "more than all others, but not clearly");
        assert!(column.is_unusual(250.0, 0.07));
        // Twice as long, and twice as many.
        assert!(!column.is_unusual(215.0, 2f64.ln()));
        let few = HealthColumn::new(&[2.0; 8], &times);
        assert!(!few.is_unusual(5.0, 0.0) && few.is_unusual(9.0, 0.0), "few events vary by chance");
    }
}
