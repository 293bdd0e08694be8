//! Whether the latest session still has a node: a node that is not measured any more must not vanish without a word.

use super::node_report::{NodeReport, Presence};
use crate::table::{Order, RunTable};
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// A session counts if it has more than this part of the nodes of the largest of the sessions shortly before it.
/// Other sessions have few nodes, such as suspects that are measured again.
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
    let counts: BTreeMap<Work, Vec<(u32, bool)>> =
        works.iter().map(|(work, sessions)| (*work, sessions.counts())).collect();
    let together = Together::of(&works, &counts);
    let presence_after: BTreeMap<Work, Vec<(u32, Presence)>> =
        counts.iter().map(|(work, counts)| (*work, presence_after(counts))).collect();
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
            true => after.unwrap_or_default().max(together.presence(work, node)),
            false => Presence::Moved,
        };
        // These runs say nothing of the node as it is now.
        if report.presence != Presence::Present {
            report.suggests_drain = false;
            if let Some(member) = report.as_member_of.as_deref_mut() {
                member.suggests_drain = false;
            }
        }
    }
}

fn work(table: &RunTable, class: u32) -> Work<'_> {
    let parts = table.class_parts.get(&class).map(|parts| parts.work.as_str());
    parts.or_else(|| table.classes.get(class)).unwrap_or_default()
}

/// Works that are measured together. If the latest sessions have the other works but not this work, the nodes of this
/// work are missing, unless they did another work there.
struct Together<'a> {
    /// For each work, the sessions that should have it after its latest one.
    later: BTreeMap<Work<'a>, Vec<u32>>,
    /// The latest session of each node in any work.
    latest: HashMap<u32, u32>,
}

impl<'a> Together<'a> {
    /// `counts` has [`Sessions::counts`] of each work.
    fn of(works: &BTreeMap<Work<'a>, Sessions>, counts: &BTreeMap<Work<'a>, Vec<(u32, bool)>>) -> Self {
        let mut all = Self { later: BTreeMap::new(), latest: HashMap::new() };
        if works.len() < 2 {
            return all;
        }
        for (node, (rank, _)) in works.values().flat_map(|sessions| &sessions.latest) {
            let latest = all.latest.entry(*node).or_default();
            *latest = (*latest).max(*rank);
        }
        let newest = works.values().filter_map(Sessions::last).max();
        for (work, sessions) in works.iter().filter(|(_, sessions)| sessions.last() < newest) {
            let Some(last) = sessions.last() else { continue };
            let others = works.iter().filter(|(other, others)| *other != work && sessions.goes_with(others));
            let mut later: Vec<u32> = others
                .flat_map(|(other, _)| &counts[other])
                .filter(|(rank, counts)| *counts && *rank > last)
                .map(|(rank, _)| *rank)
                .collect();
            later.sort_unstable();
            later.dedup();
            all.later.insert(work, later);
        }
        all
    }

    fn presence(&self, work: Work, node: u32) -> Presence {
        let (Some(later), Some(latest)) = (self.later.get(work), self.latest.get(&node)) else {
            return Presence::Present;
        };
        Presence::after(later.iter().filter(|rank| *rank > latest).count())
    }
}

impl Presence {
    /// The presence of a node that was last measured so many sessions ago.
    fn after(later: usize) -> Self {
        match later {
            0 => Self::Present,
            1 => Self::Missing,
            _ => Self::Gone,
        }
    }
}

impl Sessions {
    fn last(&self) -> Option<u32> {
        self.nodes.last_key_value().map(|(rank, _)| *rank)
    }

    /// True if, until now, at least three of four sessions of each of both works also had the other work. Only the latest ones
    /// count.
    fn goes_with(&self, other: &Self) -> bool {
        let Some(last) = self.last() else { return false };
        let is_often_in = |one: &Self, another: &Self| {
            let latest = || one.nodes.range(..=last).rev().take(SHORTLY);
            4 * latest().filter(|(rank, _)| another.nodes.contains_key(*rank)).count() >= 3 * latest().count()
        };
        is_often_in(self, other) && is_often_in(other, self)
    }

    /// Each session, in the order of time, and whether it counts.
    fn counts(&self) -> Vec<(u32, bool)> {
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
            let most = shortly.iter().map(|(_, nodes)| *nodes).max().unwrap_or_default();
            (sizes[at].0, LEAST_PART * sizes[at].1 > most)
        };
        (0..sizes.len()).map(counts).collect()
    }
}

/// For each session, in the order of time, the presence of a node that was last measured in it.
fn presence_after(sessions: &[(u32, bool)]) -> Vec<(u32, Presence)> {
    let mut later = 0;
    let mut found: Vec<(u32, Presence)> = Vec::with_capacity(sessions.len());
    for (rank, counts) in sessions.iter().rev() {
        found.push((*rank, Presence::after(later)));
        later += usize::from(*counts);
    }
    found.reverse();
    found
}
