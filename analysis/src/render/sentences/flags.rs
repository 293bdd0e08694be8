//! What raises a flag of a run or of a region, in English.

use super::{joined, listed};
use crate::report::flag_findings::{Finding, RunFinding, UnequalFact};
use crate::warnings::FirstFew;
use pmmpi::RankId;
use pmmpi::text::count;
use std::fmt::{Display, Formatter, Result};

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Rule { text } => f.write_str(text),
            Self::Run(finding) => finding.fmt(f),
        }
    }
}

impl Display for RunFinding {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::UnboundRanks(ranks) => write!(
                f,
                "{} may run on all hardware threads of {}: bind ranks, for example with mpirun --bind-to core or srun \
                 --cpu-bind=cores",
                described(ranks),
                if ranks.all == 1 { "its node" } else { "their node" },
            ),
            Self::OverlappingRanks(ranks) => write!(
                f,
                "{} {} bound to hardware threads that other ranks may use, too: check how the launcher binds the \
                 ranks",
                described(ranks),
                if ranks.all == 1 { "is" } else { "are" }
            ),
            Self::MoreRanksThanCores { node, ranks, cores, hardware_threads, more_nodes } => {
                write!(f, "{ranks} ranks of {node} share {}", count(*cores, "core"))?;
                if hardware_threads != cores {
                    write!(f, " with {}", count(*hardware_threads, "hardware thread"))?;
                }
                match more_nodes {
                    0 => Ok(()),
                    more => write!(f, "; ranks of {} share cores, too", count(*more, "more node")),
                }
            }
            Self::MovedRanks(ranks) => write!(f, "{} began and ended on different cores", described(ranks)),
            Self::UnequalNodes(facts) => {
                let more = |more| format!("; {}", count(more, "more fact"));
                write!(f, "nodes differ: {}", joined(facts, difference, "; ", more))
            }
            Self::LowRunningShare(metrics) => write!(
                f,
                "{}: counted less than 20 % of the time, so pmmpi draws no conclusion from {}; count fewer groups at \
                 once, or use pmmpi repeat --groups",
                named(metrics),
                if metrics.all == 1 { "it" } else { "them" }
            ),
            Self::BelowTurboStep { hz, expected_hz, active_cores, node } => {
                let what = match active_cores {
                    None => "the configured maximum frequency".to_owned(),
                    Some(cores) => format!("the turbo step for {} per socket", count(*cores, "active core")),
                };
                write!(
                    f,
                    "cores ran at {:.2} GHz, but {what} is {:.2} GHz ({node}): look at power and temperature, at wide \
                     vector instructions (they lower the turbo step), and at other programs on the sockets",
                    hz / 1e9,
                    expected_hz / 1e9,
                )
            }
            Self::ShortEntries { mean_entry_ns } => write!(
                f,
                "an entry took {:.1} us on average, so its counts contain a part of the system calls that read the \
                 counters; measure such short work with a probe (pmmpi_probe_begin)",
                mean_entry_ns / 1e3
            ),
        }
    }
}

/// For example "microcode is 0x1, but 0x2 on n3".
fn difference(fact: &UnequalFact) -> String {
    let others = fact.others.iter().map(|(value, nodes)| format!("{} on {}", brief(value), named(nodes)));
    format!("{} is {}, but {}", fact.name, brief(&fact.usual), others.collect::<Vec<String>>().join(", "))
}

/// "rank 3", or "5 ranks (0, 1, 2, 3, ...)".
fn described(ranks: &FirstFew<RankId>) -> String {
    match &ranks.first[..] {
        [rank] if ranks.all == 1 => format!("rank {rank}"),
        _ => format!("{} ({})", count(ranks.all, "rank"), listed(ranks, RankId::to_string)),
    }
}

/// For example "n1, n2, n3, n4 and 5 more".
fn named(names: &FirstFew<String>) -> String {
    joined(names, String::clone, ", ", |more| format!(" and {more} more"))
}

/// The beginning of a long value, such as the kernel's options.
fn brief(value: &str) -> String {
    const LONGEST: usize = 60;
    let more = if value.chars().count() > LONGEST { "..." } else { "" };
    value.chars().take(LONGEST).collect::<String>() + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_have_their_first_entries_and_how_many_there_are() {
        let ranks = |ranks: &[u32], all| {
            RunFinding::MovedRanks(FirstFew { first: ranks.iter().copied().map(RankId).collect(), all })
                .to_string()
        };
        let end = "began and ended on different cores";
        assert_eq!(ranks(&[3], 1), format!("rank 3 {end}"));
        assert_eq!(ranks(&[0, 1, 2, 3], 4), format!("4 ranks (0, 1, 2, 3) {end}"));
        assert_eq!(ranks(&[0, 1, 2, 3], 5), format!("5 ranks (0, 1, 2, 3, ...) {end}"));

        let names = |names: &[&str], all| FirstFew {
            first: names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>(),
            all,
        };
        let fact = UnequalFact {
            name: "microcode".to_owned(),
            usual: "0x1".to_owned(),
            others: vec![
                ("0x2".to_owned(), names(&["a", "b", "c", "d"], 6)),
                ("0x3".to_owned(), names(&["e"], 1)),
            ],
        };
        assert_eq!(
            RunFinding::UnequalNodes(FirstFew { first: vec![fact], all: 3 }).to_string(),
            "nodes differ: microcode is 0x1, but 0x2 on a, b, c, d and 2 more, 0x3 on e; 2 more facts"
        );
    }
}
