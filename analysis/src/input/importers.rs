//! Results that other tools measured: how long a piece of work took on a node, run by run.
//!
//! Each format has a reader that knows what its fields mean ([docs/import.md] has the tables); all of them
//! fill the same columns, [`Results`]. Nothing is dropped in silence: every row stands in the table or is
//! counted as rejected, and the first hundred of those are named with file and line. No reader estimates,
//! averages or fills in: what a file does not say is absent.
//!
//! [docs/import.md]: ../../../docs/import.md

mod building;
mod csv;
mod decoding;
pub mod detect;
mod fault;
mod folder;
mod hpl;
mod hyperfine;
mod instant;
mod json;
mod parquet;
mod path_pattern;
mod reframe;
mod row;
mod superbench;
mod wrong;

pub use decoding::Decoding;
pub use detect::FileFormat;
pub use path_pattern::PathPattern;

use crate::input::progress::{Metered, Progress};
use crate::table::class::ClassBy;
use crate::table::{Order, RunTable};
pub(crate) use building::Building;
use fault::ImportFault;
pub(crate) use row::ResultRow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Rejected rows that are kept with their reason; all are counted.
pub const REJECTED_KEPT: usize = 100;

/// What was read, and what was not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Every row that makes sense, once.
    pub table: RunTable,
    /// In which it is judged.
    pub order: Order,
    /// The files that were read, in order.
    pub sources: Vec<SourceFile>,
    /// Files that gave nothing, with the reason: named by the caller, or found in a folder and looking like
    /// results.
    pub unusable: Vec<Unusable>,
    /// Files in folders that no reader knows. They were not read.
    pub foreign: Vec<PathBuf>,
    /// Rows and values that make no sense: the first [`REJECTED_KEPT`].
    pub rejected: Vec<Rejected>,
    /// Rows that were left out, in all files.
    pub rejected_rows: u64,
    /// Values that were left out of rows that were kept.
    pub rejected_values: u64,
    /// Rows of pmmpi's own runs, or exported by it, that were there before and say the same.
    pub repeated_rows: u64,
    /// What was understood and is not in the table, each with the number of its values: text columns, rates,
    /// and times that nobody asked for.
    pub unread: BTreeMap<String, u64>,
    /// Some file of an archive has lost what its classes are made of.
    pub without_parts: bool,
    /// Keys of classes that some file or run has, of those that have names of their own.
    pub class_keys: BTreeSet<String>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// As it was found.
    pub path: PathBuf,
    /// Which reader read it.
    pub format: FileFormat,
    /// pmmpi wrote it.
    pub is_own: bool,
    /// Rows of the table that come from it.
    pub rows: u64,
    /// Rows that were left out.
    pub rejected_rows: u64,
}

/// A file that gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// As it was named or found.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

/// A row, or a value of a row, that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Number in [`Results::sources`].
    pub source: u32,
    /// Line in that file, counted from 1; in a JSON document the number of the entry.
    pub line: u64,
    /// What is wrong with it, and what was expected.
    pub reason: String,
}

/// What a reader is told where a file does not say it.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The format of all files; else each is looked at.
    pub format: Option<FileFormat>,
    /// Where in a file's path node, run, class and session are named. What the file itself says comes first.
    pub path: Option<PathPattern>,
    /// The node of files that name none. Before that it is looked for in the path.
    pub node: Option<String>,
    /// Which of several metrics is the elapsed time: ReFrame's performance variable, SuperBench's metric.
    pub metric: Option<String>,
    /// What makes a class.
    pub class_by: ClassBy,
    /// Only counters of these names are kept; else all.
    pub counters: Option<&'static [&'static str]>,
    /// Keeps what classes are made of ([`RunTable::parts`]), for an archive.
    pub keep_parts: bool,
    /// Who is told how far reading is.
    pub progress: Progress,
    /// Tells a parent process which Parquet file is decoded.
    pub decoding: Decoding,
}

/// Reads the files among `paths`, and those in the folders among them and in their folders. A file that is
/// reached twice is read once. What cannot be used is told in the result and stops nothing. A damaged Parquet file can
/// crash the process: [`ImportOptions::decoding`].
pub fn read(paths: &[PathBuf], options: &ImportOptions) -> Results {
    let mut building = Building::new(options);
    read_into(&mut building, paths, options);
    building.finish()
}

/// The same, after what is there already.
pub(crate) fn read_into(building: &mut Building, paths: &[PathBuf], options: &ImportOptions) {
    read_beside(building, paths, &[], options);
}

/// The same; nothing need be in `folders`, of which other things are known.
pub(crate) fn read_beside(
    building: &mut Building,
    paths: &[PathBuf],
    folders: &[PathBuf],
    options: &ImportOptions,
) {
    let mut done = folder::Once::default();
    for path in paths {
        match folder::list(path) {
            Ok(folder::Listed::File) => {
                building.progress().expect(path);
                if done.is_first(path) {
                    read_file(path, options, building, true);
                }
            }
            Ok(folder::Listed::Folder { files, unreadable }) => {
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

/// True for a file that a reader knows by its content.
pub fn knows(path: &Path) -> bool {
    detect::open(path, None).is_ok()
}

/// `asked`: the caller named this very file, so it is not passed over.
fn read_file(path: &Path, options: &ImportOptions, building: &mut Building, asked: bool) {
    let opened = detect::open(path, options.format);
    let (format, content) = match opened {
        Ok(opened) => opened,
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
    };
    building.end(read.err());
}

impl Results {
    /// The file that a rejected row is in.
    pub fn path_of(&self, rejected: &Rejected) -> Option<&Path> {
        self.sources.get(rejected.source as usize).map(|source| source.path.as_path())
    }
}
