//! Helpers for the tests of metrics.

use super::*;

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
