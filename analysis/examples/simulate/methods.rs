//! pmmpi's method and other methods to find slow nodes, all on the same times.

use pmmpi_analysis::stats::class_runs::ClassRuns;
use pmmpi_analysis::stats::node_median::{self, NodeMedian};
use pmmpi_analysis::stats::resolution::Units;
use pmmpi_analysis::stats::verdict_rule::{self, MeasuredNode, NodeJudgement, Verdict, VerdictSettings};
use pmmpi_analysis::stats::{normal, slow_runs, within_nodes};

/// Returns for each node whether it is slow.
pub type Method = fn(&ClassRuns) -> Vec<bool>;

/// The reference table's rows.
pub const METHODS: [(&str, Method); 5] = [
    ("mean, z > 3", mean_z),
    ("Tukey 1.5 on medians", tukey),
    ("MAD z > 3.5", mad_z),
    ("fixed > 5 %", fixed),
    ("SLOW", slow),
];

/// Mean time further than three standard deviations above the mean of all.
fn mean_z(class: &ClassRuns) -> Vec<bool> {
    let means: Vec<f64> =
        class.nodes().map(|runs| mean(&runs.iter().map(|y| y.exp()).collect::<Vec<_>>())).collect();
    let centre = mean(&means);
    let squares: Vec<f64> = means.iter().map(|mean| (mean - centre).powi(2)).collect();
    let spread = mean(&squares).sqrt();
    means.iter().map(|mean| mean - centre > 3.0 * spread).collect()
}

/// Median more than 1.5 interquartile ranges above the third quartile.
fn tukey(class: &ClassRuns) -> Vec<bool> {
    let medians = medians(class);
    let mut ascending = medians.clone();
    ascending.sort_unstable_by(f64::total_cmp);
    let quartile = |p: f64| ascending[((ascending.len() - 1) as f64 * p).round() as usize];
    let limit = quartile(0.75) + 1.5 * (quartile(0.75) - quartile(0.25));
    medians.iter().map(|median| *median > limit).collect()
}

/// Median more than 3.5 median absolute deviations above the median of all nodes (B. Iglewicz and D. C. Hoaglin, "How
/// to detect and handle outliers", 1993).
fn mad_z(class: &ClassRuns) -> Vec<bool> {
    let medians = medians(class);
    let centre = within_nodes::median_of(&mut medians.clone()).unwrap_or_default();
    let mut deviations: Vec<f64> = medians.iter().map(|median| (median - centre).abs()).collect();
    let mad = within_nodes::median_of(&mut deviations).unwrap_or_default() / normal::quantile(0.75);
    medians.iter().map(|median| median - centre > 3.5 * mad).collect()
}

/// Median more than 5 % above the median of all nodes.
fn fixed(class: &ClassRuns) -> Vec<bool> {
    let medians = medians(class);
    let centre = within_nodes::median_of(&mut medians.clone()).unwrap_or_default();
    medians.iter().map(|median| median - centre > 0.05f64.ln_1p()).collect()
}

/// Nodes with the verdict SLOW.
pub fn slow(class: &ClassRuns) -> Vec<bool> {
    at_least(class, Verdict::Slow)
}

/// Nodes with at least this verdict.
pub fn at_least(class: &ClassRuns, least: Verdict) -> Vec<bool> {
    let says = |node: &verdict_rule::NodeJudgement| node.verdict.is_some_and(|verdict| verdict >= least);
    judge(class).iter().map(says).collect()
}

/// Uses the tool's defaults.
fn judge(class: &ClassRuns) -> Vec<NodeJudgement> {
    let medians = node_median::of_nodes(class);
    verdict_rule::judge(&measured(class, &medians), &Units::default(), &VerdictSettings::default())
}

/// The nodes with the errors of their medians.
pub fn measured(class: &ClassRuns, medians: &[NodeMedian]) -> Vec<MeasuredNode> {
    let sigma = within_nodes::sigma(class, medians);
    let variance = |runs| sigma.map(|sigma| within_nodes::variance_factor(runs) * sigma * sigma);
    let of = |node: &NodeMedian| MeasuredNode::new(node, variance(node.runs));
    medians.iter().map(of).collect()
}

/// Returns for each run whether it is slow.
pub fn slow_runs(class: &ClassRuns) -> Vec<bool> {
    let medians = node_median::of_nodes(class);
    let mut slow = vec![false; class.run_count()];
    let starts: Vec<usize> = class
        .nodes()
        .scan(0, |end, runs| {
            let start = *end;
            *end += runs.len();
            Some(start)
        })
        .collect();
    let Some(sigma) = within_nodes::sigma(class, &medians) else { return slow };
    for run in
        slow_runs::slow(class, &medians, sigma, &Units::default(), &slow_runs::SlowRunSettings::default())
    {
        slow[starts[run.node] + run.run] = true;
    }
    slow
}

fn medians(class: &ClassRuns) -> Vec<f64> {
    node_median::of_nodes(class).iter().map(|node: &NodeMedian| node.median).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
