//! What `pmmpi screen` prints while it measures.

use crate::messages::warn;
use crate::progress::RoundsProgress;
use crate::screen_plan::{ScreenPlan, ScreenWork, WorkKind};
use pmmpi::RankId;
use pmmpi::record::{End, KernelResult, RankRecord, Run};
use pmmpi::text::count;
use pmmpi::wrong_data::{PartInWrongData, WrongData};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;

/// Most nodes that a message names.
const MOST_NAMES: usize = 8;

/// Shows the progress: a bar if stderr is a terminal, else one line per kernel and round.
pub(crate) struct ScreenConsole {
    /// `None`: this rank prints nothing.
    progress: Option<RoundsProgress>,
    quiet: bool,
    /// Measured rounds.
    rounds: u32,
    /// Kernels that are done, warm-ups included.
    position: u32,
}

impl ScreenConsole {
    /// The console of rank 0.
    pub fn new(plan: &ScreenPlan) -> Self {
        let (works, rounds) = (plan.works.len() as u32, plan.rounds.rounds());
        Self {
            progress: Some(RoundsProgress::new(works * rounds, plan.rounds.quiet)),
            quiet: plan.rounds.quiet,
            rounds: plan.rounds.runs,
            position: 0,
        }
    }

    /// The console of the other ranks.
    pub fn silent() -> Self {
        Self { progress: None, quiet: true, rounds: 0, position: 0 }
    }

    /// A work begins. Call it before t0.
    pub fn begin(&self, name: &str, warmup: bool) {
        if let Some(progress) = &self.progress {
            let doing = if warmup { format!("{name}, warm-up") } else { name.to_owned() };
            progress.show(self.position, &doing);
        }
    }

    /// A work is done; `kept` is its number among the measured rounds, `None` for a warm-up.
    pub fn done(&mut self, kept: Option<u32>, work: &ScreenWork, run: &Run) {
        self.position += 1;
        let Some(progress) = &self.progress else { return };
        for trouble in troubles(work, run) {
            progress.say(trouble);
        }
        if let Some(kept) = kept.filter(|_| !self.quiet && !progress.is_bar()) {
            let rounds = self.rounds.max(kept + 1);
            progress.say(format_args!("[{}/{rounds}] {}: {}", kept + 1, work.name, times(work, run)));
        }
    }

    /// The nodes that will be measured again.
    pub fn suspected(&self, suspects: &HashMap<String, BTreeSet<String>>) {
        let (Some(progress), false) = (&self.progress, self.quiet) else { return };
        let mut kernels: Vec<_> = suspects.iter().collect();
        kernels.sort();
        if kernels.is_empty() {
            progress.say("no node needs more rounds");
        }
        for (kernel, nodes) in kernels {
            let (look, run) = if nodes.len() == 1 { ("looks", "runs") } else { ("look", "run") };
            progress.say(format_args!(
                "{kernel}: {} {look} slow and {run} more rounds: {}",
                count(nodes.len(), "node"),
                names(nodes)
            ));
        }
    }

    /// `works` kernels follow in each of `rounds` further rounds.
    pub fn suspects(&mut self, rounds: u32, works: usize) {
        if let Some(progress) = self.progress.as_mut().filter(|_| works > 0) {
            self.rounds += rounds;
            progress.lengthen(self.position + works as u32 * rounds);
        }
    }

    /// Prints a warning.
    pub fn warn(&self, message: impl Display) {
        if self.progress.is_some() {
            warn(message);
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let Some(progress) = &self.progress {
            progress.end();
        }
    }
}

/// `4 nodes, 1.021 to 1.034 s`, or `4 nodes, 1.021 s` if these digits show no difference, or `3 of 4 nodes, ...` if one has
/// no time.
fn times(work: &ScreenWork, run: &Run) -> String {
    let host = |rank: &RankRecord| run.nodes[rank.node.index()].key.hostname.as_str();
    let (results, wrong_data) = (results_by_rank(run), WrongData::of_run(run));
    let has_trouble = |rank: &&RankRecord| {
        let result = results.get(&rank.rank).copied();
        trouble(work, rank, result, wrong_data.part_of(&host(rank))).is_some()
    };
    let without_time: HashSet<&str> = run.ranks.iter().filter(has_trouble).map(host).collect();
    let (mut with_time, mut least, mut most) = (HashSet::new(), i64::MAX, 0);
    for rank in run.ranks.iter().filter(|rank| !without_time.contains(host(rank))) {
        let ns = rank.stamps.inner_ns();
        (least, most) = (least.min(ns), most.max(ns));
        with_time.insert(host(rank));
    }
    let nodes = count(run.host_count(), "node");
    if least > most {
        return format!("{nodes}, none with a time");
    }
    let nodes =
        if with_time.len() < run.host_count() { format!("{} of {nodes}", with_time.len()) } else { nodes };
    let (least, most) = (seconds(least), seconds(most));
    if least == most { format!("{nodes}, {least} s") } else { format!("{nodes}, {least} to {most} s") }
}

/// With four significant digits.
fn seconds(ns: i64) -> String {
    let decimals = 12_u32.saturating_sub(ns.max(1).ilog10()).min(9) as usize;
    format!("{:.decimals$}", ns as f64 / 1e9)
}

fn results_by_rank(run: &Run) -> HashMap<RankId, &KernelResult> {
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    results.map(|result| (result.rank, result)).collect()
}

/// What went wrong, one line per rank.
fn troubles(work: &ScreenWork, run: &Run) -> Vec<String> {
    let host = |rank: &RankRecord| run.nodes[rank.node.index()].key.hostname.as_str();
    let (results, wrong_data) = (results_by_rank(run), WrongData::of_run(run));
    let line = |rank: &RankRecord| {
        let result = results.get(&rank.rank).copied();
        let why = trouble(work, rank, result, wrong_data.part_of(&host(rank)))?;
        Some(format!("{}: {}: {why}", host(rank), work.name))
    };
    let mut all: Vec<String> = run.ranks.iter().filter_map(line).collect();
    if all.len() > MOST_NAMES {
        let more = all.len() - MOST_NAMES;
        all.truncate(MOST_NAMES);
        all.push(format!("{}: {more} more ranks failed", work.name));
    }
    all
}

/// What went wrong on a rank. Wrong data of a faulty partner are the partner's trouble. `part` is the node's part in wrong
/// data.
fn trouble(
    work: &ScreenWork,
    rank: &RankRecord,
    result: Option<&KernelResult>,
    part: Option<PartInWrongData>,
) -> Option<String> {
    let wrong = |result: &KernelResult| {
        result.wrong.clone().filter(|_| !part.is_some_and(|part| part.has_time(result)))
    };
    let why = result.and_then(|result| wrong(result).or_else(|| result.failed.clone()));
    why.or_else(|| match rank.end {
        end if !end.is_success() => Some(how(end)),
        _ if work.kind == WorkKind::Kernel && result.is_none() => {
            Some("the kernel gave no result".to_owned())
        }
        _ => None,
    })
}

fn how(end: End) -> String {
    match end {
        End::TimedOut => "it took longer than --timeout, so pmmpi ended it".to_owned(),
        end => end.to_string(),
    }
}

fn names(nodes: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = nodes.iter().take(MOST_NAMES).map(String::as_str).collect();
    let more = nodes.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmmpi::NodeId;
    use pmmpi::bounds::Stamps;
    use pmmpi::node::NodeKey;
    use pmmpi::record::{Link, Mode, NodeRecord, RunHeader, Screened};
    use pmmpi::wrong_data::{self, Notice};
    use std::path::PathBuf;

    /// A kernel or net on three nodes with these results. Node 0 takes 1 s and node 1 takes 2 s; node 2 has this end.
    fn round(results: [KernelResult; 3], end: End) -> Run {
        let header = RunHeader::new("1".to_owned(), vec!["fma".to_owned()], Mode::Plain, 0);
        let mut run = Run::empty(header, 3);
        for node in 0..3u32 {
            let key = NodeKey { hostname: format!("n{node}"), ..NodeKey::own().clone() };
            run.nodes.push(NodeRecord::new(key));
            let t2 = 1_000_000_000 * (i64::from(node) + 1);
            let stamps = Stamps::new(0, 0, t2, t2).unwrap();
            let end = if node == 2 { end } else { End::Exited(0) };
            let record = RankRecord::unmeasured(end);
            run.ranks.push(RankRecord { rank: RankId(node), node: NodeId(node), stamps, ..record });
        }
        let of_rank = |(rank, result)| KernelResult { rank: RankId(rank), ..result };
        let results = (0..).zip(results).map(of_rank).collect();
        run.screened = Some(Screened { results, ..Screened::default() });
        run
    }

    fn work(name: &str, kind: WorkKind) -> ScreenWork {
        ScreenWork { name: name.to_owned(), kind, program: PathBuf::new(), argv: Vec::new() }
    }

    /// Node 2 has wrong data with both other nodes, which have right data with each other.
    #[test]
    fn only_the_faulty_node_of_wrong_data_is_in_trouble() {
        let with = |hostname: &str, rank: u32| {
            wrong_data::text(&[Notice { hostname, rank: RankId(rank), received: Some("message 1") }])
        };
        let healthy = |partner: u32| KernelResult {
            links: vec![Link { partner: RankId(partner), latency_ns: 1e3, gigabytes_per_s: 1.0 }],
            wrong: with("n2", 2),
            ..KernelResult::default()
        };
        let faulty = KernelResult { wrong: with("n0", 0), ..KernelResult::default() };
        let run = round([healthy(1), healthy(0), faulty], End::Exited(0));
        let net = work("net", WorkKind::Net);
        let text = times(&net, &run);
        assert!(text.starts_with("2 of 3 nodes, 1") && text.contains(" to 2"), "{text}");
        let lines = troubles(&net, &run);
        assert!(lines.len() == 1 && lines[0].starts_with("n2: net: message 1 from n0"), "{lines:?}");
    }

    #[test]
    fn times_have_four_digits() {
        let texts = [8_000, 1_234_567, 1_867_961_935, 12_345_678_901, 12_345_678_901_234].map(seconds);
        assert_eq!(texts, ["0.000008000", "0.001235", "1.868", "12.35", "12346"]);
        let text = |second_ns: i64| {
            let mut run = round(Default::default(), End::TimedOut);
            run.ranks[0].stamps = Stamps::new(0, 0, 1_867_961_935, 1_867_961_935).unwrap();
            run.ranks[1].stamps = Stamps::new(0, 0, second_ns, second_ns).unwrap();
            times(&work("fma", WorkKind::Kernel), &run)
        };
        assert_eq!(text(1_867_999_000), "2 of 3 nodes, 1.868 s");
        assert_eq!(text(1_869_000_000), "2 of 3 nodes, 1.868 to 1.869 s");
    }

    #[test]
    fn a_node_without_a_time_does_not_count() {
        let round = |last: KernelResult, end: End| {
            let run = round([KernelResult::default(), KernelResult::default(), last], end);
            times(&work("fma", WorkKind::Kernel), &run)
        };
        let ok = round(KernelResult::default(), End::Exited(0));
        assert!(ok.starts_with("3 nodes, 1") && ok.contains(" to 3"), "{ok}");
        let wrong = KernelResult { wrong: Some("wrong".to_owned()), ..KernelResult::default() };
        let failed = KernelResult { failed: Some("no memory".to_owned()), ..KernelResult::default() };
        for (result, end) in
            [(wrong, End::Exited(0)), (failed, End::Exited(0)), (KernelResult::default(), End::TimedOut)]
        {
            let text = round(result, end);
            assert!(text.starts_with("2 of 3 nodes, 1") && text.contains(" to 2"), "{text}");
        }
    }
}
