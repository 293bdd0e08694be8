//! Everything that a report is made of, found and read. What cannot be used is a warning and never stops the rest.

use crate::class::{ClassBy, Key, SESSION_LABEL};
use crate::node_counters;
use crate::node_rows::{self, NodeRow};
use crate::report::RunReport;
use crate::results::{self, Building, Format, Results, Row};
use crate::stats::counted::{Counted, NAMES};
use crate::table::BOUNDS;
use crate::warning::Warning;
use pmmpi::partial;
use pmmpi::record::Run;
use pmmpi::record::runfile::{self, EXTENSION, RunFileError};
use pmmpi_events::validation::Trust;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Run files that are decoded at a time: a job of 20,000 ranks has a large one.
const FILES_AT_A_TIME: usize = 64;

/// Counters that a report is made of.
pub static OF_REPORT: LazyLock<Vec<&str>> = LazyLock::new(|| [&NAMES[..], &BOUNDS].concat());

/// What a list of paths held.
#[derive(Debug, Default)]
pub struct Input {
    /// Each run of pmmpi's own once, by run id.
    pub runs: Vec<RunReport>,
    /// How long each run took on each node, whoever measured it.
    pub results: Results,
    /// Files that were looked at.
    pub files: usize,
    /// Run files or folders of them that gave nothing.
    pub unusable: usize,
    /// Times that are not above zero: they are not in the table.
    pub without_time: usize,
    /// Each host name once.
    pub hosts: HashSet<String>,
    /// Why something was not used.
    pub warnings: Vec<Warning>,
}

/// What becomes of a run file, on any thread.
struct Read {
    report: RunReport,
    session: Option<String>,
    /// Names of those that say something.
    labels: Vec<String>,
    hosts: Vec<String>,
    bounds_s: Option<[f64; 2]>,
    /// By node record.
    counted: Vec<Counted>,
    rows: BTreeMap<String, NodeRow>,
}

/// Reads the files among `paths` and the run files in the folders among them (not in theirs), with what is
/// left of runs that did not end well; and what other tools measured, there and in folders below.
pub fn read(paths: &[PathBuf], options: &results::Options, trust: &Trust) -> Input {
    let mut reading = Reading::new(options, trust);
    reading.all(paths);
    reading.finish()
}

/// The same, after the rows of an archive; and how many files that has. An archive of which not all can be read is an
/// error: what it has cannot be told from what it has not.
pub fn read_after(
    archive: &Path,
    paths: &[PathBuf],
    options: &results::Options,
    trust: &Trust,
) -> Result<(Input, usize), String> {
    let options = &results::Options { keep_parts: true, ..options.clone() };
    let mut reading = Reading::new(options, trust);
    if archive.exists() {
        // What a path or a node or metric that was named say is of others.
        let plain =
            results::Options { path: None, node: None, metric: None, keep_parts: false, ..options.clone() };
        let folders = [archive.to_owned()];
        results::read_beside(&mut reading.building, &folders, &folders, &plain);
        if let Some(file) = reading.building.files_unusable().first() {
            return Err(format!("{} {}: mend or remove it", file.path.display(), file.reason));
        }
        if let Some(other) = reading.building.first_of_others() {
            return Err(format!(
                "{} is of no archive: move it away, or export to another folder",
                other.display()
            ));
        }
    }
    let archived = reading.building.files_read();
    reading.all(paths);
    Ok((reading.finish(), archived))
}

/// The same of runs that are in memory.
pub fn of_runs(runs: &[Run], options: &results::Options, trust: &Trust) -> Input {
    let mut reading = Reading::new(options, trust);
    for run in runs {
        let file = PathBuf::from(&run.header.run_id);
        reading.keep(&file, Read::of(run, trust, &options.class_by));
    }
    reading.finish()
}

struct Reading<'a> {
    input: Input,
    building: Building,
    /// Where each run was first.
    known: HashMap<String, PathBuf>,
    options: &'a results::Options,
    trust: &'a Trust,
}

impl<'a> Reading<'a> {
    fn new(options: &'a results::Options, trust: &'a Trust) -> Self {
        let building = Building::new(options);
        Self { input: Input::default(), building, known: HashMap::new(), options, trust }
    }

    fn all(&mut self, paths: &[PathBuf]) {
        let Split { own, of_others, folders } = Split::of(paths);
        self.own(&own);
        results::read_beside(&mut self.building, &of_others, &folders, self.options);
    }

    fn finish(self) -> Input {
        let mut input = self.input;
        input.results = self.building.finish();
        input.files += input.results.sources.iter().filter(|source| source.format != Format::Run).count();
        input.hosts.extend(input.results.table.hosts().map(str::to_owned));
        input.runs.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        input.about_keys(self.options);
        input
    }

    fn own(&mut self, paths: &[PathBuf]) {
        let mut files = Vec::new();
        for path in paths {
            match list(path) {
                Ok(found) if found.is_empty() => self.input.reject(
                    "no-run-files",
                    format!("{}: there is no run file in this folder", path.display()),
                    "measure something with `pmmpi PROGRAM`, or name the folder that --out named, not one above it",
                ),
                Ok(found) => files.extend(found),
                Err(e) => self.input.reject(
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
        self.input.files = files.len();
        files.iter().for_each(|file| self.building.progress().expect(file));
        let (trust, class_by) = (self.trust, &self.options.class_by);
        for files in files.chunks(FILES_AT_A_TIME) {
            let read = |file: &PathBuf| read_one(file).map(|run| Read::of(&run, trust, class_by));
            let runs: Vec<Result<Read, RunFileError>> = files.par_iter().map(read).collect();
            for (file, run) in files.iter().zip(runs) {
                match run {
                    Ok(run) => self.keep(file, run),
                    Err(e) => {
                        let (code, advice) = explain(&e);
                        self.input.reject(code, format!("{}: {e}", file.display()), advice);
                    }
                }
                let bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
                self.building.progress().add(bytes);
            }
        }
    }

    /// A run that was given twice counts once.
    fn keep(&mut self, file: &Path, run: Read) {
        let run_id = &run.report.run_id;
        if let Some(first) = self.known.get(run_id) {
            if !is_partial(file) && !is_same(file, first) {
                let (file, first) = (file.display(), first.display());
                self.input.reject(
                    "conflicting-run",
                    format!("{file}: has the run id of {first} and another content"),
                    "one of them was altered: the first by name is reported",
                );
            }
            return;
        }
        self.known.insert(run_id.clone(), file.to_owned());
        self.building.begin(file, Format::Run);
        run.labels.iter().for_each(|label| self.building.has_class_key(label));
        for (node, row) in &run.rows {
            if row.work_ns <= 0 {
                self.input.without_time += 1;
                continue;
            }
            let added = self.building.add(&Row {
                line: 1,
                node,
                run: run_id,
                is_own: true,
                class: &row.class.name,
                parts: Some(&row.class.parts),
                session: run.session.as_deref().unwrap_or_default(),
                elapsed_s: row.work_ns as f64 / 1e9,
                started_unix_ns: Some(run.report.started_unix_ns),
                lack: &run.counted[row.record].most_missed().unwrap_or_default(),
            });
            let Some(at) = added else { continue };
            let bounds = BOUNDS.into_iter().zip(run.bounds_s.into_iter().flatten());
            for (name, value) in run.counted[row.record].values().chain(bounds) {
                self.building.set_by_name(name, at, value);
            }
        }
        self.input.hosts.extend(run.hosts);
        self.input.runs.push(run.report);
    }
}

impl Read {
    fn of(run: &Run, trust: &Trust, class_by: &ClassBy) -> Self {
        let label = |name: &str| run.header.labels.iter().find(|(key, _)| key == name);
        let labels = run.header.labels.iter().filter(|(_, value)| !value.is_empty());
        let elapsed = run.elapsed().filter(|elapsed| elapsed.consistent && elapsed.lower_ns > 0);
        Self {
            session: label(SESSION_LABEL).map(|(_, value)| value.clone()),
            labels: labels.map(|(key, _)| key.clone()).collect(),
            hosts: run.nodes.iter().map(|node| node.key.hostname.clone()).collect(),
            bounds_s: elapsed.map(|elapsed| [elapsed.lower_ns, elapsed.upper_ns].map(|ns| ns as f64 / 1e9)),
            counted: node_counters::of_nodes(run, &trust.of_run(run)),
            rows: node_rows::of(run, class_by),
            report: RunReport::new(run, trust),
        }
    }
}

impl Input {
    /// True where nothing could be read.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.results.table.is_empty()
    }

    /// True where something of it could not be used.
    pub fn is_partial(&self) -> bool {
        self.unusable > 0 || !self.results.unusable.is_empty() || self.results.rejected_rows > 0
    }

    fn reject(&mut self, code: &'static str, message: String, advice: &str) {
        self.unusable += 1;
        self.warnings.push(Warning::new(code, message, advice));
    }

    /// A key that nothing has is likely misspelt.
    fn about_keys(&mut self, options: &results::Options) {
        if options.class_by != ClassBy::default() && self.results.without_parts {
            self.warnings.push(Warning::new(
                "archived-classes",
                "--class-by: a file of an archive has lost the columns class.*, and its own runs have the class that it names, or none",
                "export the runs anew, or report it without --class-by",
            ));
        }
        for key in options.class_by.keys() {
            let Key::Named(name) = key else { continue };
            if !self.results.class_keys.contains(name) {
                self.warnings.push(Warning::new(
                    "unknown-class-key",
                    format!("--class-by {name}: no run has a label of this name, and no file such a column with text or numbers in it"),
                    "known are cpu, microcode, memory, kernel, command, ranks, labels and class; or none",
                ));
            }
        }
    }
}

fn is_same(file: &Path, other: &Path) -> bool {
    matches!((read_one(file), read_one(other)), (Ok(a), Ok(b)) if a == b)
}

/// Where to look for what.
#[derive(Default)]
struct Split {
    /// Run files, and folders of them.
    own: Vec<PathBuf>,
    /// What other tools measured, in the order of names.
    of_others: Vec<PathBuf>,
    /// Those folders that are in both: there need be nothing of others.
    folders: Vec<PathBuf>,
}

impl Split {
    fn of(paths: &[PathBuf]) -> Self {
        let mut split = Self::default();
        for path in paths {
            if path == Path::new("-") {
                split.of_others.push(path.clone());
                continue;
            }
            let Ok(metadata) = std::fs::metadata(path) else {
                split.own.push(path.clone()); // says what is wrong with it
                continue;
            };
            if metadata.is_dir() && !is_partial(path) {
                let files = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
                let files: Vec<PathBuf> = files.collect();
                let is_own = |folder: &Path| list(folder).is_ok_and(|own| !own.is_empty());
                if is_own(path) {
                    split.folders.push(path.clone());
                    split.of_others.push(path.clone());
                    split.own.push(path.clone());
                } else if files.is_empty() || files.iter().any(|file| file.is_dir() && is_own(file)) {
                    split.own.push(path.clone());
                } else {
                    split.of_others.push(path.clone());
                }
            } else if !metadata.is_dir() && (!metadata.is_file() || is_of_others(path)) {
                // A pipe can be looked at but once, and no run file comes through one.
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
