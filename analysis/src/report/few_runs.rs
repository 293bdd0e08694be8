//! Nodes with too few runs of a program for an interval of their median, or with too few rounds of a screen for a
//! verdict.

use super::FEWEST_ROUNDS;
use super::run::RunReport;
use super::screen::ScreenReport;
use crate::verdicts::node_report::{NodeReport, class_numbers};
use crate::warnings::of_classes::NodeRuns;
use crate::warnings::{ClassWarning, FirstFew};
use hashbrown::HashSet;
use pmmpi::order_statistics::FEWEST_OF_INTERVAL;
use std::collections::BTreeMap;

/// The fewest runs of a node, and the number of the class that has so few. `None` if it does not matter.
type RunsInClass = (usize, Option<usize>);

/// By name of the node.
type Fewest<'a> = BTreeMap<&'a str, RunsInClass>;

/// One warning for the nodes of screens, and one for all others: the user adds runs with different options. Nodes of earlier
/// screens do not count.
pub fn warnings(
    nodes: &[NodeReport],
    screen: Option<&ScreenReport>,
    runs: &[RunReport],
) -> Vec<ClassWarning> {
    let rounds: HashSet<&str> =
        runs.iter().filter(|run| run.screened.is_some()).map(|run| run.run_id.as_str()).collect();
    let is_round = |node: &NodeReport| rounds.contains(node.median_run_id.as_str());
    let of_screen = nodes.iter().filter(|node| node.kernels.is_some() || is_round(node));
    let classes: HashSet<&str> = of_screen.map(|node| node.class.as_str()).collect();
    let (mut of_screens, mut of_others) = (Fewest::new(), Fewest::new());
    let numbers = class_numbers(nodes);
    // The node may have enough runs in another class.
    let number = |node: &NodeReport| (numbers.len() > 1).then(|| numbers[node.class.as_str()]);
    for node in nodes {
        match classes.contains(node.class.as_str()) {
            true if is_round(node) => add(&mut of_screens, &node.node, (node.runs, None), FEWEST_ROUNDS),
            true => {}
            false => add(&mut of_others, &node.node, (node.runs, number(node)), FEWEST_OF_INTERVAL),
        }
    }
    for node in screen.iter().flat_map(|screen| &screen.screened) {
        // A kernel without any result has failed, which is another matter.
        let kernels = node.kernels.values().filter(|of| of.runs > 0 && of.failed_runs == 0);
        kernels.for_each(|of| add(&mut of_screens, &node.node, (of.runs, None), FEWEST_ROUNDS));
    }
    let few_rounds =
        fewest_first(of_screens).map(|nodes| ClassWarning::FewRounds { nodes, needed: FEWEST_ROUNDS });
    let few_runs =
        fewest_first(of_others).map(|nodes| ClassWarning::FewRuns { nodes, needed: FEWEST_OF_INTERVAL });
    few_rounds.into_iter().chain(few_runs).collect()
}

fn add<'a>(fewest: &mut Fewest<'a>, node: &'a str, few: RunsInClass, needed: usize) {
    if few.0 < needed {
        fewest.entry(node).and_modify(|known| *known = few.min(*known)).or_insert(few);
    }
}

/// The nodes with the fewest runs first; `None` without nodes.
fn fewest_first(fewest: Fewest<'_>) -> Option<FirstFew<NodeRuns>> {
    const NAMED: usize = 3;
    let mut fewest: Vec<(&str, RunsInClass)> = fewest.into_iter().collect();
    fewest.sort_by_key(|(node, (runs, _))| (*runs, *node));
    let of = |(node, (runs, class)): (&str, RunsInClass)| NodeRuns { node: node.to_owned(), runs, class };
    let nodes = FirstFew::of(fewest.into_iter(), NAMED, of);
    (nodes.all > 0).then_some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_with_the_fewest_runs_is_named() {
        let told = |classes: &[RunsInClass]| {
            let mut fewest = Fewest::new();
            classes.iter().for_each(|few| add(&mut fewest, "vm", *few, 5));
            fewest_first(fewest)
        };
        let vm = |runs, class| {
            Some(FirstFew { first: vec![NodeRuns { node: "vm".to_owned(), runs, class }], all: 1 })
        };
        assert_eq!(told(&[(7, Some(1)), (2, Some(2)), (1, Some(3))]), vm(1, Some(3)));
        assert_eq!(told(&[(3, None)]), vm(3, None));
        assert_eq!(told(&[(5, None)]), None);
    }
}
