//! Decides which nodes and runs are slow, and since when: applies the statistics of [`crate::stats`] to each class
//! and session.
//!
//! What a verdict or a warning on nodes and classes needs of the table belongs here. Formulas on plain numbers belong
//! in [`crate::stats`], and sentences and tables in [`crate::render`].

mod class_moved;
pub mod class_report;
mod class_warnings;
pub mod fitness;
pub mod goes_with_slowness;
pub(crate) mod health;
pub mod history;
mod judged_node;
mod judged_session;
pub mod kernels_of_node;
mod measured_again;
mod measured_when;
pub mod named_cause;
pub mod node_report;
pub mod null_reasons;
mod odd_facts;
mod odd_nodes;
mod over_sessions;
mod own_history;
mod presence;
mod reconfigured;
mod rounds_of_runs;
mod run_spread;
mod screen_of_few;
mod settings_differ;
pub mod slow_places;
mod suspects;
pub mod unusual_health;
pub mod where_slow;
mod why;
mod why_run;

pub use class_moved::{is_change_of_level, is_large_class, stand_for_class};

use crate::memory;
use crate::stats::flaky::{NodeSession, RunCounts};
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::stats::{drift, slow_runs, verdict_rule};
use crate::table::{Order, RunTable, SharedNames};
use crate::warnings::ClassWarning;
use class_report::{ClassReport, Reconfigured};
use goes_with_slowness::{ClassSlowness, RunsInBlocks};
use history::{History, SessionMedian};
use judged_session::{JudgedSession, Sessions};
use node_report::{DriftReport, FlakyReport, NodeReport, SlowRunReport};
use null_reasons::NodeNullReason;
use own_history::SessionEffects;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use suspects::{Before, SuspectSessions};

/// Number of sessions that are judged in parallel. The data of all their nodes is in memory at the same time.
fn sessions_at_a_time() -> usize {
    const MOST: usize = 8;
    rayon::current_num_threads().min(MOST)
}

/// Classes are judged in parallel until they have this many nodes per thread. More classes at the same time need more
/// memory: a thread that waits for a part of one class begins another.
const NODES_OF_A_THREAD: usize = 1 << 13;

/// The rows of a class by session and node.
type ClassRows<'a> = &'a [&'a [u32]];

/// The limits above which something counts as slow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JudgeSettings {
    /// For nodes.
    pub node: verdict_rule::VerdictSettings,
    /// For runs.
    pub run: slow_runs::SlowRunSettings,
    /// For nodes compared with their own earlier sessions.
    pub own_history: crate::stats::own_history::OwnHistorySettings,
    /// For the drift of nodes over sessions.
    pub drift: drift::DriftSettings,
    /// False discovery rate of what goes with slowness; `None`: the report does not look for it.
    pub goes_with_slowness: Option<f64>,
}

/// The result.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// One per class and node, from its latest session; the node that is most likely slowest comes first.
    pub nodes: Vec<NodeReport>,
    /// Classes, by name.
    pub classes: Vec<ClassReport>,
    /// Nodes whose facts changed, the change of most nodes first.
    pub reconfigured: Vec<Reconfigured>,
    /// Slow runs of all sessions, the slowest first.
    pub slow_runs: Vec<SlowRunReport>,
    /// Flaky nodes, by name.
    pub flaky: Vec<FlakyReport>,
    /// Drifts that continue, the largest change first.
    pub drift: Vec<DriftReport>,
    /// What goes with slowness, by class.
    pub goes_with_slowness: Vec<ClassSlowness>,
    /// Warnings that limit the verdicts.
    pub warnings: Vec<ClassWarning>,
}

impl Verdicts {
    /// Adds what is known of another class.
    fn add(&mut self, of_class: Self) {
        self.nodes.extend(of_class.nodes);
        self.classes.extend(of_class.classes);
        self.slow_runs.extend(of_class.slow_runs);
        self.flaky.extend(of_class.flaky);
        self.drift.extend(of_class.drift);
        self.goes_with_slowness.extend(of_class.goes_with_slowness);
        self.warnings.extend(of_class.warnings);
    }
}

/// Judges all classes.
pub fn judge(table: &RunTable, order: &Order, settings: &JudgeSettings) -> Verdicts {
    let class_of = |rows: &[u32]| table.class.at(rows[0] as usize);
    let groups = order.groups();
    let classes: Vec<&[&[u32]]> = groups.chunk_by(|a, b| class_of(a) == class_of(b)).collect();
    let names = SharedNames::of(table);
    let places = || vec![NOWHERE; table.nodes.len()];
    // Reports are large, and there may be a million: reserve the memory for all of them first.
    let mut all = Verdicts::default();
    let sizes = sizes(table, &classes);
    all.nodes.reserve_exact(sizes.iter().sum());
    let of_class = |places: &mut Vec<u32>, nodes: &ClassRows| {
        let (all, are_dated) = (Verdicts::default(), order.sessions_are_dated);
        let mut judge = Judge { table, names: &names, settings, are_dated, all, places };
        judge.class(nodes);
        judge.all
    };
    memory::return_unused();
    for together in in_parts(&classes, &sizes, NODES_OF_A_THREAD * rayon::current_num_threads()) {
        let judged: Vec<Verdicts> = together.par_iter().map_init(places, of_class).collect();
        judged.into_iter().for_each(|of_class| all.add(of_class));
        memory::return_unused();
    }
    presence::add_to(&mut all.nodes, table, order, &classes);
    all.reconfigured = reconfigured::of(&all.nodes, table, order, &classes);
    odd_nodes::add_to(&mut all.nodes, table, &classes, settings);
    all.warnings.extend(class_warnings::about_sessions(order));
    sort(&mut all.nodes);
    all.classes.sort_by(|a, b| a.class.cmp(&b.class));
    all.goes_with_slowness.sort_by(|a, b| a.class.cmp(&b.class));
    all.slow_runs.sort_by(|a, b| {
        b.slowdown.total_cmp(&a.slowdown).then_with(|| (&a.run_id, &a.class).cmp(&(&b.run_id, &b.class)))
    });
    all.flaky.sort_by(|a, b| (&a.node, &a.class).cmp(&(&b.node, &b.class)));
    all.drift.sort_by(|a, b| {
        b.change.total_cmp(&a.change).then_with(|| (&a.node, &a.class).cmp(&(&b.node, &b.class)))
    });
    all
}

/// Divides the classes into parts with at least `nodes` nodes. The last part may have fewer.
fn in_parts<'a, 'b>(
    classes: &'b [ClassRows<'a>],
    sizes: &[usize],
    nodes: usize,
) -> impl Iterator<Item = &'b [ClassRows<'a>]> {
    let (mut left, mut sizes) = (classes, sizes.iter());
    std::iter::from_fn(move || {
        let mut sum = 0;
        let is_part = |size: &usize| {
            let is_part = sum < nodes;
            sum += size;
            is_part
        };
        let part = sizes.clone().copied().take_while(is_part).count();
        sizes = sizes.as_slice()[part..].iter();
        left.split_off(..part).filter(|part| !part.is_empty())
    })
}

/// The number of nodes in each class.
fn sizes(table: &RunTable, classes: &[ClassRows]) -> Vec<usize> {
    let mut latest = vec![usize::MAX; table.nodes.len()];
    let size = |(class, rows): (usize, &ClassRows)| {
        let is_new = |rows: &&&[u32]| {
            let latest = &mut latest[table.node.at(rows[0] as usize) as usize];
            std::mem::replace(latest, class) != class
        };
        rows.iter().filter(is_new).count()
    };
    classes.iter().enumerate().map(size).collect()
}

/// Sorts reports: within a verdict by slowdown. Without repeated runs there is no shrunken slowdown, and the slowdown
/// itself decides.
fn sort(nodes: &mut [NodeReport]) {
    let rank = |(at, node): (usize, &NodeReport)| {
        let slower = [node.shrunken.or(node.slowdown), node.slowdown];
        (weight(node), slower.map(|by| by.unwrap_or(f64::NEG_INFINITY)), at)
    };
    let name = |at: usize| (&nodes[at].node, &nodes[at].class);
    let mut order: Vec<(u8, [f64; 2], usize)> = nodes.iter().enumerate().map(rank).collect();
    order.sort_unstable_by(|(a_weight, a_slower, a), (b_weight, b_slower, b)| {
        b_weight
            .cmp(a_weight)
            .then_with(|| b_slower[0].total_cmp(&a_slower[0]))
            .then_with(|| b_slower[1].total_cmp(&a_slower[1]))
            .then_with(|| name(*a).cmp(&name(*b)))
    });
    // Reports are large, so they are swapped in place, along the cycles of the permutation.
    for start in 0..nodes.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at].2, at);
            if from == start || from == at {
                break;
            }
            nodes.swap(at, from);
            at = from;
        }
    }
}

/// Nodes with a higher weight come first: nodes that are slower than their class, nodes that are slower than they were,
/// and nodes that may be.
fn weight(node: &NodeReport) -> u8 {
    if !node.is_current() {
        return 0;
    }
    let of_class = match node.verdict {
        Some(Verdict::Wrong) => 8,
        Some(Verdict::Slow) => 7,
        Some(Verdict::SlowTail) => 6,
        Some(Verdict::Suspect) => 4,
        Some(Verdict::Unusual | Verdict::Fast) => 2,
        Some(Verdict::Ok) => 1,
        None => 0,
    };
    let as_member = node.as_member_of.as_ref().and_then(|member| member.verdict);
    let of_class = match as_member {
        Some(Verdict::Slow) => 7,
        Some(Verdict::SlowTail) => 6,
        _ if !node.odd.is_empty() => of_class.max(4),
        _ => of_class,
    };
    let of_history = match node.history.verdict {
        Some(OwnVerdict::Slowed) => 5,
        Some(OwnVerdict::Suspect) => 3,
        Some(OwnVerdict::Same | OwnVerdict::Faster) | None => 0,
    };
    of_class.max(of_history)
}

/// A class name may contain a command line of any length. Facts of the nodes come first, and most classes have the same;
/// the work tells them apart, so it has most of the room.
fn shortened(class: &str) -> String {
    const MOST: usize = 80;
    const OF_WORK: usize = 58;
    const BETWEEN: &str = "; ";
    if class.chars().count() <= MOST {
        return class.to_owned();
    }
    let Some((facts, work)) = class.split_once(BETWEEN) else { return cut_in_the_middle(class, MOST) };
    let work = cut_in_the_middle(work, OF_WORK);
    let facts = cut_in_the_middle(facts, MOST - BETWEEN.len() - work.chars().count());
    facts + BETWEEN + &work
}

fn cut_in_the_middle(text: &str, most: usize) -> String {
    const DOTS: &str = "...";
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most - DOTS.len();
    let head = text.chars().take(kept.div_ceil(2));
    head.chain(DOTS.chars()).chain(text.chars().skip(length - kept / 2)).collect()
}

struct Judge<'a> {
    table: &'a RunTable,
    names: &'a SharedNames,
    settings: &'a JudgeSettings,
    /// See [`Order::sessions_are_dated`].
    are_dated: bool,
    /// Of the current class.
    all: Verdicts,
    /// For each node of the table, its index among the nodes of the current class.
    places: &'a mut [u32],
}

/// Index of a node that has no run in the class.
const NOWHERE: u32 = u32::MAX;

impl Judge<'_> {
    fn class(&mut self, nodes: &[&[u32]]) {
        let (table, settings) = (self.table, self.settings);
        let session = |rows: &[u32]| table.session.at(rows[0] as usize);
        let sessions: Vec<&[&[u32]]> = nodes.chunk_by(|a, b| session(a) == session(b)).collect();
        let class = shortened(table.class_name(nodes[0][0] as usize));
        let mut histories: Vec<History> = Vec::new();
        let mut suspects = SuspectSessions::default();
        let mut centres: Vec<Option<f64>> = Vec::with_capacity(sessions.len());
        let mut latest = None;
        let mut runs = settings.goes_with_slowness.map(|q| (q, RunsInBlocks::default()));
        for sessions_now in sessions.chunks(sessions_at_a_time()) {
            let measured = sessions_now.par_iter().map(|nodes| {
                let session = JudgedSession::of(table, nodes)?;
                let slow = session.slow_runs(settings);
                Some((session, slow))
            });
            for measured in measured.collect::<Vec<_>>() {
                let number = centres.len();
                centres.push(measured.as_ref().and_then(|(session, _)| session.centre()));
                if let Some((mut session, slow)) = measured {
                    if let Some((_, runs)) = &mut runs {
                        runs.add(table, &session, &slow);
                    }
                    self.remember(number, &mut session, &sessions, &mut suspects, &mut histories);
                    self.slow_runs(number, &session, &slow, &mut histories);
                    if number + 1 == sessions.len() {
                        latest = Some((number, Arc::new(session.with_starts(table))));
                    }
                }
            }
        }
        suspects.few_anchors.retain(|few| self.is_lasting(few.session, &sessions, &histories));
        histories.iter().for_each(|history| self.places[history.node as usize] = NOWHERE);
        let told = &mut self.all.warnings;
        told.extend(class_warnings::few_anchors(table, &suspects.few_anchors, &sessions, &class));
        let judging =
            Sessions { table, names: self.names, nodes: &sessions, latest, are_dated: self.are_dated };
        let most_judged = history::most_judged(&histories).and_then(|number| judging.judging(number));
        if let Some(session) = &most_judged {
            class_warnings::about_class(table, settings, session, &class, told);
        }
        if let Some((q, runs)) = runs {
            let class = table.class_name(nodes[0][0] as usize);
            let found = goes_with_slowness::of(table, class, runs, most_judged.as_deref(), q);
            self.all.goes_with_slowness.extend(found);
        }
        let can_judge = |number: &usize| suspects.has_own_reference(*number) && sessions[*number].len() > 1;
        let comparing: Vec<usize> = (0..sessions.len()).filter(can_judge).collect();
        told.extend(class_warnings::composition(table, &comparing, &sessions, &class));
        told.extend(settings_differ::of_class(table, nodes, &class));
        histories.iter_mut().for_each(|history| history.find_restarts(table));
        self.all.flaky = over_sessions::flaky(table, settings.run.q, &histories);
        told.extend(class_warnings::flaky(&self.all.flaky, &class));
        let most = sessions.iter().map(|nodes| nodes.len()).max().unwrap_or_default();
        let of_most = history::session_effects(&histories, &centres, most);
        let effects = class_moved::follow_unchanged(&settings.own_history, &histories, &of_most, &centres);
        told.extend(class_warnings::moved(settings, &effects, &centres, &histories, &judging, &class));
        let run_spread = most_judged.as_deref().and_then(|session| run_spread::of(table, session));
        let of_class = class_moved::report(&judging, &settings.own_history, &histories, &effects, &centres);
        let of_class = ClassReport { run_spread, ..of_class };
        let (reports, limited) = judged_node::reports(&judging, settings, &histories, &suspects);
        self.all.warnings.extend(class_warnings::time_order_of(table, settings, &limited, &sessions, &class));
        self.all.classes.push(of_class);
        let effects = SessionEffects { of_most: &of_most, effects: &effects };
        over_sessions::add_to(&judging, settings, &histories, effects, reports, &mut self.all);
    }

    /// True if no later session judged some node of this session.
    fn is_lasting(&self, session: usize, sessions: &[&[&[u32]]], histories: &[History]) -> bool {
        let judged_in = |rows: &&[u32]| {
            let place = self.places[self.table.node.at(rows[0] as usize) as usize];
            histories.get(place as usize).and_then(History::judged_in)
        };
        sessions[session].iter().any(|rows| judged_in(rows).is_none_or(|[judged, _]| judged < session))
    }

    /// Adds a session to the histories of its nodes.
    fn remember(
        &mut self,
        number: usize,
        session: &mut JudgedSession<'_>,
        sessions: &[&[&[u32]]],
        suspects: &mut SuspectSessions,
        histories: &mut Vec<History>,
    ) {
        let (table, settings) = (self.table, self.settings);
        let place_of = |rows: &&[u32]| self.places[table.node.at(rows[0] as usize) as usize];
        let known: Vec<Option<usize>> = session
            .nodes
            .iter()
            .map(|rows| Some(place_of(rows) as usize).filter(|at| *at != NOWHERE as usize))
            .collect();
        let before = Before { table, settings, sessions, histories };
        let standing = suspects.add(number, session, &known, &before);
        let most = sessions.iter().map(|nodes| nodes.len()).max().unwrap_or_default();
        let has_level = history::has_level(session.nodes.len(), most) && suspects.judges(number);
        for (place, rows) in session.nodes.iter().enumerate() {
            let node = table.node.at(rows[0] as usize);
            let at = &mut self.places[node as usize];
            if *at == NOWHERE {
                *at = histories.len() as u32;
                histories.push(History::new(node));
            }
            let history = &mut histories[*at as usize];
            if session.tests(rows.len(), settings) {
                let counts = RunCounts { runs: rows.len() as u32, ..RunCounts::default() };
                history.tested.push(NodeSession { session: number as u32, counts });
            }
            history.add(number, place, standing[place]);
            let first = match table.maintenance.last_instant(node) {
                Some(_) => rows.iter().copied().min_by_key(|row| table.started_unix_ns[*row as usize]),
                None => None,
            };
            history.seen.push((number as u32, first.unwrap_or(rows[0])));
            if has_level {
                let is_healthy =
                    standing[place].is_some_and(|node| node.median < settings.node.drain_delta.ln_1p());
                let median = SessionMedian::of(number, rows[0], place, session);
                history.add_median(SessionMedian { is_healthy, ..median });
            }
        }
    }

    fn slow_runs(
        &mut self,
        number: usize,
        session: &JudgedSession<'_>,
        slow: &[slow_runs::SlowRunTest],
        histories: &mut [History],
    ) {
        let table = self.table;
        let mut known = BTreeSet::new();
        for of_node in slow.chunk_by(|a, b| a.node == b.node) {
            let rows = session.nodes[of_node[0].node];
            let is_slow = |run: usize| of_node.iter().any(|slow| slow.run == run);
            // In the order of time; of undated runs in the order of reading.
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by_key(|run| (table.started_unix_ns[rows[*run] as usize], rows[*run]));
            let in_order: Vec<bool> = order.into_iter().map(is_slow).collect();
            let history = &mut histories[self.places[table.node.at(rows[0] as usize) as usize] as usize];
            if let Some(tested) = history.tested.last_mut().filter(|tested| tested.session == number as u32) {
                tested.counts = RunCounts::of(&in_order);
            }
            let why = why_run::WhyRuns::of(table, session, of_node[0].node);
            for run in of_node {
                let row = rows[run.run] as usize;
                let (why, mut null_reasons) = why.of_run(run.run);
                let session = table.session_name(row).map(str::to_owned);
                if session.is_none() {
                    null_reasons.insert("session", NodeNullReason::NoSession);
                }
                null_reasons.insert("places", NodeNullReason::NoPlaces);
                null_reasons.share(&mut known);
                self.all.slow_runs.push(SlowRunReport {
                    run_id: table.run_id(row),
                    node: table.node_name(row).to_owned(),
                    class: table.class_name(row).to_owned(),
                    session,
                    elapsed_s: table.elapsed_s[row],
                    slowdown: run.slowdown,
                    p_value: run.p,
                    p_adjusted: run.adjusted_p,
                    why,
                    places: None,
                    null_reasons,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_class_name_keeps_the_work() {
        let class = |work: &str| {
            let facts = "Intel(R) Xeon(R) Processor (6/207/2), microcode 0x1, 24 GiB, Linux 6.18.44";
            shortened(&format!("{facts}; {work}"))
        };
        let dgemm = class("pmmpi screen-kernel dgemm (1 rank per node)");
        assert!(dgemm.starts_with("Intel(R)"), "{dgemm}");
        assert!(dgemm.ends_with("Linux 6.18.44; pmmpi screen-kernel dgemm (1 rank per node)"), "{dgemm}");
        let long = class(&format!("./hpl {} (8 of 64 ranks); build=O3", "--option ".repeat(20)));
        assert!(long.contains("; ./hpl --opt") && long.ends_with("(8 of 64 ranks); build=O3"), "{long}");
        assert_ne!(class("sleep 0.05 (1 of 1 ranks)"), class("sleep 0.05 (3 of 3 ranks); kind=plain"));
        for short in [dgemm, long, shortened(&"é".repeat(500))] {
            assert!(short.chars().count() <= 80, "{short}");
        }
        assert_eq!(shortened("./hpl (8 of 64 ranks)"), "./hpl (8 of 64 ranks)");
    }
}
