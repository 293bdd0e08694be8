//! Nodes that came last in more runs than expected by chance.

use super::lateness::{WORTH_A_WORD, WaitedFor};
use super::run::RunReport;
use crate::stats::benjamini_hochberg::{self, Test};
use crate::stats::{binomial, within_nodes};
use serde::Serialize;
use std::collections::BTreeMap;

/// A node that came last in more runs of a command than expected by chance.
#[derive(Debug, Serialize)]
pub struct OftenWaitedFor {
    /// Host name.
    pub node: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Number of nodes of these runs; all runs have the same nodes.
    pub nodes: usize,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs in which the stamps prove that this node came last.
    pub last: usize,
    /// Median over these runs of the node's least lateness (s).
    pub lateness_s: f64,
    /// The same as a fraction of the elapsed time.
    pub share: f64,
    /// Probability that one of equal nodes is last so often.
    pub p_value: f64,
    /// The same, adjusted for the number of nodes tested.
    pub p_adjusted: f64,
}

/// The nodes that came last in more runs than expected by chance, by more than a hundredth of the elapsed time. Only
/// runs of one command on the same nodes are compared. One of n equal nodes comes last in at most Binomial(runs, 1/n)
/// runs. `q` is the accepted share of false discoveries (Benjamini and Hochberg).
pub fn often(runs: &[RunReport], q: f64) -> Vec<OftenWaitedFor> {
    let mut groups: BTreeMap<u64, Vec<&RunReport>> = BTreeMap::new();
    for run in runs {
        if let Some(peers) = run.waited_for.as_ref().and_then(|waited_for| waited_for.peers) {
            groups.entry(peers).or_default().push(run);
        }
    }
    let (mut often, mut family) = (Vec::new(), 0);
    for runs in groups.values() {
        family += runs[0].node_waits_count;
        let mut last: BTreeMap<&str, Vec<&WaitedFor>> = BTreeMap::new();
        for waited_for in
            runs.iter().filter_map(|run| run.waited_for.as_ref()).filter(|waited_for| waited_for.sure)
        {
            last.entry(&waited_for.node).or_default().push(waited_for);
        }
        often.extend(last.into_iter().filter_map(|(node, last)| OftenWaitedFor::new(node, runs, &last)));
    }
    let mut tests: Vec<Test> =
        often.iter().enumerate().map(|(index, node)| Test { index, p: node.p_value }).collect();
    benjamini_hochberg::adjust(&mut tests, family);
    tests.iter().for_each(|test| often[test.index].p_adjusted = test.p);
    often.retain(|node| node.p_adjusted <= q && node.share >= WORTH_A_WORD);
    often.sort_by(|a, b| {
        b.share.total_cmp(&a.share).then_with(|| (&a.node, &a.command).cmp(&(&b.node, &b.command)))
    });
    often
}

impl OftenWaitedFor {
    /// `last` are the runs in which the node came last.
    fn new(node: &str, runs: &[&RunReport], last: &[&WaitedFor]) -> Option<Self> {
        let median = |of: fn(&WaitedFor) -> Option<f64>| {
            within_nodes::median_of(
                &mut last.iter().filter_map(|waited_for| of(waited_for)).collect::<Vec<_>>(),
            )
        };
        let p_value = binomial::at_least(runs.len(), 1.0 / runs[0].node_waits_count as f64, last.len());
        Some(Self {
            node: node.to_owned(),
            command: runs[0].command.clone(),
            nodes: runs[0].node_waits_count,
            runs: runs.len(),
            last: last.len(),
            lateness_s: median(|waited_for| Some(waited_for.lateness_s[0]))?,
            share: median(|waited_for| waited_for.share)?,
            p_value,
            p_adjusted: p_value,
        })
    }
}
