//! The kind of a processor: CPUID's vendor, family and model.

use pmmpi::node::Hardware;
use pmmpi::record::Run;
use serde::Deserialize;

/// The kind of a processor, by which event tables are chosen. The default is an unknown processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuKind {
    /// CPUID's vendor, "GenuineIntel" or "AuthenticAMD".
    pub vendor: String,
    /// CPUID's family, including the extended one: 0x10 is AMD's family 10h.
    pub family: u32,
    /// CPUID's model, including the extended one.
    pub model: u32,
}

/// False on Arm: its generic timer (CNTVCT_EL0) ticks at another rate than the cores. Linux gives an Arm processor's
/// implementer as a number, such as 0x41.
pub fn has_tsc(run: &Run) -> bool {
    let vendors = run.nodes.iter().filter_map(|node| node.facts.as_ref()?.hardware.cpu_vendor.as_deref());
    !vendors.into_iter().any(|vendor| vendor.starts_with("0x"))
}

/// Processors that share an event table.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// As in [`CpuKind::vendor`].
    pub vendor: String,
    /// As in [`CpuKind::family`].
    pub family: u32,
    /// First and last model, both included.
    pub models: [u32; 2],
}

impl CpuKind {
    /// AMD's processor of this family and model.
    pub fn amd(family: u32, model: u32) -> Self {
        Self { vendor: "AuthenticAMD".into(), family, model }
    }

    /// Intel's processor of family 6 and this model.
    pub fn intel(model: u32) -> Self {
        Self { vendor: "GenuineIntel".into(), family: 6, model }
    }

    /// The processor of a node; the default if the node's facts lack it.
    pub fn of_node(hardware: &Hardware) -> Self {
        match (&hardware.cpu_vendor, hardware.cpu_family, hardware.cpu_model) {
            (Some(vendor), Some(family), Some(model)) => Self { vendor: vendor.clone(), family, model },
            _ => Self::default(),
        }
    }
}

impl Range {
    /// True if the range contains `cpu`.
    pub fn holds(&self, cpu: &CpuKind) -> bool {
        let [first, last] = self.models;
        self.vendor == cpu.vendor && self.family == cpu.family && (first..=last).contains(&cpu.model)
    }
}
