//! Warnings about one run of pmmpi, in English.

use super::{joined, percent};
use crate::warnings::RunWarning;
use crate::warnings::of_runs::RanksAtEnd;
use pmmpi::text::{count, printable, seconds_between};
use pmmpi::{RankId, probes, regions};
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

impl Display for RunWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::FailedRun { reason } | Self::SeparateJobs { reason } => f.write_str(reason),
            Self::IncompleteRun { ranks, completed, lost, unknown } => {
                let ranks = count(*ranks as usize, "rank");
                write!(
                    f,
                    "{completed} of {ranks} reached the end barrier; {lost} did not, but left data; {unknown} \
                     left no data"
                )
            }
            Self::NodeUnknown { nodes } => {
                write!(f, "the run has no record of the hardware of {}", nodes.join(", "))
            }
            Self::NodeChanged { nodes, changed } => {
                let more = |more| format!(" and {}", count(more, "more node"));
                let their = if nodes.all == 1 { "its" } else { "their" };
                let (named, changed) = (joined(nodes, String::clone, ", ", more), printable(changed));
                write!(f, "{named} changed after pmmpi had read {their} facts: {changed}")
            }
            Self::NoStamps { rank } => write!(f, "rank {rank} has no time stamps"),
            Self::InconsistentClocks { max_drift_ppm, least_ppm, suspects } => {
                let explanation = match least_ppm {
                    Some(least) => format!("only rate errors of at least {least:.1} ppm would explain them"),
                    None => "no rate error would explain them".to_owned(),
                };
                let suspects = if suspects.is_empty() { "unknown".to_owned() } else { suspects.join(", ") };
                write!(
                    f,
                    "clocks with rate errors of at most {max_drift_ppm} ppm do not explain the stamps; \
                     {explanation}; suspect clocks: {suspects}"
                )
            }
            Self::WideBounds { lower_ns, upper_ns } => {
                let (lower, upper) = seconds_between(*lower_ns, *upper_ns);
                let width = upper_ns.saturating_sub(*lower_ns) as f64;
                let apart = 100.0 * width / *upper_ns as f64;
                write!(f, "the bounds {lower} and {upper} s are {apart:.0} % apart")
            }
            Self::Overhead { overhead_ns } => {
                let overhead_s = *overhead_ns as f64 / 1e9;
                write!(f, "pmmpi itself took {overhead_s:.6} s in addition to the work")
            }
            Self::SlewedClock { node, slew_ppm, max_drift_ppm } => {
                let (slew, pace) = (slew_ppm.abs(), if *slew_ppm > 0.0 { "fast" } else { "slow" });
                write!(
                    f,
                    "the clock of {node} was {slew:.0} ppm too {pace} during the run; the bounds of the run \
                     are valid for rate errors of up to {max_drift_ppm:.0} ppm"
                )
            }
            Self::LateNode { node, rank, others, lateness_s, share } => {
                let others = match *others {
                    1 => "the other node".to_owned(),
                    others => format!("the other {others} nodes"),
                };
                let [least, most] = lateness_s.map(|s| (s * 1e9) as i64);
                let (least, _) = seconds_between(least, most);
                let share = percent(*share);
                write!(
                    f,
                    "{others} waited at least {least} s ({share} of the elapsed time) for {node}; rank {rank} \
                     of this node came last"
                )
            }
            Self::RegionsLeftOut { entries } => {
                let entries = match *entries {
                    1 => "1 entry of a region".to_owned(),
                    many => format!("{many} entries of regions"),
                };
                let most = regions::MOST;
                write!(
                    f,
                    "pmmpi did not count {entries}: it counts only the first {most} region names and 64 levels \
                     of nesting, and leaves out entries with a failed barrier"
                )
            }
            Self::Paused { paused, ranks, longest_rank, longest_ns } => {
                let (ranks, longest_s) = (count(*ranks as usize, "rank"), *longest_ns as f64 / 1e9);
                write!(
                    f,
                    "MPI_Pcontrol(0) paused the regions on {paused} of {ranks}; the longest pause was on rank \
                     {longest_rank}: {longest_s:.6} s"
                )
            }
            Self::ExpectedOfNothing { parts } => {
                let parts: Vec<String> = parts.iter().map(|part| format!("`{part}`")).collect();
                let parts = parts.join(", ");
                write!(f, "--expect names {parts}, but the program has no such region or probe")
            }
            Self::EndedInRegion { places } => {
                write!(f, "places of the ranks when the job ended: {}", by_place(places))
            }
            Self::ProbesLeftOut { entries } => {
                let missing = match *entries {
                    1 => "1 entry of probes is missing".to_owned(),
                    many => format!("{many} entries of probes are missing"),
                };
                let most = probes::MOST - 1;
                write!(
                    f,
                    "{missing}: pmmpi records only the first {most} names of a thread, 32 levels of nesting, and \
                     entries that end"
                )
            }
            Self::UncountedEvents { uncounted } => {
                let said: Vec<String> = uncounted.iter().map(ToString::to_string).collect();
                f.write_str(&said.join("; "))
            }
            Self::UnusableCounters { events } => {
                write!(f, "{}: unusable on this processor, according to `pmmpi validate`", events.join(", "))
            }
        }
    }
}

/// The ranks of each place, in the order of the places' words.
fn by_place(places: &[RanksAtEnd]) -> String {
    let words = |of: &RanksAtEnd| of.place.as_ref().map_or("elsewhere".to_owned(), ToString::to_string);
    let places: BTreeMap<String, String> = places.iter().map(|of| (words(of), ranks_of(of))).collect();
    let listed: Vec<String> = places.iter().map(|(place, ranks)| format!("{ranks} {place}")).collect();
    listed.join("; ")
}

fn ranks_of(RanksAtEnd { ranks, .. }: &RanksAtEnd) -> String {
    let what = if ranks.all == 1 { "rank" } else { "ranks" };
    let named = joined(ranks, RankId::to_string, ", ", |more| format!(" and {more} more"));
    format!("{what} {named}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warnings::FirstFew;
    use pmmpi::counters::requested::Uncounted;
    use pmmpi::regions::{At, Whereabouts};

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().copied().map(str::to_owned).collect()
    }

    fn at(place: Option<(At, &str)>, ranks: &[u32], all: usize) -> RanksAtEnd {
        let place = place.map(|(at, region)| Whereabouts { region: region.to_owned(), at });
        RanksAtEnd { place, ranks: FirstFew { first: ranks.iter().copied().map(RankId).collect(), all } }
    }

    /// docs/warnings.md has these examples.
    #[test]
    fn the_report_says_what_the_examples_show() {
        let uncounted = Uncounted {
            typed: "--events".to_owned(),
            events: names(&["cycles"]),
            place: Some("rank 0".to_owned()),
            why: "not counted by this processor and Linux kernel (a virtual machine without counters?)"
                .to_owned(),
        };
        let node = "n0222".to_owned();
        let all = [
            RunWarning::IncompleteRun { ranks: 4, completed: 2, lost: 1, unknown: 1 },
            RunWarning::NodeUnknown { nodes: names(&["n0222"]) },
            RunWarning::NodeChanged {
                nodes: FirstFew { first: names(&["n0222"]), all: 1 },
                changed: "governor from performance to powersave".to_owned(),
            },
            RunWarning::NoStamps { rank: RankId(3) },
            RunWarning::InconsistentClocks {
                max_drift_ppm: 100.0,
                least_ppm: Some(1500.0),
                suspects: names(&["n0222"]),
            },
            RunWarning::WideBounds { lower_ns: 1_000_000_000, upper_ns: 1_050_000_000 },
            RunWarning::Overhead { overhead_ns: 30_000_000 },
            RunWarning::SlewedClock { node: node.clone(), slew_ppm: 500.0, max_drift_ppm: 600.0 },
            RunWarning::LateNode { node, rank: RankId(7), others: 3, lateness_s: [1.5, 1.9], share: 0.05 },
            RunWarning::RegionsLeftOut { entries: 12 },
            RunWarning::Paused { paused: 2, ranks: 4, longest_rank: RankId(1), longest_ns: 500_000_000 },
            RunWarning::ExpectedOfNothing { parts: names(&["slove"]) },
            RunWarning::EndedInRegion {
                places: vec![at(None, &[2], 1), at(Some((At::End, "solve")), &[0, 1], 2)],
            },
            RunWarning::ProbesLeftOut { entries: 12 },
            RunWarning::UncountedEvents { uncounted: vec![uncounted] },
            RunWarning::UnusableCounters { events: names(&["l2_misses"]) },
        ];
        for warning in all {
            assert_eq!(warning.to_string(), warning.code().example());
        }
    }

    #[test]
    fn one_is_not_many_and_long_lists_are_cut() {
        let says = |warning: RunWarning, words: &str| {
            let said = warning.to_string();
            assert!(said.contains(words), "{said}");
        };
        says(
            RunWarning::NodeChanged {
                nodes: FirstFew { first: names(&["n1", "n2", "n3"]), all: 5 },
                changed: "a\u{1b}".to_owned(),
            },
            "n1, n2, n3 and 2 more nodes changed after pmmpi had read their facts: a?",
        );
        says(
            RunWarning::InconsistentClocks { max_drift_ppm: 0.5, least_ppm: None, suspects: Vec::new() },
            "at most 0.5 ppm do not explain the stamps; no rate error would explain them; suspect clocks: unknown",
        );
        says(
            RunWarning::SlewedClock { node: "n1".to_owned(), slew_ppm: -200.4, max_drift_ppm: 300.4 },
            "n1 was 200 ppm too slow during the run; the bounds of the run are valid for rate errors of up \
             to 300 ppm",
        );
        let node = "n1".to_owned();
        says(
            RunWarning::LateNode { node, rank: RankId(0), others: 1, lateness_s: [1.5, 1.9], share: 0.5 },
            "the other node waited at least 1.50 s (50.0 % of the elapsed time) for n1;",
        );
        says(RunWarning::RegionsLeftOut { entries: 1 }, "1 entry of a region:");
        says(RunWarning::ProbesLeftOut { entries: 1 }, "1 entry of probes is missing:");
        let [solve, begin] = [At::Inside, At::Begin].map(|place| Some((place, "solve")));
        says(
            RunWarning::EndedInRegion {
                places: vec![at(solve, &[1, 2], 4), at(None, &[5], 1), at(begin, &[6, 7], 2)],
            },
            "ended: ranks 6, 7 at the start of region `solve`; rank 5 elsewhere; ranks 1, 2 and 2 more in region \
             `solve`",
        );
    }
}
