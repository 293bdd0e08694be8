//! What a command reads: paths and options, and why there is nothing to show.

use super::failure::Failure;
use super::options::{OfOthers, Select};
use super::progress_line;
use pmmpi::record::run_file::default_folder;
use pmmpi::text::count;
use pmmpi_analysis::input::importers::{self, Decoding};
use pmmpi_analysis::input::{Input, input_warnings};
use pmmpi_analysis::table::node_class::ClassBy;
use std::collections::HashSet;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

/// The paths that the user gave, or the default folder, which exists after a first measurement.
pub fn paths(command: &str, given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let folder = default_folder();
    let named = if command == "compare" { "A B --in PATH" } else { "PATH" };
    let why = match folder.symlink_metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => "there is no folder",
        _ if has_only_hidden(&folder) => "there is no run file in the folder",
        _ => return Ok(vec![folder]),
    };
    Err(Failure::usage(format!(
        "no run to {command}: {why} {}\n       \
         Measure a program first, for example: pmmpi ./prog, or: mpirun -n 4 pmmpi ./prog\n       \
         Or name files or folders of runs: pmmpi {command} {named}",
        folder.display()
    )))
}

/// True if a folder has no files, or only hidden ones: pmmpi's own files beside the run files are hidden.
fn has_only_hidden(folder: &Path) -> bool {
    let is_hidden = |entry: DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_hidden)))
}

/// True if a path is stdin or a pipe, which can be read only once.
pub fn reads_a_pipe(paths: &[PathBuf]) -> bool {
    let is_pipe =
        |path: &PathBuf| path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    paths.iter().any(|path| path == Path::new("-") || is_pipe(path))
}

/// How to read the input.
pub fn reading(
    options: &OfOthers,
    select: &Select,
    class_by: Option<ClassBy>,
    decoding: Decoding,
) -> importers::ImportOptions {
    let selection = select.selection();
    importers::ImportOptions {
        format: None,
        path: options.path_pattern.clone(),
        node: options.default_node.clone(),
        metric: options.metric.clone(),
        class_by: class_by.unwrap_or_default().keeping(selection.keys()),
        counters: None,
        keep_parts: selection.has_labels(),
        for_archive: false,
        with_medians: false,
        selection,
        screen: None,
        progress: progress_line::show(),
        decoding,
    }
}

/// Number of runs: pmmpi's runs, plus each run on a node that another tool measured.
pub fn runs<T>(input: &Input<T>) -> usize {
    let table = &input.results.table;
    let failed = table.without_time.iter().filter(|entry| entry.is_own).map(|entry| entry.run);
    let own = (0..table.len()).filter(|row| table.is_own(*row)).map(|row| table.run.at(row)).chain(failed);
    let known: HashSet<&str> = input.runs.iter().map(|run| run.run_id.as_str()).collect();
    let archived: HashSet<u32> =
        own.filter(|run| !known.contains(table.runs.get(*run).unwrap_or_default())).collect();
    let is_of_others = |row: &usize| !table.is_own(*row) && table.median_of(*row).is_none();
    input.runs.len() + archived.len() + (0..table.len()).filter(is_of_others).count()
}

/// Why there is nothing to report, compare or export.
pub fn nothing<T>(to: &str, input: &Input<T>, select: &Select) -> Failure {
    match &input.run_names {
        Err(undecided) => return Failure::usage(undecided),
        Ok(unknown) if !unknown.is_empty() => {
            let hint =
                "Give a run id, the beginning of a run id, or the short id from the column RUN of the report";
            return Failure::usage(format!("--run: no run has the id {}\n       {hint}", unknown.join(", ")));
        }
        Ok(_) => {}
    }
    let left_out = select.selection().described().filter(|_| input.left_out.rows > 0);
    let left_out = left_out.map(|selected| {
        let rows = count(input.left_out.rows, "run");
        match input.left_out.undated {
            0 => format!("{rows} read, none with {selected}"),
            undated => {
                format!(
                    "{rows} read, none with {selected}; pmmpi does not know when {undated} of these runs began"
                )
            }
        }
    });
    let warnings = input.warnings.iter().cloned().chain(input_warnings::of_results(&input.results));
    let warnings = warnings.map(|warning| format!("{warning}\n       {}", warning.code().advice()));
    let mut why: Vec<_> = left_out.into_iter().chain(warnings).collect();
    if why.is_empty() {
        why.push("the input has only medians (see docs/import.md), not the runs".to_owned());
    }
    Failure::usage(format!("no run to {to}\n       {}", why.join("\n       ")))
}

/// Says why the input has no screen to show, and which command shows what it has.
pub fn no_screen(paths: &[PathBuf]) -> Failure {
    let first = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    let more = match paths.len() {
        0 | 1 => String::new(),
        all => format!(" and {}", count(all - 1, "more path")),
    };
    Failure::usage(format!(
        "no screen in {first}{more}: there is no run file of pmmpi screen\n       \
         An archive has the times of earlier screens, but not the values that kernels measured. To show a screen, name\n       \
         its run files (the folder of --out), and then the archive: pmmpi-report screen RESULTS ARCHIVE\n       \
         To report on the nodes of an archive, use: pmmpi report ARCHIVE"
    ))
}

/// Why there is no screen to compare with a baseline.
pub fn no_screen_to_compare(paths: &[PathBuf]) -> Failure {
    let named: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    Failure::usage(format!(
        "--against compares the latest screen with a baseline, but there is no run file of pmmpi screen in {}\n       \
         To compare runs that are not of a screen, use: pmmpi compare BASELINE NEW",
        named.join(", ")
    ))
}

/// Converts a percentage from 0 to `most` to a fraction: 3 % is 0.03.
pub fn fraction(name: &str, percent: f64, most: f64) -> Result<f64, Failure> {
    match (0.0..=most).contains(&percent) {
        true => Ok(percent / 100.0),
        false => Err(Failure::usage(format!("--{name}: expected a number from 0 to {most} percent"))),
    }
}
