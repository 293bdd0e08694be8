//! Lists the files in folders, in an order that does not depend on the file system.

use super::{MEDIANS_FOLDER, PLACES_FOLDER};
use pmmpi::partial::SUFFIX;
use pmmpi::record::run_file::EXTENSION;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// The empty file that Spark writes beside its results.
const SPARK_DONE: &str = "_SUCCESS";
/// Folders of an archive, and a file, that have no rows of runs.
const NO_RUNS: [&str; 3] = [MEDIANS_FOLDER, PLACES_FOLDER, SPARK_DONE];
/// Depth to which subfolders are searched.
const DEPTH: usize = 16;

/// The kind of a path.
pub(super) enum FileOrFolder {
    /// A file, a pipe or stdin.
    File,
    /// A folder.
    Folder {
        /// Its files and the files in its subfolders, sorted by path.
        files: Vec<PathBuf>,
        /// Subfolders that cannot be read.
        unreadable: Vec<(PathBuf, io::Error)>,
    },
}

/// Lists a path. Ignores links to folders, because they may form a circle, hidden files, and the medians of an archive.
pub(super) fn list(path: &Path) -> io::Result<FileOrFolder> {
    if path == Path::new("-") || !std::fs::metadata(path)?.is_dir() {
        return Ok(FileOrFolder::File);
    }
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    walk(path, DEPTH, &mut files, &mut unreadable)?;
    // Another module reads the run files in the folder itself, and partial runs.
    files.retain(|file| file.parent() != Some(path) || file.extension().is_none_or(|e| e != EXTENSION));
    files.sort();
    unreadable.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(FileOrFolder::Folder { files, unreadable })
}

fn walk(
    folder: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
    unreadable: &mut Vec<(PathBuf, io::Error)>,
) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || NO_RUNS.iter().any(|other| name == *other) {
            continue;
        }
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            let is_partial = path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes());
            if depth > 0
                && !is_partial
                && let Err(error) = walk(&path, depth - 1, files, unreadable)
            {
                unreadable.push((path, error));
            }
        } else if std::fs::metadata(&path).map_or(true, |target| target.is_file()) {
            // A broken link stays in the list; reading it reports the error.
            files.push(path);
        }
    }
    Ok(())
}

/// Recognizes a file that was read before, by another path or through a link.
#[derive(Default)]
pub(super) struct Once {
    known: HashSet<PathBuf>,
}

impl Once {
    /// True for the first path that leads to a file.
    pub fn is_first(&mut self, path: &Path) -> bool {
        self.known.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
    }
}
