//! The answer as a value. Its keys are a contract (docs/schema/report.schema.json): later versions may only add keys.
//!
//! This module defines what the answer contains. [`crate::render`] shows it, and [`crate::verdicts`] decides which
//! nodes are slow.

pub mod accounted;
pub mod against_baseline;
pub mod by_place;
mod cores_differ;
pub mod counters;
pub mod failed_runs;
mod few_runs;
pub mod flag_findings;
pub mod gate;
pub mod health;
pub mod host_names;
mod job_nodes;
pub mod lateness;
pub mod metrics;
pub mod null_reasons;
pub mod often_waited_for;
pub mod places;
pub mod probes;
pub mod regions;
pub mod run;
pub mod run_flags;
mod run_warnings;
pub mod screen;
mod screen_kernels;
mod screen_times;
pub mod screened_run;
pub mod series;
mod split_labels;
mod turbo_flag;
mod unread_paths;

use crate::input::importers::{self, Decoding, Rejected, Results};
use crate::input::place_source::PlaceSource;
use crate::input::{self, Input, input_warnings};
use crate::stats::node_counts::NAMES;
use crate::stats::verdict_rule::Verdict;
use crate::table::place_table::Level;
use crate::table::selection::Selected;
use crate::table::{BOUNDS, NoTime, WrongResults};
use crate::verdicts::class_report::{ClassReport, Reconfigured};
use crate::verdicts::goes_with_slowness::ClassSlowness;
use crate::verdicts::node_report::{DriftReport, FlakyReport, NodeReport, SlowRunReport};
use crate::verdicts::{self, JudgeSettings, Verdicts, where_slow};
use crate::warnings::Warning;
use accounted::{Accounted, NodeGroup};
use by_place::ByPlace;
use failed_runs::FailedNode;
use often_waited_for::{OftenWaitedFor, often};
use pmmpi::record::Run;
use pmmpi_events::validation::Trust;
use run::{Details, RunReport};
use screen::ScreenReport;
use screened_run::ScreenedRun;
use serde::Serialize;
use series::SeriesReport;
use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Counters that a report needs.
pub static COUNTERS: LazyLock<Vec<&str>> =
    LazyLock::new(|| NAMES.into_iter().chain(BOUNDS).chain(verdicts::health::counters()).collect());

/// Reads the input of a report: see [`input::read`].
pub fn read(
    paths: &[PathBuf],
    options: &importers::ImportOptions,
    trust: &Trust,
    details: Details,
) -> Input<RunReport> {
    input::read(paths, options, trust, |run| RunReport::new(run, trust, details))
}

/// Like [`read`], for runs that are in memory.
pub fn of_runs(runs: &[Run], options: &importers::ImportOptions, trust: &Trust) -> Input<RunReport> {
    input::of_runs(runs, options, trust, |run| RunReport::new(run, trust, Details::Shown))
}

/// What a report shows of the places of nodes.
#[derive(Clone, Debug, Default)]
pub struct PlaceSettings {
    /// Metrics and counts at each place of this level.
    pub by: Option<Level>,
    /// For the files of an archive.
    pub decoding: Decoding,
}

/// All that `pmmpi report` shows.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of the JSON format.
    pub schema_version: u32,
    /// What the user selected; `None`: everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<Selected>,
    /// Runs, by start time.
    pub runs: Vec<RunReport>,
    /// Series whose runs counted different groups of events.
    pub series: Vec<SeriesReport>,
    /// Nodes: WRONG ones first, then the node that is most likely slowest.
    pub nodes: Vec<NodeReport>,
    /// Classes, by name.
    pub classes: Vec<ClassReport>,
    /// Wrong results by node and session; those of a node's latest session come first.
    pub wrong: Vec<WrongNode>,
    /// Nodes with runs of pmmpi that failed or are not complete, by name.
    pub failed: Vec<FailedNode>,
    /// Number of these runs; a run on several nodes counts once.
    #[serde(skip)]
    pub failed_runs: usize,
    /// What became of each node.
    pub accounted: Accounted,
    /// Nodes whose facts changed in the latest sessions, the change of most nodes first.
    pub reconfigured: Vec<Reconfigured>,
    /// Slow runs of all sessions, the slowest first.
    pub slow_runs: Vec<SlowRunReport>,
    /// Number of runs that were compared; a run on several nodes counts once per node.
    #[serde(skip)]
    pub runs_of_nodes: usize,
    /// How many sessions there are, and how many are needed.
    pub sessions: SessionsNeeded,
    /// Nodes with more slow runs than expected by chance, by name.
    pub flaky: Vec<FlakyReport>,
    /// Nodes that grew slower, the largest change first.
    pub drift: Vec<DriftReport>,
    /// What goes with slowness, by class; `None`: the user did not ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goes_with_slowness: Option<Vec<ClassSlowness>>,
    /// Metrics and counts by place; `None`: the user did not ask for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_place: Option<ByPlace>,
    /// Nodes that came last in more runs than expected by chance, the latest first.
    pub waited_for: Vec<OftenWaitedFor>,
    /// Rejected rows and values of other tools' results: the first hundred.
    pub rejected: Vec<RejectedRow>,
    /// The latest screen; `None` if no run is a round of `pmmpi screen`.
    #[serde(flatten)]
    pub screen: Option<ScreenReport>,
    /// Warnings about the input and the whole report; [`crate::render::sentences::sort_warnings`] sorts them.
    pub warnings: Vec<Warning>,
}

/// A node is judged if it is not a suspect after this number of rounds of a screen.
const FEWEST_ROUNDS: usize = 3;

/// Numbers of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SessionsNeeded {
    /// The most sessions of a node in a class, since its last maintenance; runs without a session are one.
    pub most: usize,
    /// A node's own history needs this number of sessions.
    pub history_needs: usize,
    /// Drift needs so many.
    pub drift_needs: usize,
}

impl SessionsNeeded {
    fn of(nodes: &[NodeReport], settings: &JudgeSettings) -> Self {
        let most = nodes.iter().map(|node| node.history.sessions).max().unwrap_or_default();
        Self { most, history_needs: 2, drift_needs: settings.drift.baseline + 1 }
    }
}

/// A node that computed wrong results in a session.
#[derive(Debug, Serialize)]
pub struct WrongNode {
    /// Host name.
    pub node: String,
    /// The session; `None` if there is none.
    pub session: Option<String>,
    /// True if no later session has a time of the node. Only then is the node's verdict WRONG.
    pub is_latest: bool,
    /// Number of wrong results.
    pub results: u64,
    /// Where the first one is, and what is wrong with it.
    pub first: String,
}

/// The times of a node with wrong results mean nothing: such nodes come first, and have no other verdict.
fn mark_wrong(nodes: &mut [NodeReport], wrong: &[WrongNode]) {
    let wrong: HashSet<&str> = latest_wrong(wrong).collect();
    if wrong.is_empty() {
        return;
    }
    for node in nodes.iter_mut().filter(|node| wrong.contains(node.node.as_str())) {
        (node.verdict, node.suggests_drain) = (Some(Verdict::Wrong), false);
        node.as_member_of.iter_mut().for_each(|member| member.suggests_drain = false);
        node.null_reasons.remove("verdict");
    }
    nodes.sort_by_key(|node| node.verdict != Some(Verdict::Wrong));
}

/// The nodes whose latest results are wrong.
fn latest_wrong(wrong: &[WrongNode]) -> impl Iterator<Item = &str> {
    wrong.iter().filter(|wrong| wrong.is_latest).map(|wrong| wrong.node.as_str())
}

/// The nodes that ran in their latest session, but have no time there. Wrong results are another matter.
fn latest_without_time(results: &Results) -> HashSet<&str> {
    let Results { table, order, .. } = results;
    let of_runs = table.without_time.iter().filter(|run| run.why != NoTime::Wrong);
    let of_runs = of_runs.map(|run| [run.node, run.session]).chain(table.rejected_nodes.iter().copied());
    let rank = |session: u32| order.session_ranks[session as usize];
    let mut without: HashMap<u32, u32> = HashMap::new();
    for [node, session] in of_runs {
        let latest = without.entry(node).or_insert(0);
        *latest = rank(session).max(*latest);
    }
    if !without.is_empty() {
        for (node, session) in table.node.iter().zip(table.session.iter()) {
            if without.get(&node).is_some_and(|latest| *latest <= rank(session)) {
                without.remove(&node);
            }
        }
    }
    without.into_keys().filter_map(|node| table.nodes.get(node)).collect()
}

/// All wrong results, those of the latest sessions first.
fn wrong(results: &Results) -> Vec<WrongNode> {
    let Results { table, order, .. } = results;
    if table.wrong.is_empty() {
        return Vec::new();
    }
    let mut latest = vec![0; table.nodes.len()];
    for (node, session) in table.node.iter().zip(table.session.iter()) {
        let latest = &mut latest[node as usize];
        *latest = order.session_ranks[session as usize].max(*latest);
    }
    let of = |((node, session), wrong): (&(u32, u32), &WrongResults)| WrongNode {
        node: table.nodes.get(*node).unwrap_or_default().to_owned(),
        session: table.sessions.get(*session).filter(|name| !name.is_empty()).map(str::to_owned),
        is_latest: order.session_ranks[*session as usize] >= latest[*node as usize],
        results: wrong.results,
        first: wrong.first.clone(),
    };
    let mut all: Vec<WrongNode> = table.wrong.iter().map(of).collect();
    all.sort_by(|a, b| (!a.is_latest, &a.node, &a.session).cmp(&(!b.is_latest, &b.node, &b.session)));
    all
}

/// A row, or a value of a row, that is not valid.
#[derive(Debug, Serialize)]
pub struct RejectedRow {
    /// The file with this row.
    pub file: String,
    /// Line, counted from 1; in a JSON document, the number of the entry.
    pub line: u64,
    /// What is wrong with it, and what the reader expects.
    pub reason: String,
}

impl Report {
    /// Builds the report from the input; `settings` hold the limits of the verdicts.
    pub fn new(
        input: Input<RunReport>,
        trust: &Trust,
        settings: &JudgeSettings,
        places: &PlaceSettings,
    ) -> Self {
        let Input { runs, results, hosts, screen: of_screen, later_history, .. } = input;
        let runs: Vec<RunReport> = runs.into_iter().map(|run| run.kept).collect();
        let kernels = screen::number_of_kernels(&runs);
        let settings = &screen::settings_of(settings, kernels, results.order.sessions);
        let judged = verdicts::judge(&results.table, &results.order, settings);
        let Verdicts {
            mut nodes,
            classes,
            reconfigured,
            mut slow_runs,
            flaky,
            drift,
            goes_with_slowness,
            ..
        } = judged;
        let mut all = input.warnings;
        all.extend(input_warnings::of_results(&results));
        all.extend(input_warnings::without_time(input.without_time));
        all.extend(input_warnings::undated(input.left_out));
        all.extend(judged.warnings.into_iter().map(Warning::from));
        all.extend(unread_paths::warning(&results.guessed_nodes).map(Warning::from));
        all.extend(split_labels::warning(&runs, &classes).map(Warning::from));
        all.extend(input_warnings::unusable_trust(trust));
        let source = PlaceSource::of(&results, &places.decoding);
        // The values of a kernel's hardware threads say where a node is slow.
        let has_threads = |run: &&RunReport| run.screened.as_ref().is_some_and(ScreenedRun::has_threads);
        let others = source.without(runs.iter().filter(has_threads).map(|run| run.run_id.as_str()));
        where_slow::of_runs(&mut slow_runs, &results.table, &others, trust, &settings.run);
        where_slow::of_nodes(&mut nodes, &others, trust, &settings.run);
        let by_place = places.by.map(|level| {
            let (by_place, warnings) = ByPlace::of(&source, &results.table, &slow_runs, level, trust);
            all.extend(warnings);
            by_place
        });
        let rejected = results.rejected.iter().map(|rejected| RejectedRow::new(&results, rejected)).collect();
        let waited_for = often(&runs, settings.run.q);
        let runs_of_nodes = results.table.run_count();
        let sessions = SessionsNeeded::of(&nodes, settings);
        let wrong = wrong(&results);
        mark_wrong(&mut nodes, &wrong);
        let mut screen = ScreenReport::of(&runs, of_screen.as_deref(), &mut nodes, &results.table);
        if let Some(screen) = &mut screen {
            screen.later_history = later_history;
        }
        let of_kernels = screen.iter_mut().flat_map(|screen| std::mem::take(&mut screen.warnings));
        all.extend(of_kernels.map(Warning::from));
        all.extend(few_runs::warnings(&nodes, screen.as_ref(), &runs).into_iter().map(Warning::from));
        // The nodes that are not suspected run few rounds only.
        let min_runs =
            if kernels > 0 { settings.node.min_runs.min(FEWEST_ROUNDS) } else { settings.node.min_runs };
        let mut accounted = Accounted::of(
            &nodes,
            hosts.iter().map(String::as_str),
            latest_wrong(&wrong),
            &latest_without_time(&results),
            min_runs,
        );
        if let Some(unmeasured) = accounted.nodes.get(&NodeGroup::Unmeasured) {
            accounted.failed_runs = failed_runs::count(&results.table, |node| unmeasured.contains(node));
        }
        Self {
            schema_version: 1,
            selected: input.selected,
            series: series::of(&runs),
            runs,
            nodes,
            classes,
            wrong,
            failed: failed_runs::of(&results.table),
            failed_runs: failed_runs::count(&results.table, |_| true),
            accounted,
            reconfigured,
            slow_runs,
            runs_of_nodes,
            sessions,
            flaky,
            drift,
            goes_with_slowness: settings.goes_with_slowness.map(|_| goes_with_slowness),
            by_place,
            waited_for,
            rejected,
            screen,
            warnings: all,
        }
    }

    /// The classes that some node is in today. All nodes of another class are gone, or are in a new class.
    pub fn classes_now(&self) -> impl Iterator<Item = &ClassReport> {
        let current = self.nodes.iter().filter(|node| node.is_current());
        let current: HashSet<&str> = current.map(|node| node.class.as_str()).collect();
        self.classes.iter().filter(move |class| current.contains(class.class.as_str()))
    }

    /// The flaky nodes that were measured in the latest sessions.
    pub fn flaky_now(&self) -> impl Iterator<Item = &FlakyReport> {
        let now = LazyCell::new(move || self.nodes_now());
        self.flaky.iter().filter(move |flaky| now.contains(&(flaky.node.as_str(), flaky.class.as_str())))
    }

    /// The drifts of nodes that were measured in the latest sessions.
    pub fn drift_now(&self) -> impl Iterator<Item = &DriftReport> {
        let now = LazyCell::new(move || self.nodes_now());
        self.drift.iter().filter(move |drift| now.contains(&(drift.node.as_str(), drift.class.as_str())))
    }

    /// The nodes of the latest sessions, each with its class.
    fn nodes_now(&self) -> HashSet<(&str, &str)> {
        let current = self.nodes.iter().filter(|node| node.is_current());
        current.map(|node| (node.node.as_str(), node.class.as_str())).collect()
    }
}

impl RejectedRow {
    fn new(results: &Results, rejected: &Rejected) -> Self {
        let path = results.path_of(rejected);
        let file = path.map(|path| path.display().to_string()).unwrap_or_default();
        Self { file, line: rejected.line, reason: rejected.reason.clone() }
    }
}
