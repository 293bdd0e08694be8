//! What a run's counts mean.

use pmmpi::counters::default;
use pmmpi::record::Run;
use pmmpi_events::metrics::{self, Metric, MetricValue, RuleJudgement};
use pmmpi_events::validation::Trust;
use serde::Serialize;
use std::collections::HashSet;

/// One metric of a run.
#[derive(Debug, Serialize)]
pub struct MetricReport {
    /// As `pmmpi list metrics` has it.
    pub name: &'static str,
    /// "1" for ratios.
    pub unit: &'static str,
    /// Over all ranks, or the mean over all cores.
    pub value: Option<f64>,
    /// The worst of what it is computed from.
    pub quality: &'static str,
    /// Why there is no value, or no exact one.
    pub reason: Option<String>,
    /// The smallest running share of what it is computed from.
    pub running_share: Option<f64>,
    /// False where nothing must be concluded from it.
    pub supports_verdict: bool,
}

/// Those of the default group and those of what was asked for, with or without a value, and all others that have one.
pub fn of(run: &Run, trust: &Trust) -> Vec<MetricReport> {
    if run.counts.rows.is_empty() {
        return Vec::new(); // an older run file
    }
    let is_asked = asked_for(run);
    let is_default = |metric: &Metric| metric.groups.iter().any(|group| group == "default");
    let is_shown = |of: &MetricValue| is_default(of.metric) || of.value().is_some() || is_asked(of.metric);
    metrics::of_run(run, trust).into_iter().filter(is_shown).map(MetricReport::new).collect()
}

/// Whether an event of a metric's was to be counted, beside the default set.
fn asked_for(run: &Run) -> impl Fn(&Metric) -> bool {
    let groups = default::groups();
    let default: HashSet<&str> = groups.iter().flatten().map(|event| event.name.as_str()).collect();
    let events = run.counts.sets.iter().flat_map(|set| &set.events).map(|(event, _)| &event.name);
    let asked: HashSet<String> = events.filter(|name| !default.contains(name.as_str())).cloned().collect();
    let table = metrics::table_of_run(run);
    move |metric| {
        let is_asked = |table: &&metrics::CpuTable| {
            table.has(metric) && table.events_of(metric).iter().any(|event| asked.contains(&event.name))
        };
        !asked.is_empty() && table.as_ref().is_some_and(is_asked)
    }
}

/// What the counts say of the measurement.
#[derive(Debug, Serialize)]
pub struct Flag {
    /// For scripts: stable.
    pub code: &'static str,
    /// What is the case.
    pub message: &'static str,
    /// The measurement is not to be used.
    pub discards: bool,
}

/// Those that are raised.
pub fn flags(run: &Run, trust: &Trust) -> Vec<Flag> {
    if run.counts.rows.is_empty() {
        return Vec::new();
    }
    let rules = metrics::rules_of_run(run, trust).into_iter();
    let raised = rules.filter(|(_, judgement)| *judgement == RuleJudgement::Raised);
    raised.map(|(rule, _)| Flag { code: &rule.code, message: &rule.text, discards: rule.discards }).collect()
}

impl MetricReport {
    fn new(value: MetricValue) -> Self {
        Self {
            name: &value.metric.name,
            unit: &value.metric.unit,
            value: value.value(),
            quality: value.quality().name(),
            reason: value.reason(),
            running_share: value.result.as_ref().ok().and_then(|value| value.running_share),
            supports_verdict: value.supports_verdict(),
        }
    }
}
