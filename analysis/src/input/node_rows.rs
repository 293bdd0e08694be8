//! How long a run took on each of its nodes: the rows of the table.

use crate::table::NoTime;
use crate::table::node_class::Class;
use pmmpi::node::CountName;
use pmmpi::record::{End, KernelResult, RankRecord, Run};
use pmmpi::slow_links::Score;
use pmmpi::text::count;
use pmmpi::wrong_data::{PartInWrongData, WrongData};
use pmmpi::{NodeId, RankId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A run on one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    /// Index of a node record of this host in the run.
    pub record: usize,
    /// The class of nodes that ought to be equally fast.
    pub class: Arc<Class>,
    /// The node's last t2 minus its first t1, on the node's clock (ns); of a kernel of `pmmpi screen`, per unit of its work.
    pub work_ns: i64,
    /// True if the node ran this further round of a screen because it looked slow.
    pub is_suspect: bool,
    /// What its kernel counted during the work: see [`pmmpi::node::HealthCount`].
    pub health: Vec<(CountName, u64)>,
}

/// The row of each host name. Two clocks of one host name are never subtracted: the longer time counts. Empty if the
/// workload failed. Leaves out nodes whose clock was stepped, as far as the bounds show that. `classes` are those of the
/// node records, `without_time` the hosts of [`without_time_in_screen`].
pub fn of(
    run: &Run,
    classes: &[Arc<Class>],
    without_time: &BTreeMap<String, (NoTime, String)>,
) -> BTreeMap<String, NodeRow> {
    if is_failed(run) {
        return BTreeMap::new();
    }
    let mut rows: Vec<(String, NodeRow)> = Vec::with_capacity(run.nodes.len());
    let (work, own) = (work(run), own_times(run));
    let suspects = suspects(run);
    // First t1 and last t2 on each clock.
    let mut spans: Vec<Option<[i64; 2]>> = vec![None; run.nodes.len()];
    for rank in &run.ranks {
        let [_, t1, t2, _] = rank.stamps.into();
        let span = spans[rank.node.index()].get_or_insert([t1, t2]);
        *span = [span[0].min(t1), span[1].max(t2)];
    }
    for suspect in run.elapsed().into_iter().flat_map(|elapsed| elapsed.suspects) {
        spans[suspect.index()] = None;
    }
    for (record, (span, class)) in spans.into_iter().zip(classes).enumerate() {
        let Some([first_t1, last_t2]) = span else { continue };
        let counts = &run.nodes[record].health;
        let mut health = Vec::with_capacity(counts.len());
        health.extend(counts.iter().filter_map(|count| Some((count.name.clone(), count.added?))));
        let all_ns = last_t2.saturating_sub(first_t1);
        let work_ns = match (own.get(&record), work.get(record)) {
            (Some(seconds), _) => (seconds * 1e9) as i64,
            (None, Some(work)) if *work > 1.0 => (all_ns as f64 / work) as i64,
            _ => all_ns,
        };
        let host = run.nodes[record].key.hostname.clone();
        if without_time.contains_key(&host) {
            continue;
        }
        let is_suspect = suspects.contains(&*host);
        rows.push((host, NodeRow { record, class: class.clone(), work_ns, is_suspect, health }));
    }
    // The last row of a host remains. To build the map at once is faster than to insert each row.
    rows.sort_by(|(a, one), (b, other)| (a, one.work_ns).cmp(&(b, other.work_ns)));
    rows.into_iter().collect()
}

/// The hosts of the suspects: see [`Screened::suspects`].
fn suspects(run: &Run) -> BTreeSet<&str> {
    let ranks = run.screened.iter().flat_map(|screened| &screened.suspects);
    let host = |rank: &RankId| {
        let at = run.ranks.binary_search_by_key(rank, |record| record.rank).ok()?;
        Some(run.nodes[run.ranks[at].node.index()].key.hostname.as_str())
    };
    ranks.filter_map(host).collect()
}

/// The amount of work on each node record: see [`KernelResult::work`]. The ranks of a node share its work. Empty if the run
/// is no round of `pmmpi screen`.
fn work(run: &Run) -> Vec<f64> {
    let Some(screened) = &run.screened else { return Vec::new() };
    let mut work = vec![0.0; run.nodes.len()];
    for result in &screened.results {
        if let Ok(at) = run.ranks.binary_search_by_key(&result.rank, |rank| rank.rank) {
            work[run.ranks[at].node.index()] += result.work;
        }
    }
    work
}

/// The times (s) that count instead of t2 - t1, by node record: see [`KernelResult::seconds`]. With wrong data of a faulty
/// partner, the time of the other partners counts.
fn own_times(run: &Run) -> BTreeMap<usize, f64> {
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    let time = |result: &KernelResult| {
        let at = run.ranks.binary_search_by_key(&result.rank, |rank| rank.rank).ok()?;
        let seconds = result.seconds.or_else(|| Some(Score::of(&result.links)?.seconds))?;
        Some((run.ranks[at].node.index(), seconds))
    };
    results.filter_map(time).collect()
}

/// True for a run without times: it failed, or is not complete.
fn is_failed(run: &Run) -> bool {
    // The nodes of a screen work each for itself.
    let is_success = run.screened.is_some() || run.end().is_some_and(End::is_success);
    !run.is_complete() || !is_success
}

/// In a round of `pmmpi screen`, the hosts whose kernel failed or computed a wrong result, and why. Wrong data that a link
/// may have made are a failure: no node's result is known to be wrong.
pub fn without_time_in_screen(run: &Run) -> BTreeMap<String, (NoTime, String)> {
    let Some(screened) = &run.screened else { return BTreeMap::new() };
    let result_of = |rank: &RankRecord| {
        let at = screened.results.binary_search_by_key(&rank.rank, |result| result.rank).ok()?;
        screened.results.get(at)
    };
    let wrong_data = WrongData::of_run(run);
    let mut found: BTreeMap<String, (NoTime, String)> = BTreeMap::new();
    // Of some kernels, only one rank of a node has a result.
    let host = |rank: &RankRecord| run.nodes[rank.node.index()].key.hostname.as_str();
    let mut with_result: Option<BTreeSet<&str>> = None;
    let mut has_result = |rank: &RankRecord| {
        let of_run = || run.ranks.iter().filter(|rank| result_of(rank).is_some()).map(host).collect();
        with_result.get_or_insert_with(of_run).contains(host(rank))
    };
    for rank in &run.ranks {
        let result = result_of(rank);
        let kernel = screened.kernel.as_deref().unwrap_or("the program");
        let wrong = result.and_then(|result| {
            let why = result.wrong.as_ref()?;
            let part = wrong_data.part_of(&host(rank));
            Some((without_time_if_wrong(part, result)?, format!("{kernel}: {why}")))
        });
        let why = wrong.or_else(|| {
            let failed = result.and_then(|result| result.failed.clone());
            let failed = failed.or_else(|| match rank.end.is_success() {
                false => Some(failure(run, (rank.rank, rank.node, rank.end))),
                true if screened.kernel.is_some() && result.is_none() && !has_result(rank) => {
                    Some("the kernel gave no result".to_owned())
                }
                true => None,
            });
            failed.map(|why| (NoTime::Failed, why))
        });
        let Some(why) = why else { continue };
        let known = found.entry(host(rank).to_owned()).or_insert_with(|| why.clone());
        // A wrong result of any rank is worse than a failure.
        if why.0 == NoTime::Wrong && known.0 != NoTime::Wrong {
            *known = why;
        }
    }
    found
}

/// Why a node with a wrong result has no time; `None` if it has one, because only faulty partners are the reason.
fn without_time_if_wrong(part: Option<PartInWrongData>, result: &KernelResult) -> Option<NoTime> {
    match part {
        Some(part) if part.has_time(result) => None,
        Some(PartInWrongData::Partner | PartInWrongData::OfLink) => Some(NoTime::Failed),
        Some(PartInWrongData::Faulty) | None => Some(NoTime::Wrong),
    }
}

/// Why a node has no row, with the reason in words.
pub fn why_none(run: &Run) -> (NoTime, String) {
    if !is_failed(run) {
        return (NoTime::Unknown, "the node's clock jumped, or shows no elapsed time".to_owned());
    }
    let reason = match run.telling_rank().filter(|(_, _, end)| !end.is_success() || !run.lost.is_empty()) {
        Some(telling) => failure(run, telling),
        None => {
            format!("{} of {} reached the end barrier", run.ranks.len(), count(run.size as usize, "rank"))
        }
    };
    (NoTime::Failed, reason)
}

/// How a run failed, as its telling rank shows: see [`Run::telling_rank`].
pub fn failure(run: &Run, (rank, node, end): (RankId, NodeId, End)) -> String {
    let end = match end {
        End::Lost => {
            "neither the rank nor its launcher reported how the rank ended; the node may have failed"
                .to_owned()
        }
        end => end.to_string(),
    };
    format!("rank {rank} on {}: {end}", run.nodes[node.index()].key.hostname)
}
