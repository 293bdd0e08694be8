//! Sessions with a small part of a class, as when suspects are measured again: their own median is no reference.

use super::JudgeSettings;
use super::history::History;
use super::judged_session::JudgedSession;
use crate::stats::resolution::Units;
use crate::stats::verdict_rule::{self, MeasuredNode, NodeJudgement, Verdict};
use crate::stats::within_nodes;
use crate::table::RunTable;
use std::collections::BTreeMap;

/// A session of suspects needs at least this many other nodes as anchors.
pub(super) const MIN_ANCHORS: usize = 3;

/// At most this many nodes of the rest of the class are in a comparison: an archive may have thousands of small sessions.
const MOST_OTHERS: usize = 1000;

/// In a class of so few nodes, only a session with as many nodes is a session of the class.
const SMALL_CLASS: usize = 40;
/// In a larger class, a session with this share of the number of nodes is.
const MOST: f64 = 0.8;

/// How a session with a small part of the class judges its nodes.
enum Reference {
    /// By anchors: nodes that were OK or FAST in an earlier session.
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
    /// Its verdict is neither OK nor FAST.
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

    /// True if the session judges its nodes, by themselves or by anchors.
    pub fn judges(&self, number: usize) -> bool {
        !matches!(self.references.get(&number), Some(Reference::Nothing))
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
            Some(Reference::Anchors { judged, .. }) => session.limited(judged.clone(), settings),
            Some(Reference::Nothing) => vec![NodeJudgement::default(); session.nodes.len()],
        }
    }

    /// Decides how session `number` judges its nodes, and gives the median of each node relative to the class; `None`
    /// for a node that the session cannot judge. `known` has the history of each node of the session, if there is one.
    pub fn add(
        &mut self,
        number: usize,
        session: &mut JudgedSession,
        known: &[Option<usize>],
        before: &Before,
    ) -> Vec<Option<MeasuredNode>> {
        let (nodes, known_nodes) = (session.nodes.len(), before.histories.len());
        let of_class =
            if known_nodes <= SMALL_CLASS { known_nodes as f64 } else { MOST * known_nodes as f64 };
        if nodes as f64 >= of_class {
            return relative(session, session.centre(), |_| true);
        }
        session.consult_starts(before.table);
        let earlier = self.earlier(known, before);
        let is_suspect = |place: usize| earlier[place].is_some_and(|(_, is_suspect)| is_suspect);
        let suspects = (0..nodes).filter(|place| is_suspect(*place)).count();
        let anchor = |(place, earlier): (usize, &Option<(MeasuredNode, bool)>)| {
            earlier.filter(|(_, is_suspect)| !is_suspect).map(|(standing, _)| (place, standing))
        };
        let anchors: Vec<(usize, MeasuredNode)> = earlier.iter().enumerate().filter_map(anchor).collect();
        // Anchors give a level, but no unit of time: rounded times need a reference in the same session.
        let is_coarse = session.is_coarse();
        let has_anchors = anchors.len() >= MIN_ANCHORS;
        let are_many = 4 * suspects >= nodes;
        if has_anchors && !is_coarse && (2 * nodes <= known_nodes || are_many) {
            return self.compare(number, session, &anchors, known, before);
        }
        // Without anchors, nothing shows that suspects are healthy.
        let judges_suspects = has_anchors && !is_coarse;
        if suspects > 0 && !judges_suspects {
            let anchors = anchors.len();
            self.few_anchors.push(FewAnchors { session: number, suspects, anchors, is_coarse });
        }
        if 2 * suspects >= nodes && suspects > 0 {
            self.references.insert(number, Reference::Nothing);
            return vec![None; nodes];
        }
        let centre = if has_anchors { level(session, &anchors) } else { session.centre() };
        relative(session, centre, |place| judges_suspects || !is_suspect(place))
    }

    /// Compares the nodes of a session with the class as it was before. The anchors have the class's level in the session.
    fn compare(
        &mut self,
        number: usize,
        session: &JudgedSession,
        anchors: &[(usize, MeasuredNode)],
        known: &[Option<usize>],
        before: &Before,
    ) -> Vec<Option<MeasuredNode>> {
        let mut nodes = session.measured();
        let of_one =
            |(place, standing): &(usize, MeasuredNode)| Some(nodes[*place].variance? + standing.variance?);
        let mut errors: Vec<f64> = anchors.iter().filter_map(of_one).collect();
        let error = within_nodes::variance_factor(anchors.len())
            * within_nodes::median_of(&mut errors).unwrap_or(0.0);
        let level = level(session, anchors).unwrap_or_default();
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
        let judged = verdict_rule::judge_first(nodes.len(), &class, &Units::default(), &before.settings.node);
        let are_most = 2 * anchors.len() > nodes.len();
        self.references.insert(number, Reference::Anchors { judged, are_most });
        nodes.into_iter().map(Some).collect()
    }

    /// The standing of each node of a session, and whether it is a suspect; `None` for a node that was not judged before.
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

/// The class's level in a session, as its anchors show it.
fn level(session: &JudgedSession, anchors: &[(usize, MeasuredNode)]) -> Option<f64> {
    let shift = |(place, standing): &(usize, MeasuredNode)| session.medians[*place].median - standing.median;
    within_nodes::median_of(&mut anchors.iter().map(shift).collect::<Vec<_>>())
}

/// The nodes of a session that compares them with one another, relative to the class's level in it.
fn relative(
    session: &JudgedSession,
    level: Option<f64>,
    is_judged: impl Fn(usize) -> bool,
) -> Vec<Option<MeasuredNode>> {
    let of = |(place, node): (usize, MeasuredNode)| {
        let level = level.filter(|_| is_judged(place))?;
        Some(MeasuredNode { median: node.median - level, ..node })
    };
    session.measured().into_iter().enumerate().map(of).collect()
}
