//! The tables of the last run, in the order in which all formats show them.

use super::tabular::Table;
use super::{last_run, probes};
use crate::report::Report;

/// The tables that the runs have data for, each with at most `top` rows (0: all).
pub(super) fn of(report: &Report, top: usize) -> impl Iterator<Item = Table> {
    let tables = [
        last_run::regions(&report.runs, top),
        last_run::metrics_of_regions(&report.runs, top),
        probes::table(&report.runs, top),
        last_run::metrics(&report.runs, &report.series, top),
    ];
    tables.into_iter().flatten()
}
