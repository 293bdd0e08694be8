//! What `pmmpi screen-act` reads.

use pmmpi_analysis::report::screen::{DrainReason, KernelSummary, ScreenReport, ScreenedNode, Suggestion};
use pmmpi_analysis::verdicts::fitness::{Fitness, GateAnswer};
use pmmpi_analysis::verdicts::kernels_of_node::ScreenVerdict;
use serde::Serialize;

/// The nodes to mark, and those to return.
#[derive(Serialize)]
pub struct Findings<'a> {
    schema_version: u32,
    findings: Vec<Finding<'a>>,
    /// The hosts of repaired nodes that are fit to return: what was measured, whatever name the user typed.
    passed: Vec<&'a str>,
    /// The kernels of the screen, all of which these nodes ran.
    kernels: Vec<MeasuredKernel<'a>>,
    /// Number of nodes in the screen.
    fleet: usize,
}

#[derive(Serialize)]
struct Finding<'a> {
    node: &'a str,
    reason: &'a DrainReason,
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

/// A kernel with its options, or the path of the user's program with its arguments.
#[derive(Serialize)]
struct Measurement<'a> {
    kernel: &'a str,
    options: &'a [String],
    is_program: bool,
    /// Hardware threads of the node that the kernel used; 0 if it has no values of hardware threads.
    #[serde(skip_serializing_if = "is_zero")]
    threads: usize,
    /// Ranks of the program on the node; 0 if several nodes differ in it.
    #[serde(skip_serializing_if = "is_zero")]
    ranks: usize,
    /// For so long at least, the nodes were warmed up (s).
    #[serde(skip_serializing_if = "is_zero")]
    soak_s: u64,
    /// All kernels of the warm-up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    soaked: Vec<&'a str>,
}

/// What a kernel or program used of a node.
struct Used {
    threads: usize,
    ranks: usize,
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// The findings of a screen. `program` is the path of the user's program, if it is not the path in the runs.
pub fn findings<'a>(screen: &'a ScreenReport, program: Option<&'a str>) -> Findings<'a> {
    let is_fit = |asked: &&GateAnswer| asked.answer == Fitness::Fit;
    let hosts: Vec<&str> =
        screen.gate.iter().filter(is_fit).filter_map(|asked| asked.host.as_deref()).collect();
    let nodes: Vec<&ScreenedNode> =
        screen.screened.iter().filter(|node| hosts.contains(&node.node.as_str())).collect();
    Findings {
        schema_version: 1,
        findings: screen.suggestions.iter().map(|of| finding(screen, program, of)).collect(),
        kernels: screen
            .kernels
            .iter()
            .map(|of| MeasuredKernel {
                ran: measurement(screen, program, of, &on_all(&nodes, &of.kernel)),
                area: of.area(),
            })
            .collect(),
        passed: hosts,
        fleet: screen.screened.len(),
    }
}

fn finding<'a>(
    screen: &'a ScreenReport,
    program: Option<&'a str>,
    suggestion: &'a Suggestion,
) -> Finding<'a> {
    let node = screen.screened.iter().find(|node| node.node == suggestion.node);
    let found = |kernel: &'a KernelSummary| {
        let node = node?;
        let verdict = node.kernels.get(&kernel.kernel).and_then(|of| of.verdict);
        // The reason is about this kernel.
        let is_named = node.kernel.as_deref() == Some(kernel.kernel.as_str());
        let has_found = is_named || verdict.is_some_and(ScreenVerdict::is_slow_or_wrong);
        has_found.then(|| measurement(screen, program, kernel, &on_one(screen, node, &kernel.kernel)))
    };
    Finding {
        node: &suggestion.node,
        reason: &suggestion.reason,
        found_by: screen.kernels.iter().filter_map(found).collect(),
    }
}

/// What a kernel used of a node. Without a correct result, that is not known: then at least what it used of each other node.
fn on_one(screen: &ScreenReport, node: &ScreenedNode, kernel: &str) -> Used {
    let own = node.kernels.get(kernel);
    let others = screen.screened.iter().filter_map(|node| node.kernels.get(kernel));
    let threads = own.map(|of| of.threads).filter(|threads| *threads > 0);
    let fewest = || others.map(|of| of.threads).filter(|threads| *threads > 0).min();
    Used { threads: threads.or_else(fewest).unwrap_or_default(), ranks: own.map_or(0, |of| of.ranks) }
}

/// What a kernel used of each of these nodes.
fn on_all(nodes: &[&ScreenedNode], kernel: &str) -> Used {
    let used = || nodes.iter().filter_map(|node| node.kernels.get(kernel));
    let ranks = used().map(|of| of.ranks).max().unwrap_or_default();
    Used {
        threads: used().map(|of| of.threads).min().unwrap_or_default(),
        ranks: if used().all(|of| of.ranks == ranks) { ranks } else { 0 },
    }
}

fn measurement<'a>(
    screen: &'a ScreenReport,
    program: Option<&'a str>,
    kernel: &'a KernelSummary,
    used: &Used,
) -> Measurement<'a> {
    // Programs of the same file name may be different.
    let (name, options) = match kernel.words.split_first() {
        Some((typed, arguments)) if !kernel.is_kernel => (program.unwrap_or(typed), arguments),
        _ => (kernel.kernel.as_str(), kernel.words.as_slice()),
    };
    let soaked = screen.kernels.iter().filter(|_| kernel.soak_s > 0).map(|of| of.kernel.as_str());
    Measurement {
        kernel: name,
        options,
        is_program: !kernel.is_kernel,
        threads: used.threads,
        // A kernel uses the same hardware threads with any number of ranks.
        ranks: if kernel.is_kernel { 0 } else { used.ranks },
        soak_s: kernel.soak_s,
        soaked: soaked.collect(),
    }
}
