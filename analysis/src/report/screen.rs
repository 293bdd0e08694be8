//! The result of `pmmpi screen`: one answer per node, from all kernels together.

use super::run::RunReport;
use super::screened_run::ScreenedRun;
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::table::{Shared, SharedText};
use crate::verdicts::JudgeSettings;
use crate::verdicts::fitness::GateAnswer;
use crate::verdicts::kernels_of_node::{KernelOfNode, KernelsOfNode, ScreenVerdict};
use crate::verdicts::node_report::{NodeReport, Presence};
use pmmpi::network::{Network, Reading, SlowLink};
use pmmpi::order_statistics::of_ascending;
use pmmpi::text::shell_line;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A screen of some nodes.
#[derive(Debug, Serialize)]
pub struct ScreenReport {
    /// Rounds of all nodes.
    pub rounds: usize,
    /// Further rounds of some nodes.
    pub more_rounds: usize,
    /// Runs per node and kernel, on average.
    pub runs_per_node: f64,
    /// Time of the measured rounds, all nodes together (min).
    pub node_minutes: f64,
    /// The kernels, by name.
    pub kernels: Vec<KernelSummary>,
    /// One per node; the node that is most likely slow comes first.
    pub screened: Vec<ScreenedNode>,
    /// Links that are slow although both their nodes are fine, the slowest first.
    pub slow_links: Vec<SlowLinkReport>,
    /// Commands that would drain the nodes that should not run jobs.
    pub suggestions: Vec<Suggestion>,
    /// The answers for repaired nodes; empty if the user did not ask for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateAnswer>,
}

/// A kernel over all nodes.
#[derive(Debug, Serialize)]
pub struct KernelSummary {
    /// Its name.
    pub kernel: String,
    /// The unit of the values; `None` for the user's program.
    pub unit: Option<String>,
    /// Number of nodes with a time.
    pub nodes: usize,
    /// Of the nodes' medians.
    pub median: Option<f64>,
    /// The worst node's median.
    pub worst: Option<f64>,
    /// The median of the nodes' median times (s).
    pub median_s: Option<f64>,
    /// What the reader of the values must know.
    pub notes: Vec<String>,
}

/// The answer for one node.
#[derive(Debug, Serialize)]
pub struct ScreenedNode {
    /// Host name.
    pub node: SharedText,
    /// The worst verdict of its kernels.
    pub verdict: ScreenVerdict,
    /// What is slow: memory, compute, noise, disk, network, or the name of the user's program; `None` if nothing is.
    pub slow_in: Option<String>,
    /// The kernel with this verdict.
    pub kernel: Option<String>,
    /// Of this kernel: fraction of the median of its class, or of the node's own time before.
    pub slowdown: Option<f64>,
    /// Of this kernel: the node is slower by at least this fraction, with a probability of 99 %.
    pub slower_by_at_least: Option<f64>,
    /// Why, as far as it is known.
    pub cause: Option<String>,
    /// Its hardware threads that are slow in most rounds of this kernel.
    pub slow_threads: Vec<SlowThread>,
    /// True if the node should not run jobs until it is repaired.
    pub suggests_drain: bool,
    /// Each kernel.
    pub kernels: Shared<KernelsOfNode>,
}

/// A hardware thread that is slower than the median hardware thread of all nodes.
#[derive(Debug, PartialEq, Serialize)]
pub struct SlowThread {
    /// Its number in the kernel of the operating system.
    pub hardware_thread: u32,
    /// 0.1: 10 % slower.
    pub slowdown: f64,
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
    /// How many times worse the latency or the time per byte is than what the worse of both nodes reaches with others.
    pub times_worse: f64,
}

/// A command for the batch system.
#[derive(Debug, PartialEq, Serialize)]
pub struct Suggestion {
    /// Host name.
    pub node: SharedText,
    /// The reason that the batch system will show.
    pub reason: String,
    /// The command, quoted for a shell.
    pub command: String,
}

/// From the comparison with the class and with the node's own history.
fn verdict_of(node: &NodeReport) -> Option<ScreenVerdict> {
    let of_class = node.among_peers().verdict.map(|verdict| match verdict {
        Verdict::Ok => ScreenVerdict::Ok,
        Verdict::Fast => ScreenVerdict::Fast,
        Verdict::Unusual => ScreenVerdict::Unusual,
        Verdict::Suspect => ScreenVerdict::Suspect,
        Verdict::SlowTail => ScreenVerdict::SlowTail,
        Verdict::Slow => ScreenVerdict::Slow,
        Verdict::Wrong => ScreenVerdict::Wrong,
    });
    let of_history = node.history.verdict.map(|verdict| match verdict {
        OwnVerdict::Slowed => ScreenVerdict::Slowed,
        OwnVerdict::Suspect => ScreenVerdict::Suspect,
        OwnVerdict::Same | OwnVerdict::Faster => ScreenVerdict::Ok,
    });
    // SLOWED says more than SLOW-TAIL.
    of_class.into_iter().chain(of_history).max_by_key(|verdict| verdict.severity())
}

/// What a slow kernel says of a node.
fn area(kernel: &str, is_kernel: bool) -> &str {
    match kernel {
        _ if !is_kernel => kernel,
        "triad" | "latency" => "memory",
        "dgemm" | "fma" => "compute",
        "spin" => "noise",
        "net" => "network",
        other => other,
    }
}

fn slow_links(runs: &[(&RunReport, &ScreenedRun)]) -> Vec<SlowLinkReport> {
    let readings = runs.iter().flat_map(|(run, screened)| {
        let host = |index: u32| run.hosts.get(index as usize).map(String::as_str);
        screened.readings.iter().filter_map(move |reading| {
            let Reading { node, partner, latency_ns, gigabytes_per_s } = *reading;
            Some(Reading { node: host(node)?, partner: host(partner)?, latency_ns, gigabytes_per_s })
        })
    });
    let link = |link: SlowLink<&str>| SlowLinkReport {
        nodes: link.nodes.map(str::to_owned),
        latency_us: link.latency_ns / 1e3,
        gigabytes_per_s: link.gigabytes_per_s,
        times_worse: link.times_worse,
    };
    Network::of(readings).slow_links.into_iter().map(link).collect()
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

impl ScreenReport {
    /// The latest screen among `runs`, with the verdicts on its nodes; `None` if there is none. Also gives each of `nodes`
    /// its kernels.
    pub fn of(runs: &[RunReport], nodes: &mut [NodeReport], wrong: &[super::WrongNode]) -> Option<Self> {
        let latest = runs.iter().rev().find(|run| run.screened.is_some())?;
        let of_screen: Vec<(&RunReport, &ScreenedRun)> = runs
            .iter()
            .filter(|run| run.series == latest.series)
            .filter_map(|run| Some((run, run.screened.as_ref()?)))
            .collect();
        let kernels = Kernels::of(&of_screen);
        let mut collected: BTreeMap<SharedText, KernelsOfNode> = BTreeMap::new();
        let mut worst: HashMap<SharedText, (ScreenVerdict, f64, usize)> = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let Some(kernel) = kernels.of_class(node).filter(|_| node.is_current()) else { continue };
            let verdict = verdict_of(node);
            let of_node = KernelOfNode {
                value: kernels.value(kernel, &node.node),
                unit: kernels.unit(kernel),
                slowdown: node.among_peers().slowdown,
                slower_by_at_least: node.among_peers().slower_by_at_least,
                verdict,
                runs: node.runs,
            };
            collected.entry(node.node.clone()).or_default().insert(kernel.to_owned(), of_node);
            if let Some(verdict) = verdict {
                let slowdown = match verdict {
                    ScreenVerdict::Slowed => node.history.change,
                    _ => node.among_peers().slowdown,
                };
                let slowdown = slowdown.unwrap_or(f64::NEG_INFINITY);
                let known = worst.entry(node.node.clone()).or_insert((verdict, slowdown, at));
                if (verdict.severity(), slowdown) > (known.0.severity(), known.1) {
                    *known = (verdict, slowdown, at);
                }
            }
        }
        let wrong: BTreeSet<&str> =
            wrong.iter().filter(|wrong| wrong.is_latest).map(|wrong| wrong.node.as_str()).collect();
        let mut screened: Vec<ScreenedNode> = Vec::new();
        for host in &kernels.hosts {
            let node: SharedText = (*host).into();
            let mut of_node = collected.remove(&node).unwrap_or_default();
            let mut failed = Vec::new();
            for kernel in kernels.by_name.keys() {
                if of_node.contains_key(*kernel) {
                    continue;
                }
                // The node has a time, but nothing to compare with in this screen.
                if kernels.has_time(kernel, host) {
                    let alone = KernelOfNode {
                        value: kernels.value(kernel, host),
                        unit: kernels.unit(kernel),
                        ..KernelOfNode::default()
                    };
                    of_node.insert((*kernel).to_owned(), alone);
                } else {
                    let verdict =
                        if wrong.contains(host) { ScreenVerdict::Wrong } else { ScreenVerdict::Failed };
                    let without = KernelOfNode { verdict: Some(verdict), ..KernelOfNode::default() };
                    of_node.insert((*kernel).to_owned(), without);
                    failed.push(*kernel);
                }
            }
            let found = worst.get(&node).copied();
            screened.push(kernels.answer(node, found, &failed, wrong.contains(host), of_node, nodes));
        }
        screened.sort_by(|a, b| {
            let slowdown = |node: &ScreenedNode| node.slowdown.unwrap_or(f64::NEG_INFINITY);
            b.verdict
                .severity()
                .cmp(&a.verdict.severity())
                .then(slowdown(b).total_cmp(&slowdown(a)))
                .then(a.node.cmp(&b.node))
        });
        let of_host: HashMap<SharedText, Shared<KernelsOfNode>> =
            screened.iter().map(|node| (node.node.clone(), node.kernels.clone())).collect();
        for node in nodes.iter_mut().filter(|node| node.presence == Presence::Present) {
            if kernels.of_class(node).is_some() {
                node.kernels = of_host.get(&node.node).cloned();
            }
        }
        let suggestions = screened.iter().filter(|node| node.suggests_drain).map(|node| {
            let run_id = kernels.last_run_id.as_str();
            Suggestion::of(node, run_id)
        });
        let suggestions = suggestions.collect();
        let most = of_screen.iter().map(|(run, _)| run.nodes).max().unwrap_or_default();
        let rounds_of = |is_all: bool| {
            let of = of_screen.iter().filter(|(run, _)| (run.nodes == most) == is_all);
            of.map(|(_, screened)| screened.round).collect::<BTreeSet<u32>>()
        };
        let all = rounds_of(true);
        let node_runs: usize = of_screen.iter().map(|(run, _)| run.nodes).sum();
        Some(Self {
            rounds: all.len(),
            more_rounds: rounds_of(false).difference(&all).count(),
            runs_per_node: node_runs as f64 / (most.max(1) * kernels.by_name.len().max(1)) as f64,
            node_minutes: of_screen.iter().map(|(_, screened)| screened.node_seconds).sum::<f64>() / 60.0,
            kernels: kernels.summaries(nodes),
            screened,
            slow_links: slow_links(&of_screen),
            suggestions,
            gate: Vec::new(),
        })
    }

    /// Kernels and nodes of which a further round may show more; all kernels of a repaired node.
    pub fn suspects(&self) -> BTreeSet<(&str, &str)> {
        let mut all = BTreeSet::new();
        for node in &self.screened {
            for (kernel, of) in node.kernels.iter() {
                let is_asked = || self.gate.iter().any(|asked| asked.node == *node.node);
                if of.verdict.is_some_and(ScreenVerdict::is_suspicious) || is_asked() {
                    all.insert((kernel.as_str(), node.node.as_str()));
                }
            }
        }
        all
    }
}

impl Suggestion {
    /// For a node that should be drained; `run_id` leads to the measurement.
    fn of(node: &ScreenedNode, run_id: &str) -> Self {
        let reason = match (node.verdict, node.slowdown) {
            (ScreenVerdict::Wrong, _) | (_, None) => {
                let kernel = node.kernel.as_deref().unwrap_or("a kernel");
                format!("pmmpi: wrong-result: {kernel} {run_id}")
            }
            (_, Some(slowdown)) => {
                let area = node.slow_in.as_deref().unwrap_or("node");
                let least = node.slower_by_at_least.filter(|least| *least > 0.0);
                let least =
                    least.map_or(String::new(), |least| format!(" (at least {:.1} %)", least * 100.0));
                format!("pmmpi: slow-{area}: +{:.1} %{least} {run_id}", slowdown * 100.0)
            }
        };
        let command = shell_line([
            "scontrol".to_owned(),
            "update".to_owned(),
            format!("NodeName={}", node.node),
            "State=DRAIN".to_owned(),
            format!("Reason={reason}"),
        ]);
        Self { node: node.node.clone(), reason, command }
    }
}

/// The kernels of one screen.
struct Kernels<'a> {
    by_name: BTreeMap<&'a str, Vec<&'a ScreenedRun>>,
    /// The kernel of each run.
    of_run: HashMap<&'a str, &'a str>,
    /// All host names.
    hosts: BTreeSet<&'a str>,
    /// The id of the last run.
    last_run_id: String,
    runs: &'a [(&'a RunReport, &'a ScreenedRun)],
    /// The values of each kernel and host, over the rounds.
    values: HashMap<(&'a str, &'a str), Vec<f64>>,
}

impl<'a> Kernels<'a> {
    fn of(runs: &'a [(&'a RunReport, &'a ScreenedRun)]) -> Self {
        let mut kernels = Self {
            by_name: BTreeMap::new(),
            of_run: HashMap::new(),
            hosts: BTreeSet::new(),
            last_run_id: String::new(),
            runs,
            values: HashMap::new(),
        };
        for (run, screened) in runs {
            let kernel = screened.kernel.as_str();
            kernels.by_name.entry(kernel).or_default().push(screened);
            kernels.of_run.insert(&run.run_id, kernel);
            kernels.hosts.extend(run.hosts.iter().map(String::as_str));
            kernels.last_run_id.clone_from(&run.run_id);
            for (host, value) in &screened.values {
                kernels.values.entry((kernel, host)).or_default().push(*value);
            }
        }
        kernels
    }

    /// The kernel whose runs the report of a node is about.
    fn of_class(&self, node: &NodeReport) -> Option<&'a str> {
        self.of_run.get(node.median_run_id.as_str()).copied()
    }

    fn value(&self, kernel: &str, host: &str) -> Option<f64> {
        let mut values = self.values.get(&(kernel, host))?.clone();
        values.sort_by(f64::total_cmp);
        of_ascending(&values)
    }

    /// True if some round of the kernel has a time on the host.
    fn has_time(&self, kernel: &str, host: &str) -> bool {
        let is_timed = |run: &&(&RunReport, &ScreenedRun)| {
            let hosts = &run.0.hosts;
            hosts.binary_search_by(|of| of.as_str().cmp(host)).is_ok() && !run.1.without_time.contains(host)
        };
        self.runs.iter().filter(|(_, screened)| screened.kernel == kernel).any(|run| is_timed(&run))
    }

    fn unit(&self, kernel: &str) -> Option<String> {
        let runs = self.by_name.get(kernel)?;
        runs.iter().find_map(|run| run.unit.as_ref()).map(|measure| measure.unit.clone())
    }

    fn is_kernel(&self, kernel: &str) -> bool {
        self.by_name.get(kernel).is_some_and(|runs| runs.iter().all(|run| run.is_kernel))
    }

    /// The hardware threads of a host that are slow in more than half of the rounds of a kernel, the slowest first.
    fn slow_threads(&self, kernel: &str, host: &str) -> Vec<SlowThread> {
        let Some(runs) = self.by_name.get(kernel) else { return Vec::new() };
        let mut threads: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (of_host, number, by) in runs.iter().flat_map(|run| &run.slow_threads) {
            if of_host == host {
                threads.entry(*number).or_default().push(*by);
            }
        }
        let rounds = self.values.get(&(kernel, host)).map_or(0, Vec::len);
        threads.retain(|_, by| 2 * by.len() > rounds);
        let slow = threads.into_iter().filter_map(|(hardware_thread, mut by)| {
            by.sort_by(f64::total_cmp);
            Some(SlowThread { hardware_thread, slowdown: of_ascending(&by)? })
        });
        let mut slow: Vec<SlowThread> = slow.collect();
        slow.sort_by(|a, b| b.slowdown.total_cmp(&a.slowdown));
        slow
    }

    /// `worst` is the worst verdict of the node's times, with the index of its report.
    fn answer(
        &self,
        node: SharedText,
        worst: Option<(ScreenVerdict, f64, usize)>,
        without_time: &[&str],
        is_wrong: bool,
        kernels: KernelsOfNode,
        nodes: &[NodeReport],
    ) -> ScreenedNode {
        let mut answer = ScreenedNode {
            verdict: ScreenVerdict::Ok,
            slow_in: None,
            kernel: None,
            slowdown: None,
            slower_by_at_least: None,
            cause: None,
            slow_threads: Vec::new(),
            suggests_drain: false,
            kernels: Shared::new(kernels),
            node,
        };
        let of_times = worst.map_or(ScreenVerdict::Ok, |(verdict, ..)| verdict);
        let without = match (is_wrong, without_time.is_empty()) {
            (true, _) => Some(ScreenVerdict::Wrong),
            (false, false) => Some(ScreenVerdict::Failed),
            (false, true) => None,
        };
        if let Some(without) = without.filter(|without| without.severity() > of_times.severity()) {
            answer.verdict = without;
            answer.kernel = without_time.first().map(|kernel| (*kernel).to_owned());
            answer.suggests_drain = is_wrong;
            return answer;
        }
        answer.verdict = of_times;
        let Some(report) = worst.filter(|_| of_times != ScreenVerdict::Ok).map(|(.., at)| &nodes[at]) else {
            return answer;
        };
        let kernel = self.of_class(report).unwrap_or_default();
        let peers = report.among_peers();
        answer.kernel = Some(kernel.to_owned());
        answer.slow_in = of_times.is_suspicious().then(|| area(kernel, self.is_kernel(kernel)).to_owned());
        (answer.slowdown, answer.slower_by_at_least) = match of_times {
            ScreenVerdict::Slowed => (report.history.change, None),
            _ => (peers.slowdown, peers.slower_by_at_least),
        };
        answer.cause.clone_from(&report.why.cause_text);
        answer.slow_threads =
            if of_times.is_suspicious() { self.slow_threads(kernel, &answer.node) } else { Vec::new() };
        answer.suggests_drain = nodes.iter().any(|other| {
            other.node == answer.node && self.of_class(other).is_some() && other.should_be_drained()
        });
        answer
    }

    fn summaries(&self, nodes: &[NodeReport]) -> Vec<KernelSummary> {
        let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for node in nodes {
            if let Some(kernel) = self.of_class(node) {
                times.entry(kernel).or_default().push(node.median_s);
            }
        }
        let summary = |(kernel, runs): (&&'a str, &Vec<&ScreenedRun>)| {
            let mut values: Vec<f64> =
                self.hosts.iter().filter_map(|host| self.value(kernel, host)).collect();
            values.sort_by(f64::total_cmp);
            let measure = runs.iter().find_map(|run| run.unit.as_ref());
            let worst = match measure.is_some_and(|measure| measure.larger_is_better) {
                true => values.first(),
                false => values.last(),
            };
            let mut times = times.get(kernel).cloned().unwrap_or_default();
            times.sort_by(f64::total_cmp);
            let notes: BTreeSet<&String> = runs.iter().flat_map(|run| run.notes.keys()).collect();
            KernelSummary {
                kernel: (*kernel).to_owned(),
                unit: measure.map(|measure| measure.unit.clone()),
                nodes: times.len(),
                median: of_ascending(&values),
                worst: worst.copied(),
                median_s: of_ascending(&times),
                notes: notes.into_iter().cloned().collect(),
            }
        };
        self.by_name.iter().map(summary).collect()
    }
}
