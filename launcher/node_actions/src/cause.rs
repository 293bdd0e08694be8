//! Why pmmpi marks a node.

use crate::measurement::Measurement;
use crate::reason;

/// A finding on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkCause {
    /// The text for Slurm.
    pub reason: String,
    /// What found the node slow or wrong; older logs do not have it.
    pub found_by: Vec<Measurement>,
}

impl MarkCause {
    /// True if a gate that shows that all of `known` are repaired also shows it of this one. The numbers of a reason differ
    /// in each screen.
    pub(crate) fn is_covered_by(&self, known: &[Self]) -> bool {
        let mut measurements = self.found_by.iter();
        let is_known = |of: &Measurement| {
            known.iter().flat_map(|cause| &cause.found_by).any(|known| of.is_repeated_by(known))
        };
        known.iter().any(|cause| reason::subject(&cause.reason) == reason::subject(&self.reason))
            && measurements.all(is_known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(reason: &str, found_by: &[(&str, &str)]) -> MarkCause {
        let found_by = found_by.iter().map(|(kernel, memory)| Measurement {
            kernel: (*kernel).to_owned(),
            options: vec!["--memory".to_owned(), (*memory).to_owned()],
            ..Measurement::default()
        });
        MarkCause { reason: reason.to_owned(), found_by: found_by.collect() }
    }

    #[test]
    fn the_same_finding_of_another_screen_is_known() {
        let known = [cause("pmmpi: slow-memory: +8.1 % (at least 7.4 %) 1-a", &[("triad", "85%")])];
        for (other, is_known) in [
            (cause("pmmpi: slow-memory: +9.9 % 2-b", &[("triad", "85%")]), true),
            (cause("pmmpi: slow-memory: +9.9 % 2-b", &[("triad", "1G")]), false),
            (cause("pmmpi: slow-memory: +9.9 % 2-b", &[("triad", "85%"), ("latency", "85%")]), false),
            (cause("pmmpi: wrong-result: triad 2-b", &[("triad", "85%")]), false),
        ] {
            assert_eq!(other.is_covered_by(&known), is_known, "{other:?}");
        }
        assert!(!known[0].is_covered_by(&[]));
    }
}
