//! Whether the latest session still has a node: a node that is not measured any more must not vanish without a word.

use super::node_report::{NodeReport, Presence};
use crate::table::{Order, RunTable};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A session counts if it has more than this part of the nodes of any of the sessions shortly before it: otherwise it is one
/// of few nodes, such as suspects that are measured again.
const LEAST_PART: usize = 3;
/// This many sessions before.
const SHORTLY: usize = 10;

/// What a node did: classes of the same work differ only in what the nodes are.
type Work<'a> = &'a str;

/// The sessions of a work.
#[derive(Default)]
struct Sessions {
    /// The nodes of each session, by its rank; a node of several classes several times.
    nodes: BTreeMap<u32, Vec<u32>>,
    /// The latest session of each node, and its class there.
    latest: HashMap<u32, (u32, u32)>,
}

/// Sets the presence in all reports. `classes` has the rows of each class by session and node.
pub(super) fn add_to(reports: &mut [NodeReport], table: &RunTable, order: &Order, classes: &[&[&[u32]]]) {
    let mut works: BTreeMap<Work, Sessions> = BTreeMap::new();
    for of_class in classes {
        let class = table.class.at(of_class[0][0] as usize);
        let sessions = works.entry(work(table, class)).or_default();
        let session_of = |rows: &&[u32]| table.session.at(rows[0] as usize);
        for of_session in of_class.chunk_by(|a, b| session_of(a) == session_of(b)) {
            let rank = order.session_ranks[session_of(&of_session[0]) as usize];
            let nodes = sessions.nodes.entry(rank).or_default();
            for rows in of_session {
                let node = table.node.at(rows[0] as usize);
                nodes.push(node);
                let latest = sessions.latest.entry(node).or_insert((rank, class));
                *latest = (*latest).max((rank, class));
            }
        }
    }
    let presence_after: BTreeMap<Work, Vec<(u32, Presence)>> =
        works.iter().map(|(work, sessions)| (*work, sessions.presence_after())).collect();
    for report in reports {
        let numbers = table.nodes.find(&report.node).zip(table.class_number(&report.class));
        let Some((node, class)) = numbers else { continue };
        let work = work(table, class);
        let Some((rank, in_class)) = works.get(work).and_then(|sessions| sessions.latest.get(&node)) else {
            continue;
        };
        let after =
            presence_after[work].iter().rfind(|(last, _)| last <= rank).map(|(_, presence)| *presence);
        report.presence = match *in_class == class {
            true => after.unwrap_or_default(),
            false => Presence::Moved,
        };
    }
}

fn work(table: &RunTable, class: u32) -> Work<'_> {
    let parts = table.class_parts.get(&class).map(|parts| parts.work.as_str());
    parts.or_else(|| table.classes.get(class)).unwrap_or_default()
}

impl Sessions {
    /// For each session, in the order of time, the presence of a node that was last measured in it.
    fn presence_after(&self) -> Vec<(u32, Presence)> {
        let different = |nodes: &Vec<u32>| {
            let mut nodes = nodes.clone();
            nodes.sort_unstable();
            nodes.dedup();
            nodes.len()
        };
        let sizes: Vec<(u32, usize)> =
            self.nodes.iter().map(|(rank, nodes)| (*rank, different(nodes))).collect();
        let counts = |at: usize| {
            let shortly = &sizes[at.saturating_sub(SHORTLY)..=at];
            LEAST_PART * sizes[at].1 > shortly.iter().map(|(_, nodes)| *nodes).max().unwrap_or_default()
        };
        let mut later = 0;
        let mut found: Vec<(u32, Presence)> = Vec::with_capacity(sizes.len());
        for at in (0..sizes.len()).rev() {
            let presence = match later {
                0 => Presence::Present,
                1 => Presence::Missing,
                _ => Presence::Gone,
            };
            found.push((sizes[at].0, presence));
            later += usize::from(counts(at));
        }
        found.reverse();
        found
    }
}
