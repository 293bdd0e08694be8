//! Selects warnings for people: the first few of each kind.

use crate::report::Report;
use crate::report::run::RunReport;
use crate::warnings::{Warning, WarningCode};
use std::collections::BTreeMap;

/// A warning for people.
pub struct FirstWarning {
    /// The kind of warning.
    pub code: WarningCode,
    /// What happened, and where; and how many more warnings of this kind there are.
    pub message: String,
}

/// First warnings about the input and the whole report, then about runs.
pub fn few(report: &Report) -> Vec<FirstWarning> {
    let mut all = few_of_each(&report.warnings);
    all.extend(grouped(&report.runs));
    all
}

/// Shows a warning that many runs have once, with the first of these runs.
fn grouped(runs: &[RunReport]) -> Vec<FirstWarning> {
    let mut known: BTreeMap<WarningCode, (usize, &RunReport, &Warning)> = BTreeMap::new();
    for run in runs {
        for warning in &run.warnings {
            known.entry(warning.code()).and_modify(|(count, ..)| *count += 1).or_insert((1, run, warning));
        }
    }
    let say = |(code, (number, run, warning)): (WarningCode, (usize, &RunReport, &Warning))| {
        let more =
            if number > 1 { format!(" (and {} more of this kind)", number - 1) } else { String::new() };
        FirstWarning { code, message: format!("{}: {warning}{more}", run.run_id) }
    };
    known.into_iter().map(say).collect()
}

/// The first few of each kind, and how many more there are.
fn few_of_each(warnings: &[Warning]) -> Vec<FirstWarning> {
    const FEW: usize = 3;
    let mut all: BTreeMap<WarningCode, Vec<&Warning>> = BTreeMap::new();
    warnings.iter().for_each(|warning| all.entry(warning.code()).or_default().push(warning));
    let few = |(code, of_code): (WarningCode, Vec<&Warning>)| {
        let shown = |warning: &&Warning| FirstWarning { code, message: warning.to_string() };
        let mut few: Vec<FirstWarning> = of_code.iter().take(FEW).map(shown).collect();
        let more = of_code.len().saturating_sub(FEW);
        if let Some(last) = few.last_mut().filter(|_| more > 0) {
            last.message += &format!(" (and {more} more of this kind: see --format json)");
        }
        few
    };
    all.into_iter().flat_map(few).collect()
}
