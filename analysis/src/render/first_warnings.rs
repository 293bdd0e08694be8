//! Selects warnings for people: the first few of each kind.

use crate::report::Report;
use crate::report::run::RunReport;
use crate::warning_codes::{Warning, WarningCode};
use std::collections::BTreeMap;

/// First warnings about the input and the whole report, then about runs.
pub fn few(report: &Report) -> Vec<Warning> {
    let mut all = few_of_each(&report.warnings);
    all.extend(grouped(&report.runs));
    all
}

/// Shows a warning that many runs have once, with the first of these runs.
fn grouped(runs: &[RunReport]) -> Vec<Warning> {
    let mut known: BTreeMap<WarningCode, (usize, &RunReport, &Warning)> = BTreeMap::new();
    for run in runs {
        for warning in &run.warnings {
            known.entry(warning.code).and_modify(|(count, ..)| *count += 1).or_insert((1, run, warning));
        }
    }
    let say = |(number, run, warning): &(usize, &RunReport, &Warning)| {
        let more =
            if *number > 1 { format!(" (and {} more of this kind)", number - 1) } else { String::new() };
        Warning { message: format!("{}: {}{more}", run.run_id, warning.message), ..(*warning).clone() }
    };
    known.values().map(say).collect()
}

/// The first few of each kind, and how many more there are.
fn few_of_each(warnings: &[Warning]) -> Vec<Warning> {
    const FEW: usize = 3;
    let mut all: BTreeMap<WarningCode, Vec<&Warning>> = BTreeMap::new();
    warnings.iter().for_each(|warning| all.entry(warning.code).or_default().push(warning));
    let few = |mut of_code: Vec<&Warning>| {
        let more = of_code.len().saturating_sub(FEW);
        of_code.truncate(FEW);
        let mut few: Vec<Warning> = of_code.into_iter().cloned().collect();
        if let Some(last) = few.last_mut().filter(|_| more > 0) {
            last.message += &format!(" (and {more} more of this kind: see --format json)");
        }
        few
    };
    all.into_values().flat_map(few).collect()
}
