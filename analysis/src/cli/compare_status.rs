//! The exit status of a comparison.

use super::exit_statuses::{COULD_NOT_JUDGE, FOUND};
use super::options::CompareFailOn;
use pmmpi_analysis::comparison::Comparison;

/// The status with `--fail-on`; `partial` if a part of the input could not be used.
pub fn of(comparison: &Comparison, fail_on: &[CompareFailOn], partial: bool) -> u8 {
    let classes = comparison.classes.iter().map(|class| (class.ratio, class.different));
    let nodes = comparison.nodes.iter().map(|node| (node.ratio, node.different));
    let certain: Vec<f64> = classes.chain(nodes).filter(|(_, is)| *is).map(|(ratio, _)| ratio).collect();
    let is_found = |what: &CompareFailOn| match what {
        CompareFailOn::Different => !certain.is_empty(),
        CompareFailOn::Slower(size) => certain.iter().any(|ratio| *ratio > 1.0 + size),
        CompareFailOn::Faster(size) => certain.iter().any(|ratio| *ratio < 1.0 / (1.0 + size)),
    };
    // A check that cannot see a difference of this size must not succeed.
    let is_visible = |what: &CompareFailOn| match what {
        CompareFailOn::Different => comparison.classes.iter().all(|class| class.smallest_visible.is_some()),
        CompareFailOn::Slower(size) | CompareFailOn::Faster(size) => {
            let limit = if *size > 0.0 { *size } else { f64::INFINITY };
            comparison
                .classes
                .iter()
                .all(|class| class.smallest_visible.is_some_and(|visible| visible <= limit))
        }
    };
    // If most runs of a set have no partner, the rest says little.
    let is_whole = [&comparison.a, &comparison.b].iter().all(|set| 2 * set.compared >= set.runs);
    let is_visible = |what: &CompareFailOn| is_whole && is_visible(what);
    match (fail_on.iter().any(is_found), fail_on.iter().all(is_visible)) {
        (true, _) => FOUND,
        (false, false) => COULD_NOT_JUDGE,
        (false, true) => u8::from(partial),
    }
}
