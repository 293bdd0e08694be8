//! Nodes with too few runs of a program for an interval of their median, or with too few rounds of a screen for a
//! verdict.

use super::FEWEST_ROUNDS;
use super::run::RunReport;
use super::screen::ScreenReport;
use crate::verdicts::node_report::{NodeReport, class_numbers};
use crate::warning_codes::{Warning, WarningCode};
use hashbrown::HashSet;
use pmmpi::order_statistics::FEWEST_OF_INTERVAL;
use pmmpi::text::count;
use std::collections::BTreeMap;

/// The fewest runs of a node, and the number of the class that has so few. `None` if it does not matter.
type RunsInClass = (usize, Option<usize>);

/// By name of the node.
type Fewest<'a> = BTreeMap<&'a str, RunsInClass>;

/// One warning for the nodes of screens, and one for all others: the user adds runs with different options. Nodes of earlier
/// screens do not count.
pub fn warnings(nodes: &[NodeReport], screen: Option<&ScreenReport>, runs: &[RunReport]) -> Vec<Warning> {
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
    [
        (of_screens, WarningCode::FewRounds, FEWEST_ROUNDS, " of a kernel", "of a kernel"),
        (of_others, WarningCode::FewRuns, FEWEST_OF_INTERVAL, "", "in a class"),
    ]
    .into_iter()
    .filter_map(|(fewest, code, needed, of_one, of_several)| {
        Some(Warning::new(code, message(fewest, needed, [of_one, of_several])?))
    })
    .collect()
}

fn add<'a>(fewest: &mut Fewest<'a>, node: &'a str, few: RunsInClass, needed: usize) {
    if few.0 < needed {
        fewest.entry(node).and_modify(|known| *known = few.min(*known)).or_insert(few);
    }
}

fn message(fewest: Fewest<'_>, needed: usize, [of_one, of_several]: [&str; 2]) -> Option<String> {
    const NAMED: usize = 3;
    let mut fewest: Vec<(&str, RunsInClass)> = fewest.into_iter().collect();
    fewest.sort_by_key(|(node, (runs, _))| (*runs, *node));
    if let [(node, (runs, class))] = fewest[..] {
        let of_one = class.map_or_else(|| of_one.to_owned(), |class| format!(" of class {class}"));
        return Some(format!(
            "{node} has only {}{of_one}, but the report needs {needed}",
            count(runs, "run")
        ));
    }
    let named =
        fewest.iter().take(NAMED).map(|(node, (runs, _))| format!("{node} ({})", count(*runs, "run")));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match fewest.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {}", count(more, "more node")),
    };
    (!fewest.is_empty()).then(|| format!("nodes with fewer than {needed} runs {of_several}: {named}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_with_the_fewest_runs_is_named() {
        let told = |classes: &[RunsInClass]| {
            let mut fewest = Fewest::new();
            classes.iter().for_each(|few| add(&mut fewest, "vm", *few, 5));
            message(fewest, 5, ["", "in a class"])
        };
        let of_class = "vm has only 1 run of class 3, but the report needs 5";
        assert_eq!(told(&[(7, Some(1)), (2, Some(2)), (1, Some(3))]).as_deref(), Some(of_class));
        assert_eq!(told(&[(3, None)]).as_deref(), Some("vm has only 3 runs, but the report needs 5"));
        assert_eq!(told(&[(5, None)]), None);
    }
}
