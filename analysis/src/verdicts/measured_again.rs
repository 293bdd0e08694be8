//! Nodes that were measured again in a session with too few nodes for a comparison: their times in seconds, compared with
//! the times of their session before.

use super::class_report::MeasuredAgain;
use super::history::{self, History};
use super::judged_session::Sessions;
use super::rounds_of_runs;

/// The nodes of the latest session whose times there are not compared with their earlier sessions, the slowest first.
/// Empty if the session has nodes enough, and if it is a screen: see [`super::screen_of_few`].
pub(super) fn of(sessions: &Sessions, histories: &[History]) -> Vec<MeasuredAgain> {
    let Some((number, latest)) = &sessions.latest else { return Vec::new() };
    let most = sessions.nodes.iter().map(|nodes| nodes.len()).max().unwrap_or_default();
    if history::has_level(latest.nodes.len(), most) {
        return Vec::new();
    }
    let table = sessions.table;
    if latest.nodes.iter().all(|rows| rounds_of_runs::are_of_a_screen(table, rows)) {
        return Vec::new();
    }
    let of_node = |(place, rows): (usize, &&[u32])| {
        let node = table.node.at(rows[0] as usize);
        let history = histories.iter().find(|history| history.node == node)?;
        let before = history.since_restart().last().filter(|before| before.session as usize != *number)?;
        let now = latest.medians[place].median;
        Some(MeasuredAgain {
            node: table.node_name(rows[0] as usize).to_owned(),
            session: table.session_name(rows[0] as usize).map(str::to_owned),
            seconds: now.exp(),
            runs: rows.len(),
            session_before: table.session_name(before.row as usize).map(str::to_owned),
            seconds_before: before.median.exp(),
            change: (now - before.median).exp_m1(),
        })
    };
    let mut nodes: Vec<MeasuredAgain> = latest.nodes.iter().enumerate().filter_map(of_node).collect();
    nodes.sort_by(|a, b| b.change.total_cmp(&a.change).then_with(|| a.node.cmp(&b.node)));
    nodes
}
