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
pub mod detect;
mod fault;
mod folder;
mod hpl;
mod hyperfine;
mod instant;
mod json;
mod names;
mod path_pattern;
mod reframe;
mod superbench;

pub use detect::Format;
pub use names::Names;
pub use path_pattern::PathPattern;

use building::Building;
use fault::Fault;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Rejected rows that are kept with their reason; all are counted.
pub const REJECTED_KEPT: usize = 100;

/// One row a run of a piece of work on a node. All columns are of one length.
///
/// A row is known by its node, class, session and run: a second one with the same four is rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The files that were read, in order.
    pub sources: Vec<Source>,
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
    /// What was understood and is not in the table, each with the number of its values: text columns, rates,
    /// and times that nobody asked for.
    pub unread: BTreeMap<String, u64>,

    /// Where each row comes from: a number in `sources`.
    pub source: Vec<u32>,
    /// Line in that file, counted from 1; in a JSON document the number of the entry.
    pub line: Vec<u64>,
    /// Names that `node` counts.
    pub nodes: Names,
    /// Host, or list of hosts, that did the work.
    pub node: Vec<u32>,
    /// Names that `run` counts.
    pub runs: Names,
    /// Which of the node's runs it was. `<node>/<run>` is its id.
    pub run: Vec<u32>,
    /// Names that `class` counts.
    pub classes: Names,
    /// Runs of one class ought to take equally long.
    pub class: Vec<Option<u32>>,
    /// Names that `session` counts.
    pub sessions: Names,
    /// Runs of one session were made at one sitting.
    pub session: Vec<Option<u32>>,
    /// Above zero and finite (s).
    pub elapsed_s: Vec<f64>,
    /// Start of the run, since 1970-01-01T00:00:00Z (ns).
    pub started_unix_ns: Vec<Option<i64>>,
    /// Whatever else was measured, by name.
    pub counters: BTreeMap<String, Vec<Option<f64>>>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As it was found.
    pub path: PathBuf,
    /// Which reader read it.
    pub format: Format,
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
pub struct Options {
    /// The format of all files; else each is looked at.
    pub format: Option<Format>,
    /// Where in a file's path node, run, class and session are named. What the file itself says comes first.
    pub path: Option<PathPattern>,
    /// The node of files that name none. Before that it is looked for in the path.
    pub node: Option<String>,
    /// Which of several metrics is the elapsed time: ReFrame's performance variable, SuperBench's metric.
    pub metric: Option<String>,
}

/// Reads the files among `paths`, and those in the folders among them and in their folders. A file that is
/// reached twice is read once. What cannot be used is told in the result and stops nothing.
pub fn read(paths: &[PathBuf], options: &Options) -> Results {
    let mut building = Building::default();
    let mut done = folder::Once::default();
    for path in paths {
        match folder::list(path) {
            Ok(folder::Listed::File) => {
                if done.is_first(path) {
                    read_file(path, options, &mut building, true);
                }
            }
            Ok(folder::Listed::Folder { files, unreadable }) => {
                let before = building.sources();
                let mut again = false;
                for file in &files {
                    match done.is_first(file) {
                        true => read_file(file, options, &mut building, false),
                        false => again = true,
                    }
                }
                for (folder, error) in unreadable {
                    building.unusable(&folder, Fault::Unreadable(error));
                }
                if building.sources() == before && !again {
                    building.unusable(path, Fault::EmptyFolder { files: files.len() });
                }
            }
            Err(e) => building.unusable(path, Fault::Unreadable(e)),
        }
    }
    building.finish()
}

/// True for a file that a reader knows by its content.
pub fn knows(path: &Path) -> bool {
    detect::open(path, None).is_ok()
}

/// `asked`: the caller named this very file, so it is not passed over.
fn read_file(path: &Path, options: &Options, building: &mut Building, asked: bool) {
    let opened = detect::open(path, options.format);
    let (format, content) = match opened {
        Ok(opened) => opened,
        Err(Fault::Unknown { .. }) if !asked => return building.foreign(path),
        Err(fault) => return building.unusable(path, fault),
    };
    building.begin(path, format);
    let read = match format {
        Format::Csv => csv::read(content, options, building),
        Format::Hpl => hpl::read(content, options, building),
        Format::Hyperfine => hyperfine::read(content, options, building),
        Format::Reframe => reframe::read(content, options, building),
        Format::Superbench => superbench::read(content, options, building),
    };
    building.end(read.err());
}

impl Results {
    /// Rows of the table.
    pub fn len(&self) -> usize {
        self.elapsed_s.len()
    }

    /// True where nothing could be read.
    pub fn is_empty(&self) -> bool {
        self.elapsed_s.is_empty()
    }

    /// `<node>/<run>` of a row; unique within its class and session.
    pub fn run_id(&self, row: usize) -> Option<String> {
        Some(format!("{}/{}", self.nodes.get(*self.node.get(row)?)?, self.runs.get(*self.run.get(row)?)?))
    }

    /// The file that a rejected row is in.
    pub fn path_of(&self, rejected: &Rejected) -> Option<&Path> {
        self.sources.get(rejected.source as usize).map(|source| source.path.as_path())
    }
}
