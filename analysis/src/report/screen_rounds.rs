//! How many rounds all nodes ran, and how many more the suspects ran. In a small job, the nodes that run beside the suspects are
//! all other nodes, so the number of nodes does not tell.

use super::run::RunReport;
use super::screened_run::ScreenedRun;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of a screen's rounds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ScreenRounds {
    /// Rounds of all nodes.
    of_all: BTreeSet<u32>,
    /// Further rounds of suspects.
    more: BTreeSet<u32>,
}

impl ScreenRounds {
    /// From the runs alone. A round is a further one if not all nodes ran in it, or not all kernels: a kernel without suspects
    /// has no further round.
    pub fn of(runs: &[(&RunReport, &ScreenedRun)]) -> Self {
        let most = runs.iter().map(|(run, _)| run.nodes).max().unwrap_or_default();
        let mut nodes: BTreeMap<u32, usize> = BTreeMap::new();
        let mut kernels: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
        for (run, screened) in runs {
            let known = nodes.entry(screened.round).or_default();
            *known = run.nodes.max(*known);
            kernels.entry(screened.round).or_default().insert(&screened.kernel);
        }
        let all = kernels.values().map(BTreeSet::len).max().unwrap_or_default();
        let has_all = |round: &u32| nodes[round] == most && kernels[round].len() == all;
        let of_all: BTreeSet<u32> = nodes.keys().copied().filter(has_all).collect();
        let more: BTreeSet<u32> = nodes.keys().copied().filter(|round| !has_all(round)).collect();
        // A single round with fewer kernels is one that the user interrupted.
        if more.len() == 1 && more.iter().all(|round| nodes[round] == most) {
            return Self { of_all: nodes.into_keys().collect(), more: BTreeSet::new() };
        }
        Self { of_all, more }
    }

    /// The same if the first `planned` rounds are those of all nodes.
    pub fn planned(self, planned: u32) -> Self {
        let mut of_all: BTreeSet<u32> = self.of_all.into_iter().chain(self.more).collect();
        let more = of_all.split_off(&planned);
        Self { of_all, more }
    }

    /// Number of rounds of all nodes.
    pub fn of_all(&self) -> usize {
        self.of_all.len()
    }

    /// Number of further rounds.
    pub fn more(&self) -> usize {
        self.more.len()
    }
}
