//! `pmmpi list metrics`: the values that the report computes from counts.

use super::{Listable, has};
use pmmpi_events::metrics::{Per, catalogue};
use serde::Serialize;

/// The metrics that docs/metrics.md describes.
#[derive(Serialize)]
pub struct Metrics {
    schema_version: u32,
    metrics: Vec<Metric>,
}

#[derive(Serialize)]
struct Metric {
    name: &'static str,
    groups: &'static [String],
    unit: &'static str,
    formula: &'static str,
    /// "run", or "core": the mean over the cores.
    per: &'static str,
    description: &'static str,
    source: &'static str,
}

/// The metrics whose name, group or description contains `filter`.
pub fn matching(filter: Option<&str>) -> Metrics {
    let metrics = catalogue().metrics.iter();
    let metrics =
        metrics.filter(|metric| has(filter, &[&metric.name, &metric.text, &metric.groups.join(" ")]));
    let metric = |metric: &'static pmmpi_events::metrics::Metric| Metric {
        name: &metric.name,
        groups: &metric.groups,
        unit: &metric.unit,
        formula: metric.formula.text(),
        per: match metric.per {
            Per::Run => "run",
            Per::Core => "core",
        },
        description: &metric.text,
        source: &metric.source,
    };
    Metrics { schema_version: 1, metrics: metrics.map(metric).collect() }
}

impl Listable for Metrics {
    fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    fn text(&self) -> String {
        let line = |metric: &Metric| {
            let unit = if metric.unit == "1" { "" } else { metric.unit };
            format!(
                "{:<32} {:<5} {}\n{:38} = {}\n",
                metric.name, unit, metric.description, "", metric.formula
            )
        };
        self.metrics.iter().map(line).collect()
    }
}
