//! `pmmpi export`.

use crate::cli::exit_statuses::PARTIAL;
use crate::cli::failure::{Failure, say};
use crate::cli::inputs::{nothing, paths, reading};
use crate::cli::options::ExportArgs;
use crate::cli::outputs::write;
use pmmpi::text::count;
use pmmpi_analysis::export_archive::{self, places};
use pmmpi_analysis::input::importers::Decoding;
use pmmpi_analysis::input::{self, Input, input_warnings};
use pmmpi_analysis::warnings::WarningCode;
use pmmpi_events::validation::{self, Trust};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;

/// Adds the runs to the archive.
pub fn export(options: &ExportArgs, decoding: Decoding) -> Result<u8, Failure> {
    let from = reading(&options.of_others, &options.select, options.class_by.clone(), decoding);
    let folder = &options.output;
    let failed = |e: io::Error| Failure {
        code: PARTIAL,
        message: format!("pmmpi cannot write to the archive {}: {e}", folder.display()),
    };
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::usage(format!("{} is not a folder", folder.display())));
    }
    let trust = validation::folder().map(|folder| Trust::read(&folder)).unwrap_or_default();
    let (input, archived) = input::read_after(folder, &paths("export", &options.paths)?, &from, &trust)
        .map_err(|message| Failure { code: PARTIAL, message })?;
    let table = &input.results.table;
    let mut new = (0..table.len()).filter(|row| table.origins.source(*row) as usize >= archived).peekable();
    let has_new = new.peek().is_some();
    if has_new && new.all(|row| table.median_of(row).is_some()) {
        return Err(Failure::usage(
            "no run to export: the input has only medians. Give the runs, not their medians",
        ));
    }
    let has_new = has_new || table.without_time.iter().any(|entry| entry.source as usize >= archived);
    let is_all_left_out = input.run_names != Ok(Vec::new())
        || input.left_out.rows > 0 && !has_new && input.results.repeated_rows == 0;
    if input.results.sources.len() <= archived || is_all_left_out {
        return Err(nothing("export", &input, &options.select));
    }
    let exported =
        export_archive::export(&input.results, archived, folder, &from.decoding).map_err(failed)?;
    let known: u64 = input.results.repeated_of.range(..archived as u32).map(|(_, rows)| rows).sum();
    let twice = match input.results.repeated_rows - known {
        0 => String::new(),
        rows => format!(", and {} repeated other rows of the input", count(rows as usize, "row")),
    };
    let places = match options.places {
        true => Some(
            places::add(
                &selected_runs(&input),
                &without_file(&input, archived),
                folder,
                &trust,
                &from.decoding,
            )
            .map_err(failed)?,
        ),
        false => None,
    };
    let of_places =
        places.as_ref().map(|places| format!("; counts by place of {} added", count(places.runs, "run")));
    let text = format!(
        "{} added to {}, {known} {} already there{twice}{}\n",
        count(exported.rows, "row"),
        folder.display(),
        if known == 1 { "was" } else { "were" },
        of_places.unwrap_or_default()
    );
    write(&text, None)?;
    let unread = places.map(|places| places.warnings).unwrap_or_default();
    let all = input.warnings.iter().cloned().chain(input_warnings::of_results(&input.results)).chain(unread);
    for warning in all {
        if warning.code() != WarningCode::RepeatedRows {
            say(&format!("{warning} [{}]", warning.code().name()));
        }
    }
    Ok(if input.is_partial() { PARTIAL } else { 0 })
}

/// The selected runs of pmmpi, each with its file and its start.
fn selected_runs(input: &Input<()>) -> BTreeMap<String, (PathBuf, i64)> {
    let table = &input.results.table;
    let starts: HashMap<String, i64> = (0..table.len())
        .filter(|row| table.is_own(*row))
        .map(|row| (table.run_id(row), table.started_unix_ns[row]))
        .collect();
    let of_run = |run: &input::OwnRun<()>| {
        let file = input.run_files.get(&run.run_id)?;
        let started = starts.get(&run.run_id)?;
        Some((run.run_id.clone(), (file.clone(), *started)))
    };
    input.runs.iter().filter_map(of_run).collect()
}

/// The runs of pmmpi that were exported from another archive, not from run files.
fn without_file(input: &Input<()>, archived: usize) -> BTreeSet<String> {
    let table = &input.results.table;
    let new = (0..table.len()).filter(|row| table.origins.source(*row) as usize >= archived);
    let own = new.filter(|row| table.is_own(*row) && table.median_of(*row).is_none());
    own.map(|row| table.run_id(row)).filter(|run| !input.run_files.contains_key(run)).collect()
}
