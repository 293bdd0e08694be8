//! Reasons of the answers for repaired nodes, in English.

use crate::report::gate::{FEWEST_FOR_EACH, FEWEST_OTHERS, FEWEST_RUNS, FEWEST_WITH_HISTORY};
use crate::verdicts::fitness::GateReason;
use pmmpi::text::count;
use std::fmt::{Display, Formatter, Result};

/// Empty if the node is fit.
impl Display for GateReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::NothingMissing => Ok(()),
            Self::NoPart => f.write_str("it did not take part in the screen"),
            Self::WrongResult { kernel } => write!(f, "{} computed a wrong result", or_any(kernel)),
            Self::Failed { kernel } => write!(f, "{} failed", or_any(kernel)),
            Self::SlowerThanClass { kernel } => {
                write!(f, "in {}, the node is slower than its class", or_any(kernel))
            }
            Self::SlowerThanBefore { kernel } => {
                write!(f, "in {}, the node is slower than in earlier screens", or_any(kernel))
            }
            Self::MaybeSlow { kernel } => write!(f, "in {}, the node may be slow", or_any(kernel)),
            Self::MuchFaster { kernel } => {
                write!(f, "in {}, the node is much faster than its class", or_any(kernel))
            }
            Self::WrongClock { host, clock_of } => {
                let clock_of = clock_of.as_deref().unwrap_or("the first node of this screen");
                write!(
                    f,
                    "the archive has sessions of {host} that began after this screen. By the clock of the host \
                     that makes this report, these sessions began in the future, so a clock is wrong. If the \
                     clock of {clock_of} is wrong, correct this clock and repeat the screen. Otherwise use \
                     another archive"
                )
            }
            Self::NotRun { kernel } => write!(f, "{kernel} did not run on this node"),
            Self::NotCompared { kernel } => write!(
                f,
                "pmmpi cannot compare {kernel} on this node with other nodes of its class: add healthy nodes of the \
                 same class"
            ),
            Self::FewRuns { kernel, runs } => write!(
                f,
                "{kernel} has only {}, but --gate needs {FEWEST_RUNS}: add rounds (--rounds)",
                count(*runs, "run")
            ),
            Self::FewOthers { kernel, others, limit } => write!(
                f,
                "apart from the nodes of --gate, {kernel} has the verdict OK on only {} of the same class, but a \
                 decision needs {FEWEST_OTHERS}: add healthy nodes. {FEWEST_WITH_HISTORY} nodes are enough if \
                 this node was less than {:.0} % slower than its class in at least half of the earlier screens (bad \
                 sessions, and screens before a maintenance of the node, do not count)",
                count(*others, "node"),
                limit * 100.0
            ),
            Self::FewOthersForEach { kernel, repaired, others, needed } => write!(
                f,
                "--gate names {} of this class. So a decision needs {needed} other nodes of the class \
                 ({FEWEST_FOR_EACH} for each node of --gate) with the verdict OK in {kernel}, but there {} only \
                 {others}: add healthy nodes, or name fewer nodes",
                count(*repaired, "node"),
                if *others == 1 { "is" } else { "are" }
            ),
            Self::MaybeAboveLimit { kernel, slower_by_at_most, limit } => write!(
                f,
                "in {kernel}, the node may be up to {:.1} % slower than its class, but --gate needs less than \
                 {:.0} %: add rounds (--rounds) or healthy nodes",
                slower_by_at_most * 100.0,
                limit * 100.0
            ),
            Self::UnknownSlowdown { kernel } => write!(
                f,
                "the times of {kernel} do not show how slow the node may be: add rounds (--rounds) or healthy nodes"
            ),
        }
    }
}

fn or_any(kernel: &Option<String>) -> &str {
    kernel.as_deref().unwrap_or("a kernel")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_what_is_known() {
        let fma = || Some("fma".to_owned());
        let clock = |clock_of: Option<&str>| GateReason::WrongClock {
            host: "n1".to_owned(),
            clock_of: clock_of.map(str::to_owned),
        };
        assert_eq!(GateReason::NothingMissing.to_string(), "");
        assert_eq!(GateReason::WrongResult { kernel: fma() }.to_string(), "fma computed a wrong result");
        assert_eq!(GateReason::Failed { kernel: None }.to_string(), "a kernel failed");
        assert_eq!(
            GateReason::SlowerThanBefore { kernel: fma() }.to_string(),
            "in fma, the node is slower than in earlier screens"
        );
        assert!(clock(Some("n2")).to_string().contains(". If the clock of n2 is wrong, correct this clock"));
        assert!(
            clock(None)
                .to_string()
                .contains("If the clock of the first node of this screen is wrong, correct")
        );
    }
}
