//! Warnings about two sets of runs, in English.

use super::listed;
use crate::warnings::ComparisonWarning;
use crate::warnings::of_comparisons::Unpaired;
use pmmpi::text::count;
use std::fmt::{Display, Formatter, Result};

impl Display for ComparisonWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::SharedRuns { runs } => {
                write!(f, "A and B have {} in common: the comparison does not use them", count(*runs, "run"))
            }
            Self::NotInTurns { apart, comparisons } => write!(
                f,
                "A and B were not measured in turns (in {apart} of {}): a change of the machine between A and B \
                 looks like a difference between A and B",
                count(*comparisons, "comparison")
            ),
            Self::UnpairedRuns { a, b } => {
                let of = |(set, unpaired): (&str, &Unpaired)| {
                    let Unpaired { runs, nodes } = unpaired;
                    (*runs > 0).then(|| {
                        format!("{} of {set} ({})", count(*runs, "run"), listed(nodes, String::clone))
                    })
                };
                let both: Vec<String> = [("A", a), ("B", b)].into_iter().filter_map(of).collect();
                write!(f, "runs without a partner in the other set: {}", both.join(", "))
            }
            Self::FewRuns { nodes } => write!(
                f,
                "on {} ({}), A or B has too few runs to show how much the times vary; in a comparison of only one \
                 node, 3 runs of A and 3 runs of B are enough",
                count(nodes.all, "node"),
                listed(nodes, String::clone)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warnings::FirstFew;

    fn nodes(names: &[&str]) -> FirstFew<String> {
        FirstFew::of(names.iter(), 3, |name| (*name).to_owned())
    }

    /// docs/warnings.md has these examples.
    #[test]
    fn the_examples_are_what_pmmpi_says() {
        let a = Unpaired { runs: 14, nodes: nodes(&["n03", "n07"]) };
        let b = Unpaired { runs: 7, nodes: nodes(&["n12"]) };
        for warning in [
            ComparisonWarning::SharedRuns { runs: 7 },
            ComparisonWarning::NotInTurns { apart: 3, comparisons: 3 },
            ComparisonWarning::UnpairedRuns { a, b },
        ] {
            assert_eq!(warning.to_string(), warning.code().example());
        }
    }

    #[test]
    fn warnings_name_the_first_nodes() {
        let few = ComparisonWarning::FewRuns { nodes: nodes(&["n1", "n2", "n3", "n4"]) };
        assert_eq!(
            few.to_string(),
            "on 4 nodes (n1, n2, n3, ...), A or B has too few runs to show how much the times vary; in a comparison \
             of only one node, 3 runs of A and 3 runs of B are enough"
        );
        let a = Unpaired { runs: 0, nodes: nodes(&[]) };
        let b = Unpaired { runs: 1, nodes: nodes(&["n1+n2"]) };
        assert_eq!(
            ComparisonWarning::UnpairedRuns { a, b }.to_string(),
            "runs without a partner in the other set: 1 run of B (n1+n2)"
        );
    }
}
