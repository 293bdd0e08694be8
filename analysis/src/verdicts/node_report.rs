//! The parts of the report about nodes and their runs. The keys are a contract: later versions may only add keys.

use super::kernels_of_node::KernelsOfNode;
use super::named_cause::NamedCause;
use super::null_reasons::NullReasons;
use super::slow_places::SlowPlaces;
use crate::stats::own_history::{Course, OwnVerdict};
use crate::stats::verdict_rule::Verdict;
use crate::table::{Shared, SharedText};
use hashbrown::HashMap;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One node in one class.
#[derive(Debug, Serialize)]
pub struct NodeReport {
    /// Host name.
    pub node: SharedText,
    /// The class of nodes that ought to be equally fast.
    pub class: SharedText,
    /// The latest session in which the node can be compared with others; all values are from this session.
    pub session: Option<SharedText>,
    /// Number of runs.
    pub runs: usize,
    /// The id of the median run, which is an actual run.
    pub median_run_id: SharedText,
    /// Time of the median run on this node (s); for an even number of runs the geometric mean of the middle two. If the
    /// session has round effects, they are subtracted.
    pub median_s: f64,
    /// Interval for the median (s).
    pub ci_s: Option<[f64; 2]>,
    /// Probability that the interval contains the median.
    pub ci_coverage: Option<f64>,
    /// Fraction of the median of the other nodes of the class: 0.05 is 5 % slower.
    pub slowdown: Option<f64>,
    /// The node is slower by at least this fraction, with a probability of 99 %.
    pub slower_by_at_least: Option<f64>,
    /// The node is slower by at most this fraction, with a probability of 99 %.
    #[serde(skip)]
    pub slower_by_at_most: Option<f64>,
    /// Distance from the others in standard deviations of a healthy node.
    pub score: Option<f64>,
    /// Probability that a healthy node has such a score.
    pub p_value: Option<f64>,
    /// The same, adjusted for the number of nodes tested.
    pub p_adjusted: Option<f64>,
    /// For ranking: the expected slowdown, without what noise may add.
    pub shrunken: Option<f64>,
    /// The largest change between earlier and later sessions of the node, in standard deviations; below 0 if the node
    /// became faster.
    pub history_score: Option<f64>,
    /// The node compared with its own earlier sessions.
    pub history: HistoryReport,
    /// OK, SLOW, SLOW-TAIL, UNUSUAL or SUSPECT.
    #[serde(serialize_with = "by_name")]
    pub verdict: Option<Verdict>,
    /// Whether the latest session has the node: PRESENT, MISSING (only the session before it has), GONE; MOVED: the node is
    /// in another class now.
    pub presence: Presence,
    /// Facts of the node that differ from the facts of the large class to which it would belong.
    pub odd: Vec<OddFact>,
    /// An odd node, compared with that class. `None` if the node is not odd, or was not measured together with that
    /// class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_member_of: Option<Box<MemberReport>>,
    /// True if the node is slow enough that it should be drained, or if a screen found a wrong result on it. False unless
    /// the node is PRESENT.
    pub suggests_drain: bool,
    /// Why the node is slow.
    #[serde(flatten)]
    pub why: Shared<WhyReport>,
    /// At which cores, sockets or ranks it is slow, next to the other nodes of its class; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<Box<SlowPlaces>>,
    /// Number of its slow runs in this session.
    pub slow_runs: Option<u32>,
    /// All kernels of the node; only in a report of `pmmpi screen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Shared<KernelsOfNode>>,
    /// Why a value is null.
    pub null_reasons: NullReasons,
}

impl NodeReport {
    /// True if the report is about what the node is today.
    pub fn is_current(&self) -> bool {
        matches!(self.presence, Presence::Present | Presence::Missing)
    }

    /// True if the node is not compared with nodes of its own class.
    pub fn is_without_peers(&self) -> bool {
        self.verdict.is_none() || self.as_member_of.is_some()
    }

    /// The node compared with its class; an odd node with the class that it would belong to.
    pub fn among_peers(&self) -> AmongPeers {
        let member = self.as_member_of.as_ref().filter(|member| member.verdict.is_some());
        match member.filter(|_| self.verdict != Some(Verdict::Wrong)) {
            Some(member) => AmongPeers {
                verdict: member.verdict,
                slowdown: member.slowdown,
                slower_by_at_least: member.slower_by_at_least,
                slower_by_at_most: member.slower_by_at_most,
                is_member: true,
            },
            None => AmongPeers {
                verdict: self.verdict,
                slowdown: self.slowdown,
                slower_by_at_least: self.slower_by_at_least,
                slower_by_at_most: self.slower_by_at_most,
                is_member: false,
            },
        }
    }

    /// The class of the peers of [`NodeReport::among_peers`].
    pub fn class_of_peers(&self) -> SharedText {
        let member = self.as_member_of.as_ref().filter(|_| self.among_peers().is_member);
        member.map_or_else(|| self.class.clone(), |member| member.class.as_str().into())
    }

    /// True if the node should be drained, also as one of its peers.
    pub fn should_be_drained(&self) -> bool {
        self.suggests_drain || self.as_member_of.as_ref().is_some_and(|member| member.suggests_drain)
    }
}

/// Why a node or a run is slow. Nodes without counts share one report: see [`Self::none`].
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct WhyReport {
    /// What the node's kernel counted during the median run (of a slow run: during this run), when hardware did not work as it should: all counts above 0.
    pub facts_changed: Vec<FactChange>,
    /// Why the node is slow. JSON has its name, its text, and its share.
    #[serde(flatten, serialize_with = "name_text_and_share")]
    pub cause: Option<Shared<NamedCause>>,
    /// The terms of the slowdown (in ln T): they add up to ln(time / time of the reference), which is the median of the class,
    /// or that of the node's runs.
    pub terms: BTreeMap<&'static str, f64>,
    /// The parts of some terms: the parts of a term add up to it.
    pub term_parts: BTreeMap<&'static str, f64>,
}

impl WhyReport {
    /// The report of a node whose time nothing explains.
    pub fn none() -> Shared<Self> {
        static NONE: LazyLock<Shared<WhyReport>> = LazyLock::new(Shared::default);
        NONE.clone()
    }

    /// The cause's [`NamedCause::name`].
    pub fn cause_name(&self) -> Option<&'static str> {
        self.cause.as_deref().map(NamedCause::name)
    }

    /// Shares [`Self::none`] if there is nothing else.
    pub fn shared(self) -> Shared<Self> {
        if self == Self::default() { Self::none() } else { Shared::new(self) }
    }
}

/// A node among its peers. See [`NodeReport`] for the values.
#[derive(Clone, Copy, Debug)]
pub struct AmongPeers {
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// Fraction of the median of the peers.
    pub slowdown: Option<f64>,
    /// The node is slower by at least this fraction, with a probability of 99 %.
    pub slower_by_at_least: Option<f64>,
    /// The node is slower by at most this fraction, with a probability of 99 %.
    pub slower_by_at_most: Option<f64>,
    /// True if the peers are those of [`NodeReport::as_member_of`].
    pub is_member: bool,
}

/// Whether the latest session has a node, in any class of the same work, or of works that are measured together with it.
/// Small sessions, as those of suspects, do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Presence {
    /// It does, or no later session has most of the nodes.
    #[default]
    Present,
    /// It does not, but the session before it does.
    Missing,
    /// Only earlier sessions do.
    Gone,
    /// The node's latest session is in another class of the same work: a fact of the node changed.
    Moved,
}

impl Presence {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "PRESENT",
            Self::Missing => "MISSING",
            Self::Gone => "GONE",
            Self::Moved => "MOVED",
        }
    }
}

/// A count of a node's kernel, during the median run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactChange {
    /// One of [`pmmpi::node::HEALTH_COUNTS`].
    pub fact: &'static str,
    /// What was added.
    pub change: f64,
    /// What is usual in this time: the median over the faster half of the class, per second. `None` if this half has fewer
    /// than three nodes with such a count.
    pub class_change: Option<f64>,
}

/// A fact in which a node differs from a class.
#[derive(Clone, Debug, Serialize)]
pub struct OddFact {
    /// cpu, microcode, memory, kernel, or one of [`pmmpi::node::FACTS`].
    pub key: String,
    /// The node's value; `None` if it is unknown.
    pub value: Option<String>,
    /// The value of the class.
    pub class_value: Option<String>,
}

/// A node judged as a member of a class that it is not in. See [`NodeReport`] for the values.
#[derive(Clone, Debug, Serialize)]
pub struct MemberReport {
    /// The class.
    pub class: String,
    /// Fraction of the median of the nodes of that class.
    pub slowdown: Option<f64>,
    /// The node is slower by at least this fraction, with a probability of 99 %.
    pub slower_by_at_least: Option<f64>,
    /// The node is slower by at most this fraction, with a probability of 99 %.
    #[serde(skip)]
    pub slower_by_at_most: Option<f64>,
    /// The verdict.
    #[serde(serialize_with = "by_name")]
    pub verdict: Option<Verdict>,
    /// True if the node is slow enough that it should be drained.
    pub suggests_drain: bool,
}

/// A node compared with its own earlier sessions in the same class. Values are `None` with fewer than two sessions.
#[derive(Debug, Serialize)]
pub struct HistoryReport {
    /// SLOWED, FASTER, SAME or SUSPECT.
    #[serde(serialize_with = "by_own_name")]
    pub verdict: Option<OwnVerdict>,
    /// Number of sessions since the last maintenance.
    pub sessions: usize,
    /// The latest session that was compared. Small sessions often are not.
    #[serde(skip)]
    pub latest: Option<SharedText>,
    /// True if the node was not slow enough to be drained in at least half of the earlier sessions at one of its levels.
    #[serde(skip)]
    pub was_healthy: bool,
    /// The node's time before the change (s), as it would be in the node's latest session; if there is no change, of
    /// all earlier sessions.
    pub before_s: Option<f64>,
    /// The node's time since the change (s); if there is no change, of its latest session.
    pub now_s: Option<f64>,
    /// now_s / before_s - 1: 0.05 is 5 % slower.
    pub change: Option<f64>,
    /// True if the times are relative to those of the class; false in a class of few nodes. `None` with fewer than two
    /// sessions.
    pub relative_to_class: Option<bool>,
    /// Probability that a healthy node changes so much, adjusted for the number of nodes.
    pub p_adjusted: Option<f64>,
    /// What became of the node over its sessions.
    #[serde(flatten)]
    pub events: Shared<EventsReport>,
}

impl HistoryReport {
    /// The report of a node with too few sessions for a comparison.
    pub fn without(sessions: usize) -> Self {
        Self {
            verdict: None,
            sessions,
            latest: None,
            was_healthy: false,
            before_s: None,
            now_s: None,
            change: None,
            relative_to_class: None,
            p_adjusted: None,
            events: EventsReport::none(),
        }
    }
}

/// What became of a node over its sessions: its last change, its maintenance and its bad sessions. Most nodes have none of
/// them, and share one report: see [`Self::none`].
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct EventsReport {
    /// The change is at least this large, with a probability of 99 %; below 0 for a node that became faster. `None`
    /// without a change.
    pub at_least: Option<f64>,
    /// The first session after the change.
    pub since: Option<String>,
    /// The last session before the change.
    pub until: Option<String>,
    /// The date of that session (UTC).
    pub until_date: Option<String>,
    /// The date of the first session after the change (UTC).
    pub since_date: Option<String>,
    /// LATEST (only the latest session shows the change), STEP, FIRST (only the first session was slower), STEPS, UNSTEADY
    /// or CREEP.
    #[serde(serialize_with = "by_course")]
    pub course: Option<Course>,
    /// How much the level of the class changed meanwhile: 0.05 is 5 % slower. The node's times are relative to it. `None`
    /// without a change of the node, and in a class of few nodes.
    pub class_change: Option<f64>,
    /// What the last maintenance changed. `None` if there was none.
    pub maintenance: Option<MaintenanceReport>,
    /// Sessions in which the node was slower than before and after.
    pub bad_sessions: Vec<String>,
    /// The first and the last of each group of bad sessions in immediate succession.
    pub bad_periods: Vec<[String; 2]>,
    /// How much slower the node was in these sessions (median): 0.05 is 5 % slower. `None` without any.
    pub bad_slowdown: Option<f64>,
}

impl EventsReport {
    /// The report of a node without such events.
    pub fn none() -> Shared<Self> {
        static NONE: LazyLock<Shared<EventsReport>> = LazyLock::new(Shared::default);
        NONE.clone()
    }

    /// Shares [`Self::none`] if there is nothing else.
    pub fn shared(self) -> Shared<Self> {
        if self == Self::default() { Self::none() } else { Shared::new(self) }
    }
}

/// A node before and after its last maintenance.
#[derive(Debug, PartialEq, Serialize)]
pub struct MaintenanceReport {
    /// The first session after the maintenance.
    pub since: Option<String>,
    /// The date of that session (UTC).
    pub date: Option<String>,
    /// The node's time before (s), as it would be in the node's latest session.
    pub before_s: f64,
    /// The node's time since then (s); if it has changed again, until this change.
    pub now_s: f64,
    /// now_s / before_s - 1: -0.05 is 5 % faster.
    pub change: f64,
    /// True if the change is more than 1 % and not explained by chance.
    pub is_certain: bool,
    /// How much the node had changed before, against its own earlier sessions: 0.05 is 5 % slower. 0 if that is not certain.
    pub change_before: f64,
}

/// A run that was slow on one node.
#[derive(Debug, Serialize)]
pub struct SlowRunReport {
    /// Its name.
    pub run_id: String,
    /// Host name.
    pub node: String,
    /// The class of nodes that ought to be equally fast.
    pub class: String,
    /// The session of the run; `None` if there is none.
    pub session: Option<String>,
    /// Time of the run on this node (s).
    pub elapsed_s: f64,
    /// Slowdown as a fraction of the node's median in that session.
    pub slowdown: f64,
    /// Probability that a run like the others takes so long.
    pub p_value: f64,
    /// The same, adjusted for the number of runs tested.
    pub p_adjusted: f64,
    /// Why it is slower than the other runs of its node in the session.
    #[serde(flatten)]
    pub why: Shared<WhyReport>,
    /// At which cores, sockets or ranks it is slow, next to the other runs of its node.
    pub places: Option<SlowPlaces>,
    /// Why a value is null.
    pub null_reasons: NullReasons,
}

/// A node with more slow runs than expected by chance, over all of its sessions since its last maintenance.
#[derive(Debug, Serialize)]
pub struct FlakyReport {
    /// Host name.
    pub node: String,
    /// The class.
    pub class: String,
    /// Number of its slow runs.
    pub slow_runs: usize,
    /// Number of its runs that were tested.
    pub runs: usize,
    /// Probability that a healthy node of the class has so many slow runs, or so many series of slow runs.
    pub p_value: f64,
    /// The same, adjusted for the number of nodes tested.
    pub p_adjusted: f64,
}

/// A node that became slower and still is.
#[derive(Debug, Serialize)]
pub struct DriftReport {
    /// Host name.
    pub node: String,
    /// The class of nodes that ought to be equally fast.
    pub class: String,
    /// The session in which the drift seems to have begun.
    pub since: Option<String>,
    /// Slowdown relative to the baseline, as a fraction, corrected by the class's median.
    pub change: f64,
    /// The largest sum of its CUSUM, in standard deviations.
    pub score: f64,
}

/// Numbers the classes from 1, in the order in which nodes have them. Tables show numbers, and a list explains them.
pub fn class_numbers(nodes: &[NodeReport]) -> HashMap<&str, usize> {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for node in nodes {
        let next = numbers.len() + 1;
        numbers.entry(&node.class).or_insert(next);
    }
    numbers
}

fn by_own_name<S: Serializer>(verdict: &Option<OwnVerdict>, serializer: S) -> Result<S::Ok, S::Error> {
    verdict.map(OwnVerdict::name).serialize(serializer)
}

fn by_course<S: Serializer>(course: &Option<Course>, serializer: S) -> Result<S::Ok, S::Error> {
    course.map(Course::name).serialize(serializer)
}

fn name_text_and_share<S: Serializer>(
    cause: &Option<Shared<NamedCause>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut keys = serializer.serialize_struct("NamedCause", 3)?;
    keys.serialize_field("cause", &cause.as_deref().map(NamedCause::name))?;
    keys.serialize_field("cause_text", cause)?;
    keys.serialize_field("cause_share", &cause.as_deref().and_then(NamedCause::share))?;
    keys.end()
}

fn by_name<S: Serializer>(verdict: &Option<Verdict>, serializer: S) -> Result<S::Ok, S::Error> {
    verdict.map(Verdict::name).serialize(serializer)
}
