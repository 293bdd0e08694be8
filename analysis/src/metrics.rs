//! What a run's counts mean.

use pmmpi::metrics::{self, Judgement, MetricValue};
use pmmpi::record::Run;
use pmmpi::trust::Trust;
use serde::Serialize;

/// One metric of a run.
#[derive(Debug, Serialize)]
pub struct MetricReport {
    /// As `pmmpi list metrics` has it.
    pub name: &'static str,
    /// "1" for ratios.
    pub unit: &'static str,
    /// Over all ranks.
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

/// Those of the default group, with or without a value, and all others that have one.
pub fn of(run: &Run, trust: &Trust) -> Vec<MetricReport> {
    if run.counts.rows.is_empty() {
        return Vec::new(); // an older run file
    }
    let metrics = metrics::of_run(run, trust).into_iter();
    let is_default = |value: &MetricValue| value.metric.groups.iter().any(|group| group == "default");
    metrics.filter(|value| is_default(value) || value.value().is_some()).map(MetricReport::new).collect()
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
pub fn flags(run: &Run) -> Vec<Flag> {
    if run.counts.rows.is_empty() {
        return Vec::new();
    }
    let rules = metrics::rules_of_run(run).into_iter();
    let raised = rules.filter(|(_, judgement)| *judgement == Judgement::Raised);
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
