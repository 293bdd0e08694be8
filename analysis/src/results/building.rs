//! The table while it is filled: what every reader must do alike, so that nothing is lost in silence.

use super::{Fault, Format, Options, REJECTED_KEPT, Rejected, Results, Source, Unusable};
use crate::progress::Progress;
use crate::table::{Order, UNDATED};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Longest name of a node, run, class or session (bytes). Lists of hosts are long; a file without line ends
/// is longer.
const NAME_MAX_BYTES: usize = 4096;
/// More counters are a mistake, and each may take memory for every row.
const MOST_COUNTERS: usize = 4096;
/// What counters cannot be named: these have a meaning in what is read or exported.
const COLUMNS: [&str; 10] = [
    "node",
    "run",
    "elapsed_s",
    "class",
    "session",
    "started",
    "measured_by_pmmpi",
    "event",
    "value",
    "month",
];
/// Characters of a wrong value that a message shows.
const SHOWN: usize = 40;

/// A run as a reader understood it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Row<'a> {
    pub line: u64,
    pub node: &'a str,
    pub run: &'a str,
    /// `run` is the id of a run of pmmpi's.
    pub is_own: bool,
    /// Empty: none, as for the session.
    pub class: &'a str,
    pub session: &'a str,
    pub elapsed_s: f64,
    pub started_unix_ns: Option<i64>,
    /// `NAME: REASON`; empty where nobody said so.
    pub lack: &'a str,
}

/// The same, with the numbers of names that were checked and numbered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered {
    pub line: u64,
    pub node: u32,
    pub run: u32,
    pub is_own: bool,
    pub class: u32,
    pub session: u32,
    pub elapsed_s: f64,
    pub started_unix_ns: i64,
    pub lack: u32,
}

/// Rows one after another, column by column.
#[derive(Debug)]
pub(super) struct Part {
    /// Of the first.
    pub line: u64,
    pub node: Vec<u32>,
    pub run: Vec<u32>,
    pub is_own: Vec<bool>,
    pub class: Vec<u32>,
    pub session: Vec<u32>,
    pub elapsed_s: Vec<f64>,
    pub started_unix_ns: Vec<i64>,
    /// Of all.
    pub lack: u32,
}

/// Stands for a text that is no name: the row is rejected.
pub(super) const WRONG: u32 = u32::MAX;

impl Part {
    pub fn row(&self, row: usize) -> Numbered {
        Numbered {
            line: self.line + row as u64,
            node: self.node[row],
            run: self.run[row],
            is_own: self.is_own[row],
            class: self.class[row],
            session: self.session[row],
            elapsed_s: self.elapsed_s[row],
            started_unix_ns: self.started_unix_ns[row],
            lack: self.lack,
        }
    }

    /// True where all rows make sense.
    pub fn is_whole(&self) -> bool {
        let names = [&self.node, &self.run, &self.class, &self.session];
        names.iter().all(|numbers| !numbers.contains(&WRONG))
            && self.elapsed_s.iter().all(|s| s.is_finite() && *s > 0.0)
    }
}

/// Which column a name is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Node,
    Run,
    Class,
    Session,
}

/// Results as they grow.
pub(crate) struct Building {
    results: Results,
    path: PathBuf,
    counters: Vec<(String, Vec<f64>)>,
    slots: HashMap<String, usize>,
    /// The last run of each node, of those whose files do not number them.
    last_run: HashMap<String, u64>,
    /// Rows of runs of long files.
    long_runs: hashbrown::HashMap<[u32; 4], usize>,
    /// Those that are asked for; else all.
    wanted: Option<&'static [&'static str]>,
    /// What files and readers say of classes is not asked for.
    without_class: bool,
    progress: Progress,
}

impl Building {
    /// An empty table.
    pub fn new(options: &Options) -> Self {
        Self {
            results: Results::default(),
            path: PathBuf::new(),
            counters: Vec::new(),
            slots: HashMap::new(),
            last_run: HashMap::new(),
            long_runs: hashbrown::HashMap::new(),
            wanted: options.counters,
            without_class: !options.class_by.columns().any(|column| column == "class"),
            progress: options.progress.clone(),
        }
    }

    /// Who is told how far reading is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What follows comes from this file.
    pub fn begin(&mut self, path: &Path, format: Format) {
        self.path = path.to_owned();
        let is_own = format == Format::Run;
        self.results.sources.push(Source {
            path: path.to_owned(),
            format,
            is_own,
            rows: 0,
            rejected_rows: 0,
        });
    }

    /// So many rows are likely to come: a file may claim anything.
    pub fn expect_rows(&mut self, rows: usize) {
        const MOST: usize = 1 << 24;
        self.results.table.reserve(rows.min(MOST));
    }

    /// pmmpi exported the file that is read now.
    pub fn is_of_archive(&self) -> bool {
        self.results.sources.last().is_some_and(|source| source.is_own)
    }

    /// The file that is read now was exported by pmmpi.
    pub fn is_exported(&mut self) {
        if let Some(source) = self.results.sources.last_mut() {
            source.is_own = true;
        }
    }

    /// The file that is read now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files that were read so far.
    pub fn files_read(&self) -> usize {
        self.results.sources.len()
    }

    /// Files that gave nothing so far.
    pub fn files_unusable(&self) -> &[Unusable] {
        &self.results.unusable
    }

    /// Files so far, usable or not.
    pub fn sources(&self) -> usize {
        self.results.sources.len() + self.results.unusable.len()
    }

    /// A file of which nothing was understood is unusable; one that could not be read to its end is so from
    /// there on.
    pub fn end(&mut self, fault: Option<Fault>) {
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
        let row = self.results.table.line.last().copied().unwrap_or(0);
        self.results.rejected.last().map_or(0, |rejected| rejected.line).max(row.into())
    }

    /// A file that gives nothing.
    pub fn unusable(&mut self, path: &Path, fault: Fault) {
        self.results.unusable.push(Unusable { path: path.to_owned(), reason: fault.to_string() });
    }

    /// A file in a folder that is not meant.
    pub fn foreign(&mut self, path: &Path) {
        self.results.foreign.push(path.to_owned());
    }

    /// Adds a row that makes sense, and gives its number; rejects any other.
    pub fn add(&mut self, row: &Row<'_>) -> Option<usize> {
        match self.checked(row) {
            Ok(row) => self.add_numbered(&row),
            Err(reason) => {
                self.reject(row.line, reason);
                None
            }
        }
    }

    fn checked(&mut self, row: &Row<'_>) -> Result<Numbered, String> {
        let class = if self.without_class && !self.takes_columns() { "" } else { row.class };
        if row.is_own {
            // Whatever a kernel took for its host's name.
            let table = &mut self.results.table;
            table.nodes.number(row.node);
            table.runs.number(row.run);
            table.classes.number(class);
            table.sessions.number(row.session);
        }
        Ok(Numbered {
            line: row.line,
            node: self.number(Column::Node, row.node)?,
            run: self.number(Column::Run, row.run)?,
            is_own: row.is_own,
            class: self.number(Column::Class, class)?,
            session: self.number(Column::Session, row.session)?,
            elapsed_s: row.elapsed_s,
            started_unix_ns: row.started_unix_ns.unwrap_or(UNDATED),
            lack: self.results.table.lacks.number(row.lack),
        })
    }

    /// Those readers look for the columns themselves that make a class.
    fn takes_columns(&self) -> bool {
        let format = self.results.sources.last().map(|source| source.format);
        matches!(format, Some(Format::Run | Format::Csv | Format::Parquet))
    }

    /// The number of a name, or what is wrong with it.
    pub(super) fn number(&mut self, column: Column, text: &str) -> Result<u32, String> {
        let table = &mut self.results.table;
        let (names, what, is_needed) = match column {
            Column::Node => (&mut table.nodes, "node", true),
            Column::Run => (&mut table.runs, "run", true),
            Column::Class => (&mut table.classes, "class", false),
            Column::Session => (&mut table.sessions, "session", false),
        };
        if let Some(number) = names.find(text) {
            return Ok(number);
        }
        name(what, text, is_needed)?;
        Ok(names.number(text))
    }

    /// The name of a number that [`Self::number`] gave.
    pub(super) fn name_of(&self, column: Column, number: u32) -> &str {
        let table = &self.results.table;
        let names = match column {
            Column::Node => &table.nodes,
            Column::Run => &table.runs,
            Column::Class => &table.classes,
            Column::Session => &table.sessions,
        };
        names.get(number).unwrap_or_default()
    }

    /// As [`Self::add`].
    pub(super) fn add_numbered(&mut self, row: &Numbered) -> Option<usize> {
        let table = &mut self.results.table;
        let at = table.len();
        if !(row.elapsed_s.is_finite() && row.elapsed_s > 0.0) {
            self.reject(row.line, format!("elapsed_s: {} is no time above zero", row.elapsed_s));
            return None;
        }
        if at >= u32::MAX as usize {
            self.reject(row.line, "the table is full: it has 4294967295 rows");
            return None;
        }
        let source = self.results.sources.len().saturating_sub(1);
        table.source.push(source as u32);
        table.line.push(row.line.try_into().unwrap_or(u32::MAX));
        table.node.push(row.node);
        table.run.push(row.run);
        table.is_own.push(row.is_own);
        table.class.push(row.class);
        table.session.push(row.session);
        table.elapsed_s.push(row.elapsed_s);
        table.started_unix_ns.push(row.started_unix_ns);
        table.lack.push(row.lack);
        self.results.sources[source].rows += 1;
        Some(at)
    }

    /// Adds rows that make sense, and gives the number of the first.
    pub(super) fn add_part(&mut self, part: &Part) -> usize {
        let table = &mut self.results.table;
        let (first, rows) = (table.len(), part.node.len());
        if first + rows >= u32::MAX as usize {
            for row in 0..rows {
                self.add_numbered(&part.row(row));
            }
            return first;
        }
        let source = self.results.sources.len().saturating_sub(1);
        table.source.resize(first + rows, source as u32);
        table.line.extend((part.line..).take(rows).map(|line| u32::try_from(line).unwrap_or(u32::MAX)));
        table.node.extend_from_slice(&part.node);
        table.run.extend_from_slice(&part.run);
        table.is_own.extend_from_slice(&part.is_own);
        table.class.extend_from_slice(&part.class);
        table.session.extend_from_slice(&part.session);
        table.elapsed_s.extend_from_slice(&part.elapsed_s);
        table.started_unix_ns.extend_from_slice(&part.started_unix_ns);
        table.lack.resize(first + rows, part.lack);
        self.results.sources[source].rows += rows as u64;
        first
    }

    /// Runs that their files do not number are 1, 2, ... on each node, over all files.
    pub fn next_run(&mut self, node: &str) -> String {
        let last = match self.last_run.get_mut(node) {
            Some(last) => last,
            None => self.last_run.entry(node.to_owned()).or_default(),
        };
        *last += 1;
        last.to_string()
    }

    /// Where values of this name go; `None` of one that nobody asked for, that is a column of another meaning, or one
    /// too many. Capital and small letters are the same, as with columns.
    pub fn counter(&mut self, name: &str) -> Option<usize> {
        let key = name.to_ascii_lowercase();
        if let Some(slot) = self.slots.get(&key) {
            return Some(*slot);
        }
        let slot = self.counters.len();
        if !self.wants(name) || COLUMNS.contains(&key.as_str()) || name.is_empty() || slot >= MOST_COUNTERS {
            return None;
        }
        self.counters.push((name.to_owned(), Vec::new()));
        self.slots.insert(key, slot);
        Some(slot)
    }

    /// Whether anybody asked for it.
    pub fn wants(&self, counter: &str) -> bool {
        self.wanted.is_none_or(|wanted| wanted.contains(&counter))
    }

    /// The number of no reason.
    pub(super) fn no_lack(&mut self) -> u32 {
        self.results.table.lacks.number("")
    }

    /// A value of a row that was added. One of a name that cannot be a counter's is counted as not read.
    pub fn set_by_name(&mut self, name: &str, row: usize, value: f64) {
        match self.counter(name) {
            Some(slot) => self.set(slot, row, value),
            None if self.wants(name) => self.unread(name, 1),
            None => {}
        }
    }

    /// A value of a row that was added.
    pub fn set(&mut self, slot: usize, row: usize, value: f64) {
        if let Some((_, values)) = self.counters.get_mut(slot) {
            if values.len() <= row {
                values.resize(row + 1, f64::NAN);
            }
            values[row] = value;
        }
    }

    /// Adds to the value of a row that was added. With one that is none there is no sum.
    pub fn sum(&mut self, slot: usize, row: usize, value: f64) {
        let Some((_, values)) = self.counters.get_mut(slot) else { return };
        if values.len() <= row {
            values.resize(row + 1, f64::NAN);
        }
        let sum = &mut values[row];
        *sum = match value.is_finite() {
            true if sum.is_nan() => value,
            true => *sum + value,
            false => f64::INFINITY,
        };
    }

    /// The row of a run of long files, known by node, run, class and session.
    pub(super) fn long_run(&self, key: [u32; 4]) -> Option<usize> {
        self.long_runs.get(&key).copied()
    }

    pub(super) fn set_long_run(&mut self, key: [u32; 4], row: usize) {
        self.long_runs.insert(key, row);
    }

    /// Whether a row comes from another file than is read now.
    pub(super) fn is_of_another_file(&self, row: usize) -> bool {
        self.results.table.source[row] as usize + 1 != self.results.sources.len()
    }

    /// No sum of a row's is one.
    pub(super) fn withdraw(&mut self, row: usize) {
        for value in self.counters.iter_mut().filter_map(|(_, values)| values.get_mut(row)) {
            *value = if value.is_nan() { *value } else { f64::INFINITY };
        }
    }

    /// Time of a row that was added (s).
    pub fn elapsed_s(&self, row: usize) -> f64 {
        self.results.table.elapsed_s[row]
    }

    /// Takes the values of this file back.
    pub fn unset(&mut self, slot: usize) {
        let rows = self.results.sources.last().map_or(0, |source| source.rows as usize);
        let first = self.results.table.len().saturating_sub(rows);
        if let Some((_, values)) = self.counters.get_mut(slot) {
            values.truncate(first);
        }
    }

    /// A row that makes no sense.
    pub fn reject(&mut self, line: u64, reason: impl Into<String>) {
        self.results.rejected_rows += 1;
        if let Some(source) = self.results.sources.last_mut() {
            source.rejected_rows += 1;
        }
        self.keep(line, reason);
    }

    /// Rows that make no sense, after as many as are named.
    pub fn reject_unnamed(&mut self, rows: u64) {
        self.results.rejected_rows += rows;
        if let Some(source) = self.results.sources.last_mut() {
            source.rejected_rows += rows;
        }
    }

    /// Values that make no sense, in rows that do; the first of them are told.
    pub fn reject_values(&mut self, count: u64, first: Vec<(u64, String)>) {
        self.results.rejected_values += count;
        for (line, reason) in first {
            self.keep(line, reason);
        }
    }

    fn keep(&mut self, line: u64, reason: impl Into<String>) {
        if self.results.rejected.len() < REJECTED_KEPT {
            let source = self.results.sources.len().saturating_sub(1) as u32;
            self.results.rejected.push(Rejected { source, line, reason: reason.into() });
        }
    }

    /// Something that was understood and has no place in the table.
    pub fn unread(&mut self, name: &str, values: u64) {
        let name = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        *self.results.unread.entry(name).or_default() += values;
    }

    /// A key of classes that this file has.
    pub fn has_class_key(&mut self, key: &str) {
        if !self.results.class_keys.contains(key) {
            self.results.class_keys.insert(key.to_owned());
        }
    }

    /// What was read, each row once.
    pub fn finish(mut self) -> Results {
        let rows = self.results.table.len();
        for (name, mut values) in std::mem::take(&mut self.counters) {
            values.iter_mut().filter(|value| value.is_infinite()).for_each(|value| *value = f64::NAN);
            if values.iter().any(|value| !value.is_nan()) {
                values.resize(rows, f64::NAN);
                self.results.table.counters.insert(name, values);
            }
        }
        self.remove_repeated();
        self.results.rejected.sort_by_key(|rejected| (rejected.source, rejected.line));
        self.results
    }

    /// The first one counts.
    fn remove_repeated(&mut self) {
        self.results.order = Order::of(&self.results.table);
        let again = self.results.order.repeated(&self.results.table);
        if again.is_empty() {
            return;
        }
        let mut kept = vec![true; self.results.table.len()];
        for (row, first) in again {
            kept[row] = false;
            let table = &self.results.table;
            let [source, other] = [row, first].map(|row| table.source[row] as usize);
            let is_known = [source, other].iter().any(|source| self.results.sources[*source].is_own);
            self.results.sources[source].rows -= 1;
            if source != other && is_known && self.results.table.join(row, first) {
                self.results.repeated_rows += 1;
                continue;
            }
            let reason = again_of(&self.results, row, first);
            self.results.rejected_rows += 1;
            self.results.sources[source].rejected_rows += 1;
            if self.results.rejected.len() < REJECTED_KEPT {
                let line = self.results.table.line[row].into();
                self.results.rejected.push(Rejected { source: source as u32, line, reason });
            }
        }
        self.results.table.retain(&kept);
        self.results.order = Order::of(&self.results.table);
    }
}

fn again_of(results: &Results, row: usize, first: usize) -> String {
    let table = &results.table;
    let (line, source) = (table.line[first], table.source[first]);
    let file = match results.sources.get(source as usize) {
        Some(known) if source != table.source[row] => format!("{}, ", known.path.display()),
        _ => String::new(),
    };
    let of = |what: &str, name: &str| match name.is_empty() {
        true => String::new(),
        false => format!(" of {what} {}", shown(name.as_bytes())),
    };
    format!(
        "run {}/{}{}{} was there before: {file}line {line}; the first one counts",
        shown(table.node_name(row).as_bytes()),
        shown(table.runs.get(table.run[row]).unwrap_or_default().as_bytes()),
        of("class", table.classes.get(table.class[row]).unwrap_or_default()),
        of("session", table.session_name(row).unwrap_or_default()),
    )
}

fn name(what: &str, text: &str, needed: bool) -> Result<(), String> {
    if needed && text.is_empty() {
        return Err(format!("{what}: it is empty"));
    }
    if text.len() > NAME_MAX_BYTES {
        return Err(format!("{what}: it is longer than {NAME_MAX_BYTES} bytes: {}", shown(text.as_bytes())));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("{what}: `{}` has a control character", shown(text.as_bytes())));
    }
    Ok(())
}

/// The beginning of a text for a message, whatever it holds.
pub(super) fn shown(text: &[u8]) -> String {
    // No character is longer than 4 bytes.
    let head = String::from_utf8_lossy(&text[..text.len().min(SHOWN * 4)]);
    let mut short: String = head.chars().take(SHOWN).map(|c| if c.is_control() { '?' } else { c }).collect();
    if head.chars().nth(SHOWN).is_some() || text.len() > SHOWN * 4 {
        short.push_str("...");
    }
    short
}
