//! Counts of nodes that did not work as they should: how much each grew during the median runs of nodes, and during slow
//! runs.

use super::judged_session::JudgedSession;
use super::node_report::FactChange;
use crate::stats::health::HealthColumn;
use crate::stats::node_median::NodeMedian;
use crate::table::RunTable;
use pmmpi::node::HEALTH_COUNTS;

/// What such counts show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HealthKind {
    Throttling,
    MemoryErrors,
    NoHugePages,
    RemoteMemory,
    Swapping,
    NetworkLink,
    NetworkCongestion,
    PcieErrors,
    GpuThrottling,
    GpuMemoryErrors,
}

/// Names of counts, with what they show. The first count of a kind says most.
const KINDS: [(&str, HealthKind); 16] = [
    ("socket_throttles", HealthKind::Throttling),
    ("core_throttles", HealthKind::Throttling),
    ("socket_throttled_ms", HealthKind::Throttling),
    ("memory_errors_uncorrected", HealthKind::MemoryErrors),
    ("memory_errors_corrected", HealthKind::MemoryErrors),
    ("huge_page_fallbacks", HealthKind::NoHugePages),
    ("numa_spills", HealthKind::RemoteMemory),
    ("pages_swapped", HealthKind::Swapping),
    ("link_downs", HealthKind::NetworkLink),
    ("link_errors", HealthKind::NetworkLink),
    ("network_drops", HealthKind::NetworkCongestion),
    ("network_waits", HealthKind::NetworkCongestion),
    ("pcie_errors_corrected", HealthKind::PcieErrors),
    ("gpu_throttled_ms", HealthKind::GpuThrottling),
    ("gpu_memory_errors_uncorrected", HealthKind::GpuMemoryErrors),
    ("gpu_memory_errors_corrected", HealthKind::GpuMemoryErrors),
];

impl HealthKind {
    /// Smaller counts in a run say nothing: the Linux kernel counts some pages of any program on the node.
    fn least(self) -> f64 {
        match self {
            // 64 MiB in pages of 2 MiB.
            Self::NoHugePages => 32.0,
            // 4 MiB in pages of 4 KiB.
            Self::RemoteMemory | Self::Swapping => 1000.0,
            _ => 1.0,
        }
    }

    /// A stable name for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throttling => "throttling",
            Self::MemoryErrors => "memory-errors",
            Self::NoHugePages => "no-huge-pages",
            Self::RemoteMemory => "remote-memory",
            Self::Swapping => "swapping",
            Self::NetworkLink => "network-link",
            Self::NetworkCongestion => "network-congestion",
            Self::PcieErrors => "pcie-errors",
            Self::GpuThrottling => "gpu-throttling",
            Self::GpuMemoryErrors => "gpu-memory-errors",
        }
    }
}

/// A count that is unusually high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnusualHealth {
    pub kind: HealthKind,
    pub name: &'static str,
    /// During the node's median run, or the slow run.
    pub own: f64,
    /// What is usual in this time, by the faster half of the class, or of the node's runs.
    pub usual: f64,
}

/// What one node's kernel counted during one run.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeHealth {
    /// All counts above 0.
    pub changes: Vec<FactChange>,
    /// The unusual counts, one of each kind.
    pub unusual: Vec<UnusualHealth>,
}

/// The counts of each node of the session during its median run; empty if no run has such counts.
pub(super) fn of_session(table: &RunTable, session: &JudgedSession) -> Vec<NodeHealth> {
    let times: Vec<f64> = session.medians.iter().map(|node| node.median).collect();
    let median_run = |(rows, middle): (&&[u32], &NodeMedian)| rows[middle.median_run];
    let rows: Vec<u32> = session.nodes.iter().zip(&session.medians).map(median_run).collect();
    of(table, &rows, &times)
}

/// The counts of each run of a node, relative to its other runs; empty if no run has such counts.
pub(super) fn of_runs(table: &RunTable, rows: &[u32]) -> Vec<NodeHealth> {
    let times: Vec<f64> = rows.iter().map(|row| table.elapsed_s[*row as usize].ln()).collect();
    of(table, rows, &times)
}

/// Compares the counts of some rows. `times` has the ln seconds of each.
fn of(table: &RunTable, rows: &[u32], times: &[f64]) -> Vec<NodeHealth> {
    let known = KINDS.iter().filter(|(name, _)| table.counters.contains_key(*name));
    let mut all = Vec::new();
    for (name, kind) in known {
        let counts: Vec<f64> = rows.iter().map(|row| table.counter(name, *row as usize)).collect();
        if !counts.iter().any(|count| *count > 0.0) {
            continue;
        }
        all.resize_with(counts.len(), NodeHealth::default);
        let column = HealthColumn::new(&counts, times);
        for ((node, own), time) in all.iter_mut().zip(counts).zip(times).filter(|((_, own), _)| *own > 0.0) {
            let usual = column.usual(*time);
            node.changes.push(FactChange { fact: name, change: own, class_change: usual });
            let is_enough = own >= kind.least();
            let is_told = node.unusual.iter().any(|told| told.kind == *kind);
            if let Some(usual) = usual.filter(|_| is_enough && column.is_unusual(own, *time) && !is_told) {
                node.unusual.push(UnusualHealth { kind: *kind, name, own, usual });
            }
        }
    }
    all
}

/// Names of the table's counters that this module needs.
pub(crate) fn counters() -> impl Iterator<Item = &'static str> {
    HEALTH_COUNTS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_a_kind() {
        let mut kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let mut counts: Vec<&str> = counters().collect();
        kinds.sort_unstable();
        counts.sort_unstable();
        assert_eq!(kinds, counts);
    }
}
