//! Warnings about the nodes and runs of a class, in English.

use super::{joined, listed, percent};
use crate::warnings::of_classes::{
    IntervalCoverage, NodeRuns, NodesWithThreads, RunsWithValue, TimeOrderEvidence, TimeOrderLimit, Uncertain,
};
use crate::warnings::{ClassWarning, FirstFew};
use pmmpi::counters::open_counters::Scope;
use pmmpi::text::{count, printable};
use std::fmt::{Display, Formatter, Result};

impl Display for ClassWarning {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Bimodal { fast, slow, slower, class } => write!(
                f,
                "{} of a class are fast and {} are {} slower ({class})",
                count(*fast, "node"),
                count(*slow, "node"),
                percent(*slower)
            ),
            Self::CompositionChanged { session, earlier_session, gone, new, class } => write!(
                f,
                "{} lacks {} of {} and has {}: for drift, the report uses only nodes that were measured in several \
                 sessions ({class})",
                session_name(session.as_deref()),
                count(*gone, "node"),
                session_name(earlier_session.as_deref()),
                count(*new, "new node")
            ),
            Self::CoresDiffer { are_used, numbers } => {
                let verb = if *are_used { "use" } else { "have" };
                let of = |NodesWithThreads { threads, nodes }: &NodesWithThreads| {
                    format!("{threads} on {}{}", count(nodes.all, "node"), in_brackets(nodes))
                };
                let more = |more| format!(", {}", count(more, "more number"));
                let numbers = joined(numbers, of, ", ", more);
                write!(f, "nodes of a class {verb} different numbers of hardware threads: {numbers}")
            }
            Self::DependentRuns { correlation, runs, independent_runs, interval, class } => write!(
                f,
                "successive runs of a node are alike (correlation {correlation:.1}): {} of a node give as much \
                 information as {independent_runs:.1} independent runs{} ({class})",
                count(*runs, "run"),
                interval.map(covers).unwrap_or_default()
            ),
            Self::FewAnchors { session, suspects, anchors, needed, is_coarse, earlier_sessions, class } => {
                let why = match is_coarse {
                    true => "but its times are too coarse for a comparison with earlier sessions".to_owned(),
                    false => format!(
                        "and {} that {} OK or FAST before; a comparison needs {needed} such nodes",
                        count(*anchors, "node"),
                        if *anchors == 1 { "was" } else { "were" },
                    ),
                };
                let and = match *earlier_sessions {
                    0 => String::new(),
                    more => {
                        let earlier = count(more, "earlier session");
                        format!("; in {earlier}, no comparison of suspects was possible either")
                    }
                };
                let (session, suspects) = (session_name(session.as_deref()), count(*suspects, "suspect"));
                write!(
                    f,
                    "{session} has {suspects}, {why}; suspects keep their earlier verdicts{and} ({class})"
                )
            }
            Self::FewRounds { nodes, needed } => {
                f.write_str(&few_runs(nodes, *needed, [" of a kernel", "of a kernel"]))
            }
            Self::FewRuns { nodes, needed } => {
                let of = [" in the session that judges it", "of a class in the session that judges them"];
                f.write_str(&few_runs(nodes, *needed, of))
            }
            Self::FlakyNode { node, slow_runs, runs, class } => {
                write!(
                    f,
                    "{node}: {slow_runs} of {runs} runs are slow, more than expected by chance ({class})"
                )
            }
            Self::KernelFailedEverywhere { kernel, is_kernel, nodes, host, reason } => {
                let what = if *is_kernel { "kernel" } else { "program" };
                let nodes = match nodes {
                    1 => "the only node".to_owned(),
                    all => format!("all {all} nodes"),
                };
                write!(f, "the {what} {kernel} failed on {nodes} in all rounds; on {host}: {reason}")
            }
            Self::MixedScopes { by, left_out, runs, shown, class } => {
                let others = match shown {
                    Scope::Core => "threads of ranks, but most runs counted hardware threads (--scope core)",
                    _ => "hardware threads (--scope core), but most runs counted threads of ranks",
                };
                let runs = count(*runs, "run");
                write!(
                    f,
                    "--by {by}: the counts of {left_out} of {runs} are not in the table: these runs counted {others} \
                     ({class})"
                )
            }
            Self::Moved { slower, since, class } => write!(
                f,
                "most nodes have been {} slower since {}: drift does not show this change, because drift compares \
                 each node with the other nodes ({class})",
                percent(*slower),
                session_name(since.as_deref())
            ),
            Self::NoPlaces => {
                f.write_str("--by: pmmpi measured none of these runs, so there are no values by place")
            }
            Self::NoiseFloor { uncertain, by, delta, class } => {
                let what = match uncertain {
                    Uncertain::ElapsedTimes => "elapsed times are",
                    Uncertain::NodeMedians => "a node's median is",
                };
                let (by, delta) = (percent(*by), percent(*delta));
                write!(
                    f,
                    "{what} uncertain by {by}: the report cannot detect a node that is {delta} slower than its class \
                     ({class})"
                )
            }
            Self::RoundEffects { slower, class } => write!(
                f,
                "the rounds of the session differ by {}: the report corrects the times of each round ({class})",
                percent(*slower)
            ),
            Self::RoundedTimes { nodes, least_unit_s, unit_s, of_median, detectable, class } => {
                let (whose, who) = match nodes {
                    Some(nodes) => {
                        (format!("the times of {}", count(*nodes, "node")), "that such a node is slow")
                    }
                    None => ("the times".to_owned(), "a slow node"),
                };
                let units = match least_unit_s {
                    Some(least) => format!("units from {least} s to {unit_s} s, and {unit_s} s is"),
                    None => format!("{unit_s} s, which is"),
                };
                write!(
                    f,
                    "{whose} are multiples of {units} {} of the class median: the report can detect {who} only if it \
                     is slower than its class by about {} or more ({class})",
                    percent(*of_median),
                    percent(*detectable)
                )
            }
            Self::SettingsDiffer { setting, is_on_one_node, values, class } => {
                let runs = if *is_on_one_node { "runs of the same node" } else { "runs" };
                let of = |RunsWithValue { value, runs }: &RunsWithValue| {
                    format!("{value} in {}{}", count(runs.all, "run"), in_brackets(runs))
                };
                let more = |more| format!(", {}", count(more, "more value"));
                let values = joined(values, of, ", ", more);
                write!(f, "{runs} differ in {setting}: {values} ({class})")
            }
            Self::SplitByLabel { label, values, runs, command } => write!(
                f,
                "the label {} has {values} values in {} of {}: the report does not compare runs with different values",
                printable(label),
                count(*runs, "run"),
                printable(&command.join(" "))
            ),
            Self::TimeOrder { limit, class } => write!(f, "{limit} ({class})"),
            Self::TimeOrderOfSession { session, limit, class } => {
                write!(f, "{}: {limit} ({class})", session_name(session.as_deref()))
            }
            Self::UndatedSessions => {
                f.write_str("some sessions have no start time: the report orders the sessions by name")
            }
            Self::UnequalRuns { fewest, most, class } => write!(
                f,
                "nodes have between {fewest} and {}: the report cannot detect small differences of nodes with few \
                 runs ({class})",
                count(*most, "run")
            ),
        }
    }
}

impl Display for TimeOrderLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let alike = |who: &str, ratio: f64| {
            format!(
                "nodes that were measured {who} have similar times (von Neumann's ratio is {ratio:.2}; if the \
                 order had no effect, the ratio would be about 2)"
            )
        };
        let were = |nodes| format!("{} {}", count(nodes, "node"), if nodes == 1 { "was" } else { "were" });
        let (found, who) = match self.evidence {
            TimeOrderEvidence::Neighbours { ratio } => (alike("one after another", ratio), "a node"),
            TimeOrderEvidence::Hours { ratio } => {
                (alike("at similar hours of several days", ratio), "a node")
            }
            TimeOrderEvidence::SlowTogether { nodes } => {
                let found = format!(
                    "{} measured together, at another time than the other nodes, and many of these {nodes} \
                     nodes are slow",
                    were(nodes)
                );
                (found, "such a node")
            }
            TimeOrderEvidence::OtherRounds { nodes } => {
                let found = format!(
                    "{} measured in other rounds than most nodes, and some rounds are slower",
                    were(nodes)
                );
                (found, "such a node")
            }
        };
        write!(
            f,
            "{found}. The moment of the measurement may explain a slowdown of up to {}. Therefore {who} is SLOW or \
             SLOW-TAIL only if it is certainly slower than its class by more than {} (this slowdown and --delta \
             together)",
            percent(self.explained),
            percent(self.needed)
        )
    }
}

fn session_name(session: Option<&str>) -> String {
    session.map_or_else(|| "runs without a session".to_owned(), |name| format!("session {name}"))
}

/// What the interval of a node's median really covers.
fn covers(IntervalCoverage { nominal, real }: IntervalCoverage) -> String {
    format!(
        "; the {:.1} % interval of a median contains the true median with a probability of only about {:.0} %",
        100.0 * nominal,
        100.0 * real
    )
}

/// The first nodes with few runs. The two last texts say what the runs of one node, and of several nodes, are of.
fn few_runs(nodes: &FirstFew<NodeRuns>, needed: usize, [of_one, of_several]: [&str; 2]) -> String {
    if let [NodeRuns { node, runs, class }] = &nodes.first[..]
        && nodes.all == 1
    {
        let of_class = class.map_or_else(String::new, |class| format!(" of class {class}"));
        let runs = count(*runs, "run");
        return format!("{node} has only {runs}{of_class}{of_one}, but the report needs {needed}");
    }
    let of = |of: &NodeRuns| format!("{} ({})", of.node, count(of.runs, "run"));
    let named = joined(nodes, of, ", ", |more| format!(" and {}", count(more, "more node")));
    format!("nodes with fewer than {needed} runs {of_several}: {named}")
}

/// " (a, b, c, ...)". Nothing without names.
fn in_brackets(names: &FirstFew<String>) -> String {
    if names.first.is_empty() { String::new() } else { format!(" ({})", listed(names, String::clone)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warnings::WarningCode;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn class() -> String {
        text("./hpl")
    }

    fn session(name: &str) -> Option<String> {
        Some(text(name))
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().copied().map(text).collect()
    }

    fn node(runs: usize, class: Option<usize>) -> NodeRuns {
        NodeRuns { node: text("n0222"), runs, class }
    }

    fn few<T>(first: Vec<T>, all: usize) -> FirstFew<T> {
        FirstFew { first, all }
    }

    fn threads(threads: usize, nodes: usize, named: &[&str]) -> NodesWithThreads {
        NodesWithThreads { threads, nodes: few(names(named), nodes) }
    }

    fn value(value: &str, runs: usize, named: &[&str]) -> RunsWithValue {
        RunsWithValue { value: text(value), runs: few(names(named), runs) }
    }

    #[test]
    fn the_page_of_warnings_shows_these_sentences() {
        let limit = TimeOrderLimit {
            evidence: TimeOrderEvidence::Neighbours { ratio: 0.31 },
            explained: 0.079,
            needed: 0.111,
        };
        let warnings = [
            ClassWarning::Bimodal { fast: 90, slow: 10, slower: 0.06, class: class() },
            ClassWarning::CompositionChanged {
                session: session("s31"),
                earlier_session: session("s30"),
                gone: 20,
                new: 0,
                class: class(),
            },
            ClassWarning::CoresDiffer {
                are_used: true,
                numbers: few(vec![threads(64, 18, &[]), threads(32, 2, &["n03", "n07"])], 2),
            },
            ClassWarning::DependentRuns {
                correlation: 0.6,
                runs: 7,
                independent_runs: 2.1,
                interval: Some(IntervalCoverage { nominal: 0.984, real: 0.82 }),
                class: class(),
            },
            ClassWarning::FewAnchors {
                session: session("s2"),
                suspects: 20,
                anchors: 0,
                needed: 3,
                is_coarse: false,
                earlier_sessions: 0,
                class: class(),
            },
            ClassWarning::FewRounds { nodes: few(vec![node(1, None)], 1), needed: 3 },
            ClassWarning::FewRuns { nodes: few(vec![node(3, None)], 1), needed: 5 },
            ClassWarning::FlakyNode { node: text("n0222"), slow_runs: 9, runs: 40, class: class() },
            ClassWarning::KernelFailedEverywhere {
                kernel: text("disk"),
                is_kernel: true,
                nodes: 4,
                host: text("n1"),
                reason: text(
                    "Cannot create /nowhere/.pmmpi-screen-1f: No such file or directory (os error 2); choose an \
                     existing folder in which you may write",
                ),
            },
            ClassWarning::MixedScopes {
                by: "core",
                left_out: 2,
                runs: 5,
                shown: Scope::Core,
                class: class(),
            },
            ClassWarning::Moved { slower: 0.03, since: session("s31"), class: class() },
            ClassWarning::NoiseFloor {
                uncertain: Uncertain::NodeMedians,
                by: 0.134,
                delta: 0.03,
                class: class(),
            },
            ClassWarning::RoundEffects { slower: 0.12, class: class() },
            ClassWarning::RoundedTimes {
                nodes: None,
                least_unit_s: None,
                unit_s: 1.0,
                of_median: 0.096,
                detectable: 0.126,
                class: class(),
            },
            ClassWarning::SettingsDiffer {
                setting: text("env.OMP_NUM_THREADS"),
                is_on_one_node: false,
                values: few(vec![value("8", 33, &[]), value("not set", 2, &["0c5f1e", "9a22b0"])], 2),
                class: class(),
            },
            ClassWarning::SplitByLabel { label: text("job"), values: 7, runs: 7, command: names(&["./hpl"]) },
            ClassWarning::TimeOrder { limit, class: class() },
            ClassWarning::UndatedSessions,
            ClassWarning::UnequalRuns { fewest: 5, most: 101, class: class() },
        ];
        for warning in warnings {
            assert_eq!(warning.to_string(), warning.code().example());
        }
    }

    #[test]
    fn only_the_class_with_the_fewest_runs_is_named() {
        let told = |node| ClassWarning::FewRuns { nodes: few(vec![node], 1), needed: 5 }.to_string();
        assert_eq!(
            told(node(1, Some(3))),
            "n0222 has only 1 run of class 3 in the session that judges it, but the report needs 5"
        );
        assert_eq!(
            told(node(3, None)),
            "n0222 has only 3 runs in the session that judges it, but the report needs 5"
        );
    }

    #[test]
    fn the_first_names_stand_for_a_long_list() {
        let nodes = few(vec![node(1, Some(2)), node(2, None), node(2, None)], 4);
        assert_eq!(
            ClassWarning::FewRounds { nodes, needed: 3 }.to_string(),
            "nodes with fewer than 3 runs of a kernel: n0222 (1 run), n0222 (2 runs), n0222 (2 runs) and 1 more node"
        );
        let differ = ClassWarning::SettingsDiffer {
            setting: text("governor"),
            is_on_one_node: true,
            values: few(vec![value("a", 9, &[]), value("b", 4, &["1", "2", "3"]), value("c", 1, &["4"])], 5),
            class: class(),
        };
        assert_eq!(
            differ.to_string(),
            "runs of the same node differ in governor: a in 9 runs, b in 4 runs (1, 2, 3, ...), c in 1 run (4), \
             2 more values (./hpl)"
        );
    }

    #[test]
    fn another_session_is_named() {
        let limit = TimeOrderLimit {
            evidence: TimeOrderEvidence::SlowTogether { nodes: 4 },
            explained: 0.05,
            needed: 0.082,
        };
        let warning = ClassWarning::TimeOrderOfSession { session: None, limit, class: class() };
        assert_eq!(warning.code(), WarningCode::TimeOrder);
        assert_eq!(
            warning.to_string(),
            "runs without a session: 4 nodes were measured together, at another time than the other nodes, and \
             many of these 4 nodes are slow. The moment of the measurement may explain a slowdown of up to \
             5.0 %. Therefore such a node is SLOW or SLOW-TAIL only if it is certainly slower than its class by \
             more than 8.2 % (this slowdown and --delta together) (./hpl)"
        );
    }
}
