//! Nodes that became slower or faster than they were: each node is compared with its own earlier sessions.
//!
//! Healthy nodes of a class differ by 1 to 2 %, but the sessions of one node differ by only a fifth of that.
//! So this comparison finds changes that the comparison with the class cannot show, and it needs only two
//! sessions.

mod bad_sessions;
mod course;

pub use course::Course;

use super::{benjamini_hochberg, class_model, node_median, normal, within_nodes};

/// When a node counts as changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnHistorySettings {
    /// The node's latest session must be slower (or faster) than its earlier level by more than this fraction.
    pub delta: f64,
    /// Accepted share of false discoveries.
    pub q: f64,
    /// If the latest session has fewer runs of the node, the session before must confirm the change.
    pub min_runs: usize,
    /// Least standard deviation of a node's sessions (ln T).
    pub floor: f64,
    /// The standard deviation of a node's sessions, and the number of sessions that this assumption counts for.
    pub assumed: (f64, f64),
}

impl Default for OwnHistorySettings {
    fn default() -> Self {
        Self { delta: 0.01, q: 0.01, min_runs: 3, floor: 0.001, assumed: (0.002, 3.0) }
    }
}

/// One session of a node. All times are ln T, corrected for the effect of the session on all nodes of the class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionTime {
    /// The median of the node's runs.
    pub time: f64,
    /// The variance of the error of the median from the differences between runs.
    pub variance: f64,
    /// How far the true median may be below and above `time`: see [`node_median::NodeMedian::reach`].
    pub reach: [f64; 2],
    /// The variance of the session's level, as a multiple of the variance of one node's time in it.
    pub level: f64,
    /// Number of runs.
    pub runs: u32,
}

impl SessionTime {
    /// The variance of `time`, if a node's sessions vary by `between`.
    fn error(&self, between: f64) -> f64 {
        (between + self.variance) * (1.0 + self.level)
    }
}

/// The verdict of a node's own history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnVerdict {
    /// No change is certain.
    Same,
    /// The node is certainly faster than it was.
    Faster,
    /// The node seems to be slower than it was, but only a session with too few runs shows it.
    Suspect,
    /// The node is certainly slower than it was.
    Slowed,
}

impl OwnVerdict {
    /// The name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "SAME",
            Self::Faster => "FASTER",
            Self::Suspect => "SUSPECT",
            Self::Slowed => "SLOWED",
        }
    }
}

/// A node compared with its own earlier sessions. All times are ln T.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnChange {
    /// The verdict.
    pub verdict: OwnVerdict,
    /// The first session after the change; `None` if the verdict is SAME.
    pub since: Option<usize>,
    /// The level before the change. For a creep or several steps: the level of the first quarter of the sessions. If
    /// the verdict is SAME: the median of all earlier sessions.
    pub before: f64,
    /// The level since the change. For a creep or several steps: the level of the last quarter of the sessions. If
    /// the verdict is SAME: the latest session.
    pub now: f64,
    /// The change is at least this large, with a probability of 99 %; below 0 for a node that became faster. 0 if the
    /// verdict is SAME.
    pub at_least: f64,
    /// The largest change between earlier and later sessions, in standard deviations; below 0 if the node became
    /// faster.
    pub score: f64,
    /// The probability that a healthy node changes so much, adjusted for the number of nodes.
    pub adjusted_p: f64,
    /// The kind of the change; `None` if the verdict is SAME.
    pub course: Option<Course>,
    /// Indices of the bad sessions: past sessions in which the node was slower than usual. All other fields
    /// except `bad_by` are about the other sessions.
    pub bad_sessions: Vec<usize>,
    /// By how much the node was slower than usual in these sessions: the median over them (ln T); 0 if there
    /// are none.
    pub bad_by: f64,
}

/// Compares each node of a class with its own earlier sessions. `nodes` has the sessions of each node in the order of
/// time; after maintenance, pass only the sessions since then. `between` is [`between_sessions`]. `None` for a node with
/// fewer than two sessions.
///
/// For each split into earlier and later sessions, z = (median after - median before) / its standard
/// deviation. The largest z of S - 1 splits has p = (S - 1)(1 - Phi(z)), and Benjamini-Hochberg's method
/// adjusts p over the nodes. The change must also be larger than delta. Most runs of the latest session must
/// be slower (or faster) than the level before by more than delta. The date of the change is the split of
/// least absolute deviations, because the split of the largest z prefers parts of equal length
/// (docs/method.md).
pub fn changes(
    nodes: &[&[SessionTime]],
    between: f64,
    settings: &OwnHistorySettings,
) -> Vec<Option<OwnChange>> {
    let compared: Vec<Option<Compared>> = nodes.iter().map(|node| Compared::of(node, between)).collect();
    let adjusted = adjusted(&compared);
    let of_node = |(at, compared): (usize, &Option<Compared>)| {
        let p = adjusted.each_ref().map(|p| p[at]);
        Some(compared.as_ref()?.change(nodes[at], between, p, settings))
    };
    let mut changes: Vec<Option<OwnChange>> = compared.iter().enumerate().map(of_node).collect();
    bad_sessions::add_to(&mut changes, nodes, between, settings);
    without_bad_sessions(&mut changes, nodes, compared, between, settings);
    changes
}

/// The p of both directions, adjusted for the number of nodes.
fn adjusted(compared: &[Option<Compared>]) -> [Vec<f64>; 2] {
    [SLOWER, FASTER].map(|direction| {
        let p = |node: &Option<Compared>| node.as_ref().map_or(f64::NAN, |node| node.p[direction]);
        benjamini_hochberg::adjusted(&compared.iter().map(p).collect::<Vec<_>>())
    })
}

/// Judges nodes with bad sessions again, by their other sessions: past bad sessions are no change of the
/// node, and hide no change. `compared` has what the first judgement compared.
fn without_bad_sessions(
    changes: &mut [Option<OwnChange>],
    nodes: &[&[SessionTime]],
    mut compared: Vec<Option<Compared>>,
    between: f64,
    settings: &OwnHistorySettings,
) {
    let mut again = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        let Some(change) = change.as_ref().filter(|change| !change.bad_sessions.is_empty()) else { continue };
        let is_bad = |session: &usize| change.bad_sessions.binary_search(session).is_ok();
        let places: Vec<usize> = (0..nodes[at].len()).filter(|session| !is_bad(session)).collect();
        let others: Vec<SessionTime> = places.iter().map(|session| nodes[at][*session]).collect();
        let Some(of_others) = Compared::of(&others, between) else { continue };
        compared[at] = Some(of_others);
        again.push((at, places, others));
    }
    if again.is_empty() {
        return;
    }
    let adjusted = adjusted(&compared);
    for (at, places, others) in again {
        let (Some(change), Some(of_others)) = (&mut changes[at], &compared[at]) else { continue };
        let p = adjusted.each_ref().map(|p| p[at]);
        let of_others = of_others.change(&others, between, p, settings);
        let since = of_others.since.map(|since| places[since]);
        // As many bad sessions as slow ones since then: the node is unsteady.
        let of_all = since.map(|since| course::of(nodes[at], since, [of_others.before, of_others.now]));
        *change = OwnChange {
            since,
            course: of_all.filter(|course| *course == Course::Unsteady).or(of_others.course),
            bad_sessions: std::mem::take(&mut change.bad_sessions),
            bad_by: change.bad_by,
            ..of_others
        };
    }
}

/// Indices of the two directions.
const SLOWER: usize = 0;
const FASTER: usize = 1;

/// The spread is multiplied by 1 plus this number divided by (number of residuals + number of assumed
/// sessions). We chose the number so that few healthy fleets whose nodes vary by 0.2 to 0.6 % have a changed
/// node.
const WIDENED: f64 = 4.0;

/// The variance of a node's sessions (ln T) without the error of their medians, pooled over the nodes of a class. It
/// comes from the differences to the node's median, because nodes also wander slowly. If half of the nodes change in
/// the middle of their history, most of these differences contain the change. So the variance is at most 4 times the
/// variance from the differences of neighbouring sessions: only one of those differences contains a lasting change.
pub fn between_sessions(nodes: &[&[SessionTime]], settings: &OwnHistorySettings) -> f64 {
    /// In a class with more sessions than this, the function uses about this many.
    const ENOUGH: usize = 20_000;
    let all: usize = nodes.iter().map(|node| node.len()).sum();
    let (mut residuals, mut errors) = (Vec::new(), Vec::new());
    let (mut steps, mut errors_of_steps) = (Vec::new(), Vec::new());
    for node in nodes.iter().step_by((all / ENOUGH).max(1)) {
        let Some(factor) = within_nodes::residual_factor(node.len()) else { continue };
        let times = || node.iter().map(|session| session.time);
        let middle = within_nodes::median_of(&mut times().collect::<Vec<_>>()).unwrap_or_default();
        // The residuals of two sessions are the same.
        let independent = if node.len() == 2 { 1 } else { node.len() };
        residuals.extend(times().take(independent).map(|time| (time - middle) / factor));
        errors.extend(node.iter().take(independent).map(|session| session.variance));
        if node.len() > 2 {
            steps.extend(node.windows(2).map(difference));
            errors_of_steps.extend(node.windows(2).map(error_of_difference));
        }
    }
    if residuals.is_empty() {
        return settings.assumed.0.powi(2);
    }
    let of = |residuals: &[f64], errors: &[f64]| {
        class_model::spread(residuals, errors, &|_, error| error, settings.assumed, settings.floor)
    };
    let spread = of(&residuals, &errors);
    let spread = if steps.is_empty() { spread } else { spread.min(WANDER * of(&steps, &errors_of_steps)) };
    widened(spread, residuals.len(), settings)
}

/// A larger variance in place of `variance`, which comes from `values` values. The variance of few values is
/// uncertain, so a score must not rely on it.
pub fn widened(variance: f64, values: usize, settings: &OwnHistorySettings) -> f64 {
    let widened = 1.0 + WIDENED / (values as f64 + settings.assumed.1);
    variance * widened * widened
}

/// See [`between_sessions`]: 4 times the variance is twice the standard deviation.
const WANDER: f64 = 4.0;

/// The difference of neighbouring sessions, with the variance of one of them.
fn difference(pair: &[SessionTime]) -> f64 {
    (pair[1].time - pair[0].time) / std::f64::consts::SQRT_2
}

fn error_of_difference(pair: &[SessionTime]) -> f64 {
    (pair[0].variance + pair[1].variance) / 2.0
}

/// The variance of the sessions of a single series (ln T), from the differences of neighbours: only one of
/// these differences contains a lasting change. With fewer than three sessions, it is the assumed variance.
pub fn between_neighbours(sessions: &[SessionTime], settings: &OwnHistorySettings) -> f64 {
    if sessions.len() < 3 {
        return settings.assumed.0.powi(2);
    }
    let differences: Vec<f64> = sessions.windows(2).map(difference).collect();
    let errors: Vec<f64> = sessions.windows(2).map(error_of_difference).collect();
    class_model::spread(&differences, &errors, &|_, error| error, settings.assumed, settings.floor)
}

/// A node with at least two sessions.
struct Compared {
    /// The largest z of both directions.
    z: [f64; 2],
    /// Before the adjustment for the number of nodes.
    p: [f64; 2],
}

impl Compared {
    fn of(sessions: &[SessionTime], between: f64) -> Option<Self> {
        let splits = sessions.len().checked_sub(1).filter(|splits| *splits > 0)?;
        let before = running_medians(sessions.iter());
        let after = running_medians(sessions.iter().rev());
        let total: f64 = sessions.iter().map(|session| session.error(between)).sum();
        let (mut z, mut sum) = ([f64::NEG_INFINITY; 2], 0.0);
        for split in 1..=splits {
            sum += sessions[split - 1].error(between);
            let left = sessions.len() - split;
            let variance = within_nodes::variance_factor(split) * sum / split as f64
                + within_nodes::variance_factor(left) * (total - sum) / left as f64;
            let difference = after[left - 1] - before[split - 1];
            let score = if difference == 0.0 { 0.0 } else { difference / variance.sqrt() };
            z = [z[SLOWER].max(score), z[FASTER].max(-score)];
        }
        Some(Self { z, p: z.map(|z| (splits as f64 * normal::upper(z)).min(1.0)) })
    }

    /// The largest z; below 0 if it is that of a faster node.
    fn score(&self) -> f64 {
        if self.z[SLOWER] >= self.z[FASTER] { self.z[SLOWER] } else { -self.z[FASTER] }
    }

    fn change(
        &self,
        sessions: &[SessionTime],
        between: f64,
        adjusted: [f64; 2],
        settings: &OwnHistorySettings,
    ) -> OwnChange {
        let direction = if adjusted[SLOWER] <= adjusted[FASTER] { SLOWER } else { FASTER };
        let sign = [1.0, -1.0][direction];
        let last = sessions.len() - 1;
        let mut change = OwnChange {
            verdict: OwnVerdict::Same,
            since: None,
            before: level(&sessions[..last]),
            now: sessions[last].time,
            at_least: 0.0,
            score: self.score(),
            adjusted_p: adjusted[direction],
            course: None,
            bad_sessions: Vec::new(),
            bad_by: 0.0,
        };
        if adjusted[direction] > settings.q {
            return change;
        }
        let since = best_split(sessions);
        let (earlier, later) = sessions.split_at(since);
        let [before, now, error] = levels(earlier, later, between);
        let exceeds = |session: &SessionTime| {
            sign * (session.time - before) - session.reach[direction] > settings.delta.ln_1p()
        };
        let was_bad = direction == FASTER && {
            let was_slower = |session: &&SessionTime| {
                let slower = session.time - session.reach[SLOWER] - now;
                session.runs as usize >= settings.min_runs && slower > settings.delta.ln_1p()
            };
            was_only_bad(earlier, later, [before, now], was_slower)
        };
        let is_small = sign * (now - before) <= settings.delta.ln_1p();
        if is_small || !exceeds(&sessions[last]) || was_bad {
            return change;
        }
        let is_confirmed = sessions[last].runs as usize >= settings.min_runs
            || (later.len() > 1 && exceeds(&sessions[last - 1]));
        change.verdict = match (direction, is_confirmed) {
            (SLOWER, true) => OwnVerdict::Slowed,
            (SLOWER, false) => OwnVerdict::Suspect,
            (_, true) => OwnVerdict::Faster,
            (_, false) => return change,
        };
        let proved = sign * (now - before) - normal::quantile(0.99) * error;
        (change.since, change.before, change.now) = (Some(since), before, now);
        change.at_least = sign * proved.max(0.0);
        let course = course::of(sessions, since, [before, now]);
        if matches!(course, Course::Creep | Course::Steps) {
            // Two levels do not describe the node. The change is at least that of the two levels.
            let ends = (sessions.len() / 4).max(1);
            (change.before, change.now) =
                (level(&sessions[..ends]), level(&sessions[sessions.len() - ends..]));
        }
        change.course = Some(course);
        change
    }
}

/// True if a node seems to be faster only because it had bad sessions. There are three such cases. It was
/// slower in at most half of the earlier sessions. Or its first session is nearer to the level now than to
/// the level before. Or at least as many sessions are slow since then as before.
fn was_only_bad(
    earlier: &[SessionTime],
    later: &[SessionTime],
    [before, now]: [f64; 2],
    was_slower: impl Fn(&&SessionTime) -> bool,
) -> bool {
    let is_as_before = |session: &SessionTime| (session.time - before).abs() < (session.time - now).abs();
    let slower = earlier.iter().filter(was_slower).count();
    let bad_since = later.iter().filter(|session| is_as_before(session)).count();
    2 * slower <= earlier.len() || slower <= bad_since || !earlier.first().is_some_and(is_as_before)
}

/// The levels of earlier and later sessions, and the standard deviation of the error of their difference (ln T).
pub fn levels(earlier: &[SessionTime], later: &[SessionTime], between: f64) -> [f64; 3] {
    let error = (error_of(earlier, between) + error_of(later, between)).sqrt();
    [level(earlier), level(later), error]
}

/// The variance of the median of some sessions.
fn error_of(sessions: &[SessionTime], between: f64) -> f64 {
    let sum: f64 = sessions.iter().map(|session| session.error(between)).sum();
    within_nodes::variance_factor(sessions.len()) * sum / sessions.len() as f64
}

fn level(sessions: &[SessionTime]) -> f64 {
    let mut times: Vec<f64> = sessions.iter().map(|session| session.time).collect();
    within_nodes::median_of(&mut times).unwrap_or_default()
}

/// The median of the first value, of the first two, and so on.
fn running_medians<'a>(sessions: impl Iterator<Item = &'a SessionTime>) -> Vec<f64> {
    let (mut ascending, mut medians) = (Vec::new(), Vec::new());
    for session in sessions {
        insert(&mut ascending, session.time);
        medians.push(node_median::of_ascending(&ascending).unwrap_or_default());
    }
    medians
}

fn insert(ascending: &mut Vec<f64>, value: f64) {
    let place = ascending.partition_point(|other| *other < value);
    ascending.insert(place, value);
}

/// The number of earlier sessions, at least 1, for which the absolute deviations from the medians of both parts are least.
fn best_split(sessions: &[SessionTime]) -> usize {
    let before = running_deviations(sessions.iter());
    let after = running_deviations(sessions.iter().rev());
    let deviation = |split: usize| before[split - 1] + after[sessions.len() - split - 1];
    (1..sessions.len()).min_by(|a, b| deviation(*a).total_cmp(&deviation(*b))).unwrap_or(1)
}

/// The absolute deviations of the first value from its median, of the first two from theirs, and so on.
fn running_deviations<'a>(sessions: impl Iterator<Item = &'a SessionTime>) -> Vec<f64> {
    let (mut ascending, mut deviations) = (Vec::new(), Vec::new());
    for session in sessions {
        insert(&mut ascending, session.time);
        let (low, high) = ascending.split_at(ascending.len() / 2);
        let high = &high[ascending.len() % 2..]; // the median itself deviates by 0
        deviations.push(high.iter().sum::<f64>() - low.iter().sum::<f64>());
    }
    deviations
}

#[cfg(test)]
mod tests;
