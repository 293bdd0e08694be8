//! When nodes were repaired or changed on purpose: earlier measurements show nothing about the node after this.

use super::NamePool;
use std::collections::{BTreeMap, BTreeSet};

/// The label, or the column of other tools' results, that says after which maintenance a run was made.
pub const MAINTENANCE_LABEL: &str = "maintenance";

/// The maintenance of nodes. Nodes and sessions are numbers of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Maintenance {
    labels: NamePool,
    /// Node, session and label of runs with the label.
    labelled: BTreeSet<[u32; 3]>,
    /// The instants at which a node was maintained (ns since 1970), ascending.
    instants: BTreeMap<u32, BTreeSet<i64>>,
}

impl Maintenance {
    /// Notes a run with the label. An empty label says nothing.
    pub fn add_label(&mut self, node: u32, session: u32, label: &str) {
        if !label.is_empty() {
            let label = self.labels.number(label);
            self.labelled.insert([node, session, label]);
        }
    }

    /// Notes that a node was maintained at an instant.
    pub fn add_instant(&mut self, node: u32, unix_ns: i64) {
        self.instants.entry(node).or_default().insert(unix_ns);
    }

    /// The last maintenance of a node with a known instant (ns since 1970).
    pub fn last_instant(&self, node: u32) -> Option<i64> {
        self.instants.get(&node).and_then(|all| all.last().copied())
    }

    /// Which of a node's sessions are the first after a maintenance: their indices. `sessions` has, in the order of
    /// time, the number of each session and its first start on the node (ns since 1970). A session that had begun before
    /// the maintenance is one before it.
    pub fn restarts(&self, node: u32, sessions: impl Iterator<Item = (u32, i64)>) -> Vec<usize> {
        let mut restarts = Vec::new();
        let instants = self.instants.get(&node);
        if self.labelled.is_empty() && instants.is_none() {
            return restarts;
        }
        let mut known = BTreeSet::new();
        let mut last: Option<i64> = None;
        for (at, (session, started)) in sessions.enumerate() {
            let of_session = self.labelled.range([node, session, 0]..=[node, session, u32::MAX]);
            let is_new = of_session.fold(false, |is_new, [.., label]| known.insert(*label) || is_new);
            let between = |last: i64| {
                started != super::UNDATED
                    && instants
                        .is_some_and(|all| all.range(last..).any(|when| last < *when && *when <= started))
            };
            if at > 0 && (is_new || last.is_some_and(between)) {
                restarts.push(at);
            }
            last = Some(started).filter(|started| *started != super::UNDATED).or(last);
        }
        restarts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::UNDATED;

    #[test]
    fn a_new_label_starts_anew() {
        let mut maintenance = Maintenance::default();
        let sessions = || (0..6).map(|session| (session, UNDATED));
        assert!(maintenance.restarts(7, sessions()).is_empty());
        maintenance.add_label(7, 0, "a");
        maintenance.add_label(7, 2, "b");
        maintenance.add_label(7, 3, "b");
        maintenance.add_label(7, 4, "");
        maintenance.add_label(7, 5, "a");
        maintenance.add_label(8, 1, "c");
        assert_eq!(maintenance.restarts(7, sessions()), [2]);
        assert_eq!(maintenance.restarts(8, sessions()), [1]);
    }

    #[test]
    fn an_instant_lies_between_two_sessions() {
        let mut maintenance = Maintenance::default();
        [5, 20, 40].into_iter().for_each(|when| maintenance.add_instant(7, when));
        let sessions = [(0, 10), (1, 20), (2, UNDATED), (3, 30), (4, 39)];
        assert_eq!(maintenance.restarts(7, sessions.into_iter()), [1]);
        assert!(maintenance.restarts(6, sessions.into_iter()).is_empty());
    }
}
