//! Decides which files hold runs of pmmpi and which hold results of other tools.

use super::importers;
use crate::warnings::{InputWarning, WarningCode};
use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::record::run_file::{self, EXTENSION, RunFileError};
use std::io;
use std::path::{Path, PathBuf};

/// The paths to read, by kind.
#[derive(Default)]
pub struct Split {
    /// Run files, and folders with run files.
    pub own: Vec<PathBuf>,
    /// Results of other tools, sorted by path.
    pub of_others: Vec<PathBuf>,
    /// Folders that are in both lists: they may contain no results of other tools.
    pub folders: Vec<PathBuf>,
}

impl Split {
    /// Splits the paths that the user named.
    pub fn of(paths: &[PathBuf]) -> Self {
        let mut split = Self::default();
        for path in paths {
            if path == Path::new("-") {
                split.of_others.push(path.clone());
                continue;
            }
            let Ok(metadata) = std::fs::metadata(path) else {
                split.own.push(path.clone()); // reading it reports the error
                continue;
            };
            if metadata.is_dir() && !is_partial(path) {
                let files = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
                let files: Vec<PathBuf> = files.collect();
                let is_own = |folder: &Path| list(folder).is_ok_and(|own| !own.is_empty());
                // Reading a folder without run files warns of it.
                let is_above = || files.iter().any(|file| file.is_dir() && is_own(file));
                if files.is_empty() {
                    split.own.push(path.clone());
                } else if is_own(path) || is_above() {
                    split.folders.push(path.clone());
                    split.of_others.push(path.clone());
                    split.own.push(path.clone());
                } else {
                    split.of_others.push(path.clone());
                }
            } else if !metadata.is_dir() && (!metadata.is_file() || is_of_others(path)) {
                // A pipe can be read only once, and no run file comes through one.
                split.of_others.push(path.clone());
            } else {
                split.own.push(path.clone());
            }
        }
        split.of_others.sort();
        split
    }
}

fn is_of_others(file: &Path) -> bool {
    file.extension().is_none_or(|e| e != EXTENSION) && importers::knows(file)
}

/// Reads a run file or a partial run. A run that is still running when it is listed may be saved as a complete run
/// before it is read.
pub fn read_one(file: &Path) -> Result<Run, RunFileError> {
    if !is_partial(file) {
        return run_file::read(file);
    }
    partial::read(file).or_else(|e| run_file::read(&file.with_extension(EXTENSION)).map_err(|_| e))
}

/// True for the folder of one partial run.
pub fn is_partial(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(partial::SUFFIX.as_bytes()))
}

/// The run files in a folder; for a file, the file itself.
pub fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() || is_partial(path) {
        return Ok(vec![path.to_owned()]);
    }
    let paths = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| is_partial(path) || path.extension().is_some_and(|e| e == EXTENSION));
    Ok(paths)
}

/// The warning of a file that cannot be used.
pub fn warning_of(file: &Path, error: &RunFileError) -> InputWarning {
    let is_own = is_partial(file) || file.extension().is_some_and(|e| e == EXTENSION);
    let path = file.to_owned();
    let code = match error {
        // No importer knows the format of the file either: see `Split`.
        RunFileError::Foreign if !is_own => return InputWarning::ForeignFile { path },
        RunFileError::Unreadable(_) => WarningCode::UnreadableFile,
        RunFileError::Empty => WarningCode::EmptyFile,
        RunFileError::Foreign => WarningCode::ForeignFile,
        RunFileError::Newer { .. } => WarningCode::NewerFile,
        RunFileError::OtherVersion => WarningCode::OtherVersion,
        RunFileError::Truncated { .. } => WarningCode::TruncatedFile,
        RunFileError::Damaged(_) => WarningCode::DamagedFile,
    };
    InputWarning::UnusableRunFile { path, code, reason: error.to_string() }
}

/// True if both files hold the same run.
pub fn is_same(file: &Path, other: &Path) -> bool {
    matches!((read_one(file), read_one(other)), (Ok(a), Ok(b)) if a == b)
}
