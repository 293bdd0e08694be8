//! What a job leaves behind.

use crate::tool::wait_until_gone;
use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::record::run_file;
use std::fs;
use std::path::{Path, PathBuf};

/// The only run in the folder for run files. If launchers were killed, the carrier writes it slightly later.
pub fn left_in(folder: &Path) -> Run {
    wait_until_gone(folder);
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path());
    let is_run = |path: &PathBuf| path.extension().is_some_and(|e| e == "pmr" || e == "partial");
    let mut left: Vec<PathBuf> = entries.filter(is_run).collect();
    // The complete run may have been saved just before its launcher was killed.
    left.sort_by_key(|path| path.is_dir());
    let first = left.first().unwrap_or_else(|| panic!("nothing is left in {}", folder.display()));
    let run = if first.is_dir() { partial::read(first) } else { run_file::read(first) };
    run.unwrap_or_else(|e| panic!("{}: {e}", first.display()))
}
