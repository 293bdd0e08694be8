//! What a round of `pmmpi screen` adds to a run: the results of its kernel on each rank.
//!
//! The nodes of such a round do the same work, each for itself, so the failure of one node says nothing about the
//! others.

use super::wire;
use crate::ids::RankId;
use serde::{Deserialize, Serialize};

/// A round of `pmmpi screen`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Screened {
    /// The kernel's name; `None` for the user's own program.
    pub kernel: Option<String>,
    /// What the kernel measures. The first measure stands for the kernel. Empty if no rank has a result.
    pub measures: Vec<KernelMeasure>,
    /// The results by rank. A rank without a result did not reach the end of its kernel.
    #[serde(deserialize_with = "wire::long_list")]
    pub results: Vec<KernelResult>,
    /// Ranks that run this further round because they looked slow; the other ranks of the round are there for comparison.
    /// Empty in a round of all nodes.
    pub suspects: Vec<RankId>,
}

/// A quantity that a kernel measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelMeasure {
    /// The quantity's name, for example `triad`.
    pub name: String,
    /// The unit of its values.
    pub unit: String,
    /// True if a larger value is better.
    pub larger_is_better: bool,
}

/// A kernel's result on one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    /// Which rank.
    pub rank: RankId,
    /// A value of all of the rank's threads together for each measure, the median of the repetitions. Empty if the
    /// kernel failed or computed a wrong result.
    pub values: Vec<f64>,
    /// How much work the kernel did, in units of its own: the number of hardware threads if each does the same work, 1 if
    /// all together do. Times of different amounts of work are compared per unit.
    pub work: f64,
    /// The value of the first measure for each hardware thread: its number in the kernel and the median of the
    /// repetitions. Empty if the kernel has no values of hardware threads.
    pub threads: Vec<(u32, f32)>,
    /// The time of the work (s) if it is not the time between the barriers: the kernel `net` waits for partners between
    /// them.
    pub seconds: Option<f64>,
    /// What the kernel `net` measured with each partner.
    pub links: Vec<Link>,
    /// What is wrong with the result. The run's times then mean nothing on this node. In the kernel `net`, a partner may
    /// be the reason: see [`crate::wrong_data`].
    pub wrong: Option<String>,
    /// Why the kernel could not run.
    pub failed: Option<String>,
    /// What the reader of the values must know.
    pub notes: Vec<String>,
}

/// A connection to another node, as one of its two ranks measured it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The rank on the other node.
    pub partner: RankId,
    /// Half of the round-trip time of a small message (ns), the median.
    pub latency_ns: f32,
    /// Data per time in one direction, while the same amount flows in the other direction (10^9 bytes per second):
    /// the median.
    pub gigabytes_per_s: f32,
}

impl Link {
    /// True if the partner is another rank of the job and both values can be.
    fn is_sound(&self, own: RankId, size: u32) -> bool {
        let is_positive = |value: f32| value.is_finite() && value > 0.0;
        self.partner.0 < size
            && self.partner != own
            && is_positive(self.latency_ns)
            && is_positive(self.gigabytes_per_s)
    }
}

/// What a kernel's process sends to the process that measures it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// What the kernel measures.
    pub measures: Vec<KernelMeasure>,
    /// Its result; the rank is not set.
    pub result: KernelResult,
    /// User and system CPU time of its timed repetitions (ns).
    pub cpu_ns: [i64; 2],
    /// How many instructions its threads execute in the timed repetitions; `None` if this is not known.
    pub expected_instructions: Option<u64>,
}

impl Screened {
    /// The label of the runs of a screen with `--soak`, for example `1200s`.
    pub const SOAK_LABEL: &str = "soak";
    /// The label of the runs of a screen with `--cores rank`.
    pub const CORES_LABEL: &str = "cores";

    /// Adds the results of other ranks.
    pub(crate) fn join(&mut self, other: Self) {
        if self.measures.is_empty() {
            self.measures = other.measures;
        }
        self.results.extend(other.results);
    }

    /// True if all ranks and partners exist, each rank has one result at most, and the values belong to measures.
    pub(crate) fn is_sound(&self, size: u32) -> bool {
        let of_measures =
            |result: &KernelResult| result.values.is_empty() || result.values.len() == self.measures.len();
        let is_number = |result: &KernelResult| {
            result.values.iter().chain([&result.work]).all(|value| value.is_finite())
                && result.threads.iter().all(|(_, value)| value.is_finite())
                && result.seconds.is_none_or(|seconds| seconds.is_finite() && seconds >= 0.0)
        };
        let are_links =
            |result: &KernelResult| result.links.iter().all(|link| link.is_sound(result.rank, size));
        self.suspects.iter().all(|rank| rank.0 < size)
            && self.results.windows(2).all(|pair| pair[0].rank < pair[1].rank)
            && self.results.iter().all(|r| r.rank.0 < size && of_measures(r) && is_number(r) && are_links(r))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_to_another_rank_and_has_values() {
        let good = Link { partner: RankId(1), latency_ns: 1500.0, gigabytes_per_s: 12.0 };
        let is_sound = |link: Link, seconds: Option<f64>| {
            let result = KernelResult { links: vec![link], seconds, ..KernelResult::default() };
            Screened { results: vec![result], ..Screened::default() }.is_sound(2)
        };
        assert!(is_sound(good, None) && is_sound(good, Some(0.1)));
        for partner in [0, 2, u32::MAX] {
            assert!(!is_sound(Link { partner: RankId(partner), ..good }, None));
        }
        for value in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(!is_sound(Link { latency_ns: value, ..good }, None));
            assert!(!is_sound(Link { gigabytes_per_s: value, ..good }, None));
        }
        let with_suspect = |rank| Screened { suspects: vec![RankId(rank)], ..Screened::default() };
        assert!(with_suspect(1).is_sound(2) && !with_suspect(2).is_sound(2));
        assert!(!is_sound(good, Some(-1.0)) && !is_sound(good, Some(f64::NAN)));
    }
}
