//! What a round of `pmmpi screen` measured with one kernel, as far as a report needs it.

use super::job_nodes;
use crate::input::node_rows;
use crate::table::NoTime;
use pmmpi::RankId;
use pmmpi::order_statistics::middle;
use pmmpi::record::{KernelMeasure, KernelResult, Run, Screened};
use pmmpi::slow_links::{self, LinkReading, Score};
use pmmpi::wrong_data;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// A hardware thread that is worse than the median thread of the run by more than this fraction is kept by name.
const SLOW_THREAD: f64 = 0.02;

/// The option by which `pmmpi screen` tells a kernel how many ranks share its node. Users do not type it.
const RANKS_OF_NODE: &str = "--ranks-of-node";

/// One kernel in one round.
#[derive(Debug, Serialize)]
pub struct ScreenedRun {
    /// The kernel, or the file name of the user's program.
    pub kernel: String,
    /// True for a kernel of pmmpi.
    #[serde(skip)]
    pub is_kernel: bool,
    /// The options of the kernel, or the user's program and its arguments.
    #[serde(skip)]
    pub words: Vec<String>,
    /// For so long at least, the nodes were warmed up (`--soak`, s).
    #[serde(skip)]
    pub soak_s: u64,
    /// Number of the round, from 0.
    pub round: u32,
    /// True for a further round of suspects and of nodes beside them.
    #[serde(skip)]
    pub is_further: bool,
    /// The quantity that stands for the kernel; `None` for the user's program, and if no rank has a value.
    #[serde(serialize_with = "by_unit")]
    pub unit: Option<KernelMeasure>,
    /// Each host name once, in order.
    #[serde(skip)]
    pub hosts: Vec<ScreenedHost>,
    /// The first host whose kernel failed, and why; `None` if none failed.
    #[serde(skip)]
    pub failure: Option<[String; 2]>,
    /// What each node measured with its partners; nodes are indices into `hosts`. Only of the kernel net.
    #[serde(skip)]
    readings: Vec<LinkReading<u32>>,
    /// Between which nodes data arrived wrong: from, to. Indices as in `readings`.
    #[serde(skip)]
    wrong_transfers: Vec<[u32; 2]>,
    /// The nodes of its job, in Slurm's syntax; `None` if the run has no list of them.
    #[serde(skip)]
    pub job_nodes: Option<String>,
    /// What the reader of the values must know, with the number of ranks.
    pub notes: BTreeMap<String, usize>,
    /// The time of each node, preparation included, added up (s).
    pub node_seconds: f64,
}

fn by_unit<S: Serializer>(measure: &Option<KernelMeasure>, serializer: S) -> Result<S::Ok, S::Error> {
    measure.as_ref().map(|measure| measure.unit.as_str()).serialize(serializer)
}

/// A host in a round.
#[derive(Debug)]
pub struct ScreenedHost {
    /// Its name.
    pub name: String,
    /// The value of its worst rank; `None` if no rank has one.
    pub value: Option<f64>,
    /// Why it has no time: its kernel failed or exchanged wrong data ([`NoTime::Failed`]), or computed a wrong result
    /// ([`NoTime::Wrong`]).
    pub without_time: Option<NoTime>,
    /// True if data arrived wrong from a partner or at a partner.
    pub has_wrong_data: bool,
    /// How many of its hardware threads the kernel used; 0 if the kernel has no values of hardware threads.
    pub threads: usize,
    /// The ranks on this host.
    pub ranks: usize,
    /// The hardware threads that are worse than the median thread of the run: number in the kernel, fraction (0.1: 10 %
    /// worse).
    pub slow_threads: Vec<(u32, f64)>,
}

impl ScreenedRun {
    /// `None` if the run is no round of `pmmpi screen`.
    pub fn of(run: &Run) -> Option<Self> {
        let screened = run.screened.as_ref()?;
        let unit = screened.measures.first().cloned();
        let is_worse = |value: f64, than: f64| match unit.as_ref().is_some_and(|unit| unit.larger_is_better) {
            true => value < than,
            false => value > than,
        };
        let Hosts { mut hosts, of_node } = Hosts::of(run);
        let host_of = |rank: RankId| {
            let at = run.ranks.binary_search_by_key(&rank, |rank| rank.rank).ok()?;
            Some(of_node[run.ranks[at].node.index()])
        };
        let has_ended_well = |rank: RankId| {
            let at = run.ranks.binary_search_by_key(&rank, |rank| rank.rank);
            at.is_ok_and(|at| run.ranks[at].end.is_success())
        };
        for rank in &run.ranks {
            hosts[of_node[rank.node.index()]].ranks += 1;
        }
        let mut failure = None;
        for (name, (why, reason)) in node_rows::without_time_in_screen(run) {
            if let Ok(host) = hosts.binary_search_by(|host| host.name.cmp(&name)) {
                hosts[host].without_time = Some(why);
            }
            if why == NoTime::Failed && failure.is_none() {
                failure = Some([name, reason]);
            }
        }
        let median = median_thread(&screened.results);
        let mut notes: BTreeMap<String, usize> = BTreeMap::new();
        for result in &screened.results {
            for note in &result.notes {
                match notes.get_mut(note) {
                    Some(ranks) => *ranks += 1,
                    None => _ = notes.insert(note.clone(), 1),
                }
            }
            let Some(host) = host_of(result.rank) else { continue };
            let host = &mut hosts[host];
            // Several ranks of a host each have some of its cores: the worst one counts.
            if let Some(value) = value(result, host) {
                host.value = host.value.filter(|known| !is_worse(value, *known)).or(Some(value));
            }
            let mut wrong_partners = wrong_data::partners(result.wrong.as_deref().unwrap_or_default());
            host.has_wrong_data |= wrong_partners.next().is_some() && has_ended_well(result.rank);
            host.threads += result.threads.len();
            let slow = result.threads.iter().filter_map(|(number, value)| {
                let (value, median) = (f64::from(*value), median?);
                let by = worse_by(value, median);
                (is_worse(value, median) && by > SLOW_THREAD).then_some((*number, by))
            });
            host.slow_threads.extend(slow);
        }
        Some(Self {
            kernel: screened.kernel.clone().unwrap_or_else(|| program(run)),
            is_kernel: screened.kernel.is_some(),
            words: words(run, screened.kernel.is_some()),
            soak_s: soak_s(run),
            round: run.header.series.as_ref().map_or(0, |series| series.round),
            is_further: !screened.suspects.is_empty(),
            readings: readings(run, &hosts),
            wrong_transfers: wrong_transfers(run, &hosts),
            node_seconds: node_seconds(run, &of_node, hosts.len()),
            hosts,
            failure,
            unit,
            job_nodes: job_nodes::of(run),
            notes,
        })
    }

    /// What each node measured with its partners, with host names. Only of the kernel net.
    pub fn readings(&self) -> impl Iterator<Item = LinkReading<&str>> {
        self.readings.iter().filter_map(move |reading| {
            let LinkReading { node, partner, latency_ns, gigabytes_per_s } = *reading;
            let (node, partner) = (self.name(node)?, self.name(partner)?);
            Some(LinkReading { node, partner, latency_ns, gigabytes_per_s })
        })
    }

    /// The host names between which data arrived wrong: from, to.
    pub fn wrong_transfers(&self) -> impl Iterator<Item = [&str; 2]> {
        let transfers = self.wrong_transfers.iter();
        transfers.filter_map(move |[from, to]| Some([self.name(*from)?, self.name(*to)?]))
    }

    fn name(&self, host: u32) -> Option<&str> {
        self.hosts.get(host as usize).map(|host| host.name.as_str())
    }

    /// True if the kernel has a value for each hardware thread.
    pub fn has_threads(&self) -> bool {
        self.hosts.iter().any(|host| host.threads > 0)
    }
}

/// The hosts of a run; several node records may be of one host.
struct Hosts {
    /// Each name once, in order.
    hosts: Vec<ScreenedHost>,
    /// For each node record an index into `hosts`.
    of_node: Vec<usize>,
}

impl Hosts {
    fn of(run: &Run) -> Self {
        let name = |node: usize| run.nodes[node].key.hostname.as_str();
        let mut order: Vec<usize> = (0..run.nodes.len()).collect();
        order.sort_by_key(|node| name(*node));
        let (mut hosts, mut of_node): (Vec<ScreenedHost>, _) = (Vec::new(), vec![0; order.len()]);
        for node in order {
            if hosts.last().is_none_or(|last| last.name != name(node)) {
                let name = name(node).to_owned();
                let (value, without_time, slow_threads) = (None, None, Vec::new());
                let (has_wrong_data, threads, ranks) = (false, 0, 0);
                let host =
                    ScreenedHost { name, value, without_time, has_wrong_data, threads, ranks, slow_threads };
                hosts.push(host);
            }
            of_node[node] = hosts.len() - 1;
        }
        Self { hosts, of_node }
    }
}

/// Its value of the first measure. With wrong data of a faulty partner, that of the other partners.
fn value(result: &KernelResult, host: &ScreenedHost) -> Option<f64> {
    let of_others = || Some(Score::of(&result.links)?.gigabytes_per_s);
    let value = result.values.first().copied();
    value.or_else(|| if host.without_time.is_none() { of_others() } else { None })
}

fn index(hosts: &[ScreenedHost], name: &str) -> Option<u32> {
    hosts.binary_search_by(|host| host.name.as_str().cmp(name)).ok().map(|at| at as u32)
}

fn wrong_transfers(run: &Run, hosts: &[ScreenedHost]) -> Vec<[u32; 2]> {
    let numbered = |[from, to]: [&str; 2]| Some([index(hosts, from)?, index(hosts, to)?]);
    wrong_data::transfers(run).filter_map(numbered).collect()
}

fn readings(run: &Run, hosts: &[ScreenedHost]) -> Vec<LinkReading<u32>> {
    let numbered = |reading: LinkReading<&str>| {
        let (node, partner) = (index(hosts, reading.node)?, index(hosts, reading.partner)?);
        let LinkReading { latency_ns, gigabytes_per_s, .. } = reading;
        Some(LinkReading { node, partner, latency_ns, gigabytes_per_s })
    };
    slow_links::readings(run).filter_map(numbered).collect()
}

fn program(run: &Run) -> String {
    let path = run.header.command.first().map(String::as_str).unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// As a user types them. A kernel's command begins with `pmmpi screen-kernel NAME`, which is no part of them.
fn words(run: &Run, is_kernel: bool) -> Vec<String> {
    let mut typed = Vec::new();
    let mut words = run.header.command.iter().skip(if is_kernel { 3 } else { 0 });
    while let Some(word) = words.next() {
        if is_kernel && word == RANKS_OF_NODE {
            words.next();
        } else {
            typed.push(word.clone());
        }
    }
    typed
}

/// 0 without a soak.
fn soak_s(run: &Run) -> u64 {
    let mut labels = run.header.labels.iter();
    let soak = labels.find(|(key, _)| key == Screened::SOAK_LABEL);
    soak.and_then(|(_, time)| time.strip_suffix('s')?.parse().ok()).unwrap_or_default()
}

/// The median value of all hardware threads; `None` if there is none above zero.
fn median_thread(results: &[KernelResult]) -> Option<f64> {
    let mut values: Vec<f32> = Vec::with_capacity(results.iter().map(|result| result.threads.len()).sum());
    results.iter().for_each(|result| values.extend(result.threads.iter().map(|(_, value)| *value)));
    let half = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let is_even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(half, f32::total_cmp);
    let upper = f64::from(*upper);
    let lower = below.iter().copied().max_by(f32::total_cmp).filter(|_| is_even).map_or(upper, f64::from);
    Some(middle(lower, upper)).filter(|median| *median > 0.0)
}

/// By what fraction of time a value is worse than the median: a rate that is half as large takes twice the time.
fn worse_by(value: f64, median: f64) -> f64 {
    match value > median {
        true => value / median - 1.0,
        false => median / value.max(f64::MIN_POSITIVE) - 1.0,
    }
}

/// From the start of the kernel's process to the end of the last barrier, for each host.
fn node_seconds(run: &Run, host_of_node: &[usize], hosts: usize) -> f64 {
    let mut spent_ns = vec![0; hosts];
    for rank in &run.ranks {
        let host: &mut i64 = &mut spent_ns[host_of_node[rank.node.index()]];
        *host = rank.setup_ns.saturating_add(rank.stamps.outer_ns()).max(*host);
    }
    spent_ns.iter().map(|ns| *ns as f64 / 1e9).sum()
}
