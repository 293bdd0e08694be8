//! Rows of what goes with slowness: only what is significant.

use super::cells::class_numbers;
use crate::report::Report;
use crate::verdicts::goes_with_slowness::{ClassSlowness, ColumnSlowness, SlownessReport};

/// One significant correlation.
pub struct SlownessRow<'a> {
    /// The counter, metric or fact.
    pub name: &'a str,
    /// "runs": within nodes; "nodes": between nodes.
    pub of: &'static str,
    /// The number of the class in the table of nodes; `None` if there is only one class.
    pub class: Option<usize>,
    pub found: &'a SlownessReport,
}

impl SlownessRow<'_> {
    /// For example "x1.72". A counter that only counts longer has "=time" in addition.
    pub fn ratio(&self) -> String {
        let ratio = self.found.ratio.map_or("-".to_owned(), |ratio| match ratio < 1000.0 {
            true => format!("x{ratio:.2}"),
            false => format!("x{ratio:.1e}"),
        });
        let longer = if self.found.only_counts_longer { " =time" } else { "" };
        format!("{ratio}{longer}")
    }

    /// For example "+0.21".
    pub fn rho(&self) -> String {
        format!("{:+.2}", self.found.rho)
    }

    /// For example "0.10 .. 0.31".
    pub fn interval(&self) -> String {
        let [low, high] = self.found.ci;
        format!("{low:.2} .. {high:.2}")
    }
}

/// The significant correlations of all classes, the strongest of each class first.
pub fn rows(report: &Report) -> Vec<SlownessRow<'_>> {
    let numbers = class_numbers(&report.nodes);
    let classes = report.goes_with_slowness.as_deref().unwrap_or_default();
    let mut all = Vec::new();
    for class in classes {
        let number = numbers.get(class.class.as_str()).copied().filter(|_| numbers.len() > 1);
        let mut of_class: Vec<SlownessRow> =
            class.columns.iter().flat_map(|column| of_column(column, number)).collect();
        of_class.sort_by(|a, b| b.found.rho.abs().total_cmp(&a.found.rho.abs()));
        all.extend(of_class);
    }
    all
}

fn of_column(column: &ColumnSlowness, class: Option<usize>) -> impl Iterator<Item = SlownessRow<'_>> {
    let found = [("runs", &column.within), ("nodes", &column.between)];
    let significant = found.into_iter().filter_map(|(of, found)| Some((of, found.as_ref()?)));
    significant.filter(|(_, found)| found.significant).map(move |(of, found)| SlownessRow {
        name: &column.name,
        of,
        class,
        found,
    })
}

/// What the columns mean, one remark per line.
pub fn meaning(report: &Report, rows: &[SlownessRow]) -> Vec<String> {
    let ratio = "RATIO: the value in slow runs (or nodes) / the value in fast runs (or nodes)".to_owned();
    let times = match report.goes_with_slowness.as_deref().unwrap_or_default() {
        [class] => times(class, rows),
        _ => None,
    };
    let longer = rows.iter().any(|row| row.found.only_counts_longer);
    let longer = longer.then(|| {
        "=time: slow runs (or nodes) have a higher count, but no higher count per second".to_owned()
    });
    std::iter::once(ratio).chain(times).chain(longer).collect()
}

/// The ratios of the times.
fn times(class: &ClassSlowness, rows: &[SlownessRow]) -> Option<String> {
    let all = [("runs", class.slow_runs_take), ("nodes", class.slow_nodes_take)];
    let shown = all.into_iter().filter(|(of, _)| rows.iter().any(|row| row.of == *of));
    let times: Vec<String> = shown.filter_map(|(of, ratio)| Some(format!("{of} x{:.2}", ratio?))).collect();
    (!times.is_empty()).then(|| format!("RATIO of the times: {}", times.join(", ")))
}
