//! Counts of hardware that did not work as it should: whether a node has unusually many.
//!
//! Such counts are 0 nearly everywhere, so they have no spread. A node has unusually many if hardly any of the faster half
//! of its class has as many. The slower half is no reference: several nodes may be slow for the same reason.

/// At most one in so many nodes of the faster half has as many.
const FEW: usize = 20;
/// With fewer nodes in the faster half, nothing is usual.
const LEAST: usize = 2;

/// A count of a class.
#[derive(Clone, Debug, Default)]
pub struct HealthColumn {
    /// The counts of the faster half, ascending.
    faster: Vec<f64>,
}

impl HealthColumn {
    /// `counts` has the count of each node (NaN if unknown), `times` its time in any unit.
    pub fn new(counts: &[f64], times: &[f64]) -> Self {
        let mut known: Vec<(f64, f64)> =
            times.iter().copied().zip(counts.iter().copied()).filter(|(_, count)| !count.is_nan()).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        known.truncate(known.len().div_ceil(2));
        let mut faster: Vec<f64> = known.into_iter().map(|(_, count)| count).collect();
        faster.sort_by(f64::total_cmp);
        Self { faster }
    }

    /// The median of the faster half; `None` if it has too few nodes.
    pub fn usual(&self) -> Option<f64> {
        (self.faster.len() >= LEAST).then(|| self.faster[(self.faster.len() - 1) / 2])
    }

    /// True if this count is unusually high.
    pub fn is_unusual(&self, count: f64) -> bool {
        let below = self.faster.partition_point(|usual| *usual < count);
        let as_many = self.faster.len() - below;
        count > 0.0 && self.usual().is_some_and(|usual| count > usual) && FEW * as_many <= self.faster.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_the_faster_nodes_do_not_have_is_unusual() {
        // Nodes 8 and 9 are slow, and both throttle.
        let times = [1.0, 1.01, 1.0, 1.02, 1.0, 1.01, 1.0, 1.0, 1.1, 1.2];
        let mut counts = [0.0; 10];
        (counts[8], counts[9]) = (200.0, 214.0);
        let column = HealthColumn::new(&counts, &times);
        assert_eq!(column.usual(), Some(0.0));
        assert!(column.is_unusual(214.0) && column.is_unusual(200.0) && !column.is_unusual(0.0));
        // One of the fast nodes has as many.
        counts[0] = 214.0;
        let column = HealthColumn::new(&counts, &times);
        assert!(!column.is_unusual(214.0) && column.is_unusual(215.0));
        assert!(!HealthColumn::new(&[0.0, 9.0], &[1.0, 2.0]).is_unusual(9.0), "one other node shows nothing");
        assert!(!HealthColumn::new(&[f64::NAN; 4], &[1.0; 4]).is_unusual(9.0));
    }
}
