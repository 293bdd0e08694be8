//! Warnings about all of the input: what is not in the table, and what has no effect on it.

use super::importers::{Rejected, Results};
use super::resets::WithoutEffect;
use crate::table::selection::LeftOut;
use crate::warnings::of_input::{NAMED, RejectedPlace};
use crate::warnings::{FirstFew, InputWarning, Warning};
use pmmpi::record::run_file::EXTENSION;
use pmmpi_events::validation::Trust;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A warning names at most so many values of an unused column.
const KINDS: usize = 2;

/// Warns of nodes of `--resets` whose maintenance does not change the report.
pub fn resets(without: &WithoutEffect) -> Vec<Warning> {
    let warning = |nodes: &[String], of: fn(FirstFew<String>) -> InputWarning| {
        (!nodes.is_empty()).then(|| Warning::from(of(FirstFew::of(nodes.iter(), NAMED, String::clone))))
    };
    [
        warning(&without.unknown, |nodes| InputWarning::UnknownReset { nodes }),
        warning(&without.not_measured, |nodes| InputWarning::UnmeasuredReset { nodes }),
        warning(&without.undated, |nodes| InputWarning::UndatedReset { nodes }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Warns of runs without a start: pmmpi does not know whether `--since` and `--until` select these runs.
pub fn undated(left_out: LeftOut) -> Option<Warning> {
    let runs = left_out.undated;
    (runs > 0).then(|| InputWarning::UndatedRuns { runs }.into())
}

/// Warns of files of `pmmpi validate` that could not be used.
pub fn unusable_trust(trust: &Trust) -> impl Iterator<Item = Warning> {
    trust
        .unusable
        .iter()
        .map(|(path, why)| Warning::from(InputWarning::TrustFile { path: path.clone(), reason: why.clone() }))
}

/// Warns of elapsed times of pmmpi's own runs that are zero or negative.
pub fn without_time(times: usize) -> Option<Warning> {
    (times > 0).then(|| InputWarning::NoTime { times }.into())
}

/// Warns of other tools' results that are not in the table.
pub fn of_results(results: &Results) -> Vec<Warning> {
    let unusable = results
        .unusable
        .iter()
        .map(|file| InputWarning::UnusableFile { path: file.path.clone(), reason: file.reason.clone() });
    let mut warnings: Vec<InputWarning> = unusable.collect();
    let (rows, values) = (results.rejected_rows, results.rejected_values);
    if rows + values > 0 {
        let place = |rejected: &Rejected| RejectedPlace {
            file: results.path_of(rejected).map(Path::to_owned).unwrap_or_default(),
            line: rejected.line,
            reason: rejected.reason.clone(),
        };
        let first = results.rejected.iter().take(NAMED).map(place).collect();
        let are_more = rows + values > NAMED as u64;
        warnings.push(InputWarning::RejectedRows { rows, values, first, are_more });
    }
    if results.repeated_rows > 0 {
        warnings.push(InputWarning::RepeatedRows { rows: results.repeated_rows });
    }
    let is_run = |path: &&PathBuf| path.extension().is_some_and(|e| e == EXTENSION);
    let (runs, foreign): (Vec<&PathBuf>, Vec<&PathBuf>) = results.foreign.iter().partition(is_run);
    if !runs.is_empty() {
        let folders: BTreeSet<&Path> = runs.iter().filter_map(|path| path.parent()).collect();
        let folders = FirstFew::of(folders.into_iter(), NAMED, Path::to_owned);
        warnings.push(InputWarning::RunFilesInSubfolders { files: runs.len(), folders });
    }
    if !foreign.is_empty() {
        let files = FirstFew::of(foreign.into_iter(), NAMED, PathBuf::clone);
        warnings.push(InputWarning::ForeignFiles { files });
    }
    if !results.unread.is_empty() {
        let values = FirstFew::of(results.unread.iter(), NAMED, |(name, values)| (name.clone(), *values));
        warnings.push(InputWarning::UnreadValues { values });
    }
    let columns = results.unused_text.iter().filter_map(|(name, values)| Some((name, values.of_kinds()?)));
    let columns = FirstFew::of(columns, NAMED, |(name, kinds)| {
        (name.clone(), FirstFew::of(kinds.iter(), KINDS, String::clone))
    });
    if columns.all > 0 {
        warnings.push(InputWarning::UnusedColumns { columns });
    }
    warnings.into_iter().map(Warning::from).collect()
}
