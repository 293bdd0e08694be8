//! Helpers for the tests of metrics.

use super::*;
use crate::validation::Trust;
use pmmpi::node::Hardware;
use pmmpi::record::Run;

mod catalogue;
mod of_run;
mod per_core;
mod properties;
mod values;
mod worked;

fn zen2() -> CpuKind {
    CpuKind::amd(0x17, 0x31)
}

fn skylake() -> CpuKind {
    CpuKind::intel(0x55)
}

fn sapphire_rapids() -> CpuKind {
    CpuKind::intel(0x8f)
}

fn metric(cpu: &CpuKind, inputs: &MetricInputs, name: &str) -> MetricValue {
    evaluate(cpu, inputs).into_iter().find(|value| value.metric.name == name).expect(name)
}

fn exact(counts: &[(&str, u64)]) -> MetricInputs {
    counts
        .iter()
        .fold(MetricInputs::new(), |inputs, (name, count)| inputs.with(name, MetricInput::exact(*count)))
}

/// Counts of a core for TSC cycles in which (both, a alone, b alone, neither) of its hardware threads were busy.
fn core([both, a, b, neither]: [u64; 4]) -> MetricInputs {
    exact(&[("ref_cycles_a", both + a), ("ref_cycles_b", both + b), ("ref_cycles_core", both + a + b)])
        .with_quantity("tsc", (both + a + b + neither) as f64)
}

fn hardware(vendor: &str, family: u32, model: u32) -> Hardware {
    let cpu_vendor = Some(vendor.to_owned());
    Hardware { cpu_vendor, cpu_family: Some(family), cpu_model: Some(model), ..Hardware::default() }
}

fn skylake_node() -> Hardware {
    hardware("GenuineIntel", 6, 0x55)
}

fn zen2_node() -> Hardware {
    hardware("AuthenticAMD", 0x17, 0x31)
}

fn of_hand_made_run(run: &Run, name: &str) -> MetricValue {
    of_run(run, &Trust::default()).into_iter().find(|value| value.metric.name == name).expect(name)
}
