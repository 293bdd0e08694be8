//! The result of `pmmpi screen`: one answer per node, from all kernels together.

use super::cores_differ::{self, Threads};
use super::job_nodes;
use super::run::RunReport;
use super::screen_times::ScreenTimes;
use super::screened_run::ScreenedRun;
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::table::{NoTime, RunTable, Shared, SharedText};
use crate::verdicts::JudgeSettings;
use crate::verdicts::fitness::GateAnswer;
use crate::verdicts::kernels_of_node::{KernelOfNode, KernelsOfNode, ScreenVerdict};
use crate::verdicts::node_report::{NodeReport, Presence};
use crate::warning_codes::Warning;
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
    /// Commands that would drain the nodes that should not run jobs.
    pub suggestions: Vec<Suggestion>,
    /// Facts that limit the result.
    #[serde(skip)]
    pub warnings: Vec<Warning>,
    /// The answers for repaired nodes; empty if the user did not ask for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<GateAnswer>,
}

/// A kernel over all nodes.
#[derive(Debug, Serialize)]
pub struct KernelSummary {
    /// Its name.
    pub kernel: String,
    /// True for a kernel of pmmpi.
    #[serde(skip)]
    pub is_kernel: bool,
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
    /// The worst verdict of its kernels; `None` if the node could not be compared.
    pub verdict: Option<ScreenVerdict>,
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

impl ScreenedNode {
    /// The kernels that gave no result on this node.
    pub fn without_result(&self) -> impl Iterator<Item = &str> {
        let has_none = |of: &KernelOfNode| of.runs == 0 || of.verdict == Some(ScreenVerdict::Failed);
        self.kernels.iter().filter(move |(_, of)| has_none(of)).map(|(kernel, _)| kernel.as_str())
    }

    /// The kernels that have a result which could not be compared.
    pub fn not_compared(&self) -> impl Iterator<Item = &str> {
        let is_open = |of: &KernelOfNode| of.runs > 0 && of.verdict.is_none();
        self.kernels.iter().filter(move |(_, of)| is_open(of)).map(|(kernel, _)| kernel.as_str())
    }
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

/// What the report says of a kernel on a node.
#[derive(Clone, Copy)]
struct Judged<'a> {
    report: &'a NodeReport,
    /// True if this screen judges the node next to its class, and not an earlier session.
    is_here: bool,
    /// True if the node's own history has this screen.
    has_history: bool,
}

impl Judged<'_> {
    /// From the comparison with the class and with the node's own history. If this screen cannot compare the node with
    /// others, a node that is as it was keeps its earlier verdict.
    fn verdict(&self) -> Option<ScreenVerdict> {
        let of_class = self.report.among_peers().verdict.map(|verdict| match verdict {
            Verdict::Ok => ScreenVerdict::Ok,
            Verdict::Fast => ScreenVerdict::Fast,
            Verdict::Unusual => ScreenVerdict::Unusual,
            Verdict::Suspect => ScreenVerdict::Suspect,
            Verdict::SlowTail => ScreenVerdict::SlowTail,
            Verdict::Slow => ScreenVerdict::Slow,
            Verdict::Wrong => ScreenVerdict::Wrong,
        });
        let own = self.report.history.verdict.filter(|_| self.has_history);
        let of_history = own.map(|verdict| match verdict {
            OwnVerdict::Slowed => ScreenVerdict::Slowed,
            OwnVerdict::Suspect => ScreenVerdict::Suspect,
            OwnVerdict::Same | OwnVerdict::Faster => ScreenVerdict::Ok,
        });
        let earlier = of_class.filter(|verdict| *verdict != ScreenVerdict::Wrong);
        match (self.is_here, own) {
            // SLOWED says more than SLOW-TAIL.
            (true, _) => of_class.into_iter().chain(of_history).max_by_key(|verdict| verdict.severity()),
            (false, Some(OwnVerdict::Same)) => earlier.or(of_history),
            // It was slower: whether it is fast enough now, only its class can tell.
            (false, Some(OwnVerdict::Faster)) => {
                of_history.filter(|_| earlier.is_none_or(|verdict| verdict == ScreenVerdict::Ok))
            }
            (false, _) => of_history,
        }
    }
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
    /// its kernels. `table` has the times of all runs.
    pub fn of(runs: &[RunReport], nodes: &mut [NodeReport], table: &RunTable) -> Option<Self> {
        let latest = runs.iter().rev().find(|run| run.screened.is_some())?;
        let of_screen: Vec<(&RunReport, &ScreenedRun)> = runs
            .iter()
            .filter(|run| run.series == latest.series)
            .filter_map(|run| Some((run, run.screened.as_ref()?)))
            .collect();
        let kernels = Kernels::of(&of_screen, table);
        let reports = kernels.reports(nodes);
        let summaries = kernels.summaries(&reports);
        let mut screened: Vec<ScreenedNode> =
            kernels.hosts.iter().map(|host| kernels.answer(host, &reports)).collect();
        screened.sort_by(|a, b| {
            let slowdown = |node: &ScreenedNode| node.slowdown.unwrap_or(f64::NEG_INFINITY);
            let severity = |node: &ScreenedNode| node.verdict.map(ScreenVerdict::severity);
            severity(b).cmp(&severity(a)).then(slowdown(b).total_cmp(&slowdown(a))).then(a.node.cmp(&b.node))
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
        let rounds = |is_further: bool| {
            let rounds = of_screen.iter().filter(|(_, screened)| screened.is_further == is_further);
            rounds.map(|(_, screened)| screened.round).collect::<BTreeSet<u32>>().len()
        };
        let node_runs: usize = of_screen.iter().map(|(run, _)| run.nodes).sum();
        let lists = of_screen.iter().filter_map(|(_, screened)| screened.job_nodes.as_deref());
        Some(Self {
            rounds: rounds(false),
            more_rounds: rounds(true),
            runs_per_node: node_runs as f64 / (most.max(1) * kernels.by_name.len().max(1)) as f64,
            node_minutes: of_screen.iter().map(|(_, screened)| screened.node_seconds).sum::<f64>() / 60.0,
            kernels: summaries,
            screened,
            not_screened: job_nodes::without_part(lists, &kernels.hosts),
            slow_links: slow_links(&of_screen),
            suggestions,
            warnings: cores_differ::warnings(kernels.used_threads(), kernels.times.online_threads()),
            gate: Vec::new(),
        })
    }

    /// True for a kernel of pmmpi, in contrast to the user's program.
    pub fn is_kernel(&self, name: &str) -> bool {
        self.kernels.iter().any(|kernel| kernel.kernel == name && kernel.is_kernel)
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
            (Some(ScreenVerdict::Wrong), _) | (_, None) => {
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

/// What the report says of each kernel and host.
type Reports<'n> = HashMap<(&'n str, &'n str), Judged<'n>>;

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
    times: ScreenTimes<'a>,
    /// The values of each kernel and host, over the rounds.
    values: HashMap<(&'a str, &'a str), Vec<f64>>,
}

impl<'a> Kernels<'a> {
    fn of(runs: &'a [(&'a RunReport, &'a ScreenedRun)], table: &'a RunTable) -> Self {
        let mut kernels = Self {
            by_name: BTreeMap::new(),
            of_run: HashMap::new(),
            hosts: BTreeSet::new(),
            last_run_id: String::new(),
            runs,
            times: ScreenTimes::default(),
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
        kernels.times = ScreenTimes::of(table, &kernels.of_run);
        kernels
    }

    /// The kernel that a report of a node is about. If this screen does not judge the node, the report is about an earlier
    /// session of the same class.
    fn of_class(&self, node: &NodeReport) -> Option<&'a str> {
        let here = self.of_run.get(node.median_run_id.as_str()).copied();
        here.or_else(|| self.times.kernel(&node.node, &node.class))
    }

    /// The hardware threads that each kernel used on each host.
    fn used_threads(&self) -> impl Iterator<Item = Threads<'a>> {
        let of_run = |(_, screened): &(&'a RunReport, &'a ScreenedRun)| {
            let kernel = screened.kernel.as_str();
            screened.threads.iter().map(move |(host, threads)| (kernel, host.as_str(), *threads))
        };
        self.runs.iter().flat_map(of_run).filter_map(|(kernel, host, threads)| {
            Some(([self.times.class(kernel, host)?, kernel], host, threads))
        })
    }

    /// The report on each kernel and host.
    fn reports<'n>(&self, nodes: &'n [NodeReport]) -> Reports<'n>
    where
        'a: 'n,
    {
        let mut reports = Reports::new();
        for report in nodes.iter().filter(|node| node.is_current()) {
            let Some(kernel) = self.of_class(report) else { continue };
            let is_here = self.of_run.contains_key(report.median_run_id.as_str());
            let has_history = report.history.latest.as_deref() == self.times.session();
            let judged = Judged { report, is_here, has_history };
            let known = reports.entry((kernel, report.node.as_str())).or_insert(judged);
            if is_here {
                *known = judged;
            }
        }
        reports
    }

    fn value(&self, kernel: &str, host: &str) -> Option<f64> {
        let mut values = self.values.get(&(kernel, host))?.clone();
        values.sort_by(f64::total_cmp);
        of_ascending(&values)
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

    /// One kernel on one host; `None` if the host took no part.
    fn on_host(&self, kernel: &str, host: &str, judged: Option<Judged>) -> Option<KernelOfNode> {
        let (mut timed, mut failed, mut wrong) = (0, 0, 0);
        for (run, screened) in self.runs.iter().filter(|(_, screened)| screened.kernel == kernel) {
            match screened.without_time.get(host) {
                Some(NoTime::Wrong) => wrong += 1,
                Some(_) => failed += 1,
                None => timed += usize::from(run.hosts.binary_search_by(|of| of.as_str().cmp(host)).is_ok()),
            }
        }
        if timed + failed + wrong == 0 {
            return None;
        }
        // The report marks all times of a node with a wrong result; here each kernel has its own verdict.
        let of_times = judged.and_then(|judged| judged.verdict());
        let of_times = of_times.filter(|verdict| *verdict != ScreenVerdict::Wrong);
        let of_failures = match (wrong, failed) {
            (1.., _) => Some(ScreenVerdict::Wrong),
            (0, 1..) => Some(ScreenVerdict::Failed),
            (0, 0) => None,
        };
        let here = judged.filter(|judged| judged.is_here).map(|judged| judged.report);
        let peers = here.map(NodeReport::among_peers);
        Some(KernelOfNode {
            value: self.value(kernel, host),
            unit: self.unit(kernel),
            slowdown: peers.and_then(|peers| peers.slowdown),
            slower_by_at_least: peers.and_then(|peers| peers.slower_by_at_least),
            verdict: of_times.into_iter().chain(of_failures).max_by_key(|verdict| verdict.severity()),
            runs: here.map_or_else(|| self.times.runs(kernel, host), |report| report.runs),
            failed_runs: failed + wrong,
        })
    }

    /// The answer for a host: that of its worst kernel.
    fn answer(&self, host: &str, reports: &Reports) -> ScreenedNode {
        let judged = |kernel: &str| reports.get(&(kernel, host)).copied();
        let here = |kernel: &str| judged(kernel).filter(|judged| judged.is_here).map(|judged| judged.report);
        let of_kernel =
            |kernel: &&str| Some(((*kernel).to_owned(), self.on_host(kernel, host, judged(kernel))?));
        let kernels: KernelsOfNode = self.by_name.keys().filter_map(of_kernel).collect();
        // SLOWED is a change of the node's own time.
        let slowdown = |kernel: &str, of: &KernelOfNode| match of.verdict {
            Some(ScreenVerdict::Slowed) => judged(kernel).and_then(|judged| judged.report.history.change),
            _ => of.slowdown,
        };
        let with_verdict = kernels.iter().filter_map(|(kernel, of)| Some((kernel, of, of.verdict?)));
        let worst = with_verdict.max_by(|(a, of_a, verdict_a), (b, of_b, verdict_b)| {
            let by = |kernel: &str, of: &KernelOfNode| slowdown(kernel, of).unwrap_or(f64::NEG_INFINITY);
            verdict_a.severity().cmp(&verdict_b.severity()).then(by(a, of_a).total_cmp(&by(b, of_b)))
        });
        let worst = worst.map(|(kernel, of, verdict)| (kernel.clone(), slowdown(kernel, of), verdict));
        let any = |is: &dyn Fn(&NodeReport) -> bool| self.by_name.keys().filter_map(|of| here(of)).any(is);
        let mut answer = ScreenedNode {
            node: host.into(),
            verdict: worst.as_ref().map(|(.., verdict)| *verdict),
            slow_in: None,
            kernel: None,
            slowdown: None,
            slower_by_at_least: None,
            cause: None,
            slow_threads: Vec::new(),
            suggests_drain: any(&NodeReport::should_be_drained),
            kernels: Shared::new(kernels),
        };
        let Some((kernel, slowdown, verdict)) = worst.filter(|(.., verdict)| *verdict != ScreenVerdict::Ok)
        else {
            return answer;
        };
        answer.suggests_drain |= verdict == ScreenVerdict::Wrong;
        if !matches!(verdict, ScreenVerdict::Wrong | ScreenVerdict::Failed) {
            answer.slowdown = slowdown;
            answer.cause = here(&kernel).and_then(|report| report.why.cause_text.clone());
            if verdict != ScreenVerdict::Slowed {
                answer.slower_by_at_least = answer.kernels.get(&kernel).and_then(|of| of.slower_by_at_least);
            }
        }
        if verdict.is_suspicious() {
            answer.slow_in = Some(area(&kernel, self.is_kernel(&kernel)).to_owned());
            answer.slow_threads = self.slow_threads(&kernel, host);
        }
        answer.kernel = Some(kernel);
        answer
    }

    fn summaries(&self, reports: &Reports) -> Vec<KernelSummary> {
        let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for kernel in self.by_name.keys() {
            let of_host = |host: &&str| match reports.get(&(*kernel, *host)) {
                Some(judged) if judged.is_here => Some(judged.report.median_s),
                _ => self.times.median_s(kernel, host),
            };
            times.insert(kernel, self.hosts.iter().filter_map(of_host).collect());
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
                is_kernel: self.is_kernel(kernel),
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
