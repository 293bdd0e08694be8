//! The run files of a series. The launches write them, perhaps on other nodes.

use pmmpi::record::Run;
use pmmpi::record::run_file::{self, EXTENSION};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The run files that appear in a folder while launches run.
pub struct NewRunFiles {
    folder: PathBuf,
    before: HashSet<PathBuf>,
}

impl NewRunFiles {
    /// Call it before the first launch. Start times do not tell which files are new: clocks may be hours apart.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { before: list(&folder).collect(), folder }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The new runs of a series with their rounds, each read when it is asked for. Files that cannot be read are left out.
    pub fn of_series(&self, series: &str) -> impl Iterator<Item = (u32, Run)> {
        let new = list(&self.folder).filter(|path| !self.before.contains(path));
        new.filter_map(move |path| {
            let run = run_file::read(&path).ok()?;
            let round = run.header.series.as_ref().filter(|own| own.id == series)?.round;
            Some((round, run))
        })
    }
}

/// None if there is no such folder yet.
fn list(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == EXTENSION))
}
