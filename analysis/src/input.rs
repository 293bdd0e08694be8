//! Run files, found and read. One that cannot be used is a warning and never stops the others.

use crate::results;
use crate::warning::Warning;
use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::runfile::{self, EXTENSION, RunFileError};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

/// What a list of paths held.
#[derive(Debug, Default)]
pub struct Input {
    /// Each run once, by run id.
    pub runs: Vec<Run>,
    /// Files that were looked at.
    pub files: usize,
    /// Files or folders that gave nothing.
    pub unusable: usize,
    /// Why.
    pub warnings: Vec<Warning>,
}

/// Reads the files among `paths` and the run files in the folders among them (not in theirs), with what is
/// left of runs that did not end well.
/// `progress` is told how many of how many files are read.
pub fn read(paths: &[PathBuf], mut progress: impl FnMut(usize, usize)) -> Input {
    let mut input = Input::default();
    let mut files = Vec::new();
    for path in paths {
        match list(path) {
            Ok(found) if found.is_empty() => input.reject(
                "no-run-files",
                format!("{}: there is no run file in this folder", path.display()),
                "measure something with `pmmpi PROGRAM`, or name the folder that --out named, not one above it",
            ),
            Ok(found) => files.extend(found),
            Err(e) => input.reject(
                "unreadable-file",
                format!("{}: {}", path.display(), RunFileError::Unreadable(e)),
                "check the path and its permissions",
            ),
        }
    }
    // Whole runs first: what is left of one that was saved after all is not looked at.
    files.sort_by(|a, b| (is_partial(a), a).cmp(&(is_partial(b), b)));
    files.dedup();
    let whole: HashSet<PathBuf> = files.iter().filter(|file| !is_partial(file)).cloned().collect();
    files.retain(|file| !is_partial(file) || !whole.contains(&file.with_extension(EXTENSION)));
    input.files = files.len();
    let mut known: HashMap<String, (PathBuf, usize)> = HashMap::new();
    for (number, file) in files.iter().enumerate() {
        progress(number, files.len());
        match read_one(file) {
            Ok(run) => input.keep(file, run, &mut known),
            Err(e) => {
                let (code, advice) = explain(&e);
                input.reject(code, format!("{}: {e}", file.display()), advice);
            }
        }
    }
    input.runs.sort_by(|a, b| a.header.run_id.cmp(&b.header.run_id));
    input
}

impl Input {
    fn reject(&mut self, code: &'static str, message: String, advice: &str) {
        self.unusable += 1;
        self.warnings.push(Warning::new(code, message, advice));
    }

    /// A run that was given twice counts once.
    fn keep(&mut self, file: &Path, run: Run, known: &mut HashMap<String, (PathBuf, usize)>) {
        let Some((first, at)) = known.get(&run.header.run_id) else {
            known.insert(run.header.run_id.clone(), (file.to_owned(), self.runs.len()));
            self.runs.push(run);
            return;
        };
        if self.runs[*at] != run && !is_partial(file) {
            let (file, first) = (file.display(), first.display());
            self.reject(
                "conflicting-run",
                format!("{file}: has the run id of {first} and another content"),
                "one of them was altered: the first by name is reported",
            );
        }
    }
}

/// Own run files and folders of them; and what other tools measured, also in such a folder.
pub fn split(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut own, mut of_others) = (Vec::new(), Vec::new());
    for path in paths {
        if path == Path::new("-") {
            of_others.push(path.clone());
            continue;
        }
        let Ok(metadata) = std::fs::metadata(path) else {
            own.push(path.clone()); // says what is wrong with it
            continue;
        };
        if metadata.is_dir() {
            let files = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
            let files: Vec<PathBuf> = files.collect();
            let is_own = |folder: &Path| list(folder).is_ok_and(|own| !own.is_empty());
            if files.is_empty() || is_own(path) || files.iter().any(|file| file.is_dir() && is_own(file)) {
                own.push(path.clone());
                of_others.extend(files.into_iter().filter(|file| file.is_file() && is_of_others(file)));
            } else {
                of_others.push(path.clone());
            }
        } else if !metadata.is_file() || is_of_others(path) {
            // A pipe can be looked at but once, and no run file comes through one.
            of_others.push(path.clone());
        } else {
            own.push(path.clone());
        }
    }
    of_others.sort();
    (own, of_others)
}

fn is_of_others(file: &Path) -> bool {
    file.extension().is_none_or(|e| e != EXTENSION) && results::knows(file)
}

/// What is listed as running may be saved as a whole by the time that it is read.
fn read_one(file: &Path) -> Result<Run, RunFileError> {
    if !is_partial(file) {
        return runfile::read(file);
    }
    partial::read(file).or_else(|e| runfile::read(&file.with_extension(EXTENSION)).map_err(|_| e))
}

/// True for the folder that holds what is left of one run.
fn is_partial(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(partial::SUFFIX.as_bytes()))
}

fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() || is_partial(path) {
        return Ok(vec![path.to_owned()]);
    }
    let paths = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| is_partial(path) || path.extension().is_some_and(|e| e == EXTENSION));
    Ok(paths)
}

fn explain(error: &RunFileError) -> (&'static str, &'static str) {
    match error {
        RunFileError::Unreadable(_) => ("unreadable-file", "check the path and its permissions"),
        RunFileError::Empty => ("empty-file", "the disk may have been full: measure again"),
        RunFileError::Foreign => ("foreign-file", "give run files (*.pmr) or folders of them"),
        RunFileError::Newer { .. } => {
            ("newer-file", "report it with the pmmpi that wrote it, or a later one")
        }
        RunFileError::OtherVersion => ("other-version", "report it with the pmmpi that measured it"),
        RunFileError::Truncated { .. } => ("truncated-file", "copy it again from where it was measured"),
        RunFileError::Damaged(_) => ("damaged-file", "copy it again from where it was measured"),
    }
}
