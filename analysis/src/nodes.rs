//! Per node: the median run and how much slower it is than those of its class.

use crate::run_table::NodeTime;
use crate::stats::median;
use crate::{class, report::NodeReport};
use pmmpi::record::Run;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Why a value is null.
pub const NOT_YET: &str = "this version computes no verdict";

/// One row a (node, class), slowest first, from times ascending within each node.
pub fn summarise(runs: &[Run], times: &[NodeTime]) -> Vec<NodeReport> {
    let mut groups: BTreeMap<(Rc<str>, String), Vec<&NodeTime>> = BTreeMap::new();
    let classes: Vec<Vec<Rc<str>>> = runs.iter().map(class::of_nodes).collect();
    for time in times {
        let class = classes[time.run][time.clock as usize].clone();
        groups.entry((class, time.node.clone())).or_default().push(time);
    }
    let mut nodes: Vec<NodeReport> = groups
        .into_iter()
        .filter_map(|((class, node), times)| summary(runs, class.to_string(), node, &times))
        .collect();
    compare_within_classes(&mut nodes);
    let slowdown = |node: &NodeReport| node.slowdown.unwrap_or(f64::NEG_INFINITY);
    nodes.sort_by(|a, b| {
        slowdown(b).total_cmp(&slowdown(a)).then_with(|| (&a.node, &a.class).cmp(&(&b.node, &b.class)))
    });
    nodes
}

fn summary(runs: &[Run], class: String, node: String, times: &[&NodeTime]) -> Option<NodeReport> {
    let median = times[median::position(times.len())?];
    let seconds = |at: usize| times[at].work_ns as f64 / 1e9;
    let interval = median::interval(times.len());
    let mut null_reasons = BTreeMap::new();
    if interval.is_none() {
        let reason = format!("{} of the 5 runs that an interval needs", times.len());
        null_reasons.insert("ci_s", reason);
    }
    for key in ["score", "p_value", "verdict", "cause"] {
        null_reasons.insert(key, NOT_YET.to_owned());
    }
    Some(NodeReport {
        node,
        class,
        runs: times.len(),
        median_run_id: runs[median.run].header.run_id.clone(),
        median_s: median.work_ns as f64 / 1e9,
        ci_s: interval.map(|(low, high, _)| [seconds(low), seconds(high)]),
        ci_coverage: interval.map(|(.., coverage)| coverage),
        slowdown: None,
        score: None,
        p_value: None,
        verdict: None,
        cause: None,
        terms: BTreeMap::new(),
        null_reasons,
    })
}

/// slowdown = median / class median - 1; the class median is that of ln T, so that of two nodes in the
/// middle the geometric mean counts.
fn compare_within_classes(nodes: &mut [NodeReport]) {
    let mut logarithms: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for node in nodes.iter().filter(|node| node.median_s > 0.0) {
        logarithms.entry(node.class.clone()).or_default().push(node.median_s.ln());
    }
    logarithms.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
    for node in nodes {
        let class = logarithms.get(&node.class).map_or(&[][..], Vec::as_slice);
        if class.len() < 2 || node.median_s <= 0.0 {
            let reason = match node.median_s > 0.0 {
                true => "no other node of its class was measured",
                false => "its median time is not above zero",
            };
            node.null_reasons.insert("slowdown", reason.to_owned());
            continue;
        }
        let middle = (class[(class.len() - 1) / 2] + class[class.len() / 2]) / 2.0;
        node.slowdown = Some((node.median_s.ln() - middle).exp_m1());
    }
}
