//! Screens that ended early. `pmmpi screen` then leaves a file `SERIES.ended` with the reason beside the run files.

use pmmpi_analysis::report::run::RunReport;
use pmmpi_analysis::warnings::{InputWarning, Warning};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of a reason.
const MOST_BYTES: u64 = 4096;

/// A warning for each screen among these runs that ended early. `paths` has the run files and their folders.
pub fn warnings(paths: &[PathBuf], runs: &[RunReport]) -> Vec<Warning> {
    let of_screens = runs.iter().filter(|run| run.screened.is_some());
    let series: BTreeSet<&str> = of_screens.map(|run| run.series.as_deref().unwrap_or(&run.run_id)).collect();
    let folders: BTreeSet<&Path> = paths
        .iter()
        .filter_map(|path| if path.is_dir() { Some(path.as_path()) } else { path.parent() })
        .collect();
    let files = folders.iter().flat_map(|folder| series.iter().map(|id| folder.join(format!("{id}.ended"))));
    let reasons = files.filter_map(|file| reason(&file));
    reasons.map(|reason| InputWarning::EndedEarly { reason }.into()).collect()
}

/// The first line of the file; `None` if there is no such file.
fn reason(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The hint says how to make this report.
    let first = text.lines().next().unwrap_or_default();
    Some(first.split(". To report").next().unwrap_or_default().to_owned())
}
