//! The result of `pmmpi screen`: one answer per node, from all kernels together.

use super::against_baseline::AgainstBaseline;
use super::job_nodes::{self, NamesInSlurm};
use super::run::RunReport;
use super::screen_kernels::KernelsOfScreen;
pub use super::screen_kernels::{KernelSummary, ScreenedNode, SlowThread};
use super::screened_run::ScreenedRun;
use crate::input::LaterHistory;
use crate::table::{RunTable, Shared, SharedText};
use crate::verdicts::JudgeSettings;
use crate::verdicts::fitness::GateAnswer;
use crate::verdicts::kernels_of_node::{KernelsOfNode, ScreenVerdict};
use crate::verdicts::node_report::{NodeReport, Presence};
use crate::warnings::ClassWarning;
use hashbrown::{HashMap, HashSet};
use pmmpi::slow_links::{Network, SlowLink};
use serde::Serialize;
use std::collections::BTreeSet;

/// A screen of some nodes.
#[derive(Debug, Serialize)]
pub struct ScreenReport {
    /// Rounds of all nodes.
    pub rounds: usize,
    /// Further rounds of suspects, and of nodes beside them.
    pub more_rounds: usize,
    /// Runs per node and kernel, on average.
    pub runs_per_node: f64,
    /// Time of the measured rounds, all nodes together (min).
    pub node_minutes: f64,
    /// The kernels, by name.
    pub kernels: Vec<KernelSummary>,
    /// One per node; the node that is most likely slow comes first.
    pub screened: Vec<ScreenedNode>,
    /// Nodes of the Slurm job that took no part, by name.
    pub not_screened: Vec<String>,
    /// Links that are slow although both their nodes are fine, the slowest first.
    pub slow_links: Vec<SlowLinkReport>,
    /// Between which nodes data arrived wrong, if no faulty node is the reason.
    pub wrong_links: Vec<WrongLinkReport>,
    /// Commands that would drain the nodes that should not run jobs.
    pub suggestions: Vec<Suggestion>,
    /// The nodes of the jobs.
    #[serde(skip)]
    pub names_in_slurm: NamesInSlurm,
    /// The kernel of each class of these nodes.
    #[serde(skip)]
    pub kernel_of_class: HashMap<String, String>,
    /// Facts that limit the result.
    #[serde(skip)]
    pub warnings: Vec<ClassWarning>,
    /// What the sessions that began after the screen have of its nodes. Only an answer for repaired nodes needs it.
    #[serde(skip)]
    pub later_history: LaterHistory,
    /// The answers for repaired nodes; empty if the user did not ask for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateAnswer>,
    /// The screen next to a baseline; `None` if the user did not ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<AgainstBaseline>,
}

/// A slow link between two nodes. Several may share a cable or a switch.
#[derive(Debug, PartialEq, Serialize)]
pub struct SlowLinkReport {
    /// Host names.
    pub nodes: [String; 2],
    /// Median over the rounds (us).
    pub latency_us: f64,
    /// The same, in one direction (GB/s).
    pub gigabytes_per_s: f64,
    /// How many times worse the latency or the time per byte is than the value that the worse of the two nodes
    /// reaches with other nodes.
    pub times_worse: f64,
}

/// Data arrived wrong between these nodes. The link or one of the two nodes is faulty.
#[derive(Debug, PartialEq, Serialize)]
pub struct WrongLinkReport {
    /// The host that sent the data.
    pub from: String,
    /// The host that received them.
    pub to: String,
}

/// A node that should be drained.
#[derive(Debug, PartialEq)]
pub struct Suggestion {
    /// Host name.
    pub node: SharedText,
    /// The name of the node in Slurm.
    pub name_in_slurm: String,
    /// The reason that the batch system will show.
    pub reason: DrainReason,
}

/// Why a node should be drained. `run_id` leads to the measurement.
#[derive(Debug, PartialEq)]
pub enum DrainReason {
    /// A kernel computed a wrong result.
    WrongResult {
        /// Its name. `None` if it is not known.
        kernel: Option<String>,
        /// The last run of the screen.
        run_id: String,
    },
    /// The node is slow.
    Slow {
        /// What is slow: see [`ScreenedNode::slow_in`]. "node" if this is not known.
        area: String,
        /// The node is slower by this fraction.
        slowdown: f64,
        /// The node is slower by at least this fraction, with a probability of 99 %. `None` if it is not above 0.
        slower_by_at_least: Option<f64>,
        /// The last run of the screen.
        run_id: String,
    },
}

fn slow_links(runs: &[(&RunReport, &ScreenedRun)]) -> Vec<SlowLinkReport> {
    let readings = runs.iter().flat_map(|(_, screened)| screened.readings());
    let link = |link: SlowLink<&str>| SlowLinkReport {
        nodes: link.nodes.map(str::to_owned),
        latency_us: link.latency_ns / 1e3,
        gigabytes_per_s: link.gigabytes_per_s,
        times_worse: link.times_worse,
    };
    Network::of(readings).slow_links.into_iter().map(link).collect()
}

fn wrong_links(kernels: &KernelsOfScreen) -> Vec<WrongLinkReport> {
    let link = |[from, to]: [&str; 2]| WrongLinkReport { from: from.to_owned(), to: to.to_owned() };
    kernels.wrong_links().map(link).collect()
}

/// The number of kernels of the largest screen among these runs; 0 without a screen.
pub fn number_of_kernels(runs: &[RunReport]) -> usize {
    let mut kernels: HashMap<Option<&str>, BTreeSet<&str>> = HashMap::new();
    for run in runs {
        if let Some(screened) = &run.screened {
            kernels.entry(run.series.as_deref()).or_default().insert(&screened.kernel);
        }
    }
    kernels.values().map(BTreeSet::len).max().unwrap_or_default()
}

/// Each kernel is judged on its own, next to the class and, after earlier screens, next to the node's own history. The
/// rate of false discoveries holds for all of these together only if each gets its part (Bonferroni).
pub fn settings_of(settings: &JudgeSettings, kernels: usize, sessions: usize) -> JudgeSettings {
    let mut settings = *settings;
    let comparisons = if kernels > 0 && sessions > 1 { 2 } else { 1 };
    let parts = (kernels.max(1) * comparisons) as f64;
    settings.node.q /= parts;
    settings.run.q /= parts;
    settings.own_history.q /= parts;
    settings
}

/// The rounds of the screen with this series id among `runs`; none without a screen. A run without a series is one.
pub fn rounds_of<'a>(
    runs: impl Iterator<Item = &'a RunReport>,
    series: Option<&str>,
) -> Vec<(&'a RunReport, &'a ScreenedRun)> {
    let Some(series) = series else { return Vec::new() };
    let of_screen = runs.filter(|run| run.series.as_deref().unwrap_or(&run.run_id) == series);
    of_screen.filter_map(|run| Some((run, run.screened.as_ref()?))).collect()
}

impl ScreenReport {
    /// The screen with this series id among `runs`, with the verdicts on its nodes; `None` if there is none. Also gives each
    /// of `nodes` its kernels, and suggests to drain a node with a wrong result. `table` has the times of all runs.
    pub fn of(
        runs: &[RunReport],
        series: Option<&str>,
        nodes: &mut [NodeReport],
        table: &RunTable,
    ) -> Option<Self> {
        let of_screen = rounds_of(runs.iter(), series);
        if of_screen.is_empty() {
            return None;
        }
        let kernels = KernelsOfScreen::of(&of_screen, table);
        let reports = kernels.reports(nodes);
        let summaries = kernels.summaries(&reports);
        let mut screened = kernels.answers(&reports);
        drop(reports);
        screened.sort_by(|a, b| {
            let slowdown = |node: &ScreenedNode| node.slowdown.unwrap_or(f64::NEG_INFINITY);
            let severity = |node: &ScreenedNode| node.verdict.map(ScreenVerdict::severity);
            severity(b).cmp(&severity(a)).then(slowdown(b).total_cmp(&slowdown(a))).then(a.node.cmp(&b.node))
        });
        let of_host: HashMap<SharedText, Shared<KernelsOfNode>> =
            screened.iter().map(|node| (node.node.clone(), node.kernels.clone())).collect();
        let mut kernel_of_class: HashMap<String, String> = HashMap::new();
        let is_wrong = |node: &&ScreenedNode| node.verdict == Some(ScreenVerdict::Wrong);
        let wrong: HashSet<SharedText> =
            screened.iter().filter(is_wrong).map(|node| node.node.clone()).collect();
        for node in nodes.iter_mut().filter(|node| node.presence == Presence::Present) {
            let Some(kernel) = kernels.of_class(node) else { continue };
            node.kernels = of_host.get(&node.node).cloned();
            node.suggests_drain |= wrong.contains(&node.node);
            if !kernel_of_class.contains_key(&*node.class) {
                kernel_of_class.insert(node.class.to_string(), kernel.to_owned());
            }
        }
        let last_run_id = of_screen.last().map_or("", |(run, _)| run.run_id.as_str());
        let to_drain = screened.iter().filter(|node| node.suggests_drain);
        let all_lists = runs.iter().filter_map(|run| run.screened.as_ref()?.job_nodes.as_deref());
        let names_in_slurm = NamesInSlurm::of(all_lists);
        let suggestions = to_drain.map(|node| Suggestion::of(node, &names_in_slurm, last_run_id)).collect();
        let most = of_screen.iter().map(|(run, _)| run.nodes).max().unwrap_or_default();
        let rounds = |is_further: bool| {
            let rounds = of_screen.iter().filter(|(_, screened)| screened.is_further == is_further);
            rounds.map(|(_, screened)| screened.round).collect::<BTreeSet<u32>>().len()
        };
        let node_runs: usize = of_screen.iter().map(|(run, _)| run.nodes).sum();
        let lists = of_screen.iter().filter_map(|(_, screened)| screened.job_nodes.as_deref());
        Some(Self {
            rounds: rounds(false),
            more_rounds: rounds(true),
            runs_per_node: node_runs as f64 / (most.max(1) * summaries.len().max(1)) as f64,
            node_minutes: of_screen.iter().map(|(_, screened)| screened.node_seconds).sum::<f64>() / 60.0,
            kernels: summaries,
            screened,
            not_screened: job_nodes::without_part(lists, kernels.hosts()),
            slow_links: slow_links(&of_screen),
            wrong_links: wrong_links(&kernels),
            suggestions,
            names_in_slurm,
            kernel_of_class,
            warnings: [kernels.cores_differ(), kernels.failed_everywhere()].concat(),
            later_history: LaterHistory::default(),
            gate: Vec::new(),
            against: None,
        })
    }

    /// True for a kernel of pmmpi, in contrast to the user's program.
    pub fn is_kernel(&self, name: &str) -> bool {
        self.kernels.iter().any(|kernel| kernel.kernel == name && kernel.is_kernel)
    }

    /// Kernels and nodes for which further rounds are useful; all kernels of a repaired node.
    pub fn suspects(&self) -> BTreeSet<(&str, &str)> {
        let repaired: BTreeSet<&str> = self.gate.iter().filter_map(|asked| asked.host.as_deref()).collect();
        let mut all = BTreeSet::new();
        for node in &self.screened {
            let is_repaired = repaired.contains(node.node.as_str());
            for (kernel, of) in node.kernels.iter() {
                if of.verdict.is_some_and(ScreenVerdict::is_suspicious) || is_repaired {
                    all.insert((kernel.as_str(), node.node.as_str()));
                }
            }
        }
        all
    }
}

impl Suggestion {
    /// For a node that should be drained; `run_id` leads to the measurement.
    fn of(node: &ScreenedNode, names: &NamesInSlurm, run_id: &str) -> Self {
        let run_id = run_id.to_owned();
        let reason = match (node.verdict, node.slowdown) {
            (Some(ScreenVerdict::Wrong), _) | (_, None) => {
                DrainReason::WrongResult { kernel: node.kernel.clone(), run_id }
            }
            (_, Some(slowdown)) => DrainReason::Slow {
                area: node.slow_in.as_deref().unwrap_or("node").to_owned(),
                slowdown,
                slower_by_at_least: node.slower_by_at_least.filter(|least| *least > 0.0),
                run_id,
            },
        };
        let name_in_slurm = names.of_host(node.node.as_str()).to_owned();
        Self { node: node.node.clone(), name_in_slurm, reason }
    }
}
