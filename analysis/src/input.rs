//! Reading: run files, archives and other tools' results become one table.
//!
//! This module opens all files with results; other modules draw the conclusions. A run of pmmpi is in memory only
//! while it is read: the caller decides what to keep of it. Input that cannot be used becomes a warning and never
//! stops the rest.

pub(crate) mod archive_medians;
mod files;
pub mod importers;
pub mod input_warnings;
pub mod node_counters;
pub mod node_rows;
pub mod place_rows;
pub mod place_source;
pub mod progress;
mod read_run;
pub mod resets;
mod screen_sessions;
mod this_screen;
mod unknown_names;

use crate::table::node_class::Class;
use crate::table::run_name::ChosenRuns;
use crate::table::selection::{LeftOut, RunSelection, Selected};
use crate::table::{BOUNDS, NoTime, RunTable};
use crate::warnings::{InputWarning, Warning};
use files::{Split, is_partial, is_same, list, read_one, warning_of};
use importers::{Building, FileFormat, ResultRow, Results};
use pmmpi::record::Run;
use pmmpi::record::run_file::{EXTENSION, RunFileError};
use pmmpi_events::validation::Trust;
use rayon::prelude::*;
use read_run::ReadRun;
use screen_sessions::OfScreen;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use this_screen::LaterHistory;

/// The number of run files that are decoded at a time, and the limit of their total size (a single file may be
/// larger). The reason: a decoded run takes many times the size of its file.
const FILES_AT_A_TIME: usize = 64;
const BYTES_AT_A_TIME: u64 = 16 << 20;

/// A run that pmmpi measured.
#[derive(Debug)]
pub struct OwnRun<T> {
    /// Its name.
    pub run_id: String,
    /// What the caller keeps of it.
    pub kept: T,
}

/// What a list of paths contained; `T` is what the caller keeps of a run.
#[derive(Debug)]
pub struct Input<T> {
    /// Each run of pmmpi once, by run id.
    pub runs: Vec<OwnRun<T>>,
    /// The file in which each run of pmmpi was found first, by run id; also of runs that are not selected.
    pub run_files: BTreeMap<String, PathBuf>,
    /// How long each run took on each node, from pmmpi and from other tools.
    pub results: Results,
    /// Number of files that were examined.
    pub files: usize,
    /// Number of run files, or folders with run files, that could not be used.
    pub unusable: usize,
    /// Number of times that are not above zero: they are not in the table.
    pub without_time: usize,
    /// Each host name once.
    pub hosts: HashSet<String>,
    /// What the user selected; `None`: everything.
    pub selected: Option<Selected>,
    /// What this selection left out.
    pub left_out: LeftOut,
    /// The series of the screen that the input is about: the one that the caller named, or else the latest. `None`
    /// without a screen.
    pub screen: Option<String>,
    /// What the sessions that began after this screen have of its nodes.
    pub later_history: LaterHistory,
    /// Why `--run` does not decide between runs, and which of its names no run has.
    pub run_names: Result<Vec<String>, String>,
    /// Why some input was not used.
    pub warnings: Vec<Warning>,
}

/// Reads the files in `paths` and the run files in the folders in `paths` (not in their subfolders), including
/// partial runs. Also reads results of other tools there and in all subfolders.
pub fn read<T: Send>(
    paths: &[PathBuf],
    options: &importers::ImportOptions,
    trust: &Trust,
    keep: impl Fn(&Run) -> T + Sync,
) -> Input<T> {
    let mut reading = Reader::new(options, trust, &keep);
    reading.all(paths);
    reading.finish()
}

/// Reads one run: a run file, or the folder of an unfinished run.
pub fn run_of(path: &Path) -> Result<Run, RunFileError> {
    read_one(path)
}

/// Reads an archive and then `paths`, like [`read`], but keeps nothing of a run. Also returns the number of files in
/// the archive. An archive that cannot be read completely is an error: otherwise a run that is already in it could be
/// added a second time.
pub fn read_after(
    archive: &Path,
    paths: &[PathBuf],
    options: &importers::ImportOptions,
    trust: &Trust,
) -> Result<(Input<()>, usize), String> {
    let options = &importers::ImportOptions { keep_parts: true, for_archive: true, ..options.clone() };
    let mut reading = Reader::new(options, trust, &|_: &Run| ());
    if archive.exists() {
        // The options path, node and metric apply only to results of other tools.
        let plain = importers::ImportOptions {
            path: None,
            node: None,
            metric: None,
            selection: RunSelection::default(),
            ..options.clone()
        };
        let folders = [archive.to_owned()];
        importers::read_beside(&mut reading.building, &folders, &folders, &plain);
        if let Some(file) = reading.building.files_unusable().first() {
            return Err(format!("{} {}. Repair or remove this file", file.path.display(), file.reason));
        }
        if let Some(other) = reading.building.first_of_others() {
            return Err(format!(
                "{} does not belong to an archive: move this file away, or export to another folder",
                other.display()
            ));
        }
    }
    let archived = reading.building.files_read();
    reading.archived = archived;
    reading.all(paths);
    Ok((reading.finish(), archived))
}

/// Like [`read`], for runs that are in memory.
pub fn of_runs<T: Send>(
    runs: &[Run],
    options: &importers::ImportOptions,
    trust: &Trust,
    keep: impl Fn(&Run) -> T + Sync,
) -> Input<T> {
    let mut reading = Reader::new(options, trust, &keep);
    for run in runs {
        let file = PathBuf::from(&run.header.run_id);
        let read = ReadRun::of(run, trust, &options.class_by, &options.selection, &keep);
        reading.keep(&file, read);
    }
    reading.finish()
}

/// How many of the next files, with these sizes, are decoded together; at least one.
fn at_a_time(sizes: &[u64]) -> usize {
    let mut sum = 0;
    let fits = |size: &&u64| {
        sum += **size;
        sum <= BYTES_AT_A_TIME
    };
    sizes.iter().take(FILES_AT_A_TIME).take_while(fits).count().max(1)
}

struct Reader<'a, T, K> {
    input: Input<T>,
    building: Building,
    options: &'a importers::ImportOptions,
    /// Number of files at the beginning that belong to an archive: the selection does not concern them.
    archived: usize,
    /// Archives whose medians were read.
    archives: Vec<PathBuf>,
    /// The rounds of screens, by run id.
    screens: hashbrown::HashMap<String, OfScreen>,
    /// The selected nodes of each run, with their classes.
    nodes: HashMap<String, Vec<(String, Arc<Class>)>>,
    trust: &'a Trust,
    /// What the caller keeps of a run.
    kept_of: &'a K,
}

impl<'a, T: Send, K: Fn(&Run) -> T + Sync> Reader<'a, T, K> {
    fn new(options: &'a importers::ImportOptions, trust: &'a Trust, kept_of: &'a K) -> Self {
        let building = Building::new(options);
        Self {
            input: Input::default(),
            building,
            options,
            archived: 0,
            archives: Vec::new(),
            screens: hashbrown::HashMap::new(),
            nodes: HashMap::new(),
            trust,
            kept_of,
        }
    }

    fn all(&mut self, paths: &[PathBuf]) {
        let Split { own, of_others, folders } = Split::of(paths);
        self.own(&own);
        importers::read_beside(&mut self.building, &of_others, &folders, self.options);
        if self.options.with_medians && self.options.selection.since.is_some() {
            self.archives = archive_medians::archives(self.building.sources_so_far());
            let medians: Vec<PathBuf> =
                self.archives.iter().filter_map(|path| archive_medians::of_archive(path)).collect();
            // The options path and node apply only to results of other tools.
            let plain = importers::ImportOptions { path: None, node: None, ..self.options.clone() };
            importers::read_beside(&mut self.building, &medians, &medians, &plain);
        }
    }

    fn finish(self) -> Input<T> {
        let mut input = self.input;
        let selection = &self.options.selection;
        let of_runs = &self.nodes;
        let names = of_runs.values().flatten().map(|(_, class)| class.name.as_str());
        let selected = |input: &mut Input<T>, table: &mut RunTable| {
            if selection.is_all() {
                return None;
            }
            let is_selected = selection.classes(table, names.clone());
            let chosen = selection.chosen(table, input.runs.iter().map(|run| run.run_id.as_str()));
            input.run_names = chosen
                .as_ref()
                .map_err(String::clone)
                .map(|chosen| chosen.as_ref().map(|chosen| chosen.unknown.clone()).unwrap_or_default());
            // If a name does not decide, no run is chosen.
            let chosen = chosen.unwrap_or_else(|_| Some(ChosenRuns::default()));
            let is_chosen = |id: &String| chosen.as_ref().is_none_or(|chosen| chosen.ids.contains(id));
            // Runs without nodes have no class.
            let has_class = |nodes: &Vec<(String, Arc<Class>)>| {
                nodes.is_empty() || nodes.iter().any(|(_, class)| is_selected(&class.name))
            };
            input
                .runs
                .retain(|run| is_chosen(&run.run_id) && of_runs.get(&run.run_id).is_none_or(&has_class));
            let of_chosen = of_runs.iter().filter(|(id, _)| is_chosen(id)).flat_map(|(_, nodes)| nodes);
            let nodes = of_chosen.filter(|(_, class)| is_selected(&class.name));
            input.hosts.extend(nodes.map(|(host, _)| host.clone()));
            let (kept, left_out) = selection.apply(table, &is_selected, chosen.as_ref(), self.archived);
            input.left_out.add(left_out);
            Some(kept)
        };
        let archives = archive_medians::archives(self.building.sources_so_far());
        // The user selects sessions by the label.
        let select = |table: &mut RunTable| {
            let kept = selected(&mut input, table);
            input.warnings.extend(screen_sessions::split(table, &self.screens));
            input.of_screen(table, &self.screens, &archives, self.options.screen.as_ref(), kept)
        };
        input.results = self.building.finish_selected(select);
        input.left_out.rows += input.results.not_decoded;
        input.selected = selection.described();
        let read_medians = |archive: &PathBuf| archive_medians::behind(archive, &input.results);
        input.warnings.extend(self.archives.iter().filter_map(read_medians).collect::<Vec<_>>());
        input.warnings.extend(archive_medians::settle(&mut input.results, selection));
        input.files += input.results.sources.iter().filter(|source| source.format != FileFormat::Run).count();
        input.hosts.extend(input.results.table.hosts().map(str::to_owned));
        input.runs.sort_by(|a, b| a.run_id.cmp(&b.run_id));
        input.about_keys(self.options);
        input
    }

    fn own(&mut self, paths: &[PathBuf]) {
        let mut files = Vec::new();
        for path in paths {
            match list(path) {
                Ok(found) if found.is_empty() => {
                    self.input.reject(InputWarning::NoRunFiles { folder: path.clone() });
                }
                Ok(found) => files.extend(found),
                Err(e) => self.input.reject(warning_of(path, &RunFileError::Unreadable(e))),
            }
        }
        // Complete runs first: if a run was saved in the end, its partial run is not read.
        files.sort_by(|a, b| (is_partial(a), a).cmp(&(is_partial(b), b)));
        files.dedup();
        let whole: HashSet<PathBuf> = files.iter().filter(|file| !is_partial(file)).cloned().collect();
        files.retain(|file| !is_partial(file) || !whole.contains(&file.with_extension(EXTENSION)));
        self.input.files = files.len();
        files.iter().for_each(|file| self.building.progress().expect(file));
        let size = |file: &PathBuf| std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        let sizes: Vec<u64> = files.iter().map(size).collect();
        let (trust, kept_of) = (self.trust, self.kept_of);
        let (by, selection) = (&self.options.class_by, &self.options.selection);
        let decode =
            |file: &PathBuf| read_one(file).map(|run| ReadRun::of(&run, trust, by, selection, kept_of));
        // This thread adds runs to the table while other threads decode the next ones.
        let mut decoded: Vec<Result<ReadRun<T>, RunFileError>> = Vec::new();
        let (mut begin, mut known) = (0, 0);
        while known < files.len() {
            let end = begin + at_a_time(&sizes[begin..]).min(files.len() - begin);
            let next = &files[begin..end];
            let known_files = files[known..begin].iter().zip(&sizes[known..begin]);
            let before = std::mem::take(&mut decoded);
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| next.par_iter().map(decode).collect_into_vec(&mut decoded));
                for ((file, bytes), run) in known_files.zip(before) {
                    match run {
                        Ok(run) => self.keep(file, run),
                        Err(e) => self.input.reject(warning_of(file, &e)),
                    }
                    self.building.progress().add(*bytes);
                }
            });
            (known, begin) = (begin, end);
        }
    }

    /// A run that was given twice counts once.
    fn keep(&mut self, file: &Path, mut read: ReadRun<T>) {
        let run_id = &read.run.run_id;
        if let Some(first) = self.input.run_files.get(run_id) {
            if !is_partial(file) && !is_same(file, first) {
                let (file, first) = (file.to_owned(), first.clone());
                self.input.reject(InputWarning::ConflictingRun { file, first });
            }
            return;
        }
        self.input.run_files.insert(run_id.clone(), file.to_owned());
        read.labels.iter().for_each(|label| self.building.has_class_key(label));
        let Some(nodes) = read.nodes.take() else {
            self.input.left_out.rows += 1;
            return;
        };
        if let Some(of_screen) = read.screen.clone() {
            self.screens.insert(run_id.clone(), of_screen);
        }
        self.building.begin(file, FileFormat::Run);
        self.without_time(&read, &nodes);
        self.nodes.insert(run_id.clone(), nodes);
        // Most nodes miss the same.
        let (mut missed, mut text_of) = (String::new(), None);
        for (node, row) in &read.rows {
            if row.work_ns <= 0 {
                self.input.without_time += 1;
                continue;
            }
            let most_missed = read.counted[row.record].most_missed();
            if most_missed != text_of {
                missed = most_missed.map(|(name, why)| format!("{name}: {why}")).unwrap_or_default();
                text_of = most_missed;
            }
            let added = self.building.add(&ResultRow {
                line: 1,
                node,
                run: run_id,
                is_own: true,
                class: &row.class.name,
                parts: Some(&row.class.parts),
                session: read.session.as_deref().unwrap_or_default(),
                maintenance: read.maintenance.as_deref().unwrap_or_default(),
                elapsed_s: row.work_ns as f64 / 1e9,
                started_unix_ns: Some(read.started_unix_ns),
                facts: row.class.facts.as_str(),
                lack: &missed,
            });
            let Some(at) = added else { continue };
            if read.screen.is_some() {
                self.building.in_screen(at, row.is_suspect);
            }
            let bounds = BOUNDS.into_iter().zip(read.bounds_s.into_iter().flatten());
            let health = row.health.iter().map(|(name, added)| (&**name, *added as f64));
            for (name, value) in read.counted[row.record].values().chain(bounds).chain(health) {
                self.building.set_by_name(name, at, value);
            }
        }
        self.input.runs.push(read.run);
    }

    /// Notes the nodes on which the run has no time: they must not vanish.
    fn without_time(&mut self, read: &ReadRun<T>, nodes: &[(String, Arc<Class>)]) {
        let (why, reason) = &read.why_none;
        let row = ResultRow {
            line: 1,
            run: &read.run.run_id,
            is_own: true,
            session: read.session.as_deref().unwrap_or_default(),
            maintenance: read.maintenance.as_deref().unwrap_or_default(),
            started_unix_ns: Some(read.started_unix_ns),
            ..ResultRow::default()
        };
        let has_time = |node: &str| read.rows.get(node).is_some_and(|row| row.work_ns > 0);
        let mut known = HashSet::new();
        for (node, class) in nodes.iter().filter(|(node, _)| !has_time(node)) {
            if known.insert(node) {
                let of_node = ResultRow {
                    node,
                    class: &class.name,
                    parts: Some(&class.parts),
                    facts: class.facts.as_str(),
                    ..row
                };
                let (why, reason) = read.without_time.get(node).unwrap_or(&read.why_none);
                self.building.without_time_of_own(&of_node, *why, reason);
            }
        }
        if nodes.is_empty() && *why == NoTime::Failed {
            self.building.without_time_of_own(&row, *why, reason);
        }
    }
}

impl<T> Default for Input<T> {
    fn default() -> Self {
        Self {
            runs: Vec::new(),
            run_files: BTreeMap::new(),
            results: Results::default(),
            files: 0,
            unusable: 0,
            without_time: 0,
            hosts: HashSet::new(),
            selected: None,
            left_out: LeftOut::default(),
            screen: None,
            later_history: LaterHistory::default(),
            run_names: Ok(Vec::new()),
            warnings: Vec::new(),
        }
    }
}

impl<T> Input<T> {
    /// True if no run could be read. Medians alone are an input if the user did not ask for later runs.
    pub fn is_empty(&self) -> bool {
        let has_since = self.selected.as_ref().is_some_and(|selected| selected.since.is_some());
        let table = &self.results.table;
        let no_rows = if has_since { table.run_count() == 0 } else { table.is_empty() };
        self.runs.is_empty() && no_rows && !table.without_time.iter().any(|entry| entry.is_own)
    }

    /// True if a part of the input could not be used.
    pub fn is_partial(&self) -> bool {
        self.unusable > 0 || !self.results.unusable.is_empty() || self.results.rejected_rows > 0
    }

    fn reject(&mut self, warning: InputWarning) {
        self.unusable += 1;
        self.warnings.push(warning.into());
    }
}
