//! The metrics of a run and of its regions.

use super::flag_findings::Finding;
use pmmpi::counters::default;
use pmmpi::counters::expected::instructions_of;
use pmmpi::record::Run;
use pmmpi_events::metrics::{self, Metric, MetricValue, Rule, RuleJudgement};
use pmmpi_events::validation::Trust;
use serde::Serialize;
use std::collections::HashSet;

/// One metric of a run.
#[derive(Clone, Debug, Serialize)]
pub struct MetricReport {
    /// The name in `pmmpi list metrics`.
    pub name: &'static str,
    /// Unit; "1" for ratios.
    pub unit: &'static str,
    /// Value over all ranks, or the mean over all cores.
    pub value: Option<f64>,
    /// The worst quality of its inputs.
    pub quality: &'static str,
    /// Why the value is missing or not exact.
    pub reason: Option<String>,
    /// The smallest running share of its inputs.
    pub running_share: Option<f64>,
    /// False if the value does not allow any conclusion.
    pub supports_verdict: bool,
}

/// The metrics of the default group and the requested metrics, even without a value, and all others that have a
/// value. And the flags that are raised.
pub fn of(run: &Run, trust: &Trust) -> (Vec<MetricReport>, Vec<Flag>) {
    if run.counts.rows.is_empty() {
        return (Vec::new(), Vec::new()); // a run file of an older version
    }
    let (values, rules) = metrics::of_run_with_rules(run, trust);
    (shown(run, None, values), raised(rules))
}

/// The same for all entries of a region.
pub fn of_region(run: &Run, name: &str, trust: &Trust) -> Vec<MetricReport> {
    if run.counts.rows.is_empty() {
        return Vec::new();
    }
    shown(run, Some(name), metrics::of_region(run, name, trust))
}

fn shown(run: &Run, region: Option<&str>, values: Vec<MetricValue>) -> Vec<MetricReport> {
    let is_asked = asked_for(run);
    let is_default = |metric: &Metric| metric.groups.iter().any(|group| group == "default");
    let is_expected = instructions_of(&run.expected, region).is_some();
    let is_shown = |of: &MetricValue| {
        is_default(of.metric)
            || of.value().is_some()
            || is_asked(of.metric)
            || is_expected && of.metric.formula.names().iter().any(|name| name == "expected_instructions")
    };
    values.into_iter().filter(is_shown).map(MetricReport::new).collect()
}

/// True for a metric with an event that was requested in addition to the default set.
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

/// A conclusion about the measurement, from the counts or from where the ranks ran.
#[derive(Debug, Serialize)]
pub struct Flag {
    /// A stable name for scripts.
    pub code: &'static str,
    /// What raises it.
    #[serde(rename = "message")]
    pub finding: Finding,
    /// True if the measurement must not be used.
    pub discards: bool,
}

/// The flags that are raised for a region.
pub fn flags_of_region(run: &Run, name: &str, trust: &Trust) -> Vec<Flag> {
    if run.counts.rows.is_empty() {
        return Vec::new();
    }
    raised(metrics::rules_of_region(run, name, trust))
}

fn raised(rules: Vec<(&'static Rule, RuleJudgement)>) -> Vec<Flag> {
    let raised = rules.into_iter().filter(|(_, judgement)| *judgement == RuleJudgement::Raised);
    raised
        .map(|(rule, _)| Flag {
            code: &rule.code,
            finding: Finding::Rule { text: &rule.text },
            discards: rule.discards,
        })
        .collect()
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
