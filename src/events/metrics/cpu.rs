//! Which processor: CPUID's vendor, family and model.

use pmmpi::node::Hardware;
use serde::Deserialize;

/// A processor, as its event tables tell them apart. The default is one that nothing is known of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuKind {
    /// CPUID's vendor, "GenuineIntel" or "AuthenticAMD".
    pub vendor: String,
    /// CPUID's family, extended one included: 0x10 is AMD's family 10h.
    pub family: u32,
    /// CPUID's model, extended one included.
    pub model: u32,
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

    /// That of a node; the default where the node does not say.
    pub fn of_node(hardware: &Hardware) -> Self {
        match (&hardware.cpu_vendor, hardware.cpu_family, hardware.cpu_model) {
            (Some(vendor), Some(family), Some(model)) => Self { vendor: vendor.clone(), family, model },
            _ => Self::default(),
        }
    }
}

impl Range {
    /// True where `cpu` is one of them.
    pub fn holds(&self, cpu: &CpuKind) -> bool {
        let [first, last] = self.models;
        self.vendor == cpu.vendor && self.family == cpu.family && (first..=last).contains(&cpu.model)
    }
}
