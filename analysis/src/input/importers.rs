//! Results of other tools: how long a piece of work took on a node in each run.
//!
//! Each format has a reader that knows what its fields mean ([docs/import.md] has the tables). All readers fill the
//! same columns, [`Results`]. No reader drops a row silently: a row is in the table, or it counts as rejected. The
//! first hundred rejected rows are listed with file and line. No reader estimates, averages or fills in values: a
//! value that is not in the file is absent.
//!
//! [docs/import.md]: ../../../docs/import.md

mod building;
mod csv;
pub mod detect;
mod file_that_crashes;
mod folder;
mod hpl;
mod hyperfine;
mod invalid_value;
mod json;
mod lines;
pub mod open_file;
pub(crate) mod parquet;
mod path_pattern;
mod perf;
mod reframe;
mod row;
mod superbench;
mod text_columns;
mod unusable_file;

pub use detect::FileFormat;
pub use file_that_crashes::Decoding;
pub use path_pattern::PathPattern;
pub use text_columns::TextValues;

use crate::input::progress::{Metered, Progress};
use crate::table::node_class::ClassBy;
use crate::table::selection::RunSelection;
use crate::table::{Order, RunTable};
pub(crate) use building::Building;
pub(crate) use row::ResultRow;
pub(crate) use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
pub(crate) use unusable_file::ImportFault;

/// The folder of an archive with its medians. Its name tells readers of Parquet, such as Spark, to leave it out: they would
/// take medians for runs.
pub const MEDIANS_FOLDER: &str = "_medians";

/// The folder of an archive with what was counted at each place of its runs.
pub const PLACES_FOLDER: &str = "_places";

/// Number of rejected rows that are kept with a reason. All rejected rows are counted.
pub const REJECTED_KEPT: usize = 100;

/// What the readers read, and what they rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Every valid row, once.
    pub table: RunTable,
    /// The order in which the table's rows are judged.
    pub order: Order,
    /// The files that were read, in order.
    pub sources: Vec<SourceFile>,
    /// Files that could not be used, with the reason: the caller named them, or they are in a folder and look like
    /// results.
    pub unusable: Vec<Unusable>,
    /// Files in folders that no reader recognizes. They were not read.
    pub foreign: Vec<PathBuf>,
    /// The first [`REJECTED_KEPT`] rows and values that are not valid.
    pub rejected: Vec<Rejected>,
    /// Number of rejected rows, in all files.
    pub rejected_rows: u64,
    /// Number of values that were rejected although their row was accepted.
    pub rejected_values: u64,
    /// Rows that pmmpi measured or exported and that were already in the table with the same content.
    pub repeated_rows: u64,
    /// The same, for each file that had the row before: its index in `sources`.
    pub repeated_of: BTreeMap<u32, u64>,
    /// Values that a reader understood but that are not in the table, counted by name: text columns, rates, and times
    /// that the caller did not ask for.
    pub unread: BTreeMap<String, u64>,
    /// Columns with text that nothing uses, by name.
    pub unused_text: BTreeMap<String, TextValues>,
    /// Runs in parts of files that were not decoded, because the selection has none of their runs.
    pub not_decoded: usize,
    /// At least one file of an archive does not contain what its classes consist of.
    pub without_parts: bool,
    /// Files whose path gave the node, without a pattern.
    pub guessed_nodes: Vec<GuessedNode>,
    /// Class keys with names of their own that some file or run has.
    pub class_keys: BTreeSet<String>,
}

/// A file that names no node: its path did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuessedNode {
    /// The file.
    pub path: PathBuf,
    /// Its name, or that of its folder.
    pub node: String,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path by which the file was found.
    pub path: PathBuf,
    /// The reader's format.
    pub format: FileFormat,
    /// True if pmmpi wrote the file.
    pub is_own: bool,
    /// Number of rows in the table that come from this file.
    pub rows: u64,
    /// Number of rejected rows.
    pub rejected_rows: u64,
}

/// A file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The path as the caller named it or the reader found it.
    pub path: PathBuf,
    /// What is wrong with the file, and what to do.
    pub reason: String,
}

/// A rejected row, or a rejected value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Index into [`Results::sources`].
    pub source: u32,
    /// Line in that file, counted from 1; in a JSON document, the number of the entry.
    pub line: u64,
    /// What is wrong with the row, and what the reader expects.
    pub reason: String,
}

/// A screen of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OneScreen {
    /// The latest one. Run files in the folder of an archive count only if there are no others.
    Latest,
    /// The one with this series id.
    Series(String),
}

/// What a reader needs when a file does not say it.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format of all files. `None`: detect the format of each file.
    pub format: Option<FileFormat>,
    /// Which parts of a file's path are node, run, class and session. What the file itself says has priority.
    pub path: Option<PathPattern>,
    /// The node of files that name none. The path has priority over it.
    pub node: Option<String>,
    /// Which of several metrics is the elapsed time: ReFrame's performance variable, SuperBench's metric.
    pub metric: Option<String>,
    /// What makes up a class.
    pub class_by: ClassBy,
    /// Keep only counters with these names. `None`: keep all.
    pub counters: Option<&'static [&'static str]>,
    /// Keep what classes consist of ([`RunTable::parts`]).
    pub keep_parts: bool,
    /// The rows go to an archive, where a run needs a number that does not depend on which files are read.
    pub for_archive: bool,
    /// With `--since`, read the medians of an archive in place of its earlier runs.
    pub with_medians: bool,
    /// The runs that count. Readers may leave out others; what they leave is removed before the rows go on.
    pub selection: RunSelection,
    /// The rows are for the verdicts of this screen: sessions that began after it do not count. `None`: all count.
    pub screen: Option<OneScreen>,
    /// Reports how much is read.
    pub progress: Progress,
    /// Tells a parent process which Parquet file is decoded.
    pub decoding: Decoding,
}

/// Reads the files in `paths`, and the files in the folders in `paths` and their subfolders. A file that is reached
/// twice is read once. Input that cannot be used is reported in the result and stops nothing. A damaged Parquet file
/// can crash the process: see [`ImportOptions::decoding`].
pub fn read(paths: &[PathBuf], options: &ImportOptions) -> Results {
    let mut building = Building::new(options);
    read_into(&mut building, paths, options);
    building.finish()
}

/// Like [`read`], but adds to a table that already has rows.
pub(crate) fn read_into(building: &mut Building, paths: &[PathBuf], options: &ImportOptions) {
    read_beside(building, paths, &[], options);
}

/// Like [`read_into`]. Folders in `folders` may contain no results, because they contain run files or are an archive.
pub(crate) fn read_beside(
    building: &mut Building,
    paths: &[PathBuf],
    folders: &[PathBuf],
    options: &ImportOptions,
) {
    let mut done = folder::Once::default();
    for path in paths {
        match folder::list(path) {
            Ok(folder::FileOrFolder::File) => {
                building.progress().expect(path);
                if done.is_first(path) {
                    read_file(path, options, building, true);
                }
            }
            Ok(folder::FileOrFolder::Folder { files, unreadable }) => {
                let before = building.sources();
                let mut again = false;
                files.iter().for_each(|file| building.progress().expect(file));
                for file in &files {
                    match done.is_first(file) {
                        true => read_file(file, options, building, false),
                        false => again = true,
                    }
                }
                for (folder, error) in unreadable {
                    building.unusable(&folder, ImportFault::Unreadable(error));
                }
                if building.sources() == before && !again && !folders.contains(path) {
                    building.unusable(path, ImportFault::EmptyFolder { files: files.len() });
                }
            }
            Err(e) => building.unusable(path, ImportFault::Unreadable(e)),
        }
    }
}

/// True if a reader recognizes the file by its content.
pub fn knows(path: &Path) -> bool {
    detect::open(path, None).is_ok()
}

/// True for a file that `pmmpi screen` leaves beside run files.
fn is_of_screen(path: &Path) -> bool {
    const EXTENSIONS: [&str; 2] = ["ended", "findings"];
    const LOG: &str = "node-actions.jsonl";
    path.extension().is_some_and(|e| EXTENSIONS.iter().any(|own| e == *own)) || path.ends_with(LOG)
}

/// `asked`: the caller named this file itself, so an unknown format is an error.
fn read_file(path: &Path, options: &ImportOptions, building: &mut Building, asked: bool) {
    let opened = detect::open(path, options.format);
    let (format, content) = match opened {
        Ok(opened) => opened,
        Err(ImportFault::Unknown { .. }) if !asked && is_of_screen(path) => return,
        Err(ImportFault::Unknown { .. }) if !asked => return building.foreign(path),
        Err(fault) => return building.unusable(path, fault),
    };
    building.begin(path, format);
    let content = Metered::new(content, building.progress().clone());
    let read = match format {
        FileFormat::Run => return building.end(Some(ImportFault::OwnRun)),
        FileFormat::Csv => csv::read(content, options, building),
        FileFormat::Parquet => parquet::read(path, options, building),
        FileFormat::Hpl => hpl::read(content, options, building),
        FileFormat::Hyperfine => hyperfine::read(content, options, building),
        FileFormat::Reframe => reframe::read(content, options, building),
        FileFormat::Superbench => superbench::read(content, options, building),
        FileFormat::Perf => perf::read(content, options, building),
    };
    building.end(read.err());
}

impl Results {
    /// Counts the rows of each file again, after some were removed.
    pub(crate) fn count_rows(&mut self) {
        self.sources.iter_mut().for_each(|source| source.rows = 0);
        for (source, rows) in self.table.origins.source_sizes() {
            self.sources[source as usize].rows += rows as u64;
        }
    }

    /// The file of a rejected row.
    pub fn path_of(&self, rejected: &Rejected) -> Option<&Path> {
        self.sources.get(rejected.source as usize).map(|source| source.path.as_path())
    }
}
