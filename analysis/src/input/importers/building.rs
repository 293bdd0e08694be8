//! The table while readers fill it. It does what all readers must do alike, so that no row is lost silently.
//!
//! Checks of rows, repeated rows, rejected rows and the columns of counters belong here. What the fields of one format
//! mean belongs in the reader of this format, in the folder above.

mod counters;
mod rejected;
mod repeated;

use super::row::{NameColumn, Numbered, ResultRow, RowPart};
use super::{
    FileFormat, GuessedNode, ImportFault, ImportOptions, Results, SourceFile, Unusable, path_pattern,
};
use crate::input::progress::Progress;
use crate::table::node_class::{ClassBy, Key, Parts};
use crate::table::{ClassParts, MAINTENANCE_LABEL, MedianOf, NamePool, NoTime, Numbers, RunTable, UNDATED};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Longest name of a node, run, class or session, in bytes. Lists of hosts are long, but a file without line ends is
/// longer.
const NAME_MAX_BYTES: usize = 4096;
/// Characters of a wrong value that a message shows.
const SHOWN: usize = 40;

/// The results so far.
pub(crate) struct Building {
    results: Results,
    path: PathBuf,
    /// Number of rows before the current file.
    first_row: usize,
    counters: Vec<(String, Vec<f64>)>,
    /// The counter of each name; `None` if the caller did not ask for it. Readers ask for each value of each row.
    slots: hashbrown::HashMap<String, Option<usize>>,
    /// The last run number of each node and session, for files that do not number their runs.
    last_run: HashMap<(String, String), u64>,
    /// The same for wrong results, by the numbers of node and session.
    last_wrong: HashMap<[u32; 2], u64>,
    /// The rows of runs in long files.
    long_runs: hashbrown::HashMap<[u32; 4], usize>,
    /// Names of the counters to keep. `None`: keep all.
    wanted: Option<&'static [&'static str]>,
    /// See [`ImportOptions::for_archive`].
    for_archive: bool,
    /// Index of each entry of the table's `all_parts`. `None` if parts are not kept.
    parts: Option<HashMap<Parts, u32>>,
    /// The declared class of a row identifies its run, whatever makes up a class now.
    keeps_declared: bool,
    /// The class that each row was declared to be in; empty if each row is in that class.
    declared: Numbers,
    class_by: ClassBy,
    progress: Progress,
}

impl Building {
    /// An empty table.
    pub fn new(options: &ImportOptions) -> Self {
        let mut results = Results::default();
        if options.keep_parts {
            results.table.all_parts.push(Parts::default());
        }
        Self {
            results,
            path: PathBuf::new(),
            first_row: 0,
            counters: Vec::new(),
            slots: hashbrown::HashMap::new(),
            last_run: HashMap::new(),
            last_wrong: HashMap::new(),
            long_runs: hashbrown::HashMap::new(),
            wanted: options.counters,
            for_archive: options.for_archive,
            keeps_declared: !options.class_by.is_as_declared(),
            declared: Numbers::default(),
            class_by: options.class_by.clone(),
            parts: options.keep_parts.then(|| HashMap::from([(Parts::default(), 0)])),
            progress: options.progress.clone(),
        }
    }

    /// Reports how much is read.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The rows that follow come from this file.
    pub fn begin(&mut self, path: &Path, format: FileFormat) {
        self.path = path.to_owned();
        self.first_row = self.results.table.len();
        let is_own = format == FileFormat::Run;
        self.results.sources.push(SourceFile {
            path: path.to_owned(),
            format,
            is_own,
            rows: 0,
            rejected_rows: 0,
        });
    }

    /// Reserves memory for rows. A file may claim any number, so there is a limit.
    pub fn expect_rows(&mut self, rows: usize, are_medians: bool) {
        const MOST: usize = 1 << 24;
        self.results.table.reserve(rows.min(MOST));
        if are_medians {
            self.results.table.medians.reserve(rows.min(MOST));
        }
    }

    /// See [`ImportOptions::for_archive`].
    pub fn is_for_archive(&self) -> bool {
        self.for_archive
    }

    /// True if the current file belongs to an archive.
    pub fn is_of_archive(&self) -> bool {
        self.results.sources.last().is_some_and(|source| source.is_own)
    }

    /// Marks the current file as part of an archive.
    pub fn begin_archive(&mut self) {
        if let Some(source) = self.results.sources.last_mut() {
            source.is_own = true;
        }
    }

    /// The current file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files so far.
    pub fn sources_so_far(&self) -> &[SourceFile] {
        &self.results.sources
    }

    /// Number of files read so far.
    pub fn files_read(&self) -> usize {
        self.results.sources.len()
    }

    /// The first file that does not belong to an archive.
    pub fn first_of_others(&self) -> Option<&Path> {
        self.results.sources.iter().find(|source| !source.is_own).map(|source| source.path.as_path())
    }

    /// Files that could not be used so far.
    pub fn files_unusable(&self) -> &[Unusable] {
        &self.results.unusable
    }

    /// Number of files so far, usable or not.
    pub fn sources(&self) -> usize {
        self.results.sources.len() + self.results.unusable.len()
    }

    /// Ends the current file. With a fault and no row the file is unusable; with a fault after some rows, the rest of
    /// the file counts as one rejected row.
    pub fn end(&mut self, fault: Option<ImportFault>) {
        let Some(fault) = fault else { return };
        match self.results.sources.last() {
            Some(source) if source.rows + source.rejected_rows > 0 => {
                let after = self.last_line();
                self.reject(after, format!("the rest of the file {fault}"));
            }
            _ => {
                self.results.sources.pop();
                let path = std::mem::take(&mut self.path);
                self.unusable(&path, fault);
            }
        }
    }

    fn last_line(&self) -> u64 {
        let row = self.results.table.origins.last_line();
        self.results.rejected.last().map_or(0, |rejected| rejected.line).max(row)
    }

    /// Notes a file that cannot be used.
    pub fn unusable(&mut self, path: &Path, fault: ImportFault) {
        self.results.unusable.push(Unusable { path: path.to_owned(), reason: fault.to_string() });
    }

    /// The node of the current file by its path: see [`path_pattern::node_of`].
    pub fn guess_node(&mut self, generic: &[&str]) -> Result<String, ImportFault> {
        let node = path_pattern::node_of(&self.path, generic)?;
        let guessed = GuessedNode { path: self.path.clone(), node: node.clone() };
        if self.results.guessed_nodes.last() != Some(&guessed) {
            self.results.guessed_nodes.push(guessed);
        }
        Ok(node)
    }

    /// Notes a file in a folder that no reader recognizes.
    pub fn foreign(&mut self, path: &Path) {
        self.results.foreign.push(path.to_owned());
    }

    /// Adds a valid row and returns its number; rejects any other row.
    pub fn add(&mut self, row: &ResultRow<'_>) -> Option<usize> {
        match self.checked(row) {
            Ok(numbered) => {
                self.results.table.maintenance.add_label(numbered.node, numbered.session, row.maintenance);
                self.add_numbered(&numbered)
            }
            Err(reason) => {
                self.reject_row(row, reason);
                None
            }
        }
    }

    fn checked(&mut self, row: &ResultRow<'_>) -> Result<Numbered, String> {
        let node = self.number(NameColumn::Node, row.node)?;
        self.checked_on(node, row)
    }

    /// Like [`Self::checked`], whatever the node is.
    fn checked_on(&mut self, node: u32, row: &ResultRow<'_>) -> Result<Numbered, String> {
        let is_asked = row.parts.is_some() || self.class_by.has(&Key::Class);
        let class = if is_asked { row.class } else { "" };
        let parts = self.parts_number(|| {
            let mut parts = row.parts.cloned().unwrap_or_else(|| Parts::declared(row.class));
            parts.add(&Key::Named(MAINTENANCE_LABEL.to_owned()), row.maintenance);
            parts
        });
        let class = self.number(NameColumn::Class, class)?;
        if let Some(parts) = row.parts {
            self.keep_class_parts(class, parts, row.is_own);
        }
        let declared = match row.parts {
            Some(parts) => parts.get(&Key::Class).unwrap_or_default(),
            None => row.class,
        };
        Ok(Numbered {
            line: row.line,
            node,
            run: self.number(NameColumn::Run, row.run)?,
            is_own: row.is_own,
            class,
            declared: if self.keeps_declared() { self.number(NameColumn::Class, declared)? } else { 0 },
            parts,
            session: self.number(NameColumn::Session, row.session)?,
            elapsed_s: row.elapsed_s,
            started_unix_ns: row.started_unix_ns.unwrap_or(UNDATED),
            median_of: MedianOf::RUN,
            facts: self.facts_number(row.facts),
            lack: number_or_0(&mut self.results.table.lacks, row.lack),
        })
    }

    /// The number of a text in `fact_texts`; 0 for the empty text.
    pub(super) fn facts_number(&mut self, text: &str) -> u32 {
        number_or_0(&mut self.results.table.fact_texts, text)
    }

    /// Notes what a class consists of.
    pub(super) fn keep_class_parts(&mut self, class: u32, parts: &Parts, is_own: bool) {
        let by = &self.class_by;
        self.results.table.class_parts.entry(class).or_insert_with(|| {
            let of_class = parts.making_up(by, is_own);
            let work = match is_own {
                true => of_class.class_of_own(&by.without_facts()),
                false => of_class.class_of_others(&by.without_facts()),
            };
            ClassParts { facts: of_class.iter().filter(|(key, _)| key.is_fact()).map(owned).collect(), work }
        });
    }

    /// The index of `parts` in `all_parts`; 0 if parts are not kept.
    pub(super) fn parts_number(&mut self, parts: impl FnOnce() -> Parts) -> u32 {
        let Some(numbers) = &mut self.parts else { return 0 };
        let all = &mut self.results.table.all_parts;
        *numbers.entry(parts()).or_insert_with_key(|parts| {
            all.push(parts.clone());
            all.len() as u32 - 1
        })
    }

    /// True if the declared class of a row is kept beside its class.
    pub(super) fn keeps_declared(&self) -> bool {
        self.keeps_declared
    }

    /// The number of a name, or what is wrong with the name. In pmmpi's own runs any name is valid that the kernel or
    /// a shell accepted.
    pub(super) fn number(&mut self, column: NameColumn, text: &str) -> Result<u32, String> {
        let table = &mut self.results.table;
        let (names, what, is_needed) = match column {
            NameColumn::Node => (&mut table.nodes, "node", true),
            NameColumn::Run => (&mut table.runs, "run", true),
            NameColumn::Class => (&mut table.classes, "class", false),
            NameColumn::Session => (&mut table.sessions, "session", false),
        };
        // The pool may have the empty name: see [`Self::nowhere`].
        if let Some(number) = names.find_again(text).filter(|_| !(is_needed && text.is_empty())) {
            return Ok(number);
        }
        let is_own = self.results.sources.last().is_some_and(|source| source.is_own);
        if !is_own || text.is_empty() {
            check_name(what, text, is_needed)?;
        }
        Ok(names.number(text))
    }

    /// Notes the maintenance after which rows were measured: for each row its node, session and label.
    pub(super) fn add_maintenance<'a>(&mut self, rows: impl Iterator<Item = (u32, u32, Option<&'a str>)>) {
        for (node, session, label) in rows {
            self.results.table.maintenance.add_label(node, session, label.unwrap_or_default());
        }
    }

    /// Like [`Self::add`].
    pub(super) fn add_numbered(&mut self, row: &Numbered) -> Option<usize> {
        let at = self.results.table.len();
        if !(row.elapsed_s.is_finite() && row.elapsed_s > 0.0) {
            let reason = format!("elapsed_s: {} is not a time above zero", row.elapsed_s);
            self.results.table.rejected_nodes.insert([row.node, row.session]);
            if self.for_archive && row.median_of.runs == 0 {
                self.without_time(row, NoTime::Invalid, reason.clone());
            }
            self.reject(row.line, reason);
            return None;
        }
        if at >= u32::MAX as usize {
            self.reject(row.line, "the table is full: it has 4294967295 rows");
            return None;
        }
        let source = self.results.sources.len().saturating_sub(1);
        let table = &mut self.results.table;
        table.origins.push(source as u32, row.line, 1);
        table.node.push(row.node);
        table.run.push(row.run);
        if row.is_own || !table.own.is_empty() {
            table.own.resize(at, false);
            table.own.push(row.is_own);
        }
        table.class.push(row.class);
        if self.parts.is_some() {
            table.parts.push(row.parts);
        }
        if self.keeps_declared && (row.declared != row.class || !self.declared.is_empty()) {
            (self.declared.len()..at).for_each(|row| self.declared.push(table.class.at(row)));
            self.declared.push(row.declared);
        }
        table.session.push(row.session);
        table.elapsed_s.push(row.elapsed_s);
        table.started_unix_ns.push(row.started_unix_ns);
        if row.median_of.runs > 0 || !table.medians.is_empty() {
            table.medians.resize(at, MedianOf::RUN);
            table.medians.push(row.median_of);
        }
        if row.facts > 0 || !table.facts.is_empty() {
            table.facts.resize(at, 0);
            table.facts.push(row.facts);
        }
        if row.lack > 0 || !table.lack.is_empty() {
            table.lack.resize(at, 0);
            table.lack.push(row.lack);
        }
        self.results.sources[source].rows += 1;
        Some(at)
    }

    /// Adds valid rows and returns the number of the first.
    pub(super) fn add_part(&mut self, part: &RowPart) -> usize {
        let table = &mut self.results.table;
        let (first, rows) = (table.len(), part.node.len());
        if first + rows >= u32::MAX as usize {
            for row in 0..rows {
                self.add_numbered(&part.row(row));
            }
            return first;
        }
        let source = self.results.sources.len().saturating_sub(1);
        table.origins.push(source as u32, part.line, rows);
        table.node.extend(&part.node);
        table.run.extend(&part.run);
        if part.is_own.contains(&true) || !table.own.is_empty() {
            table.own.resize(first, false);
            table.own.extend_from_slice(&part.is_own);
        }
        table.class.extend(&part.class);
        if self.parts.is_some() {
            table.parts.extend_from_slice(&part.parts);
            table.parts.resize(first + rows, 0);
        }
        if self.keeps_declared && (part.declared != part.class || !self.declared.is_empty()) {
            (self.declared.len()..first).for_each(|row| self.declared.push(table.class.at(row)));
            self.declared.extend(&part.declared);
        }
        table.session.extend(&part.session);
        table.elapsed_s.extend_from_slice(&part.elapsed_s);
        table.started_unix_ns.extend_from_slice(&part.started_unix_ns);
        if !(part.medians.is_empty() && table.medians.is_empty()) {
            table.medians.resize(first, MedianOf::RUN);
            table.medians.extend_from_slice(&part.medians);
            table.medians.resize(first + rows, MedianOf::RUN);
        }
        if !(part.facts.is_empty() && table.facts.is_empty()) {
            table.facts.resize(first, 0);
            table.facts.extend_from_slice(&part.facts);
            table.facts.resize(first + rows, 0);
        }
        if !table.lack.is_empty() {
            table.lack.resize(first + rows, 0);
        }
        self.results.sources[source].rows += rows as u64;
        first
    }

    /// Numbers the runs of files that do not number them: 1, 2, ... per node and session, over all files. The numbers
    /// depend on which files are read. An archive therefore needs a session name, and a session must be exported as a
    /// whole.
    pub fn next_run(&mut self, node: &str, session: &str) -> Result<String, &'static str> {
        if self.for_archive && session.is_empty() {
            return Err(
                "an archive needs a run number or a session for each row, but this file has neither: put \
                 {run} or {session} into --path-pattern",
            );
        }
        let last = self.last_run.entry((node.to_owned(), session.to_owned())).or_default();
        *last += 1;
        Ok(last.to_string())
    }

    /// Number of the class of an added row.
    pub fn class(&self, row: usize) -> u32 {
        self.results.table.class.at(row)
    }

    /// Time of an added row (s).
    pub fn elapsed_s(&self, row: usize) -> f64 {
        self.results.table.elapsed_s[row]
    }

    /// Notes the class keys in these parts of a row.
    pub fn has_parts(&mut self, parts: &Parts, is_own: bool) {
        let by = self.class_by.clone();
        parts.names(&by, is_own).for_each(|name| self.has_class_key(name));
    }

    /// Notes a class key that some row has.
    pub fn has_class_key(&mut self, key: &str) {
        if !self.results.class_keys.contains(key) {
            self.results.class_keys.insert(key.to_owned());
        }
    }

    /// Notes that the current file of an archive does not say what its classes consist of.
    pub fn has_no_parts(&mut self) {
        self.results.without_parts = true;
    }

    /// The results, with each row once.
    pub fn finish(self) -> Results {
        self.finish_selected(|_| None)
    }

    /// The results, with each selected row once. `select` tells which rows are selected; `None`: all.
    pub fn finish_selected(mut self, select: impl FnOnce(&mut RunTable) -> Option<Vec<bool>>) -> Results {
        let rows = self.results.table.len();
        for (name, mut values) in std::mem::take(&mut self.counters) {
            values.iter_mut().filter(|value| value.is_infinite()).for_each(|value| *value = f64::NAN);
            if values.iter().any(|value| !value.is_nan()) {
                values.resize(rows, f64::NAN);
                self.results.table.counters.insert(name, values);
            }
        }
        let repeated = self.results.table.settle_without_time();
        repeated.into_iter().for_each(|first| self.repeats(first));
        if let Some(kept) = select(&mut self.results.table) {
            self.results.table.retain(&kept);
            if !self.declared.is_empty() {
                self.declared.retain(&kept);
            }
            self.results.count_rows();
        }
        self.remove_repeated();
        self.results.rejected.sort_by_key(|rejected| (rejected.source, rejected.line));
        self.results
    }
}

/// The number of a text; 0 for the empty text.
fn number_or_0(texts: &mut NamePool, text: &str) -> u32 {
    if text.is_empty() {
        return 0;
    }
    texts.number("");
    texts.number(text)
}

fn owned((key, text): (&Key, &str)) -> (Key, String) {
    (key.clone(), text.to_owned())
}

pub(super) fn check_name(what: &str, text: &str, needed: bool) -> Result<(), String> {
    if needed && text.is_empty() {
        return Err(format!("{what} is empty"));
    }
    if text.len() > NAME_MAX_BYTES {
        return Err(format!("{what} is longer than {NAME_MAX_BYTES} bytes: {}", shown(text.as_bytes())));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("{what}: `{}` contains a control character", shown(text.as_bytes())));
    }
    Ok(())
}

/// The beginning of a text for a message; replaces control characters.
pub(super) fn shown(text: &[u8]) -> String {
    // A character has at most 4 bytes.
    let head = String::from_utf8_lossy(&text[..text.len().min(SHOWN * 4)]);
    let mut short: String = head.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if head.chars().nth(SHOWN).is_some() || text.len() > SHOWN * 4 {
        short.push_str("...");
    }
    short
}
