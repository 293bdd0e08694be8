//! Sessions with a small part of a class, as when suspects are measured again: their own median is no reference.

use super::JudgeSettings;
use super::history::History;
use super::judged_session::JudgedSession;
use crate::stats::verdict_rule::{self, MeasuredNode, NodeJudgement, Verdict};
use crate::stats::within_nodes;
use crate::table::RunTable;
use std::collections::BTreeMap;

/// A session of suspects needs at least this many other nodes as anchors.
pub(super) const MIN_ANCHORS: usize = 3;

/// At most this many nodes of the rest of the class are in a comparison: an archive may have thousands of small sessions.
const MOST_OTHERS: usize = 1000;

/// In a class of so few nodes, suspects may be most of a session that has most of the class.
const SMALL_CLASS: usize = 40;

/// How a session with a small part of the class judges its nodes.
enum Reference {
    /// By anchors: nodes that were OK in an earlier session.
    Anchors {
        /// In the order of the session's nodes.
        judged: Vec<NodeJudgement>,
        /// Most nodes of the session are anchors, so its counts have a reference.
        are_most: bool,
    },
    /// Not at all: too few anchors. Earlier verdicts stay.
    Nothing,
}

/// A session of suspects that cannot judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FewAnchors {
    pub session: usize,
    pub suspects: usize,
    pub anchors: usize,
    /// The times are so coarse that anchors would not help.
    pub is_coarse: bool,
}

/// The sessions of a class that have a small part of its nodes.
#[derive(Default)]
pub(super) struct SuspectSessions {
    references: BTreeMap<usize, Reference>,
    /// Sessions that cannot judge, in the order of time.
    pub few_anchors: Vec<FewAnchors>,
    /// What is known of each node of a session that judges it, by session.
    earlier: BTreeMap<usize, Vec<Earlier>>,
}

/// A node in the session that judges it.
#[derive(Clone, Copy)]
struct Earlier {
    /// Its verdict is not OK.
    is_suspect: bool,
    /// The variance of its median, with what successive runs have in common. `None` if the standing has it.
    variance: Option<f64>,
}

/// The class as it stands before a session.
pub(super) struct Before<'a> {
    pub table: &'a RunTable,
    pub settings: &'a JudgeSettings,
    /// All sessions of the class, with the rows of each node.
    pub sessions: &'a [&'a [&'a [u32]]],
    pub histories: &'a [History],
}

impl SuspectSessions {
    /// True if the session compares its nodes with one another.
    pub fn has_own_reference(&self, number: usize) -> bool {
        !self.references.contains_key(&number)
    }

    /// True if the counts of a session's nodes can be compared with one another.
    pub fn has_causes(&self, number: usize) -> bool {
        match self.references.get(&number) {
            None => true,
            Some(Reference::Anchors { are_most, .. }) => *are_most,
            Some(Reference::Nothing) => false,
        }
    }

    /// The judgements of all nodes of a session.
    pub fn judged(
        &self,
        number: usize,
        session: &JudgedSession,
        settings: &JudgeSettings,
    ) -> Vec<NodeJudgement> {
        match self.references.get(&number) {
            None => session.judged(settings),
            Some(Reference::Anchors { judged, .. }) => session.limited(judged.clone()),
            Some(Reference::Nothing) => vec![NodeJudgement::default(); session.nodes.len()],
        }
    }

    /// Decides how session `number` judges its nodes, and gives the median of each node relative to the class; `None`
    /// for a session that cannot judge. `known` has the history of each node of the session, if there is one.
    pub fn add(
        &mut self,
        number: usize,
        session: &mut JudgedSession,
        known: &[Option<usize>],
        before: &Before,
    ) -> Option<Vec<MeasuredNode>> {
        // Most nodes of a class cannot be suspects, because nodes are compared with their median.
        let (nodes, known_nodes) = (session.nodes.len(), before.histories.len());
        let is_part = 2 * nodes <= known_nodes;
        let judges_many = if known_nodes <= SMALL_CLASS { nodes >= known_nodes } else { !is_part };
        if judges_many {
            return own_standings(session, known, before);
        }
        session.consult_starts(before.table);
        let earlier = self.earlier(known, before);
        let suspects = earlier.iter().flatten().filter(|(_, is_suspect)| *is_suspect).count();
        let anchor = |(place, earlier): (usize, &Option<(MeasuredNode, bool)>)| {
            earlier.filter(|(_, is_suspect)| !is_suspect).map(|(standing, _)| (place, standing))
        };
        let anchors: Vec<(usize, MeasuredNode)> = earlier.iter().enumerate().filter_map(anchor).collect();
        // Anchors give a level, but no unit of time: rounded times need a reference in the same session.
        let is_coarse = session.is_coarse();
        let can_compare = anchors.len() >= MIN_ANCHORS && !is_coarse;
        if can_compare && (is_part || 4 * suspects >= nodes) {
            return self.compare(number, session, &anchors, known, before);
        }
        if 2 * suspects <= nodes {
            return own_standings(session, known, before);
        }
        self.references.insert(number, Reference::Nothing);
        let anchors = anchors.len();
        self.few_anchors.push(FewAnchors { session: number, suspects, anchors, is_coarse });
        None
    }

    /// Compares the nodes of a session with the class as it was before. The anchors have the class's level in the session.
    fn compare(
        &mut self,
        number: usize,
        session: &JudgedSession,
        anchors: &[(usize, MeasuredNode)],
        known: &[Option<usize>],
        before: &Before,
    ) -> Option<Vec<MeasuredNode>> {
        let mut nodes = session.measured();
        let shift = |(place, standing): &(usize, MeasuredNode)| nodes[*place].median - standing.median;
        let mut shifts: Vec<f64> = anchors.iter().map(shift).collect();
        let of_one =
            |(place, standing): &(usize, MeasuredNode)| Some(nodes[*place].variance? + standing.variance?);
        let mut errors: Vec<f64> = anchors.iter().filter_map(of_one).collect();
        let error =
            within_nodes::variance_factor(shifts.len()) * within_nodes::median_of(&mut errors).unwrap_or(0.0);
        let level = within_nodes::median_of(&mut shifts)?;
        for node in &mut nodes {
            node.median -= level;
            node.variance = node.variance.map(|variance| variance + error);
        }
        let mut is_here = vec![false; before.histories.len()];
        known.iter().flatten().for_each(|at| is_here[*at] = true);
        let step = is_here.len().div_ceil(MOST_OTHERS);
        let standing = |at: usize| before.histories[at].standing;
        let others = (0..is_here.len()).step_by(step).filter(|at| !is_here[*at]).filter_map(standing);
        let class: Vec<MeasuredNode> = nodes.iter().copied().chain(others).collect();
        let judged = verdict_rule::judge_first(nodes.len(), &class, None, &before.settings.node);
        let are_most = 2 * anchors.len() > nodes.len();
        self.references.insert(number, Reference::Anchors { judged, are_most });
        Some(nodes)
    }

    /// The standing of each node of a session, and whether its verdict was not OK; `None` for a node that was not judged
    /// before.
    fn earlier(&mut self, known: &[Option<usize>], before: &Before) -> Vec<Option<(MeasuredNode, bool)>> {
        let mut earlier = Vec::with_capacity(known.len());
        for at in known {
            let standing = at.and_then(|at| {
                let history = &before.histories[at];
                let [number, place] = history.judged_in()?;
                let Earlier { is_suspect, variance } = self.in_session(number, before)[place];
                let standing = history.standing?;
                Some((MeasuredNode { variance: variance.or(standing.variance), ..standing }, is_suspect))
            });
            earlier.push(standing);
        }
        earlier
    }

    fn in_session(&mut self, number: usize, before: &Before) -> &[Earlier] {
        if !self.earlier.contains_key(&number) {
            let session = JudgedSession::of(before.table, before.sessions[number]);
            let nodes = session.map(|session| {
                let session = session.with_starts(before.table);
                let is_own = self.has_own_reference(number);
                let of = |(judged, node): (NodeJudgement, MeasuredNode)| Earlier {
                    is_suspect: judged.verdict > Some(Verdict::Ok),
                    variance: node.variance.filter(|_| is_own),
                };
                self.judged(number, &session, before.settings)
                    .into_iter()
                    .zip(session.measured())
                    .map(of)
                    .collect()
            });
            self.earlier.insert(number, nodes.unwrap_or_default());
        }
        &self.earlier[&number]
    }
}

/// The nodes of a session that compares them with one another. If most of them were judged before, their earlier
/// standings show how they differ from the class: the session may have more slow nodes than the class.
fn own_standings(
    session: &JudgedSession,
    known: &[Option<usize>],
    before: &Before,
) -> Option<Vec<MeasuredNode>> {
    let mut nodes = session.measured();
    let mut centre = session.centre()?;
    let standing = |at: &Option<usize>| before.histories[(*at)?].standing;
    let (mut now, mut earlier): (Vec<f64>, Vec<f64>) =
        nodes.iter().zip(known).filter_map(|(node, at)| Some((node.median, standing(at)?.median))).unzip();
    if 2 * now.len() > nodes.len() {
        centre = within_nodes::median_of(&mut now)? - within_nodes::median_of(&mut earlier)?;
    }
    nodes.iter_mut().for_each(|node| node.median -= centre);
    Some(nodes)
}
