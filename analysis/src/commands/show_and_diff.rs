//! `pmmpi show` and `pmmpi diff`.

use crate::cli::exit_statuses::{FOUND, PARTIAL};
use crate::cli::failure::{Failure, say};
use crate::cli::options::{BoundsFormat, DiffArgs, DiffFailOn, ShowArgs};
use crate::cli::outputs::{for_place, json, named, write};
use pmmpi::record::Run;
use pmmpi_analysis::input;
use pmmpi_analysis::recorded::{Recorded, differences};
use pmmpi_analysis::render::recorded;
use std::path::Path;

/// Shows everything that runs record.
pub fn show(options: &ShowArgs) -> Result<u8, Failure> {
    let mut shown = Vec::new();
    let mut last = None;
    for path in &options.runs {
        match run_of(path) {
            Ok(run) => shown.push(Recorded::of(&run)),
            Err(failure) => {
                say(&failure.message);
                last = Some(failure);
            }
        }
    }
    if let Some(failure) = last.as_ref().filter(|_| shown.is_empty()) {
        // The message is already there.
        return Ok(failure.code);
    }
    let rendered = match (options.format, &shown[..]) {
        (BoundsFormat::Text, _) => {
            let texts: Vec<String> = shown.iter().map(recorded::show).collect();
            for_place(texts.join("\n"), named(&options.output))
        }
        (BoundsFormat::Json, [one]) => json(one)?,
        (BoundsFormat::Json, all) => json(&all)?,
    };
    write(&rendered, named(&options.output))?;
    Ok(if last.is_some() { PARTIAL } else { 0 })
}

/// Shows where two runs differ.
pub fn diff(options: &DiffArgs) -> Result<u8, Failure> {
    let found = differences(&run_of(&options.a)?, &run_of(&options.b)?);
    let rendered = match options.format {
        BoundsFormat::Text => for_place(recorded::diff(&found), named(&options.output)),
        BoundsFormat::Json => json(&found)?,
    };
    write(&rendered, named(&options.output))?;
    let is_found = options.fail_on == Some(DiffFailOn::Different) && !found.differences.is_empty();
    Ok(if is_found { FOUND } else { 0 })
}

fn run_of(path: &Path) -> Result<Run, Failure> {
    input::run_of(path).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))
}
