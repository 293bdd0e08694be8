//! The engine's inputs from a run.

use super::cpu::{CpuKind, has_tsc};
use super::evaluate::{MetricValue, evaluate, judge};
use super::inputs::{MetricInput, MetricInputs};
use super::per_core;
use super::{CpuTable, Meaning, Rule, RuleJudgement, catalogue};
use crate::totals::{self, Total, WhyInexact};
use crate::validation::{RunTrust, Trust};
use pmmpi::counters::counts::CountRow;
use pmmpi::counters::expected::instructions_of;
use pmmpi::counters::open_counters::Scope;
use pmmpi::node::CpuSet;
use pmmpi::record::{NodeRecord, Run};
use pmmpi::regions::RegionTotals;
use pmmpi::{NodeId, RankId};
use std::collections::{HashMap, HashSet};

/// Every metric of a run over all measured ranks: from the counts of their own threads and of units outside the
/// cores, and for metrics of cores the mean over cores.
pub fn of_run(run: &Run, trust: &Trust) -> Vec<MetricValue> {
    with_cores(of_ranks(run, trust), run, trust)
}

/// The metrics as in [`of_run`], and every rule with its result.
pub fn of_run_with_rules(
    run: &Run,
    trust: &Trust,
) -> (Vec<MetricValue>, Vec<(&'static Rule, RuleJudgement)>) {
    let (cpu, inputs) = (cpu_of(run), inputs(run, trust));
    (with_cores(evaluate(&cpu, &inputs), run, trust), judge(&cpu, &inputs))
}

fn with_cores(mut values: Vec<MetricValue>, run: &Run, trust: &Trust) -> Vec<MetricValue> {
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

/// Every metric of all entries of a region, over the ranks that counted there. Metrics of cores have no value.
pub fn of_region(run: &Run, name: &str, trust: &Trust) -> Vec<MetricValue> {
    evaluate(&cpu_of(run), &inputs_of_region(run, name, trust))
}

/// The event table for the processor of all nodes.
pub fn table_of_run(run: &Run) -> Option<&'static CpuTable> {
    catalogue().table(&cpu_of(run))
}

/// Every rule and its result for a region. A section, for the rules, is one entry.
pub fn rules_of_region(run: &Run, name: &str, trust: &Trust) -> Vec<(&'static Rule, RuleJudgement)> {
    judge(&cpu_of(run), &inputs_of_region(run, name, trust))
}

/// The processor of all nodes. If nodes differ, the unknown processor: its table has what every processor counts.
fn cpu_of(run: &Run) -> CpuKind {
    fn kind(node: &NodeRecord) -> Option<(&str, u32, u32)> {
        let hardware = &node.facts.as_ref()?.hardware;
        Some((hardware.cpu_vendor.as_deref()?, hardware.cpu_family?, hardware.cpu_model?))
    }
    let is_one = run.nodes.windows(2).all(|pair| kind(&pair[0]) == kind(&pair[1]));
    let facts = run.nodes.first().filter(|_| is_one).and_then(|node| node.facts.as_ref());
    facts.map(|facts| CpuKind::of_node(&facts.hardware)).unwrap_or_default()
}

/// Counts are sums over ranks, sockets, and the hardware threads that the ranks may use. Times are means over ranks,
/// each between its own t1 and t2.
fn inputs(run: &Run, trust: &Trust) -> MetricInputs {
    let places = Places::of(run);
    let wanted = |row: &CountRow| {
        let scope = run.counts.sets[row.set as usize].scope;
        row.region.is_none() && places.are_of_ranks(scope, row)
    };
    let mut totals = totals::totals(&run.counts, wanted);
    let table = catalogue().table(&cpu_of(run));
    totals.retain(|total| {
        total.scope != Scope::Core || table.is_some_and(|table| counts_on_cores(table, total))
    });
    let mut inputs = of_totals(&totals, &trust.of_run(run));
    let ranks = run.ranks.len() as f64;
    let worked_s: f64 = run.ranks.iter().map(|rank| rank.stamps.inner_ns() as f64 * 1e-9).sum();
    if worked_s <= 0.0 {
        return inputs;
    }
    inputs.set("elapsed_s", worked_s / ranks);
    inputs.set("ranks", ranks);
    // A program of less than a millisecond is no MPI program, so pmmpi reads the counters from outside.
    inputs.set("counting_instructions_kernel", 0.0);
    inputs.set("counting_cycles_kernel", 0.0);
    places.sockets(run).into_iter().for_each(|sockets| inputs.set("sockets", sockets as f64));
    if let Some(expected) = instructions_of(&run.expected, None) {
        inputs.set("expected_instructions", expected as f64 * ranks);
    }
    if let Some(ticks) = ticks(run) {
        inputs.set("tsc", ticks / ranks);
        // Ticks and time are of the same ranks over the same time.
        if has_tsc(run) {
            inputs.set("tsc_hz", ticks / worked_s);
        }
    }
    inputs
}

/// Ticks of the TSC in the work, added over all ranks; `None` if a rank has none.
fn ticks(run: &Run) -> Option<f64> {
    run.ranks.iter().map(|rank| rank.tsc.map(|[from, to]| to.wrapping_sub(from) as f64)).sum()
}

/// The same for all entries of a region. Counts and times are of the ranks that have both. A region has no stamps of the
/// TSC; the TSC's rate is that of the whole work.
fn inputs_of_region(run: &Run, name: &str, trust: &Trust) -> MetricInputs {
    let at = |names: &[String]| names.iter().position(|known| known == name).map(|at| at as u32);
    let counted_in = at(&run.counts.regions);
    let is_counted = |row: &CountRow| counted_in.is_some() && row.region == counted_in;
    let counted: HashSet<RankId> =
        run.counts.rows.iter().filter(|row| is_counted(row)).map(|row| row.rank).collect();
    let timed_in = at(&run.regions.names);
    let of_region = run.regions.totals.iter().filter(|of| Some(of.region) == timed_in && of.entries > 0);
    let timed: HashMap<RankId, &RegionTotals> =
        of_region.filter(|of| counted.contains(&of.rank)).map(|of| (of.rank, of)).collect();
    let wanted = |row: &CountRow| is_counted(row) && timed.contains_key(&row.rank);
    let mut inputs = of_totals(&totals::totals(&run.counts, wanted), &trust.of_run(run));
    let worked_s: f64 = timed.values().map(|of| of.inner_ns as f64 * 1e-9).sum();
    let entries: f64 = timed.values().map(|of| of.entries as f64).sum();
    if worked_s <= 0.0 {
        return inputs;
    }
    inputs.set("elapsed_s", worked_s / timed.len() as f64);
    inputs.set("section_s", worked_s / entries);
    if let Some(of_entry) = run.empty_entry.counts.get("instructions_kernel") {
        inputs.set("counting_instructions_kernel", *of_entry as f64 * entries);
    }
    inputs.set("ranks", timed.len() as f64);
    if let Some(expected) = instructions_of(&run.expected, Some(name)) {
        inputs.set("expected_instructions", expected as f64 * entries);
    }
    let of_ranks_s: f64 = run.ranks.iter().map(|rank| rank.stamps.inner_ns() as f64 * 1e-9).sum();
    if let Some(ticks) = ticks(run).filter(|_| of_ranks_s > 0.0 && has_tsc(run)) {
        inputs.set("tsc_hz", ticks / of_ranks_s);
    }
    inputs
}

/// True for an event that the processor counts only on hardware threads, not in threads of a program. (With `--scope
/// core`, hardware threads count many other events, too. Metrics are of the program.)
fn counts_on_cores(table: &CpuTable, total: &Total) -> bool {
    let meaning = table.meaning(&total.event.name);
    matches!(meaning, Some(Meaning::Event(event)) if event.scope == Scope::Core && event.sibling.is_none())
}

/// Where the measured ranks are. (Only ranks that reached the end have times, so only their counts are used.)
struct Places<'a> {
    nodes: HashMap<RankId, NodeId>,
    /// The hardware threads that the ranks of a node may use.
    allowed: HashMap<NodeId, Vec<&'a CpuSet>>,
}

impl<'a> Places<'a> {
    fn of(run: &'a Run) -> Self {
        let mut allowed: HashMap<NodeId, Vec<&CpuSet>> = HashMap::new();
        for rank in &run.ranks {
            let sets = allowed.entry(rank.node).or_default();
            if !sets.contains(&&rank.allowed) {
                sets.push(&rank.allowed);
            }
        }
        Self { nodes: run.ranks.iter().map(|rank| (rank.rank, rank.node)).collect(), allowed }
    }

    /// True for a row of a measured rank; if it is of one hardware thread, ranks of the node may use this thread.
    fn are_of_ranks(&self, scope: Scope, row: &CountRow) -> bool {
        let Some(node) = self.nodes.get(&row.rank) else { return false };
        let is_allowed = |cpu: u32| self.allowed[node].iter().any(|allowed| allowed.contains(cpu));
        scope != Scope::Core || row.cpu.is_none_or(is_allowed)
    }

    /// How many sockets have rows of their own; `None` if a node with such rows has no known topology.
    fn sockets(&self, run: &Run) -> Option<usize> {
        let of_socket = |row: &&CountRow| run.counts.sets[row.set as usize].scope == Scope::Socket;
        let rows = run.counts.rows.iter().filter(|row| row.region.is_none()).filter(of_socket);
        let socket = |row: &CountRow| {
            let node = *self.nodes.get(&row.rank)?;
            let topology = &run.topologies[run.nodes[node.index()].topology? as usize];
            let thread = topology.threads.iter().find(|thread| Some(thread.cpu) == row.cpu)?;
            Some((node, thread.socket))
        };
        let sockets: Option<HashSet<(NodeId, u32)>> =
            rows.filter(|row| self.nodes.contains_key(&row.rank)).map(socket).collect();
        sockets.map(|sockets| sockets.len()).filter(|sockets| *sockets > 0)
    }
}

/// Inputs from sums of counts. Also adds the sums over events that are one event in several parts of a machine.
pub fn of_totals(totals: &[Total], trust: &RunTrust) -> MetricInputs {
    let mut inputs = MetricInputs::new();
    let sums = totals::sums(totals);
    for sum in &sums {
        let (value, reason, trust) = (sum.value(), Some(sum.reason.clone()), trust.of_sum(&sum.of));
        let input = MetricInput {
            value,
            quality: sum.quality,
            running_share: sum.running_share,
            reason,
            trust,
            scope: sum.scope,
        };
        inputs.add(&sum.name, input);
    }
    for total in totals.iter().filter(|total| !sums.iter().any(|sum| sum.is_named_like(total))) {
        let input = MetricInput {
            value: total.value(),
            quality: total.quality,
            running_share: total.running_share,
            reason: total.reason.as_ref().map(WhyInexact::to_string),
            trust: trust.of(total.event),
            scope: total.scope,
        };
        inputs.add(&total.event.name, input);
    }
    inputs
}
