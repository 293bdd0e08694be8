//! The table while it is filled: what every reader must do alike, so that nothing is lost in silence.

use super::{Fault, Format, REJECTED_KEPT, Rejected, Results, Source, Unusable};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

/// Longest name of a node, run, class or session (bytes). Lists of hosts are long; a file without line ends
/// is longer.
const NAME_MAX_BYTES: usize = 4096;
/// Characters of a wrong value that a message shows.
const SHOWN: usize = 40;

/// A run as a reader understood it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row<'a> {
    pub line: u64,
    pub node: &'a str,
    pub run: &'a str,
    /// Empty: none, as for the session.
    pub class: &'a str,
    pub session: &'a str,
    pub elapsed_s: f64,
    pub started_unix_ns: Option<i64>,
}

/// Results, and what tells whether a row was there before.
#[derive(Default)]
pub(super) struct Building {
    results: Results,
    path: PathBuf,
    /// Row by node, class, session and run.
    seen: HashMap<[u32; 4], usize>,
    counters: Vec<(String, Vec<Option<f64>>)>,
    slots: HashMap<String, usize>,
    /// The last run of each node, of those whose files do not number them.
    last_run: HashMap<String, u64>,
}

/// Stands for "none" beside the numbers of names.
const NONE: u32 = u32::MAX;

impl Building {
    /// What follows comes from this file.
    pub fn begin(&mut self, path: &Path, format: Format) {
        self.path = path.to_owned();
        self.results.sources.push(Source { path: path.to_owned(), format, rows: 0, rejected_rows: 0 });
    }

    /// The file that is read now.
    pub fn path(&self) -> &Path {
        &self.path
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
        let row = self.results.line.last().copied().unwrap_or(0);
        self.results.rejected.last().map_or(row, |rejected| rejected.line.max(row))
    }

    /// A file that gives nothing.
    pub fn unusable(&mut self, path: &Path, fault: Fault) {
        self.results.unusable.push(Unusable { path: path.to_owned(), reason: fault.to_string() });
    }

    /// A file in a folder that is not meant.
    pub fn foreign(&mut self, path: &Path) {
        self.results.foreign.push(path.to_owned());
    }

    /// Adds a row that makes sense and was not there before, and gives its number; rejects any other.
    pub fn add(&mut self, row: &Row<'_>) -> Option<usize> {
        match self.checked(row) {
            Ok(at) => Some(at),
            Err(reason) => {
                self.reject(row.line, reason);
                None
            }
        }
    }

    fn checked(&mut self, row: &Row<'_>) -> Result<usize, String> {
        name("node", row.node, true)?;
        name("run", row.run, true)?;
        name("class", row.class, false)?;
        name("session", row.session, false)?;
        if !(row.elapsed_s.is_finite() && row.elapsed_s > 0.0) {
            return Err(format!("elapsed_s: {} is no time above zero", row.elapsed_s));
        }
        let results = &mut self.results;
        let node = results.nodes.number(row.node);
        let run = results.runs.number(row.run);
        let class = (!row.class.is_empty()).then(|| results.classes.number(row.class));
        let session = (!row.session.is_empty()).then(|| results.sessions.number(row.session));
        let at = results.elapsed_s.len();
        let key = [node, run, class.unwrap_or(NONE), session.unwrap_or(NONE)];
        match self.seen.entry(key) {
            Entry::Occupied(first) => return Err(again(results, *first.get(), row)),
            Entry::Vacant(free) => free.insert(at),
        };
        let source = results.sources.len().saturating_sub(1);
        results.source.push(source as u32);
        results.line.push(row.line);
        results.node.push(node);
        results.run.push(run);
        results.class.push(class);
        results.session.push(session);
        results.elapsed_s.push(row.elapsed_s);
        results.started_unix_ns.push(row.started_unix_ns);
        results.sources[source].rows += 1;
        Ok(at)
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

    /// Where values of this name go.
    pub fn counter(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = self.counters.len();
        self.counters.push((name.to_owned(), Vec::new()));
        self.slots.insert(name.to_owned(), slot);
        slot
    }

    /// A value of a row that was added.
    pub fn set(&mut self, slot: usize, row: usize, value: f64) {
        if let Some((_, values)) = self.counters.get_mut(slot) {
            if values.len() <= row {
                values.resize(row + 1, None);
            }
            values[row] = Some(value);
        }
    }

    /// Takes the values of this file back.
    pub fn unset(&mut self, slot: usize) {
        let rows = self.results.sources.last().map_or(0, |source| source.rows as usize);
        let first = self.results.elapsed_s.len().saturating_sub(rows);
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

    /// The table.
    pub fn finish(mut self) -> Results {
        let rows = self.results.elapsed_s.len();
        for (name, mut values) in self.counters {
            if values.iter().any(Option::is_some) {
                values.resize(rows, None);
                self.results.counters.insert(name, values);
            }
        }
        self.results
    }
}

fn again(results: &Results, first: usize, row: &Row<'_>) -> String {
    let (line, source) = (results.line[first], results.source[first]);
    let here = source as usize + 1 == results.sources.len();
    let file = match results.sources.get(source as usize) {
        Some(source) if !here => format!("{}, ", source.path.display()),
        _ => String::new(),
    };
    let of = |what: &str, name: &str| match name.is_empty() {
        true => String::new(),
        false => format!(" of {what} {}", shown(name.as_bytes())),
    };
    format!(
        "run {}/{}{}{} was there before: {file}line {line}; the first one counts",
        shown(row.node.as_bytes()),
        shown(row.run.as_bytes()),
        of("class", row.class),
        of("session", row.session),
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
