//! What `pmmpi screen` prints while it measures.

use crate::messages::warn;
use crate::progress::Progress;
use crate::screen_plan::{ScreenPlan, ScreenWork, WorkKind};
use pmmpi::record::{End, RankRecord, Run};
use pmmpi::text::{count, seconds_between};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;

/// Most nodes that a message names.
const MOST_NAMES: usize = 8;

/// Shows the progress: a bar if stderr is a terminal, else one line per kernel and round.
pub(crate) struct ScreenConsole {
    /// `None`: this rank prints nothing.
    progress: Option<Progress>,
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
            progress: Some(Progress::new(works * rounds, plan.rounds.quiet)),
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
            progress.say(format_args!("[{}/{rounds}] {}: {}", kept + 1, work.name, times(run)));
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

/// `4 nodes, 1.021 to 1.034 s`.
fn times(run: &Run) -> String {
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    let bad = results.filter(|result| result.failed.is_some() || result.wrong.is_some());
    let bad: HashSet<_> = bad.map(|result| result.rank).collect();
    let has_time = |rank: &&RankRecord| rank.end.is_success() && !bad.contains(&rank.rank);
    let works = run.ranks.iter().filter(has_time).map(|rank| {
        let [_, t1, t2, _] = rank.stamps.into();
        t2 - t1
    });
    let (least, most) = works.fold((i64::MAX, 0), |(least, most), ns| (least.min(ns), most.max(ns)));
    let nodes = count(run.host_count(), "node");
    if least > most {
        return format!("{nodes}, none with a time");
    }
    let (least, most) = seconds_between(least, most);
    format!("{nodes}, {least} to {most} s")
}

/// What went wrong, one line per rank.
fn troubles(work: &ScreenWork, run: &Run) -> Vec<String> {
    let host = |rank: &RankRecord| run.nodes[rank.node.index()].key.hostname.as_str();
    let results = run.screened.iter().flat_map(|screened| &screened.results);
    let results: HashMap<_, _> = results.map(|result| (result.rank, result)).collect();
    let trouble = |rank: &RankRecord| {
        let result = results.get(&rank.rank);
        let why = result.and_then(|result| result.wrong.clone().or_else(|| result.failed.clone()));
        let why = why.or_else(|| match rank.end {
            end if !end.is_success() => Some(how(end)),
            _ if work.kind == WorkKind::Kernel && result.is_none() => {
                Some("the kernel gave no result".to_owned())
            }
            _ => None,
        })?;
        Some(format!("{}: {}: {why}", host(rank), work.name))
    };
    let mut all: Vec<String> = run.ranks.iter().filter_map(trouble).collect();
    if all.len() > MOST_NAMES {
        let more = all.len() - MOST_NAMES;
        all.truncate(MOST_NAMES);
        all.push(format!("{}: {more} more ranks failed", work.name));
    }
    all
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
