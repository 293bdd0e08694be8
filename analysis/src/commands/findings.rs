//! What `pmmpi screen-act` reads.

use pmmpi_analysis::report::screen::{KernelSummary, ScreenReport, Suggestion};
use pmmpi_analysis::verdicts::fitness::{Fitness, GateAnswer};
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;
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
    /// The kernels in which the node is slow or wrong.
    found_by: Vec<Measurement<'a>>,
}

#[derive(Serialize)]
struct MeasuredKernel<'a> {
    #[serde(flatten)]
    ran: Measurement<'a>,
    /// What the reason of a finding names if this kernel is slow.
    area: &'a str,
}

/// A kernel with its options, or the user's program, as it was typed, with its arguments.
#[derive(Serialize)]
struct Measurement<'a> {
    kernel: &'a str,
    options: &'a [String],
    is_program: bool,
}

/// The findings of a screen.
pub fn findings(screen: &ScreenReport) -> Findings<'_> {
    let is_fit = |asked: &&GateAnswer| asked.answer == Fitness::Fit;
    Findings {
        schema_version: 1,
        findings: screen.suggestions.iter().map(|of| finding(screen, of)).collect(),
        kernels: screen
            .kernels
            .iter()
            .map(|of| MeasuredKernel { ran: measurement(of), area: of.area() })
            .collect(),
        passed: screen.gate.iter().filter(is_fit).map(|asked| asked.node.as_str()).collect(),
        fleet: screen.screened.len(),
    }
}

fn finding<'a>(screen: &'a ScreenReport, suggestion: &'a Suggestion) -> Finding<'a> {
    let node = screen.screened.iter().find(|node| node.node == suggestion.node);
    let has_found = |kernel: &&KernelSummary| {
        node.is_some_and(|node| {
            let verdict = node.kernels.get(&kernel.kernel).and_then(|of| of.verdict);
            // The reason is about this kernel.
            let is_named = node.kernel.as_deref() == Some(kernel.kernel.as_str());
            is_named || verdict.is_some_and(ScreenVerdict::is_slow_or_wrong)
        })
    };
    Finding {
        node: &suggestion.node,
        reason: &suggestion.reason,
        found_by: screen.kernels.iter().filter(has_found).map(measurement).collect(),
    }
}

fn measurement(kernel: &KernelSummary) -> Measurement<'_> {
    // Programs of the same file name may be different.
    let (name, options) = match kernel.options.split_first() {
        Some((program, arguments)) if !kernel.is_kernel => (program, arguments),
        _ => (&kernel.kernel, kernel.options.as_slice()),
    };
    Measurement { kernel: name, options, is_program: !kernel.is_kernel }
}
