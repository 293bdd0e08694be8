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
pub(super) enum Reference {
    /// By anchors: nodes that were OK in an earlier session. The judgements, in the order of the session's nodes.
    Anchors(Vec<NodeJudgement>),
    /// Not at all: too few anchors. Earlier verdicts stay.
    Nothing,
}

/// Numbers of nodes in a session that cannot judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FewAnchors {
    pub session: usize,
    pub suspects: usize,
    pub anchors: usize,
}

/// The sessions of a class that have a small part of its nodes.
#[derive(Default)]
pub(super) struct SuspectSessions {
    references: BTreeMap<usize, Reference>,
    /// Sessions that cannot judge, in the order of time.
    pub few_anchors: Vec<FewAnchors>,
    /// True for each node that is not OK in a session that judges it, by session.
    suspicion: BTreeMap<usize, Vec<bool>>,
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

    /// The judgements of all nodes of a session.
    pub fn judged(
        &self,
        number: usize,
        session: &JudgedSession,
        settings: &JudgeSettings,
    ) -> Vec<NodeJudgement> {
        match self.references.get(&number) {
            None => session.judged(settings),
            Some(Reference::Anchors(judged)) => session.limited(judged.clone()),
            Some(Reference::Nothing) => vec![NodeJudgement::default(); session.nodes.len()],
        }
    }

    /// Decides how session `number` judges its nodes, and gives the median of each node relative to the class; `None`
    /// for a session that cannot judge. `known` has the history of each node of the session, if there is one.
    pub fn add(
        &mut self,
        number: usize,
        session: &JudgedSession,
        known: &[Option<usize>],
        before: &Before,
    ) -> Option<Vec<MeasuredNode>> {
        let mut nodes = session.measured();
        // Most nodes of a class cannot be suspects, because nodes are compared with their median.
        let judged_before = |at: &usize| before.histories[*at].standing.is_some();
        let known_nodes = before.histories.len();
        let is_part = 2 * nodes.len() <= known_nodes;
        let judges_many = if known_nodes <= SMALL_CLASS { nodes.len() >= known_nodes } else { !is_part };
        let suspects = if judges_many { Vec::new() } else { self.suspects(known, before) };
        let (mut anchors, mut count) = (Vec::new(), 0);
        for (place, at) in known.iter().enumerate() {
            match suspects.get(place) {
                Some(true) => count += 1,
                Some(false) => anchors.extend(at.filter(judged_before).map(|at| (place, at))),
                None => {}
            }
        }
        // Anchors give a level, but no unit of time: rounded times need a reference in the same session.
        let has_anchors = anchors.len() >= MIN_ANCHORS
            && session.nodes.len() > 1
            && (is_part || 4 * count >= nodes.len())
            && !session.is_coarse();
        if !has_anchors && 2 * count <= nodes.len() {
            let centre = session.centre()?;
            nodes.iter_mut().for_each(|node| node.median -= centre);
            return Some(nodes);
        }
        if !has_anchors {
            self.references.insert(number, Reference::Nothing);
            self.few_anchors.push(FewAnchors { session: number, suspects: count, anchors: anchors.len() });
            return None;
        }
        // The class in this session: what its anchors show.
        let standing = |at: usize| before.histories[at].standing;
        let shift = |(place, at): &(usize, usize)| Some(nodes[*place].median - standing(*at)?.median);
        let mut shifts: Vec<f64> = anchors.iter().filter_map(shift).collect();
        let of_one = |(place, at): &(usize, usize)| Some(nodes[*place].variance? + standing(*at)?.variance?);
        let mut errors: Vec<f64> = anchors.iter().filter_map(of_one).collect();
        let error =
            within_nodes::variance_factor(shifts.len()) * within_nodes::median_of(&mut errors).unwrap_or(0.0);
        let centre = within_nodes::median_of(&mut shifts)?;
        for node in &mut nodes {
            node.median -= centre;
            node.variance = node.variance.map(|variance| variance + error);
        }
        let mut is_here = vec![false; before.histories.len()];
        known.iter().flatten().for_each(|at| is_here[*at] = true);
        let step = is_here.len().div_ceil(MOST_OTHERS);
        let others = (0..is_here.len()).step_by(step).filter(|at| !is_here[*at]).filter_map(standing);
        let class: Vec<MeasuredNode> = nodes.iter().copied().chain(others).collect();
        let mut judged = verdict_rule::judge(&class, None, &before.settings.node);
        judged.truncate(nodes.len());
        self.references.insert(number, Reference::Anchors(judged));
        Some(nodes)
    }

    /// True for each node of a session whose earlier verdict is not OK.
    fn suspects(&mut self, known: &[Option<usize>], before: &Before) -> Vec<bool> {
        let mut suspects = Vec::with_capacity(known.len());
        for at in known {
            let judged_in = at.and_then(|at| before.histories[at].judged_in());
            suspects.push(judged_in.is_some_and(|[number, place]| self.suspicion(number, before)[place]));
        }
        suspects
    }

    fn suspicion(&mut self, number: usize, before: &Before) -> &[bool] {
        if !self.suspicion.contains_key(&number) {
            let session = JudgedSession::of(before.table, before.sessions[number]);
            let judged = session.map(|session| {
                let session = session.with_starts(before.table);
                self.judged(number, &session, before.settings)
            });
            let is_suspect = |node: &NodeJudgement| node.verdict > Some(Verdict::Ok);
            self.suspicion.insert(number, judged.unwrap_or_default().iter().map(is_suspect).collect());
        }
        &self.suspicion[&number]
    }
}
