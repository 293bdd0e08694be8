//! The kernels of one screen: what each says of each node, and what all say together.

use super::cores_differ::{self, HostThreads};
use super::run::RunReport;
use super::screen_times::ScreenTimes;
use super::screened_run::{ScreenedHost, ScreenedRun};
use crate::stats::own_history::OwnVerdict;
use crate::stats::verdict_rule::Verdict;
use crate::table::{NoTime, RunTable, Shared, SharedText};
use crate::verdicts::kernels_of_node::{KernelOfNode, KernelsOfNode, ScreenVerdict};
use crate::verdicts::named_cause::NamedCause;
use crate::verdicts::node_report::NodeReport;
use crate::warnings::ClassWarning;
use hashbrown::HashMap;
use pmmpi::order_statistics::of_ascending;
use pmmpi::wrong_data::{PartInWrongData, WrongData};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A kernel over all nodes.
#[derive(Debug, Serialize)]
pub struct KernelSummary {
    /// Its name.
    pub kernel: String,
    /// True for a kernel of pmmpi.
    #[serde(skip)]
    pub is_kernel: bool,
    /// Its options, or the user's program and its arguments.
    #[serde(skip)]
    pub words: Vec<String>,
    /// For so long at least, the nodes were warmed up (`--soak`, s).
    #[serde(skip)]
    pub soak_s: u64,
    /// True if it failed on all nodes in all rounds, even on the only node: its options or the site are the likely reason.
    #[serde(skip)]
    pub failed_everywhere: bool,
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

impl KernelSummary {
    /// What is slow on a node that is slow in this kernel: see [`ScreenedNode::slow_in`].
    pub fn area(&self) -> &str {
        area(&self.kernel, self.is_kernel)
    }
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
    pub cause: Option<Shared<NamedCause>>,
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

/// What the report says of a kernel on a node.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
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
        // Each screen checks its results, so an earlier wrong result says nothing of this one.
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

/// What the report says of each kernel and host.
pub(super) type Reports<'n> = HashMap<(&'n str, &'n str), Judged<'n>>;

/// The kernels of one screen.
pub(super) struct KernelsOfScreen<'a> {
    by_name: BTreeMap<&'a str, KernelRuns<'a>>,
    /// The kernel of each run.
    of_run: HashMap<&'a str, &'a str>,
    /// All host names, in order.
    hosts: Vec<&'a str>,
    times: ScreenTimes<'a>,
}

/// The runs of a kernel.
struct KernelRuns<'a> {
    runs: Vec<&'a ScreenedRun>,
    /// For each of [`KernelsOfScreen::hosts`], the host in the runs that it took part in.
    of_host: Vec<Vec<&'a ScreenedHost>>,
    /// Whose fault wrong data are, from all rounds together.
    wrong_data: WrongData<&'a str>,
}

impl<'a> KernelRuns<'a> {
    /// `hosts` are all hosts of the screen, in order.
    fn of(runs: Vec<&'a ScreenedRun>, hosts: &[&str]) -> Self {
        let mut of_host = vec![Vec::new(); hosts.len()];
        for run in &runs {
            let mut place = 0;
            for host in &run.hosts {
                // Both are in order, and `hosts` has all names.
                place += hosts[place..].iter().take_while(|name| **name < host.name.as_str()).count();
                of_host[place].push(host);
            }
        }
        let wrong = runs.iter().copied().flat_map(|run| run.wrong_transfers());
        let readings = runs.iter().copied().flat_map(|run| run.readings());
        let wrong_data = WrongData::of(wrong, readings.map(|reading| [reading.node, reading.partner]));
        Self { runs, of_host, wrong_data }
    }

    /// True for a kernel of pmmpi.
    fn is_kernel(&self) -> bool {
        self.runs.iter().all(|run| run.is_kernel)
    }

    /// True if it failed on all nodes in all rounds, and not because data arrived wrong.
    fn failed_everywhere(&self) -> bool {
        let has_failed =
            |host: &ScreenedHost| host.without_time == Some(NoTime::Failed) && !host.has_wrong_data;
        let mut nodes = self.of_host.iter();
        nodes.all(|rounds| !rounds.is_empty() && rounds.iter().all(|host| has_failed(host)))
    }

    /// How many runs of a host have no time. A round may not show that only faulty partners are the reason; all rounds do.
    fn without_time(&self, host: usize, part: Option<PartInWrongData>) -> usize {
        let is_excused = |host: &ScreenedHost| part == Some(PartInWrongData::Partner) && host.has_wrong_data;
        let runs = self.of_host[host].iter();
        runs.filter(|host| host.without_time.is_some() && !is_excused(host)).count()
    }

    /// True if a result is wrong for another reason than data that arrived wrong: of these, all rounds together decide.
    fn has_wrong_result(&self, host: usize) -> bool {
        let mut runs = self.of_host[host].iter();
        runs.any(|host| host.without_time == Some(NoTime::Wrong) && !host.has_wrong_data)
    }

    /// The median over the rounds.
    fn value(&self, host: usize) -> Option<f64> {
        let mut values: Vec<f64> = self.of_host[host].iter().filter_map(|host| host.value).collect();
        values.sort_by(f64::total_cmp);
        of_ascending(&values)
    }

    /// The unit of the values.
    fn unit(&self) -> Option<&'a str> {
        self.runs.iter().find_map(|run| run.unit.as_ref()).map(|measure| measure.unit.as_str())
    }

    /// The hardware threads of a host that are slow in more than half of its rounds, the slowest first.
    fn slow_threads(&self, host: usize) -> Vec<SlowThread> {
        let mut threads: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for (number, by) in self.of_host[host].iter().flat_map(|host| &host.slow_threads) {
            threads.entry(*number).or_default().push(*by);
        }
        let rounds = self.of_host[host].iter().filter(|host| host.value.is_some()).count();
        threads.retain(|_, by| 2 * by.len() > rounds);
        let slow = threads.into_iter().filter_map(|(hardware_thread, mut by)| {
            by.sort_by(f64::total_cmp);
            Some(SlowThread { hardware_thread, slowdown: of_ascending(&by)? })
        });
        let mut slow: Vec<SlowThread> = slow.collect();
        slow.sort_by(|a, b| b.slowdown.total_cmp(&a.slowdown));
        slow
    }
}

impl<'a> KernelsOfScreen<'a> {
    /// `table` has the times of all runs.
    pub fn of(runs: &[(&'a RunReport, &'a ScreenedRun)], table: &'a RunTable) -> Self {
        let mut hosts: Vec<&str> = Vec::new();
        for (_, screened) in runs {
            let of_run = || screened.hosts.iter().map(|host| host.name.as_str());
            // Most rounds have the same hosts, in the same order.
            if !of_run().eq(hosts.iter().copied()) {
                hosts.extend(of_run());
                hosts.sort_unstable();
                hosts.dedup();
            }
        }
        let mut by_name: BTreeMap<&str, Vec<&ScreenedRun>> = BTreeMap::new();
        let mut of_run = HashMap::new();
        for (run, screened) in runs {
            let kernel = screened.kernel.as_str();
            by_name.entry(kernel).or_default().push(screened);
            of_run.insert(run.run_id.as_str(), kernel);
        }
        let by_name = by_name.into_iter().map(|(name, runs)| (name, KernelRuns::of(runs, &hosts))).collect();
        let times = ScreenTimes::of(table, &of_run);
        Self { by_name, of_run, hosts, times }
    }

    /// All host names, in order.
    pub fn hosts(&self) -> &[&'a str] {
        &self.hosts
    }

    /// The host names between which data arrived wrong although neither node is known to be faulty: from, to.
    pub fn wrong_links(&self) -> impl Iterator<Item = [&'a str; 2]> {
        self.by_name.values().flat_map(|of_kernel| of_kernel.wrong_data.links.iter().copied())
    }

    /// The kernel that a report of a node is about. If this screen does not judge the node, the report is about an earlier
    /// session of the same class.
    pub fn of_class(&self, node: &NodeReport) -> Option<&'a str> {
        let here = self.of_run.get(node.median_run_id.as_str()).copied();
        here.or_else(|| self.times.kernel(&node.node, &node.class))
    }

    /// Warns of nodes with different numbers of hardware threads.
    pub fn cores_differ(&self) -> Vec<ClassWarning> {
        let hosts = self.by_name.iter().flat_map(|(kernel, of)| {
            self.hosts.iter().zip(&of.of_host).map(move |(host, runs)| (*kernel, *host, runs))
        });
        let used = hosts.flat_map(|(kernel, host, runs)| {
            let class = self.times.class(kernel, host);
            let mut threads: Vec<usize> = runs.iter().map(|host| host.threads).filter(|of| *of > 0).collect();
            threads.dedup();
            let of_class =
                move |threads| -> Option<HostThreads<'a>> { Some(([class?, kernel], host, threads)) };
            threads.into_iter().filter_map(of_class)
        });
        cores_differ::warnings(used, self.times.online_threads())
    }

    /// Warns of kernels that failed on all nodes in all rounds.
    pub fn failed_everywhere(&self) -> Vec<ClassWarning> {
        let warning = |(kernel, of_kernel): (&&str, &KernelRuns)| {
            let [host, reason] = of_kernel.runs.iter().find_map(|run| run.failure.clone())?;
            Some(ClassWarning::KernelFailedEverywhere {
                kernel: (*kernel).to_owned(),
                is_kernel: of_kernel.is_kernel(),
                nodes: self.hosts.len(),
                host,
                reason,
            })
        };
        let failed = self.by_name.iter().filter(|(_, of_kernel)| of_kernel.failed_everywhere());
        failed.filter_map(warning).collect()
    }

    /// The report on each kernel and host.
    pub fn reports<'n>(&self, nodes: &'n [NodeReport]) -> Reports<'n>
    where
        'a: 'n,
    {
        let mut reports = Reports::with_capacity(nodes.len());
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

    /// The answer for each host, in the order of the names.
    pub fn answers(&self, reports: &Reports) -> Vec<ScreenedNode> {
        (0..self.hosts.len()).into_par_iter().map(|host| self.answer(host, reports)).collect()
    }

    /// One kernel on one host; `None` if the host took no part.
    fn on_host(&self, kernel: &str, host: usize, judged: Option<Judged>) -> Option<KernelOfNode> {
        let of_kernel = self.by_name.get(kernel)?;
        if of_kernel.of_host[host].is_empty() {
            return None;
        }
        let part = of_kernel.wrong_data.part_of(&self.hosts[host]);
        let failed_runs = of_kernel.without_time(host, part);
        let is_wrong = part == Some(PartInWrongData::Faulty) || of_kernel.has_wrong_result(host);
        // The report marks all times of a node with a wrong result; here each kernel has its own verdict.
        let of_times = judged.and_then(|judged| judged.verdict());
        let of_times = of_times.filter(|verdict| *verdict != ScreenVerdict::Wrong);
        let of_failures = match is_wrong {
            true => Some(ScreenVerdict::Wrong),
            false => (failed_runs > 0).then_some(ScreenVerdict::Failed),
        };
        let here = judged.filter(|judged| judged.is_here).map(|judged| judged.report);
        let peers = here.map(NodeReport::among_peers);
        let runs = || self.times.runs(kernel, self.hosts[host]);
        // A round with a wrong result has no hardware threads.
        let most = |of: &dyn Fn(&ScreenedHost) -> usize| {
            of_kernel.of_host[host].iter().map(|host| of(host)).max().unwrap_or_default()
        };
        Some(KernelOfNode {
            value: of_kernel.value(host),
            unit: of_kernel.unit().map(str::to_owned),
            slowdown: peers.and_then(|peers| peers.slowdown),
            slower_by_at_least: peers.and_then(|peers| peers.slower_by_at_least),
            slower_by_at_most: peers.and_then(|peers| peers.slower_by_at_most),
            class: here.map(NodeReport::class_of_peers),
            was_healthy: judged.is_some_and(|judged| judged.has_history && judged.report.history.was_healthy),
            threads: most(&|host| host.threads),
            ranks: most(&|host| host.ranks),
            verdict: of_times.into_iter().chain(of_failures).max_by_key(|verdict| verdict.severity()),
            runs: here.map_or_else(runs, |report| report.runs),
            failed_runs,
        })
    }

    /// The answer for a host: that of its worst kernel.
    fn answer(&self, host: usize, reports: &Reports) -> ScreenedNode {
        let judged = |kernel: &str| reports.get(&(kernel, self.hosts[host])).copied();
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
            node: self.hosts[host].into(),
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
            answer.cause = here(&kernel).and_then(|report| report.why.cause.clone());
            if verdict != ScreenVerdict::Slowed {
                answer.slower_by_at_least = answer.kernels.get(&kernel).and_then(|of| of.slower_by_at_least);
            }
        }
        if verdict.is_suspicious() {
            let of_kernel = self.by_name.get(kernel.as_str());
            answer.slow_in = Some(area(&kernel, of_kernel.is_some_and(KernelRuns::is_kernel)).to_owned());
            answer.slow_threads = of_kernel.map(|of| of.slow_threads(host)).unwrap_or_default();
        }
        answer.kernel = Some(kernel);
        answer
    }

    /// Each kernel over all hosts.
    pub fn summaries(&self, reports: &Reports) -> Vec<KernelSummary> {
        let summary = |(kernel, of_kernel): (&&str, &KernelRuns)| {
            let time = |host: &&str| match reports.get(&(*kernel, *host)) {
                Some(judged) if judged.is_here => Some(judged.report.median_s),
                _ => self.times.median_s(kernel, host),
            };
            let mut times: Vec<f64> = self.hosts.iter().filter_map(time).collect();
            times.sort_by(f64::total_cmp);
            let mut values: Vec<f64> =
                (0..self.hosts.len()).filter_map(|host| of_kernel.value(host)).collect();
            values.sort_by(f64::total_cmp);
            let measure = of_kernel.runs.iter().find_map(|run| run.unit.as_ref());
            let worst = match measure.is_some_and(|measure| measure.larger_is_better) {
                true => values.first(),
                false => values.last(),
            };
            let notes: BTreeSet<&String> = of_kernel.runs.iter().flat_map(|run| run.notes.keys()).collect();
            KernelSummary {
                kernel: (*kernel).to_owned(),
                is_kernel: of_kernel.is_kernel(),
                words: of_kernel.runs.first().map_or_else(Vec::new, |run| run.words.clone()),
                soak_s: of_kernel.runs.first().map_or(0, |run| run.soak_s),
                failed_everywhere: of_kernel.failed_everywhere(),
                unit: of_kernel.unit().map(str::to_owned),
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
