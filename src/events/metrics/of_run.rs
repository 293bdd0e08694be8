//! The engine's inputs from a run.

use super::cpu::CpuKind;
use super::evaluate::{MetricValue, evaluate, judge};
use super::inputs::{MetricInput, MetricInputs};
use super::per_core;
use super::{CpuTable, Rule, RuleJudgement, catalogue};
use crate::totals::{self, Total};
use crate::validation::{RunTrust, Trust};
use pmmpi::RankId;
use pmmpi::counters::counts::CountRow;
use pmmpi::counters::probe::Scope;
use pmmpi::node::CpuSet;
use pmmpi::record::{RankRecord, Run};
use std::collections::HashSet;

/// Every metric of a run over all measured ranks: from the counts of their own threads and of units outside the
/// cores, and for metrics of cores the mean over cores.
pub fn of_run(run: &Run, trust: &Trust) -> Vec<MetricValue> {
    let mut values = of_ranks(run, trust);
    for of_cores in per_core::of_cores(run, &trust.of_run(run)) {
        if let Some(value) = values.iter_mut().find(|value| value.metric.name == of_cores.metric.name) {
            *value = of_cores;
        }
    }
    values
}

/// Like [`of_run`], but without a look at each core of each node: metrics of cores have no value.
pub fn of_ranks(run: &Run, trust: &Trust) -> Vec<MetricValue> {
    evaluate(&cpu_of(run), &inputs(run, trust))
}

/// The event table for the processor of all nodes.
pub fn table_of_run(run: &Run) -> Option<&'static CpuTable> {
    catalogue().table(&cpu_of(run))
}

/// Every rule and its result.
pub fn rules_of_run(run: &Run, trust: &Trust) -> Vec<(&'static Rule, RuleJudgement)> {
    judge(&cpu_of(run), &inputs(run, trust))
}

/// The processor of all nodes. If nodes differ, the unknown processor: its table has what every processor counts.
fn cpu_of(run: &Run) -> CpuKind {
    let kinds = run
        .nodes
        .iter()
        .map(|node| node.facts.as_ref().map(|facts| CpuKind::of_node(&facts.hardware)).unwrap_or_default());
    let kinds: HashSet<CpuKind> = kinds.collect();
    let mut kinds = kinds.into_iter();
    kinds.next().filter(|_| kinds.next().is_none()).unwrap_or_default()
}

/// Counts are sums over ranks. Times are means over ranks, each between its own t1 and t2.
fn inputs(run: &Run, trust: &Trust) -> MetricInputs {
    // Only ranks that reached the end have times, so use only their counts.
    let measured: HashSet<RankId> = run.ranks.iter().map(|rank| rank.rank).collect();
    let wanted = |row: &CountRow| {
        let scope = run.counts.sets[row.set as usize].scope;
        row.region.is_none() && scope != Scope::Core && measured.contains(&row.rank)
    };
    let mut inputs = of_totals(&totals::totals(&run.counts, wanted), &trust.of_run(run));
    let ranks = run.ranks.len() as f64;
    let worked_s: f64 = run.ranks.iter().map(|rank| rank.stamps.inner_ns() as f64 * 1e-9).sum();
    if worked_s <= 0.0 {
        return inputs;
    }
    inputs.set("elapsed_s", worked_s / ranks);
    let host = |rank: &RankRecord| run.nodes[rank.node.index()].key.hostname.as_str();
    let allowed = run.ranks.iter().map(|rank| (host(rank), &rank.allowed));
    inputs.set("cpus", hardware_threads(allowed) as f64);
    let ticks: Option<f64> =
        run.ranks.iter().map(|rank| rank.tsc.map(|[from, to]| to.wrapping_sub(from) as f64)).sum();
    if let Some(ticks) = ticks {
        inputs.set("tsc", ticks / ranks);
        // Ticks and time are of the same ranks over the same time.
        inputs.set("tsc_hz", ticks / worked_s);
    }
    inputs
}

/// Inputs from sums of counts. Also adds the sums over events that are one event in several parts of a machine.
pub fn of_totals(totals: &[Total], trust: &RunTrust) -> MetricInputs {
    let mut inputs = MetricInputs::new();
    let sums = totals::sums(totals);
    for sum in &sums {
        let (value, reason, trust) = (sum.value(), Some(sum.reason.clone()), trust.of_sum(&sum.of));
        let input =
            MetricInput { value, quality: sum.quality, running_share: sum.running_share, reason, trust };
        inputs.add(&sum.name, input);
    }
    for total in totals.iter().filter(|total| !sums.iter().any(|sum| sum.is_named_like(total))) {
        let input = MetricInput {
            value: total.value(),
            quality: total.quality,
            running_share: total.running_share,
            reason: total.reason.clone(),
            trust: trust.of(total.event),
        };
        inputs.add(&total.event.name, input);
    }
    inputs
}

/// How many hardware threads the ranks may use, summed over hosts. `allowed` has each rank's host and threads. (A
/// host's threads count once, even if the host has several clocks.)
pub fn hardware_threads<'a>(allowed: impl Iterator<Item = (&'a str, &'a CpuSet)>) -> u64 {
    let mut ranges: Vec<(&str, u32, u32)> = Vec::new();
    for (host, allowed) in allowed {
        ranges.extend(allowed.0.iter().map(|(first, last)| (host, *first, *last)));
    }
    ranges.sort_unstable();
    ranges.dedup();
    // Sums ranges, not single threads: a file may claim four thousand million threads.
    let (mut count, mut end) = (0, ("", 0));
    for (host, first, last) in ranges {
        let from = if end.0 == host { u64::from(first).max(end.1) } else { first.into() };
        let to = u64::from(last) + 1;
        count += to.saturating_sub(from);
        end = (host, if end.0 == host { to.max(end.1) } else { to });
    }
    count
}
