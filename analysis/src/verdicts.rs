//! Which nodes are slow, which runs, and since when: the statistics of [`crate::stats`], class by class and session by
//! session.

mod node;
mod session;
mod why;

use crate::nodes::{Drift, NodeReport, SlowRun};
use crate::stats::cause::Explanation;
use crate::stats::median::{self, NodeMedian};
use crate::stats::verdict::{self, Judgement};
use crate::stats::{bimodal, drift, noise, runs};
use crate::table::{Order, RunTable};
use crate::warning::{self, Warning};
use hashbrown::HashMap;
use pmmpi::summary::count;
use rayon::prelude::*;
use session::Session;

/// Sessions that are judged side by side: what is known of each node of each is kept until their turn comes.
const SESSIONS_AT_A_TIME: usize = 8;

/// From when on something is called slow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// Of nodes.
    pub node: verdict::Settings,
    /// Of runs.
    pub run: runs::Settings,
    /// Of nodes over sessions.
    pub drift: drift::Settings,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// One a (class, node), of its latest session; what is most likely slowest first.
    pub nodes: Vec<NodeReport>,
    /// Of all sessions, the slowest first.
    pub slow_runs: Vec<SlowRun>,
    /// Those that last, the largest change first.
    pub drift: Vec<Drift>,
    /// What stands against believing it.
    pub warnings: Vec<Warning>,
}

/// Of all classes.
pub fn judge(table: &RunTable, order: &Order, settings: &Settings) -> Verdicts {
    let mut all = Verdicts::default();
    let mut earlier = 0;
    let class_of = |row: u32| table.class[row as usize];
    for rows in order.rows.chunk_by(|a, b| class_of(*a) == class_of(*b)) {
        earlier += Judge { table, settings, all: &mut all }.class(rows);
    }
    all.warnings.extend(about_sessions(order, earlier));
    // Within a verdict: where nodes hardly differ nothing is left of any slowdown, and the slowdown itself counts.
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

/// What is to be known of verdicts on runs of several sessions.
fn about_sessions(order: &Order, earlier: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if earlier > 0 {
        warnings.push(Warning::new(
            "earlier-sessions",
            format!("{} of earlier sessions: a node is judged by its latest", count(earlier, "run")),
            "runs that belong together need one session: a label, a column, or a pattern of paths",
        ));
    }
    if order.sessions > 1 && !order.sessions_are_dated {
        warnings.push(Warning::new(
            "undated-sessions",
            "not every session says when it began: they are in the order of their names",
            "a column `started` says it (RFC 3339)",
        ));
    }
    warnings
}

/// A class may be named by a command line of any length.
fn shortened(class: &str) -> String {
    const MOST: usize = 80;
    let end = class.char_indices().nth(MOST).map(|(at, _)| at);
    end.map_or_else(|| class.to_owned(), |end| format!("{}...", &class[..end]))
}

struct Judge<'a> {
    table: &'a RunTable,
    settings: &'a Settings,
    all: &'a mut Verdicts,
}

/// A node over the sessions of its class.
#[derive(Default)]
struct History<'a> {
    /// Of each session that it took part in: a row, and ln(its median / the class's).
    relative: Vec<(u32, f64)>,
    /// The latest in which it can be compared with others.
    latest: Option<(&'a [u32], NodeMedian, Judgement)>,
}

impl Judge<'_> {
    /// Gives how many runs are of other sessions than those that nodes are judged by.
    fn class(&mut self, rows: &[u32]) -> usize {
        let mut histories: HashMap<u32, History<'_>> = HashMap::new();
        let (table, settings) = (self.table, self.settings);
        let session = |row: &u32| table.session[*row as usize];
        let sessions: Vec<&[u32]> = rows.chunk_by(|a, b| session(a) == session(b)).collect();
        let mut left = sessions.len();
        for sessions in sessions.chunks(SESSIONS_AT_A_TIME) {
            let judged: Vec<Option<Session<'_>>> =
                sessions.par_iter().map(|rows| Session::judge(table, rows, settings)).collect();
            for (session, rows) in judged.into_iter().zip(sessions) {
                left -= 1;
                if let Some(session) = session {
                    self.session(&session, rows, &mut histories, left == 0);
                }
            }
        }
        let before = self.all.nodes.len();
        let latest = |history: &History<'_>| history.latest.map(|(rows, ..)| session(&rows[0]));
        let latest = histories.iter().filter_map(|(node, history)| Some((*node, latest(history)?))).collect();
        let why = why::explain(self.table, self.settings, &sessions, &latest);
        self.over_time(histories, why, rows[0] as usize);
        rows.len() - self.all.nodes[before..].iter().map(|node| node.runs).sum::<usize>()
    }

    fn session<'a>(
        &mut self,
        session: &Session<'a>,
        rows: &[u32],
        histories: &mut HashMap<u32, History<'a>>,
        is_latest: bool,
    ) {
        let Session { nodes, medians, judged, slow } = session;
        for ((node, middle), judgement) in nodes.iter().zip(medians).zip(&judged.nodes) {
            let history = histories.entry(self.table.node[node[0] as usize]).or_default();
            // A session without any other node of the class says nothing of this one.
            if let (Some(centre), Some(_)) = (judged.centre, judged.spread) {
                history.relative.push((node[0], middle.median - centre));
            }
            let is_better = |(.., known): (_, _, Judgement)| known.verdict.is_none();
            if judgement.verdict.is_some() || history.latest.is_none_or(is_better) {
                history.latest = Some((node, *middle, *judgement));
            }
        }
        for run in slow {
            let row = nodes[run.node][run.run] as usize;
            self.all.slow_runs.push(SlowRun {
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
        if is_latest {
            let flaky = runs::flaky(medians, slow, self.settings.run.q);
            let class = shortened(self.table.class_name(rows[0] as usize));
            self.all.warnings.extend(flaky.iter().map(|flaky| {
                let host = self.table.node_name(nodes[flaky.node][0] as usize);
                Warning::new(
                    "flaky-node",
                    format!(
                        "{host}: {} of {} runs are slow, more than chance would have it ({class})",
                        flaky.slow, flaky.runs
                    ),
                    "look at what else runs on it, and at its error counters and throttling",
                )
            }));
            self.about_class(rows, medians);
        }
    }

    /// What makes verdicts of a class worth less.
    fn about_class(&mut self, rows: &[u32], medians: &[NodeMedian]) {
        let class = shortened(self.table.class_name(rows[0] as usize));
        let mut ascending: Vec<f64> = medians.iter().map(|node| node.median).collect();
        ascending.sort_unstable_by(f64::total_cmp);
        let delta = self.settings.node.delta;
        if let Some(modes) = bimodal::modes(&ascending, &bimodal::Settings { delta, ..Default::default() }) {
            let apart = (modes.slow.centre - modes.fast.centre).exp_m1();
            self.all.warnings.push(Warning::new(
                "bimodal-class",
                format!(
                    "{} and {} of one class are {} apart ({class})",
                    count(modes.fast.nodes, "node"),
                    modes.slow.nodes,
                    warning::percent(apart)
                ),
                "they may be of two kinds: a label that tells them apart makes two classes of them",
            ));
        }
        let median_of = |values: &mut dyn Iterator<Item = f64>| {
            let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
            values.sort_unstable_by(f64::total_cmp);
            median::of_ascending(&values)
        };
        let within = |node: &NodeMedian| node.interval.map(|interval| node.median - interval.low);
        let noise = noise::Noise {
            bounds: median_of(&mut rows.iter().map(|row| self.table.width(*row as usize))),
            runs: median_of(&mut medians.iter().filter_map(within)),
        };
        if let Some((limit, size)) = noise::hides(delta, &noise) {
            let (what, advice) = match limit {
                noise::Limit::Bounds => {
                    ("the time itself is known", "measure longer work: barriers take what is unknown")
                }
                noise::Limit::Runs => ("a node's median is known", "measure more often, or longer work"),
            };
            self.all.warnings.push(Warning::new(
                "noise-floor",
                format!(
                    "{what} to {}: nodes that are {} slower cannot be told ({class})",
                    warning::percent(size),
                    warning::percent(delta)
                ),
                advice,
            ));
        }
    }

    /// What is said of each node, with its own history.
    fn over_time(
        &mut self,
        histories: HashMap<u32, History<'_>>,
        mut why: HashMap<u32, Explanation>,
        row: usize,
    ) {
        let class = self.table.class_name(row).to_owned();
        let settings = &self.settings.drift;
        let relative: Vec<Vec<f64>> = histories
            .values()
            .map(|history| history.relative.iter().map(|(_, relative)| *relative).collect())
            .collect();
        let all: Vec<&[f64]> = relative.iter().map(Vec::as_slice).collect();
        let deviation = drift::deviation(&all, settings);
        for ((node, history), relative) in histories.into_iter().zip(&relative) {
            if let Some((rows, middle, judgement)) = &history.latest {
                let why = why.remove(&node).unwrap_or_default();
                let mut report = node::report(self.table, self.settings, rows, middle, judgement, why);
                report.history_score = deviation.and_then(|sd| drift::score(relative, sd, settings));
                if report.history_score.is_none() {
                    let reason = format!(
                        "its own history says what it was like from {} sessions on",
                        settings.baseline + 1
                    );
                    report.null_reasons.insert("history_score", reason);
                }
                self.all.nodes.push(report);
            }
            let Some(deviation) = deviation else { continue };
            let alarms = drift::alarms(relative, deviation, settings);
            // What is over has been seen to.
            for alarm in alarms.iter().filter(|alarm| alarm.until.is_none()) {
                let row = history.relative[alarm.since].0 as usize;
                self.all.drift.push(Drift {
                    node: self.table.node_name(row).to_owned(),
                    class: class.clone(),
                    since: self.session_name(row),
                    change: alarm.change,
                    score: alarm.score,
                });
            }
        }
    }

    fn session_name(&self, row: usize) -> Option<String> {
        self.table.session_name(row).map(str::to_owned)
    }
}
