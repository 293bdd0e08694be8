//! Warnings about a run.

use crate::input::node_rows;
use crate::report::lateness::Lateness;
use crate::report::{probes, regions};
use crate::warnings::{FirstFew, RunWarning, Warning};
use pmmpi::NodeId;
use pmmpi::bounds::{ElapsedBounds, NO_RATE_PPM};
use pmmpi::counters::requested;
use pmmpi::record::{End, Mode, Run};
use pmmpi::session::launch_check;
use pmmpi_events::totals::{Total, WhyInexact, totals};
use pmmpi_events::validation::{EventVerdict, RunTrust};
use std::collections::{BTreeMap, BTreeSet};

/// Fraction of the elapsed time above which there is a warning.
const WORTH_A_WARNING: f64 = 0.01;

/// All warnings about a run.
pub fn warnings_about(run: &Run, trust: &RunTrust, lateness: &Lateness) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let is_told = |end: End| !end.is_success() || !run.lost.is_empty();
    if let Some(telling) = run.telling_rank().filter(|(_, _, end)| is_told(*end)) {
        warnings.push(RunWarning::FailedRun { reason: node_rows::failure(run, telling) });
    }
    if !run.is_complete() {
        let (completed, lost) = (run.ranks.len(), run.lost.len());
        warnings.push(RunWarning::IncompleteRun {
            ranks: run.size,
            completed,
            lost,
            unknown: (run.size as usize).saturating_sub(completed + lost),
        });
    }
    let job = &run.header.job;
    let (launcher, library) = (job.launcher.as_deref(), run.header.mpi_library.as_deref());
    let mismatch = launch_check::contradiction(
        launcher.unwrap_or("the launcher"),
        job.launched_ranks.unwrap_or(0),
        run.size,
        library.unwrap_or("unknown"),
    );
    if let Some(reason) = mismatch.filter(|_| run.header.mode == Mode::Mpi) {
        warnings.push(RunWarning::SeparateJobs { reason });
    }
    let unknown = run.nodes.iter().filter(|node| node.facts.is_none());
    let nodes: Vec<String> = unknown.map(|node| node.key.hostname.clone()).collect();
    if !nodes.is_empty() {
        warnings.push(RunWarning::NodeUnknown { nodes });
    }
    let mut changes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in &run.nodes {
        if let Some(changed) = node.facts.as_ref().and_then(|facts| facts.inventory.changed()) {
            changes.entry(changed).or_default().push(&node.key.hostname);
        }
    }
    for (changed, nodes) in changes {
        const NAMED: usize = 3;
        let nodes = FirstFew::of(nodes.into_iter(), NAMED, str::to_owned);
        warnings.push(RunWarning::NodeChanged { nodes, changed: changed.to_owned() });
    }
    if let Some(rank) = run.ranks.iter().find(|rank| <[i64; 4]>::from(rank.stamps) == [0; 4]) {
        warnings.push(RunWarning::NoStamps { rank: rank.rank });
    }
    if let Some(elapsed) = run.elapsed() {
        warnings.extend(about_elapsed(run, &elapsed));
    }
    warnings.extend(about_slew(run));
    // In a screen, a node waits for no other one.
    warnings.extend(lateness.warning().filter(|_| run.screened.is_none()));
    warnings.extend(regions::warnings(run));
    warnings.extend(probes::warning(run));
    warnings.extend(about_uncounted(run));
    warnings.extend(about_counters(run, trust));
    warnings.into_iter().map(Warning::from).collect()
}

/// Requested events that have no value: those that were reported at the start of the run, and those missing on other
/// nodes.
fn about_uncounted(run: &Run) -> Option<RunWarning> {
    if run.asked.is_empty() {
        return None;
    }
    let totals = totals(&run.counts, |row| row.region.is_none());
    let uncounted = requested::uncounted(&run.asked, |scope, name| {
        let mut all = totals.iter().filter(|total| total.scope == scope && total.event.name == name);
        let reason =
            |total: &Total| total.reason.as_ref().map(WhyInexact::place_and_reason).unwrap_or_default();
        let first = all.next().filter(|total| !total.quality.has_value())?;
        all.all(|total| !total.quality.has_value()).then(|| reason(first))
    });
    (!uncounted.is_empty()).then_some(RunWarning::UncountedEvents { uncounted })
}

/// Warns of counters that `pmmpi validate` found unusable on this processor.
fn about_counters(run: &Run, trust: &RunTrust) -> Option<RunWarning> {
    let events = run.counts.sets.iter().flat_map(|set| &set.events).map(|(event, _)| event);
    let unusable: BTreeSet<&str> = events
        .filter(|event| trust.of(event) == EventVerdict::Unusable)
        .map(|event| event.name.as_str())
        .collect();
    let events: Vec<String> = unusable.into_iter().map(str::to_owned).collect();
    (!events.is_empty()).then_some(RunWarning::UnusableCounters { events })
}

/// Warns of a clock with a high rate error. The bounds hold nevertheless: [`Run::max_drift`] includes the slew.
fn about_slew(run: &Run) -> Option<RunWarning> {
    let most = run.ranks.iter().max_by(|a, b| a.slew_ppm().abs().total_cmp(&b.slew_ppm().abs()))?;
    let slew = most.slew_ppm();
    (slew.abs() > run.header.max_drift.ppm()).then(|| RunWarning::SlewedClock {
        node: run.nodes[most.node.index()].key.hostname.clone(),
        slew_ppm: slew,
        max_drift_ppm: run.max_drift().ppm(),
    })
}

fn about_elapsed(run: &Run, elapsed: &ElapsedBounds) -> Vec<RunWarning> {
    if !elapsed.consistent {
        let host = |node: &NodeId| run.nodes.get(node.index()).map(|n| n.key.hostname.clone());
        return vec![RunWarning::InconsistentClocks {
            max_drift_ppm: run.max_drift().ppm(),
            least_ppm: Some(elapsed.rho_min_ppm).filter(|least| *least < NO_RATE_PPM),
            suspects: elapsed.suspects.iter().filter_map(host).collect(),
        }];
    }
    // The nodes of a screen work each for itself, and a kernel prepares its data between two rounds: the time of the
    // whole job does not matter.
    if run.screened.is_some() {
        return Vec::new();
    }
    let (lower_ns, upper_ns) = (elapsed.lower_ns, elapsed.upper_ns);
    let is_much = |ns: i64| ns as f64 > WORTH_A_WARNING * upper_ns as f64;
    let is_wide = is_much(upper_ns.saturating_sub(lower_ns));
    let wide = is_wide.then_some(RunWarning::WideBounds { lower_ns, upper_ns });
    let overhead = run.overhead_ns().filter(|ns| is_much(*ns));
    let overhead = overhead.map(|overhead_ns| RunWarning::Overhead { overhead_ns });
    wide.into_iter().chain(overhead).collect()
}
