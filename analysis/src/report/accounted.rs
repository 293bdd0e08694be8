//! What became of each node of the input: every node is in exactly one group.

use crate::verdicts::node_report::{NodeReport, Presence};
use hashbrown::HashMap;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Numbers of nodes. Their sum is the number of nodes of the input.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accounted {
    /// Compared with their class, with enough runs.
    pub judged: usize,
    /// Facts differ from those of a large class.
    pub odd: usize,
    /// No other node of the class was measured in its session, so the node is not judged.
    pub alone: usize,
    /// Compared only with its own earlier sessions, because no other node of the class was measured in its session.
    pub own_history: usize,
    /// Compared with too few runs: at most SUSPECT.
    pub few_runs: usize,
    /// Measured in the session before the latest one, but not in the latest one.
    pub missing: usize,
    /// Measured only in earlier sessions.
    pub gone: usize,
    /// A result was wrong.
    pub wrong: usize,
    /// No run of the node has a time, or no run of its latest session.
    pub unmeasured: usize,
    /// Number of runs of pmmpi that failed on these nodes; a run on several nodes counts once.
    #[serde(skip)]
    pub failed_runs: usize,
    /// The nodes of each group but the judged ones, by name.
    #[serde(skip)]
    pub nodes: BTreeMap<NodeGroup, BTreeSet<String>>,
}

/// What became of a node, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeGroup {
    /// See [`Accounted::wrong`].
    Wrong,
    /// See [`Accounted::odd`].
    Odd,
    /// See [`Accounted::judged`].
    Judged,
    /// See [`Accounted::own_history`].
    OwnHistory,
    /// See [`Accounted::few_runs`].
    FewRuns,
    /// See [`Accounted::alone`].
    Alone,
    /// See [`Accounted::missing`].
    Missing,
    /// See [`Accounted::gone`].
    Gone,
    /// See [`Accounted::unmeasured`].
    Unmeasured,
}

impl NodeGroup {
    fn of(node: &NodeReport, min_runs: usize) -> Self {
        match node.presence {
            Presence::Missing => Self::Missing,
            Presence::Gone | Presence::Moved => Self::Gone,
            // A node that differs within its class is judged like all others.
            Presence::Present if !node.odd.is_empty() && node.is_without_peers() => Self::Odd,
            Presence::Present if node.verdict.is_none() && node.history.verdict.is_none() => Self::Alone,
            Presence::Present if node.runs < min_runs => Self::FewRuns,
            Presence::Present if node.verdict.is_none() => Self::OwnHistory,
            Presence::Present => Self::Judged,
        }
    }
}

impl Accounted {
    /// Groups the nodes. A node in several classes is in the group that comes first. `hosts` are all nodes of the input,
    /// `wrong` those with a wrong result, and `without_time` those whose latest runs have no time.
    pub fn of<'a>(
        reports: &[NodeReport],
        hosts: impl Iterator<Item = &'a str>,
        wrong: impl Iterator<Item = &'a str>,
        without_time: &HashSet<&str>,
        min_runs: usize,
    ) -> Self {
        let mut groups: HashMap<&str, NodeGroup> = hosts.map(|host| (host, NodeGroup::Unmeasured)).collect();
        for report in reports {
            let group = match without_time.contains(report.node.as_str()) {
                true => NodeGroup::Unmeasured,
                false => NodeGroup::of(report, min_runs),
            };
            groups.entry(&report.node).and_modify(|known| *known = group.min(*known)).or_insert(group);
        }
        wrong.for_each(|host| _ = groups.insert(host, NodeGroup::Wrong));
        let mut all = Self::default();
        for (host, group) in groups {
            let number = match group {
                NodeGroup::Wrong => &mut all.wrong,
                NodeGroup::Odd => &mut all.odd,
                NodeGroup::Judged => &mut all.judged,
                NodeGroup::OwnHistory => &mut all.own_history,
                NodeGroup::FewRuns => &mut all.few_runs,
                NodeGroup::Alone => &mut all.alone,
                NodeGroup::Missing => &mut all.missing,
                NodeGroup::Gone => &mut all.gone,
                NodeGroup::Unmeasured => &mut all.unmeasured,
            };
            *number += 1;
            if group != NodeGroup::Judged {
                all.nodes.entry(group).or_default().insert(host.to_owned());
            }
        }
        all
    }

    /// Number of nodes of the input.
    pub fn all(&self) -> usize {
        self.judged
            + self.odd
            + self.alone
            + self.own_history
            + self.few_runs
            + self.missing
            + self.gone
            + self.wrong
            + self.unmeasured
    }
}
