//! Repaired nodes: is each fit to return to service? One answer per node.

use super::host_names;
use super::screen::{ScreenReport, ScreenedNode};
use crate::table::slurm_host_list::HostList;
use crate::verdicts::fitness::{Fitness, GateAnswer};
use crate::verdicts::kernels_of_node::{KernelOfNode, ScreenVerdict};
use pmmpi::text::count;
use std::collections::HashSet;

/// A node with fewer runs of a kernel is not fit for certain.
const FEWEST_RUNS: usize = 5;
/// Repaired nodes are not compared with one another only: a batch may share a fault.
const FEWEST_OTHERS: usize = 2;
/// A node that may be slower by more than this fraction is not fit for certain.
const MOST_UNCERTAIN: f64 = 0.1;

/// Adds the answers for the nodes of `list`, in its order.
pub fn ask(screen: &mut ScreenReport, list: &HostList) {
    let hosts = || screen.screened.iter().map(|node| node.node.as_str());
    let asked: Vec<(&str, Option<&str>)> =
        list.names().map(|name| (name, host_names::same(name, hosts()))).collect();
    let repaired: HashSet<&str> = asked.iter().filter_map(|(_, host)| *host).collect();
    let others = hosts().filter(|host| !repaired.contains(host)).count();
    let answer = |(name, host): (&str, Option<&str>)| {
        let node = screen.screened.iter().find(|node| Some(node.node.as_str()) == host);
        let (answer, reason) = match node {
            None => (Fitness::Undecided, "it did not take part in the screen".to_owned()),
            Some(_) if others < FEWEST_OTHERS => (
                Fitness::Undecided,
                format!(
                    "the screen had only {}, but a comparison needs {FEWEST_OTHERS} nodes that --gate does not name",
                    count(others, "other node")
                ),
            ),
            Some(node) => of(node),
        };
        GateAnswer { node: name.to_owned(), host: host.map(str::to_owned), answer, reason }
    };
    let answers: Vec<GateAnswer> = asked.into_iter().map(answer).collect();
    screen.gate = answers;
}

/// By how much the node may be slower, if that is too much for an answer: the interval of the slowdown is symmetric.
fn too_uncertain(kernel: &KernelOfNode) -> Option<f64> {
    let at_most = 2.0 * kernel.slowdown? - kernel.slower_by_at_least?;
    (at_most > MOST_UNCERTAIN).then_some(at_most)
}

fn of(node: &ScreenedNode) -> (Fitness, String) {
    let kernel = node.kernel.as_deref().unwrap_or("a kernel");
    // Below, kernels without a verdict leave it open.
    match node.verdict.unwrap_or(ScreenVerdict::Ok) {
        ScreenVerdict::Wrong => (Fitness::NotFit, format!("{kernel} computed a wrong result")),
        ScreenVerdict::Failed => (Fitness::NotFit, format!("{kernel} failed")),
        ScreenVerdict::Slow | ScreenVerdict::SlowTail => {
            (Fitness::NotFit, format!("in {kernel}, the node is slower than its class"))
        }
        ScreenVerdict::Slowed => (Fitness::NotFit, format!("in {kernel}, the node is slower than it was")),
        ScreenVerdict::Suspect | ScreenVerdict::Unusual => {
            (Fitness::Undecided, format!("in {kernel}, the node may be slow"))
        }
        ScreenVerdict::Fast => {
            (Fitness::Undecided, format!("in {kernel}, the node is much faster than its class"))
        }
        ScreenVerdict::Ok => {
            let open = node.kernels.iter().find(|(_, of)| of.verdict.is_none() || of.runs < FEWEST_RUNS);
            match open {
                None => match node.kernels.iter().find_map(|(kernel, of)| Some((kernel, too_uncertain(of)?)))
                {
                    None => (Fitness::Fit, String::new()),
                    Some((kernel, by)) => (
                        Fitness::Undecided,
                        format!(
                            "the times of {kernel} vary too much: the node may be up to {:.0} % slower than its class",
                            by * 100.0
                        ),
                    ),
                },
                Some((kernel, of)) if of.verdict.is_none() => (
                    Fitness::Undecided,
                    format!(
                        "pmmpi cannot compare {kernel} on this node with other nodes or with earlier \
                         screens: add healthy nodes of the same class, or use --archive"
                    ),
                ),
                Some((kernel, of)) => (
                    Fitness::Undecided,
                    format!("{kernel} has only {}, but --gate needs {FEWEST_RUNS}", count(of.runs, "run")),
                ),
            }
        }
    }
}
