//! Shows which node the others waited for.

use super::{and_more, line, shown};
use crate::render::cells::seconds;
use crate::render::node_names::NodeNames;
use crate::report::lateness::{NodeWait, WORTH_A_WORD, WaitedFor};
use crate::report::run::RunReport;
use pmmpi::text::seconds_between;

const TITLE: &str = "WAITED FOR (latest run with several nodes)";

/// The latest run with several nodes.
fn latest(runs: &[RunReport]) -> Option<(&RunReport, &WaitedFor)> {
    runs.iter().rev().find_map(|run| Some((run, run.waited_for.as_ref()?)))
}

/// The nodes of the table.
pub fn nodes(runs: &[RunReport]) -> impl Iterator<Item = &str> {
    latest(runs).into_iter().flat_map(|(run, _)| &run.node_waits).map(|node| node.node.as_str())
}

/// The nodes of the latest run with several nodes.
pub fn table(text: &mut String, runs: &[RunReport], names: &NodeNames, top: usize) {
    let Some((run, waited_for)) = latest(runs) else { return };
    line(text, "");
    let waiting = waited_for.waiting_share.map_or(String::new(), |share| {
        format!("; the ranks spent {:.1} % of their time waiting at the end of the job", share * 100.0)
    });
    let (last, rank) = (&waited_for.node, waited_for.rank);
    if !waited_for.sure {
        return line(
            text,
            &format!(
                "in the latest run with several nodes, the stamps do not prove which node came last to the \
                 end barrier{waiting}"
            ),
        );
    }
    // A single line suffices.
    if waited_for.share.is_none_or(|share| share < WORTH_A_WORD) {
        let (least, _) = between(waited_for.lateness_s);
        let said = format!(
            "in the latest run with several nodes, {last} came last to the end barrier, at least {least} s \
             after all other nodes{waiting}"
        );
        return line(text, &said);
    }
    let width = names.width.max(TITLE.len());
    line(
        text,
        &format!(
            "{TITLE:<width$} {:>5} {:>10} {:>10}  LATER THAN OTHERS BY, s",
            "RANKS", "WORKED, s", "WAITED, s"
        ),
    );
    let (shown, hidden) = shown(run.node_waits_count, top);
    for node in run.node_waits.iter().take(shown) {
        row(text, node, names.shown(&node.node), width);
    }
    and_more(text, hidden, "more node");
    line(text, &format!("{last} came last, and rank {rank} was the last rank of this node{waiting}"));
}

/// The longest work and the shortest wait of the node's ranks; usually both belong to its last rank.
fn row(text: &mut String, node: &NodeWait, name: &str, width: usize) {
    let ([.., work], [wait, ..]) = (node.work_s, node.wait_s);
    let [work, wait] = [work, wait].map(seconds);
    let later = node.lateness_s.map_or("unknown".to_owned(), |lateness| {
        let (least, most) = between(lateness);
        format!("{least} to {most}")
    });
    line(text, &format!("{name:<width$} {:>5} {work:>10} {wait:>10}  {later}", node.ranks));
}

fn between(seconds: [f64; 2]) -> (String, String) {
    let [least, most] = seconds.map(|s| (s * 1e9).round() as i64);
    seconds_between(least, most)
}
