//! The runs of nodes that ought to be equal.

/// Nodes of one class and their runs: natural logarithms of times, so that a difference is a ratio.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassRuns<'a> {
    times: &'a [f64],
    ends: &'a [usize],
}

impl<'a> ClassRuns<'a> {
    /// `times` has ln seconds, node after node, and `ends` where in it each node's runs end. Times are
    /// finite; runs of a node come in any order, which is theirs from then on. `None` where a node has no
    /// run or `ends` does not fit `times`.
    pub fn new(times: &'a [f64], ends: &'a [usize]) -> Option<Self> {
        let fits = ends.last().copied().unwrap_or(0) == times.len();
        let ascends = ends.first() != Some(&0) && ends.windows(2).all(|pair| pair[0] < pair[1]);
        (fits && ascends).then_some(Self { times, ends })
    }

    /// Each node's runs.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        let (times, mut from) = (self.times, 0);
        self.ends.iter().map(move |end| &times[std::mem::replace(&mut from, *end)..*end])
    }

    /// Runs of all nodes.
    pub fn run_count(&self) -> usize {
        self.times.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_runs() {
        let times = [1.0, 2.0, 3.0];
        let nodes = |ends: &[usize]| {
            ClassRuns::new(&times, ends).map(|class| class.nodes().map(<[f64]>::to_vec).collect())
        };
        assert_eq!(nodes(&[2, 3]), Some(vec![vec![1.0, 2.0], vec![3.0]]));
        for wrong in [&[][..], &[0, 3], &[2, 2, 3], &[2], &[2, 4], &[3, 2]] {
            assert_eq!(nodes(wrong), None::<Vec<Vec<f64>>>, "{wrong:?}");
        }
        assert!(ClassRuns::new(&[], &[]).is_some_and(|class| class.nodes().len() == 0));
    }
}
