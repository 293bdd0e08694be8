//! What `pmmpi screen-act` reads.

use pmmpi_analysis::report::screen::ScreenReport;
use pmmpi_analysis::verdicts::fitness::{Fitness, GateAnswer};
use serde::Serialize;

/// The nodes to mark, and those to return.
#[derive(Serialize)]
pub struct Findings<'a> {
    schema_version: u32,
    findings: Vec<Finding<'a>>,
    /// Repaired nodes that are fit to return.
    passed: Vec<&'a str>,
    /// The kernels of the screen, all of which these nodes ran.
    kernels: Vec<MeasuredKernel<'a>>,
    /// Number of nodes in the screen.
    fleet: usize,
}

#[derive(Serialize)]
struct Finding<'a> {
    node: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct MeasuredKernel<'a> {
    kernel: &'a str,
    /// What the reason of a finding names if this kernel is slow.
    area: &'a str,
}

/// The findings of a screen.
pub fn findings(screen: &ScreenReport) -> Findings<'_> {
    let is_fit = |asked: &&GateAnswer| asked.answer == Fitness::Fit;
    Findings {
        schema_version: 1,
        findings: screen
            .suggestions
            .iter()
            .map(|of| Finding { node: &of.node, reason: &of.reason })
            .collect(),
        kernels: screen
            .kernels
            .iter()
            .map(|of| MeasuredKernel { kernel: &of.kernel, area: of.area() })
            .collect(),
        passed: screen.gate.iter().filter(is_fit).map(|asked| asked.node.as_str()).collect(),
        fleet: screen.screened.len(),
    }
}
