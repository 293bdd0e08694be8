//! Counts of nodes that did not work as they should: how much each grew during the median runs of nodes, and during slow
//! runs.

use super::judged_session::JudgedSession;
use super::node_report::FactChange;
use super::unusual_health::{HealthKind, UnusualHealth};
use crate::stats::health::HealthColumn;
use crate::stats::node_median::NodeMedian;
use crate::table::RunTable;
use pmmpi::node::HEALTH_COUNTS;

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

/// How much memory a node's programs touched in a run, and how much slower the run was.
#[derive(Clone, Copy, Debug)]
struct Touched {
    /// Bytes in huge pages.
    huge_bytes: f64,
    /// Bytes in all pages; NaN if page faults were not counted.
    bytes: f64,
    /// How much longer the run took than usual (s), and as a fraction of the usual time.
    more_s: f64,
    more: f64,
}

impl HealthKind {
    /// True if this number of events more than usual can be the cause. The Linux kernel counts some pages of any program on
    /// the node, so small counts say nothing. Memory in small pages, or on another NUMA node, makes accesses at most twice
    /// as slow: so at least as large a part of the memory must be affected as the run is slower. A swapped page costs at
    /// most 10 ms.
    fn can_cost(self, events: f64, touched: Touched) -> bool {
        const SMALL_PAGE_BYTES: f64 = 4096.0;
        const HUGE_PAGE_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
        const SWAP_S: f64 = 0.01;
        let is_large_part = |bytes: f64| touched.bytes.is_nan() || bytes >= touched.more * touched.bytes;
        match self {
            Self::NoHugePages => events >= 32.0 && is_large_part(events * HUGE_PAGE_BYTES),
            Self::RemoteMemory => {
                let page = if touched.huge_bytes > 0.0 { HUGE_PAGE_BYTES } else { SMALL_PAGE_BYTES };
                events >= 1000.0 && is_large_part(events * page)
            }
            Self::Swapping => events >= 1000.0 && events * SWAP_S >= touched.more_s,
            _ => true,
        }
    }
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
    let touched = touched(table, rows, times);
    let known = KINDS.iter().filter(|(name, _)| table.counters.contains_key(*name));
    let mut all = Vec::new();
    for (name, kind) in known {
        let counts: Vec<f64> = rows.iter().map(|row| table.counter(name, *row as usize)).collect();
        if !counts.iter().any(|count| *count > 0.0) {
            continue;
        }
        all.resize_with(counts.len(), NodeHealth::default);
        let column = HealthColumn::new(&counts, times);
        let nodes = all.iter_mut().zip(counts).zip(times).zip(&touched);
        for (((node, own), time), touched) in nodes.filter(|(((_, own), _), _)| *own > 0.0) {
            let usual = column.usual(*time);
            node.changes.push(FactChange { fact: name, change: own, class_change: usual });
            let is_told = node.unusual.iter().any(|told| told.kind == *kind);
            if let Some(usual) = usual.filter(|usual| {
                !is_told && column.is_unusual(own, *time) && kind.can_cost(own - usual, *touched)
            }) {
                node.unusual.push(UnusualHealth { kind: *kind, name, own, usual });
            }
        }
    }
    all
}

/// The memory of each row. `times` has the ln seconds of each; the usual time is the median of the faster half.
fn touched(table: &RunTable, rows: &[u32], times: &[f64]) -> Vec<Touched> {
    const PAGE_BYTES: f64 = 4096.0;
    let mut ascending = times.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    ascending.truncate(ascending.len().div_ceil(2));
    let usual = ascending.get(ascending.len().saturating_sub(1) / 2).map_or(f64::NAN, |ln| ln.exp());
    let count = |name: &str, row: u32| match table.counters.contains_key(name) {
        true => table.counter(name, row as usize),
        false => f64::NAN,
    };
    let of = |(row, time): (&u32, &f64)| {
        let huge_bytes = Some(count(HUGE_BYTES, *row)).filter(|bytes| bytes.is_finite()).unwrap_or(0.0);
        let more_s = (time.exp() - usual).max(0.0);
        Touched {
            huge_bytes,
            bytes: count(FAULTS, *row) * PAGE_BYTES + huge_bytes,
            more_s,
            more: more_s / usual,
        }
    };
    rows.iter().zip(times).map(of).collect()
}

/// Bytes in huge pages, and page faults: small pages are touched one by one.
const HUGE_BYTES: &str = "huge_page_bytes";
const FAULTS: &str = "page_faults";

/// Names of the table's counters that this module needs.
pub(crate) fn counters() -> impl Iterator<Item = &'static str> {
    HEALTH_COUNTS.iter().map(|(name, _)| *name).chain([HUGE_BYTES, FAULTS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_cause_only_if_it_can_cost_the_time() {
        // 10 GB, of which nothing is in huge pages; 10 s and 10 % slower.
        let touched = Touched { huge_bytes: 0.0, bytes: 1e10, more_s: 10.0, more: 0.1 };
        let can = |kind: HealthKind, events: f64| kind.can_cost(events, touched);
        assert!(!can(HealthKind::NoHugePages, 400.0) && can(HealthKind::NoHugePages, 500.0));
        assert!(!can(HealthKind::RemoteMemory, 2e5) && can(HealthKind::RemoteMemory, 2.5e5));
        assert!(!can(HealthKind::Swapping, 999.0) && can(HealthKind::Swapping, 1001.0));
        let unknown = Touched { bytes: f64::NAN, ..touched };
        assert!(
            !HealthKind::NoHugePages.can_cost(31.0, unknown)
                && HealthKind::NoHugePages.can_cost(32.0, unknown)
        );
        assert!(can(HealthKind::Throttling, 1.0));
    }

    #[test]
    fn every_count_has_a_kind() {
        let mut kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let mut counts: Vec<&str> = HEALTH_COUNTS.iter().map(|(name, _)| *name).collect();
        kinds.sort_unstable();
        counts.sort_unstable();
        assert_eq!(kinds, counts);
    }
}
