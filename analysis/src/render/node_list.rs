//! The nodes to avoid, for users without the right to drain nodes: Slurm's compressed list for `--exclude`, or one node per line.

use super::cells::percent;
use crate::report::Report;
use crate::report::host_names::is_host_name;
use crate::report::screen::{ScreenReport, ScreenedNode};
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::table::slurm_host_list::compressed;
use crate::verdicts::history::FEWEST_NODES;
use crate::verdicts::kernels_of_node::{KernelOfNode, ScreenVerdict};
use crate::verdicts::node_report::{HistoryReport, NodeReport};
use pmmpi::text::count;
use std::collections::{BTreeMap, BTreeSet};

/// Slurm's compressed list, such as `n[001-003,017],m5`, with a line end; empty without a node.
pub fn exclude(report: &Report) -> String {
    let list = compressed(names_in_slurm(report).into_iter());
    if list.is_empty() { list } else { list + "\n" }
}

/// One node per line, by name.
pub fn nodefile(report: &Report) -> String {
    names_in_slurm(report).into_iter().map(|node| format!("{node}\n")).collect()
}

/// Why each node is in the list, one line per node; and which nodes cannot be in a list.
pub fn reasons(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> =
        avoided(report).into_iter().map(|(node, reason)| format!("{node}: {reason}")).collect();
    let mut named: BTreeSet<&str> =
        report.nodes.iter().filter(|node| reason(node).is_some()).map(|node| node.node.as_str()).collect();
    named.extend(screened(report).map(|(node, _)| node));
    let left_out = named.into_iter().filter(|node| !is_host_name(node));
    lines.extend(
        left_out.map(|node| format!("{node} is not the name of one host, so the list does not contain it")),
    );
    if let Some(screen) = &report.screen {
        let kernels = screen.kernels.iter().map(|of| &of.kernel).filter(|of| failed_everywhere(screen, of));
        lines.extend(kernels.map(|kernel| match screen.screened.len() {
            1 => format!(
                "{kernel} failed on the only node in all rounds, so the reason is probably {kernel} or its options, \
                 not the node: the list ignores these failures"
            ),
            all => format!(
                "{kernel} failed on all {all} nodes, so the reason is {kernel} or its options, not the nodes: the \
                 list ignores these failures"
            ),
        }));
        let kernels = screen.kernels.iter().map(|of| &of.kernel);
        lines.extend(kernels.filter(|kernel| slowed_together(screen, kernel)).map(|kernel| {
            let (slowed, all) = slowed_of_all(screen, kernel);
            format!(
                "on {slowed} of {}, {kernel} is slower than in earlier screens, perhaps because of something \
                 that all nodes share: the list ignores this slowdown",
                count(all, "node")
            )
        }));
    }
    lines
}

/// The nodes by the names that Slurm has for them, as far as a screen knows.
fn names_in_slurm(report: &Report) -> BTreeSet<&str> {
    let name = |host| report.screen.as_ref().map_or(host, |screen| screen.names_in_slurm.of_host(host));
    avoided(report).into_keys().map(name).collect()
}

/// The nodes with the strongest reason of each.
fn avoided(report: &Report) -> BTreeMap<&str, String> {
    let mut avoided = BTreeMap::new();
    let current = report.nodes.iter().filter(|node| node.is_current() && is_host_name(&node.node));
    for node in current {
        if let Some(reason) = reason(node) {
            // Reports are in the order of their weight.
            avoided.entry(node.node.as_str()).or_insert(reason);
        }
    }
    for wrong in report.wrong.iter().filter(|wrong| wrong.is_latest && is_host_name(&wrong.node)) {
        avoided.entry(&wrong.node).or_insert_with(|| "WRONG: a run computed a wrong result".to_owned());
    }
    for (node, reason) in screened(report).filter(|(node, _)| is_host_name(node)) {
        avoided.entry(node).or_insert(reason);
    }
    avoided
}

/// The nodes that the latest screen says to avoid, each with the reason. Some have no time, so [`reason`] does not know them.
fn screened(report: &Report) -> impl Iterator<Item = (&str, String)> {
    let nodes =
        report.screen.iter().flat_map(|screen| screen.screened.iter().map(move |node| (screen, node)));
    nodes.filter_map(|(screen, node)| Some((node.node.as_str(), reason_of_screen(screen, node)?)))
}

/// True if a kernel failed on all of several nodes, or on the only node in all rounds: then the reason is the kernel, its
/// options or the user's program, and a list of all nodes would let no job run.
fn failed_everywhere(screen: &ScreenReport, kernel: &str) -> bool {
    let has_failed = |node: &ScreenedNode| {
        node.kernels.get(kernel).is_some_and(|of| of.verdict == Some(ScreenVerdict::Failed))
    };
    let in_all_rounds = screen.kernels.iter().any(|of| of.kernel == kernel && of.failed_everywhere);
    in_all_rounds || (screen.screened.len() > 1 && screen.screened.iter().all(has_failed))
}

/// How many nodes have the verdict SLOWED for this kernel, and how many nodes ran it.
fn slowed_of_all(screen: &ScreenReport, kernel: &str) -> (usize, usize) {
    let all = screen.screened.iter().filter_map(|node| node.kernels.get(kernel));
    let verdicts: Vec<Option<ScreenVerdict>> = all.map(|of| of.verdict).collect();
    let slowed = verdicts.iter().filter(|of| **of == Some(ScreenVerdict::Slowed)).count();
    (slowed, verdicts.len())
}

/// True if most of 2 to 4 nodes became slower than in earlier screens: then the reason may be what they share, such as an
/// update, the room's temperature or the neighbours of a virtual machine. From 5 nodes on, [`crate::verdicts`] tells a
/// change of the class from a change of nodes.
fn slowed_together(screen: &ScreenReport, kernel: &str) -> bool {
    let (slowed, all) = slowed_of_all(screen, kernel);
    (2..FEWEST_NODES).contains(&all) && 2 * slowed > all
}

fn reason_of_screen(screen: &ScreenReport, node: &ScreenedNode) -> Option<String> {
    let kernel = node.kernel.as_deref()?;
    let by = || node.slowdown.map_or_else(String::new, |by| format!(" {}", percent(by, 1)));
    match node.verdict? {
        ScreenVerdict::Wrong => Some(format!("WRONG: {kernel} computed a wrong result")),
        // A job would fail there, too, or wait for the node.
        ScreenVerdict::Failed => {
            let is_of_node = |(kernel, of): &(&String, &KernelOfNode)| {
                of.verdict == Some(ScreenVerdict::Failed) && !failed_everywhere(screen, kernel)
            };
            let (kernel, of) = node.kernels.iter().find(is_of_node)?;
            let all = count(of.runs + of.failed_runs, "run");
            Some(format!("FAILED: {kernel} failed in {} of {all}", of.failed_runs))
        }
        verdict @ (ScreenVerdict::Slow | ScreenVerdict::SlowTail) => {
            Some(format!("{}: {kernel}{} compared with its class", verdict.name(), by()))
        }
        // The work of a kernel never changes; that of a program may.
        ScreenVerdict::Slowed if screen.is_kernel(kernel) && !slowed_together(screen, kernel) => {
            Some(format!("SLOWED: {kernel}{} compared with earlier screens", by()))
        }
        _ => None,
    }
}

/// Why a node should be avoided, and how sure that is.
fn reason(node: &NodeReport) -> Option<String> {
    let member = node.as_member_of.as_ref();
    let of_class = [
        ("its class", node.verdict, node.slowdown, node.slower_by_at_least),
        (
            "its peers",
            member.and_then(|of| of.verdict),
            member.and_then(|of| of.slowdown),
            member.and_then(|of| of.slower_by_at_least),
        ),
    ];
    let of_class = of_class.into_iter().find_map(|(others, verdict, slowdown, least)| match verdict? {
        Verdict::Wrong => Some("WRONG: a run computed a wrong result".to_owned()),
        verdict @ (Verdict::Slow | Verdict::SlowTail) => Some(format!(
            "{}: {} compared with {others} (with a probability of 99 % at least {})",
            verdict.name(),
            percent(slowdown?, 1),
            percent(least.unwrap_or_default(), 1)
        )),
        _ => None,
    });
    let slowed = || {
        // In a class of few nodes, the work may have changed and not the node.
        let is_of_node = |history: &&HistoryReport| {
            history.verdict == Some(OwnVerdict::Slowed) && history.relative_to_class == Some(true)
        };
        let history = Some(&node.history).filter(is_of_node)?;
        let since = history.events.since.as_deref().unwrap_or("an earlier session");
        Some(format!(
            "SLOWED: {} since {since}, compared with earlier sessions (with a probability of 99 % at least {})",
            percent(history.change?, 1),
            percent(history.events.at_least?, 1)
        ))
    };
    of_class.or_else(slowed)
}
