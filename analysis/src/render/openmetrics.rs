//! The report for monitoring, in the text format of OpenMetrics 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! Collectors that read files (node_exporter's) and push gateways know only the older Prometheus text format 0.0.4.
//! They refuse a file with a type that only OpenMetrics has, or with a timestamp. So all metrics are gauges without
//! timestamps, and a state set is a gauge with the value 1. The output is valid in both formats. Names are a contract
//! (docs/report.md).

use super::one_line;
use crate::report::Report;
use crate::report::screen::{ScreenReport, ScreenedNode};
use crate::stats::verdict_rule::Verdict;
use crate::verdicts::node_report::NodeReport;
use std::collections::{BTreeMap, HashSet};

/// The whole report.
pub fn report(report: &Report) -> String {
    let mut text = String::new();
    let version = labels(&[("version", Some(env!("CARGO_PKG_VERSION")))]);
    gauge(&mut text, "pmmpi_build_info", "Version of pmmpi that wrote this report.", [(version, 1.0)]);
    about_nodes(&mut text, report);
    about_slow_runs(&mut text, report);
    about_runs(&mut text, report);
    report.screen.iter().for_each(|screen| about_screen(&mut text, screen));
    let mut codes: BTreeMap<&str, f64> = BTreeMap::new();
    for warning in report.warnings.iter().chain(report.runs.iter().flat_map(|run| &run.warnings)) {
        *codes.entry(warning.code().name()).or_default() += 1.0;
    }
    let samples = codes.into_iter().map(|(code, number)| (labels(&[("code", Some(code))]), number));
    gauge(&mut text, "pmmpi_warnings", "Number of warnings of the report and of its runs, by code.", samples);
    text + "# EOF\n"
}

fn about_nodes(text: &mut String, report: &Report) {
    const ALL: [Verdict; 7] = [
        Verdict::Ok,
        Verdict::Slow,
        Verdict::SlowTail,
        Verdict::Unusual,
        Verdict::Suspect,
        Verdict::Fast,
        Verdict::Wrong,
    ];
    // What a node was is no metric of today.
    let current = || report.nodes.iter().filter(|node| node.is_current());
    let have = |verdict| current().filter(|node| node.among_peers().verdict == verdict).count() as f64;
    let mut samples: Vec<(String, f64)> =
        ALL.iter().map(|v| (labels(&[("verdict", Some(v.name()))]), have(Some(*v)))).collect();
    samples.push((labels(&[("verdict", Some("NONE"))]), have(None)));
    gauge(
        text,
        "pmmpi_nodes",
        "Number of nodes per verdict. A node in several classes counts in each class. \
         NONE: the report does not compare the node with other nodes.",
        samples,
    );
    let accounted = &report.accounted;
    let groups = [
        ("judged", accounted.judged),
        ("own_history", accounted.own_history),
        ("odd", accounted.odd),
        ("alone", accounted.alone),
        ("few_runs", accounted.few_runs),
        ("missing", accounted.missing),
        ("gone", accounted.gone),
        ("wrong", accounted.wrong),
        ("unmeasured", accounted.unmeasured),
    ];
    let groups = groups.map(|(group, nodes)| (labels(&[("group", Some(group))]), nodes as f64));
    gauge(
        text,
        "pmmpi_nodes_accounted",
        "Number of nodes in each group: judged, odd, missing, ... Each node is in one group.",
        groups,
    );
    let of_each = |value: &dyn Fn(&NodeReport) -> Option<f64>| -> Vec<(String, f64)> {
        current().filter_map(|node| Some((labels(&of_node(node)), value(node)?))).collect()
    };
    let session = |node: &NodeReport| {
        let session = [("session", node.session.as_deref())];
        (labels(&[&of_node(node)[..], &session].concat()), 1.0)
    };
    gauge(
        text,
        "pmmpi_node_info",
        "Always 1; the label session has the session by which the report judges the node.",
        current().map(session),
    );
    let runs = of_each(&|node| Some(node.runs as f64));
    gauge(text, "pmmpi_node_runs", "Number of runs on which the verdict of a node is based.", runs);
    let medians = of_each(&|node| Some(node.median_s));
    gauge(text, "pmmpi_node_median_seconds", "Median time of a node's runs.", medians);
    let slowdowns = of_each(&|node| node.among_peers().slowdown);
    gauge(
        text,
        "pmmpi_node_slowdown_ratio",
        "Slowdown of a node relative to its class, or of an odd node relative to its peers: 0.05 is 5 %.",
        slowdowns,
    );
    let least = of_each(&|node| node.among_peers().slower_by_at_least);
    gauge(
        text,
        "pmmpi_node_slower_by_at_least_ratio",
        "Lower limit of a node's slowdown: with a probability of 99 %, the node is slower by more than this.",
        least,
    );
    let mut drain = of_each(&|node| Some(f64::from(u8::from(node.should_be_drained()))));
    let with_time: HashSet<&str> = current().map(|node| node.node.as_str()).collect();
    let of_screen = report.screen.iter().flat_map(|screen| &screen.screened);
    let wrong = of_screen.filter(|node| node.suggests_drain && !with_time.contains(node.node.as_str()));
    drain.extend(wrong.map(|node| (labels(&[("node", Some(&*node.node))]), 1.0)));
    gauge(text, "pmmpi_node_suggests_drain", "1 if the report suggests draining the node, else 0.", drain);
    let verdict = |node: &NodeReport| {
        let verdict = ("verdict", Some(node.among_peers().verdict?.name()));
        Some((labels(&[&of_node(node)[..], &[verdict]].concat()), 1.0))
    };
    let verdicts = current().filter_map(verdict);
    gauge(text, "pmmpi_node_verdict", "Always 1; the label verdict has the verdict of the node.", verdicts);
    about_history(text, report);
    let flaky = report.flaky_now().map(|flaky| {
        let of = [("node", Some(&*flaky.node)), ("class", Some(&*flaky.class))];
        (labels(&of), flaky.slow_runs as f64 / flaky.runs as f64)
    });
    gauge(text, "pmmpi_node_flaky_runs_ratio", "Share of slow runs among the runs of a flaky node.", flaky);
    let drift = report.drift_now().map(|drift| {
        let of =
            [("node", Some(&*drift.node)), ("class", Some(&*drift.class)), ("since", drift.since.as_deref())];
        (labels(&of), drift.change)
    });
    gauge(
        text,
        "pmmpi_node_drift_ratio",
        "Drift of a node: how much slower it became relative to its class, since the session in the label \
         since.",
        drift,
    );
}

fn about_screen(text: &mut String, screen: &ScreenReport) {
    let verdict = |node: &ScreenedNode| {
        let of = [
            ("node", Some(&*node.node)),
            ("verdict", Some(node.verdict?.name())),
            ("slow_in", node.slow_in.as_deref()),
        ];
        Some((labels(&of), 1.0))
    };
    gauge(
        text,
        "pmmpi_screen_verdict",
        "Always 1; the label verdict has the node's worst verdict over all kernels of the latest screen.",
        screen.screened.iter().filter_map(verdict),
    );
    let values = screen.screened.iter().flat_map(|node| {
        node.kernels.iter().filter_map(|(kernel, of)| {
            let of_value = [
                ("node", Some(&*node.node)),
                ("kernel", Some(kernel.as_str())),
                ("unit", of.unit.as_deref()),
            ];
            Some((labels(&of_value), of.value?))
        })
    });
    gauge(
        text,
        "pmmpi_screen_value",
        "Median value of a kernel on a node; the label unit has the unit.",
        values,
    );
    let links = [(String::new(), screen.slow_links.len() as f64)];
    gauge(text, "pmmpi_screen_slow_links", "Number of slow links between healthy nodes.", links);
    let links = [(String::new(), screen.wrong_links.len() as f64)];
    gauge(
        text,
        "pmmpi_screen_wrong_links",
        "Number of links on which wrong data arrived although neither node has a known fault; each direction \
         of a link counts separately.",
        links,
    );
    let minutes = [(String::new(), screen.node_minutes)];
    gauge(
        text,
        "pmmpi_screen_node_minutes",
        "Time of the screen's measured rounds in minutes, added up over all nodes.",
        minutes,
    );
}

fn about_history(text: &mut String, report: &Report) {
    let current = || report.nodes.iter().filter(|node| node.is_current());
    let verdict = |node: &NodeReport| {
        let verdict = ("verdict", Some(node.history.verdict?.name()));
        Some((labels(&[&of_node(node)[..], &[verdict]].concat()), 1.0))
    };
    let verdicts = current().filter_map(verdict);
    gauge(
        text,
        "pmmpi_node_history_verdict",
        "Always 1; the label verdict has the verdict on the node in comparison with its own earlier \
         sessions.",
        verdicts,
    );
    let change = |node: &NodeReport| {
        let since = [("since", node.history.events.since.as_deref())];
        node.history.events.course?;
        Some((labels(&[&of_node(node)[..], &since].concat()), node.history.change?))
    };
    let changes = current().filter_map(change);
    gauge(
        text,
        "pmmpi_node_history_change_ratio",
        "How much slower a node is than in its earlier sessions; below 0 if it is faster. Nodes with the \
         verdict SAME have no value.",
        changes,
    );
}

/// Without the session: with each new session, a database would begin new time series.
fn of_node(node: &NodeReport) -> [(&'static str, Option<&str>); 2] {
    [("node", Some(&node.node)), ("class", Some(&node.class))]
}

fn about_slow_runs(text: &mut String, report: &Report) {
    let all = [(String::new(), report.slow_runs.len() as f64)];
    gauge(text, "pmmpi_slow_runs", "Number of runs that are slower than the other runs of their node.", all);
    let each = report.slow_runs.iter().map(|run| {
        let of = [
            ("run_id", Some(&*run.run_id)),
            ("node", Some(&*run.node)),
            ("class", Some(&*run.class)),
            ("session", run.session.as_deref()),
        ];
        (labels(&of), run.slowdown)
    });
    gauge(
        text,
        "pmmpi_slow_run_slowdown_ratio",
        "Slowdown of a run relative to the median of its node in the same session.",
        each,
    );
}

fn about_runs(text: &mut String, report: &Report) {
    let of = |run_id: &str| labels(&[("run_id", Some(run_id))]);
    let seconds = |ns: i64| ns as f64 / 1e9;
    let started = report.runs.iter().map(|run| (of(&run.run_id), seconds(run.started_unix_ns)));
    gauge(text, "pmmpi_run_start_time_seconds", "Start time of a run, in seconds since 1970.", started);
    let ranks = report.runs.iter().map(|run| (of(&run.run_id), run.ranks as f64));
    gauge(text, "pmmpi_run_ranks", "Number of ranks of a run.", ranks);
    let missing = report.runs.iter().map(|run| (of(&run.run_id), f64::from(run.missing_count)));
    gauge(text, "pmmpi_run_missing_ranks", "Number of ranks that did not complete the measurement.", missing);
    let bounds: Vec<_> = report
        .runs
        .iter()
        .filter_map(|run| Some((of(&run.run_id), run.elapsed.as_ref().filter(|elapsed| elapsed.consistent)?)))
        .collect();
    let lower = bounds.iter().map(|(labels, elapsed)| (labels.clone(), seconds(elapsed.lower_ns)));
    gauge(text, "pmmpi_run_elapsed_lower_seconds", "Lower bound of a run's elapsed time.", lower);
    let upper = bounds.iter().map(|(labels, elapsed)| (labels.clone(), seconds(elapsed.upper_ns)));
    gauge(text, "pmmpi_run_elapsed_upper_seconds", "Upper bound of a run's elapsed time.", upper);
}

/// One metric family; nothing if it has no sample. Drops samples with labels that occurred before: a reader would
/// refuse the whole file.
fn gauge(text: &mut String, name: &str, help: &str, samples: impl IntoIterator<Item = (String, f64)>) {
    let mut known = HashSet::new();
    for (labels, value) in samples.into_iter().filter(|(_, value)| value.is_finite()) {
        if known.contains(&labels) {
            continue;
        }
        if known.is_empty() {
            *text += &format!("# TYPE {name} gauge\n");
            if let Some(unit) = ["seconds", "ratio"].into_iter().find(|unit| name.ends_with(unit)) {
                *text += &format!("# UNIT {name} {unit}\n");
            }
            *text += &format!("# HELP {name} {help}\n");
        }
        *text += &format!("{name}{labels} {value:?}\n");
        known.insert(labels);
    }
}

/// For example `{a="b",c="d"}`. Omits labels without a value, because an empty value equals no label.
fn labels(labels: &[(&str, Option<&str>)]) -> String {
    let some =
        labels.iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    let all: Vec<String> =
        some.map(|(name, value)| format!("{name}=\"{}\"", escaped(&bounded(value)))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

/// A label value on one line and not long, because databases keep every value of a label. A changed value ends with a
/// hash of the original, so different values stay different.
fn bounded(value: &str) -> String {
    const MOST: usize = 128;
    let clean = one_line(value);
    if clean == value && clean.chars().count() <= MOST {
        return clean;
    }
    let kept: String = clean.chars().take(MOST - 17).collect();
    format!("{kept}~{:016x}", fnv(value))
}

/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): the same on every machine and in every version.
fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded_and_stay_apart() {
        assert_eq!(
            labels(&[("node", Some("a\\\"b")), ("session", None), ("x", Some(""))]),
            "{node=\"a\\\\\\\"b\"}"
        );
        assert_eq!(labels(&[("session", None)]), "");
        let long = |last| "x".repeat(100_000) + last;
        let (a, b) = (bounded(&long("a")), bounded(&long("b")));
        assert!(a != b && a.len() == 128 && b.len() == 128, "{a}");
        assert_ne!(bounded("a\nb"), bounded("a\rb"));
        assert_eq!(bounded(&"é".repeat(128)), "é".repeat(128));
    }

    #[test]
    fn hashes_are_as_published() {
        assert_eq!(
            (fnv(""), fnv("a"), fnv("foobar")),
            (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8)
        );
    }

    #[test]
    fn a_sample_is_there_once_and_finite() {
        let mut text = String::new();
        let samples = [("", f64::NAN), ("{a=\"1\"}", 0.1), ("{a=\"1\"}", 7.0), ("{a=\"2\"}", 1e300)];
        gauge(&mut text, "x_seconds", "X.", samples.map(|(labels, value)| (labels.to_owned(), value)));
        assert_eq!(
            text,
            "# TYPE x_seconds gauge\n# UNIT x_seconds seconds\n# HELP x_seconds X.\n\
             x_seconds{a=\"1\"} 0.1\nx_seconds{a=\"2\"} 1e300\n"
        );
        gauge(&mut text, "y", "Y.", []);
        assert!(!text.contains('y'));
    }
}
