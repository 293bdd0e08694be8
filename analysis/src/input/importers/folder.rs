//! Files in folders, in an order that does not depend on the file system.

use pmmpi::partial::SUFFIX;
use pmmpi::record::runfile::EXTENSION;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

/// Folders within folders that are looked into.
const DEPTH: usize = 16;

/// What a path is.
pub(super) enum Listed {
    /// To be read as it is.
    File,
    /// A folder.
    Folder {
        /// Its files and those below it, by path.
        files: Vec<PathBuf>,
        /// Folders in it that cannot be looked into.
        unreadable: Vec<(PathBuf, io::Error)>,
    },
}

/// What a path holds. Links to folders are not followed: they may lead in circles. Hidden files are not
/// looked at.
pub(super) fn list(path: &Path) -> io::Result<Listed> {
    if path == Path::new("-") || !std::fs::metadata(path)?.is_dir() {
        return Ok(Listed::File);
    }
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    walk(path, DEPTH, &mut files, &mut unreadable)?;
    // Run files in the folder itself, and what is left of runs, are read elsewhere.
    files.retain(|file| file.parent() != Some(path) || file.extension().is_none_or(|e| e != EXTENSION));
    files.sort();
    unreadable.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Listed::Folder { files, unreadable })
}

fn walk(
    folder: &Path,
    depth: usize,
    files: &mut Vec<PathBuf>,
    unreadable: &mut Vec<(PathBuf, io::Error)>,
) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
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
            // A link that leads nowhere is told as unreadable.
            files.push(path);
        }
    }
    Ok(())
}

/// Tells files that were there before, by another path or through a link.
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
