//! The runs of nodes that ought to be equally fast.

/// The times of the runs of all nodes of a class, as natural logarithms, so that a difference stands for a
/// ratio.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassRuns<'a> {
    times: &'a [f64],
    ends: &'a [usize],
}

impl<'a> ClassRuns<'a> {
    /// `times` has ln seconds, node after node, and `ends` has the end of each node's runs in `times`. Times
    /// must be finite. The runs of a node may have any order; results identify a run by its place in this
    /// order. `None` if a node has no run or `ends` does not fit `times`.
    pub fn new(times: &'a [f64], ends: &'a [usize]) -> Option<Self> {
        let fits = ends.last().copied().unwrap_or(0) == times.len();
        let ascends = ends.first() != Some(&0) && ends.windows(2).all(|pair| pair[0] < pair[1]);
        (fits && ascends).then_some(Self { times, ends })
    }

    /// The runs of each node.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &'a [f64]> + use<'a> {
        let (times, mut from) = (self.times, 0);
        self.ends.iter().map(move |end| &times[std::mem::replace(&mut from, *end)..*end])
    }

    /// Number of runs of all nodes.
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
