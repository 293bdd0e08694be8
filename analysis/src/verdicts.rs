//! Decides which nodes and runs are slow, and since when: applies the statistics of [`crate::stats`] to each class
//! and session.

mod cause_text;
mod history;
mod judged_node;
mod judged_session;
pub mod node_report;
mod why;

use crate::stats::median::{self, NodeMedian};
use crate::stats::{bimodal, drift, noise, runs, verdict_rule};
use crate::table::{Order, RunTable};
use crate::warning_codes::{self, Warning, WarningCode};
use history::History;
use judged_session::JudgedSession;
use node_report::{DriftReport, NodeReport, SlowRunReport};
use pmmpi::text::count;
use rayon::prelude::*;

/// Number of sessions that are judged in parallel. The data of all their nodes is in memory at the same time.
const SESSIONS_AT_A_TIME: usize = 8;

/// The limits above which something counts as slow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JudgeSettings {
    /// For nodes.
    pub node: verdict_rule::VerdictSettings,
    /// For runs.
    pub run: runs::SlowRunSettings,
    /// For the drift of nodes over sessions.
    pub drift: drift::DriftSettings,
}

/// The result.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// One per class and node, from its latest session; the node that is most likely slowest comes first.
    pub nodes: Vec<NodeReport>,
    /// Slow runs of all sessions, the slowest first.
    pub slow_runs: Vec<SlowRunReport>,
    /// Drifts that continue, the largest change first.
    pub drift: Vec<DriftReport>,
    /// Warnings that limit the verdicts.
    pub warnings: Vec<Warning>,
}

/// Judges all classes.
pub fn judge(table: &RunTable, order: &Order, settings: &JudgeSettings) -> Verdicts {
    let mut all = Verdicts::default();
    let class_of = |rows: &[u32]| table.class[rows[0] as usize];
    let mut judge = Judge { table, settings, all: &mut all, places: vec![NOWHERE; table.nodes.len()] };
    for nodes in order.groups().chunk_by(|a, b| class_of(a) == class_of(b)) {
        judge.class(nodes);
    }
    all.warnings.extend(about_sessions(order));
    // Order within a verdict. If nodes hardly differ, all shrunken slowdowns are 0, and the slowdown itself decides.
    let rank = |node: &NodeReport| {
        let slower = [node.shrunken.or(node.slowdown), node.slowdown];
        (node.verdict, slower.map(|by| by.unwrap_or(f64::NEG_INFINITY)))
    };
    all.nodes.sort_by(|a, b| {
        let ((a_verdict, a_slower), (b_verdict, b_slower)) = (rank(a), rank(b));
        b_verdict
            .cmp(&a_verdict)
            .then_with(|| b_slower[0].total_cmp(&a_slower[0]))
            .then_with(|| b_slower[1].total_cmp(&a_slower[1]))
            .then_with(|| (&a.node, &a.class).cmp(&(&b.node, &b.class)))
    });
    all.slow_runs.sort_by(|a, b| {
        b.slowdown.total_cmp(&a.slowdown).then_with(|| (&a.run_id, &a.class).cmp(&(&b.run_id, &b.class)))
    });
    all.drift.sort_by(|a, b| {
        b.change.total_cmp(&a.change).then_with(|| (&a.node, &a.class).cmp(&(&b.node, &b.class)))
    });
    all
}

/// Warns if the order of several sessions is not known.
fn about_sessions(order: &Order) -> Option<Warning> {
    let is_undated = order.sessions > 1 && !order.sessions_are_dated;
    is_undated.then(|| Warning::new(WarningCode::UndatedSessions, WarningCode::UndatedSessions.example()))
}

/// A class name may contain a command line of any length.
fn shortened(class: &str) -> String {
    const MOST: usize = 80;
    let end = class.char_indices().nth(MOST).map(|(at, _)| at);
    end.map_or_else(|| class.to_owned(), |end| format!("{}...", &class[..end]))
}

struct Judge<'a> {
    table: &'a RunTable,
    settings: &'a JudgeSettings,
    all: &'a mut Verdicts,
    /// For each node of the table, its index among the nodes of the current class.
    places: Vec<u32>,
}

/// Index of a node that has no run in the class.
const NOWHERE: u32 = u32::MAX;

impl Judge<'_> {
    fn class(&mut self, nodes: &[&[u32]]) {
        let (table, settings) = (self.table, self.settings);
        let session = |rows: &[u32]| table.session[rows[0] as usize];
        let sessions: Vec<&[&[u32]]> = nodes.chunk_by(|a, b| session(a) == session(b)).collect();
        let class = shortened(table.class_name(nodes[0][0] as usize));
        let mut histories: Vec<History> = Vec::new();
        let mut done = 0;
        for sessions_now in sessions.chunks(SESSIONS_AT_A_TIME) {
            let measured = sessions_now.par_iter().map(|nodes| {
                let session = JudgedSession::of(table, nodes)?;
                let slow = session.slow_runs(settings);
                Some((session, slow))
            });
            for measured in measured.collect::<Vec<_>>() {
                if let Some((session, slow)) = measured {
                    self.remember(done, &session, &mut histories);
                    self.slow_runs(&session, &slow, &mut histories);
                }
                done += 1;
            }
        }
        histories.iter().for_each(|history| self.places[history.node as usize] = NOWHERE);
        self.about_flaky(&histories, &class);
        if let Some(session) =
            history::most_judged(&histories).and_then(|at| JudgedSession::of(table, sessions[at]))
        {
            self.about_class(&session, &class);
        }
        let reports = history::latest(table, settings, &sessions, &histories);
        history::over_time(table, settings, &histories, reports, self.all);
    }

    fn remember(&mut self, number: usize, session: &JudgedSession<'_>, histories: &mut Vec<History>) {
        let centre = session.centre();
        for (place, (rows, middle)) in session.nodes.iter().zip(&session.medians).enumerate() {
            let node = self.table.node[rows[0] as usize];
            let at = &mut self.places[node as usize];
            if *at == NOWHERE {
                *at = histories.len() as u32;
                histories.push(History::new(node));
            }
            let history = &mut histories[*at as usize];
            history.tested += if session.tests(rows.len(), self.settings) { rows.len() } else { 0 };
            history.add(number, place, rows[0], centre.map(|centre| middle.median - centre));
        }
    }

    fn slow_runs(
        &mut self,
        session: &JudgedSession<'_>,
        slow: &[runs::SlowRunTest],
        histories: &mut [History],
    ) {
        let nodes = &session.nodes;
        for run in slow {
            let row = nodes[run.node][run.run] as usize;
            histories[self.places[self.table.node[row] as usize] as usize].slow += 1;
            self.all.slow_runs.push(SlowRunReport {
                run_id: self.table.run_id(row),
                node: self.table.node_name(row).to_owned(),
                class: self.table.class_name(row).to_owned(),
                session: self.session_name(row),
                elapsed_s: self.table.elapsed_s[row],
                slowdown: run.slowdown,
                p_value: run.p,
                p_adjusted: run.adjusted_p,
            });
        }
    }

    /// Counts over all sessions: a few slow runs per session are not significant in any single one.
    fn about_flaky(&mut self, histories: &[History], class: &str) {
        let counts: Vec<(usize, usize)> = histories.iter().map(|node| (node.tested, node.slow)).collect();
        let mut flaky = runs::flaky(&counts, self.settings.run.q);
        let host = |flaky: &runs::Flaky| self.table.nodes.get(histories[flaky.node].node).unwrap_or_default();
        flaky.sort_by_key(host);
        self.all.warnings.extend(flaky.iter().map(|flaky| {
            Warning::new(
                WarningCode::FlakyNode,
                format!(
                    "{}: {} of {} runs are slow, more than chance explains ({class})",
                    host(flaky),
                    flaky.slow,
                    flaky.runs
                ),
            )
        }));
    }

    /// Warnings that limit the verdicts of a class.
    fn about_class(&mut self, JudgedSession { nodes, medians, .. }: &JudgedSession<'_>, class: &str) {
        let mut ascending: Vec<f64> = medians.iter().map(|node| node.median).collect();
        ascending.sort_unstable_by(f64::total_cmp);
        let delta = self.settings.node.delta;
        if let Some(modes) =
            bimodal::modes(&ascending, &bimodal::BimodalSettings { delta, ..Default::default() })
        {
            let apart = (modes.slow.centre - modes.fast.centre).exp_m1();
            self.all.warnings.push(Warning::new(
                WarningCode::BimodalClass,
                format!(
                    "{} of a class are fast and {} are {} slower ({class})",
                    count(modes.fast.nodes, "node"),
                    count(modes.slow.nodes, "node"),
                    warning_codes::percent(apart)
                ),
            ));
        }
        let median_of = |values: &mut dyn Iterator<Item = f64>| {
            let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
            values.sort_unstable_by(f64::total_cmp);
            median::of_ascending(&values)
        };
        let within = |node: &NodeMedian| node.interval.map(|interval| node.median - interval.low);
        let noise = noise::Noise {
            bounds: median_of(
                &mut nodes.iter().copied().flatten().map(|row| self.table.width(*row as usize)),
            ),
            runs: median_of(&mut medians.iter().filter_map(within)),
        };
        if let Some((limit, size)) = noise::hides(delta, &noise) {
            let what = match limit {
                noise::Limit::Bounds => "elapsed times are",
                noise::Limit::Runs => "a node's median is",
            };
            self.all.warnings.push(Warning::new(
                WarningCode::NoiseFloor,
                format!(
                    "{what} uncertain by {}: a node that is {} slower cannot be detected ({class})",
                    warning_codes::percent(size),
                    warning_codes::percent(delta)
                ),
            ));
        }
    }

    fn session_name(&self, row: usize) -> Option<String> {
        self.table.session_name(row).map(str::to_owned)
    }
}
