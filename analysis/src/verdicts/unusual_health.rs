//! Unusually high counts of hardware that did not work as it should.

/// What such a count shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthKind {
    /// The processor lowered its frequency because of heat.
    Throttling,
    /// The memory had errors.
    MemoryErrors,
    /// The Linux kernel had no huge pages.
    NoHugePages,
    /// The preferred NUMA node was full.
    RemoteMemory,
    /// The Linux kernel swapped pages.
    Swapping,
    /// A network link failed or had errors.
    NetworkLink,
    /// Packets were dropped, or ports waited to send.
    NetworkCongestion,
    /// PCIe had errors.
    PcieErrors,
    /// GPUs lowered their frequency because of heat or power.
    GpuThrottling,
    /// The memory of a GPU had errors.
    GpuMemoryErrors,
}

impl HealthKind {
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
pub struct UnusualHealth {
    /// What it shows.
    pub kind: HealthKind,
    /// One of [`pmmpi::node::HEALTH_COUNTS`].
    pub name: &'static str,
    /// During the node's median run, or the slow run.
    pub own: f64,
    /// What is usual in this time, by the faster half of the class, or of the node's runs.
    pub usual: f64,
}
