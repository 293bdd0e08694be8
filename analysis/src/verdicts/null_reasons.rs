//! Why values of a node's report are null.

use super::named_cause::Among;
use crate::stats::cause::NoCause;
use crate::table::Shared;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a value of a node's or a run's report is null.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeNullReason {
    /// The cause is not known.
    NoCause {
        /// Why it is not known. Shared, because several values have this reason.
        why: Shared<NoCause>,
        /// Among what the node or the run is slow.
        among: Among,
    },
    /// No single term is the cause, so the cause has no share of the slowdown.
    NoShare,
    /// The report read only the median of the node's runs.
    OnlyMedian,
    /// The run has no label `session`.
    NoSession,
    /// The node has too few runs for an interval.
    NoInterval {
        /// Number of its runs.
        runs: usize,
    },
    /// No other node of the class was measured in the node's session.
    Alone,
    /// Half or more of the session's nodes are suspects of earlier sessions.
    FewAnchors,
    /// The class has too few nodes for a score.
    SmallClass {
        /// Number of nodes that a score needs.
        needed: usize,
    },
    /// No node of the class ran twice in the session.
    NoRepeatedRun,
    /// The node has too few runs for the test for slow runs.
    FewRuns {
        /// Number of runs that the test needs.
        needed: usize,
    },
    /// No core, socket or rank is known to differ.
    NoPlaces,
    /// The node's own history shows no certain change.
    NoChange,
    /// The node changed, but the start of the runs is not known.
    NoDate,
    /// Each session of the node since its last maintenance has too few nodes of the class, or too many suspects, for a
    /// comparison with its own history.
    FewOthers,
    /// The node has too few sessions for a comparison with its own history.
    FewSessions {
        /// Number of its sessions, or of those since its maintenance.
        sessions: usize,
        /// True if the node had a maintenance.
        since_maintenance: bool,
    },
}

/// The reason of each null, by its key. Equal ones can share their memory: a fleet may have a million nodes and classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NullReasons(Arc<BTreeMap<&'static str, NodeNullReason>>);

impl NullReasons {
    /// Adds a reason, or replaces it.
    pub fn insert(&mut self, key: &'static str, reason: NodeNullReason) {
        Arc::make_mut(&mut self.0).insert(key, reason);
    }

    /// Removes the reason of a value that is not null any more.
    pub fn remove(&mut self, key: &str) {
        if self.0.contains_key(key) {
            Arc::make_mut(&mut self.0).remove(key);
        }
    }

    /// If `known` has equal reasons, uses their memory; otherwise adds these reasons to `known`.
    pub fn share(&mut self, known: &mut BTreeSet<Self>) {
        match known.get(self) {
            Some(equal) => *self = equal.clone(),
            None => {
                known.insert(self.clone());
            }
        }
    }
}

impl Serialize for NullReasons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_shared_reasons_changes_only_its_own() {
        let reasons = || {
            let mut reasons = NullReasons::default();
            reasons.insert("verdict", NodeNullReason::Alone);
            reasons
        };
        let (mut a, mut b, mut known) = (reasons(), reasons(), BTreeSet::new());
        a.share(&mut known);
        b.share(&mut known);
        assert!(Arc::ptr_eq(&a.0, &b.0));
        b.remove("verdict");
        assert_eq!((a, b), (reasons(), NullReasons::default()));
    }
}
