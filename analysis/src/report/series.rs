//! The metrics of a series whose runs counted different groups of events: `pmmpi repeat --groups`.

use super::metrics::MetricReport;
use super::run::RunReport;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A series whose runs counted different groups of events.
#[derive(Debug, Serialize)]
pub struct SeriesReport {
    /// Its id.
    pub series: String,
    /// Number of its runs that have metrics.
    pub runs: usize,
    /// Each metric that some run has, in the order of the names.
    pub metrics: Vec<SeriesMetric>,
}

/// A metric of a series, from the run with the median value of the runs that have a value. For an even number of
/// runs, it is the lower of the middle two values.
#[derive(Debug, Serialize)]
pub struct SeriesMetric {
    /// The metric of this run.
    #[serde(flatten)]
    pub metric: MetricReport,
    /// The run; without a value, the first run that was to have one.
    pub run_id: String,
    /// Number of runs that have a value.
    pub runs: usize,
}

/// All such series, in the order of their first runs.
pub fn of(runs: &[RunReport]) -> Vec<SeriesReport> {
    let mut series: Vec<(&str, Vec<&RunReport>)> = Vec::new();
    for run in runs.iter().filter(|run| !run.metrics.is_empty()) {
        let Some(id) = run.series.as_deref() else { continue };
        match series.iter_mut().rfind(|(known, _)| *known == id) {
            Some((_, runs)) => runs.push(run),
            None => series.push((id, vec![run])),
        }
    }
    series.retain(|(_, runs)| runs.iter().any(|run| names(run) != names(runs[0])));
    let report = |(id, runs): (&str, Vec<&RunReport>)| SeriesReport {
        series: id.to_owned(),
        runs: runs.len(),
        metrics: metrics(&runs),
    };
    series.into_iter().map(report).collect()
}

fn names(run: &RunReport) -> BTreeSet<&str> {
    run.metrics.iter().map(|metric| metric.name).collect()
}

fn metrics(runs: &[&RunReport]) -> Vec<SeriesMetric> {
    let mut by_name: BTreeMap<&str, Vec<(&MetricReport, &str)>> = BTreeMap::new();
    for (run, metric) in runs.iter().flat_map(|run| run.metrics.iter().map(move |metric| (run, metric))) {
        by_name.entry(metric.name).or_default().push((metric, &run.run_id));
    }
    let of_runs = |all: Vec<(&MetricReport, &str)>| {
        let mut valued: Vec<(f64, &MetricReport, &str)> =
            all.iter().filter_map(|(metric, run)| Some((metric.value?, *metric, *run))).collect();
        valued.sort_by(|a, b| a.0.total_cmp(&b.0));
        let median = valued.len().checked_sub(1).map(|last| (valued[last / 2].1, valued[last / 2].2));
        let (metric, run_id) = median.unwrap_or(all[0]);
        SeriesMetric { metric: metric.clone(), run_id: run_id.to_owned(), runs: valued.len() }
    };
    by_name.into_values().map(of_runs).collect()
}

#[cfg(test)]
mod tests {
    use super::super::run::Details;
    use super::*;
    use pmmpi::record::{Mode, Run, RunHeader};
    use pmmpi_events::validation::Trust;

    fn run(id: &str, series: &str, metrics: &[(&'static str, Option<f64>)]) -> RunReport {
        let header = RunHeader::new(id.into(), vec!["p".into()], Mode::Plain, 0);
        let mut report = RunReport::new(&Run::empty(header, 1), &Trust::default(), Details::Shown);
        report.series = Some(series.to_owned());
        let metric = |(name, value): &(&'static str, Option<f64>)| MetricReport {
            name,
            unit: "1",
            value: *value,
            quality: if value.is_some() { "exact" } else { "unsupported" },
            reason: None,
            running_share: None,
            supports_verdict: true,
        };
        report.metrics = metrics.iter().map(metric).collect();
        report
    }

    #[test]
    fn each_metric_comes_from_the_runs_that_counted_it() {
        let runs = [
            run("1", "s", &[("cpi", Some(1.0)), ("l2", Some(5.0))]),
            run("2", "s", &[("cpi", Some(3.0)), ("tlb", None)]),
            run("3", "s", &[("cpi", Some(2.0)), ("l2", Some(4.0))]),
            run("4", "other", &[("cpi", Some(9.0))]),
        ];
        let all = of(&runs);
        assert_eq!((all.len(), all[0].series.as_str(), all[0].runs), (1, "s", 3));
        let found: Vec<_> = all[0]
            .metrics
            .iter()
            .map(|m| (m.metric.name, m.metric.value, m.run_id.as_str(), m.runs))
            .collect();
        assert_eq!(found, [("cpi", Some(2.0), "3", 3), ("l2", Some(4.0), "3", 2), ("tlb", None, "2", 0)]);
    }

    #[test]
    fn a_series_of_one_kind_of_runs_is_none() {
        assert!(of(&[run("1", "s", &[("cpi", Some(1.0))]), run("2", "s", &[("cpi", Some(2.0))])]).is_empty());
    }
}
