//! Reads CSV files with the columns `node,run,elapsed_s` and perhaps `class`, `session`, `started`, `maintenance`. Any
//! other numeric column is a counter. A value that all rows of a file share may be in the file's path instead of a column.
//!
//! The reader reads each line on its own. A quoted field cannot contain a line end, so a missing quote costs one row
//! and not all rows after it.

use super::building::{Building, shown};
use super::invalid_value::InvalidValues;
use super::lines::{LINE_MAX_BYTES, LineRead, read_line};
use super::path_pattern::PathParts;
use super::row::ResultRow;
use super::text_columns::UnusedColumn;
use super::{ImportFault, ImportOptions};
use crate::table::MAINTENANCE_LABEL;
use crate::table::instant;
use crate::table::node_class::{Class, ClassBy, Key, Parts};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use hashbrown::HashMap;
use std::io::{BufReader, Read};
use std::sync::Arc;

/// Reads rows until the end and ignores blank lines.
pub(super) fn read(
    source: impl Read,
    options: &ImportOptions,
    building: &mut Building,
) -> Result<(), ImportFault> {
    let mut lines = Lines::new(source);
    let place = options.place(building.path())?;
    let header = loop {
        match lines.next()? {
            None => return Err(ImportFault::Empty),
            Some(Line { content: Some(content), .. }) => {
                let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
                if !content.trim_ascii().is_empty() {
                    break content.to_vec();
                }
            }
            Some(_) => return Err(ImportFault::OtherForm("the first line is too long for a header".into())),
        }
    };
    let mut fields = Fields::new(delimiter(&header));
    let columns = fields.split(&header).map_err(|e| ImportFault::OtherForm(format!("the header has {e}")))?;
    let mut columns = Columns::find(columns, &place, options, building)?;
    let mut any = false;
    while let Some(Line { number, content }) = lines.next()? {
        let Some(content) = content else {
            any = true;
            building.reject(number, format!("the line is longer than {LINE_MAX_BYTES} bytes"));
            continue;
        };
        if content.trim_ascii().is_empty() {
            continue;
        }
        any = true;
        match fields.split(content) {
            Ok(fields) => columns.add(number, &fields, &place, building),
            Err(e) => building.reject(number, format!("the line has {e}")),
        }
    }
    columns.finish(building);
    if any { Ok(()) } else { Err(ImportFault::NoRows) }
}

/// The most frequent delimiter in the header; a comma if several are equally frequent.
fn delimiter(header: &[u8]) -> u8 {
    let count = |delimiter: u8| header.iter().filter(|byte| **byte == delimiter).count();
    [b',', b';', b'\t'].into_iter().rev().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

struct Line<'a> {
    /// Counted from 1.
    number: u64,
    /// Without the line end; `None` if the line is too long.
    content: Option<&'a [u8]>,
}

struct Lines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(1 << 18, source), line: Vec::new(), number: 0 }
    }

    fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        let read = read_line(&mut self.source, &mut self.line)?;
        self.number += u64::from(!matches!(read, LineRead::End));
        match read {
            LineRead::End => return Ok(None),
            LineRead::Cut => return Ok(Some(Line { number: self.number, content: None })),
            LineRead::Whole => {}
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(Line { number: self.number, content: Some(line) }))
    }
}

/// Splits lines at delimiters and removes quotes.
struct Fields {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// The fields of one line, without surrounding white space.
struct Split<'a> {
    text: &'a [u8],
    ends: &'a [usize],
}

impl Fields {
    fn new(delimiter: u8) -> Self {
        let reader = ReaderBuilder::new().delimiter(delimiter).build();
        Self { reader, text: vec![0; 1 << 10], ends: vec![0; 64] }
    }

    fn split(&mut self, line: &[u8]) -> Result<Split<'_>, String> {
        if memchr::memchr_iter(b'"', line).count() % 2 == 1 {
            return Err("a quote that is not closed".to_owned());
        }
        // A field is never longer than its line. A line has at most as many fields as bytes, plus one.
        if self.text.len() < line.len() + 1 {
            self.text.resize(line.len() + 1, 0);
        }
        if self.ends.len() < line.len() + 2 {
            self.ends.resize(line.len() + 2, 0);
        }
        self.reader.reset();
        let (mut read, mut written, mut count) = (0, 0, 0);
        loop {
            // An empty input tells the reader that the line has ended.
            let (result, input, output, ends) =
                self.reader.read_record(&line[read..], &mut self.text[written..], &mut self.ends[count..]);
            read += input;
            written += output;
            count += ends;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => break,
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    return Err("more fields than bytes".to_owned());
                }
            }
        }
        if read < line.len() {
            return Err("a line end (CR) inside the line".to_owned());
        }
        Ok(Split { text: &self.text, ends: &self.ends[..count] })
    }
}

impl<'a> Split<'a> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, at: usize) -> &'a [u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        let field = self.text[start..self.ends[at]].trim_ascii();
        // A quote after a space does not start a quoted field for the reader, but the writer meant one.
        field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
    }
}

/// The meaning of each column.
struct Columns {
    count: usize,
    node: Option<usize>,
    run: Option<usize>,
    elapsed: usize,
    class: Classes,
    session: Option<usize>,
    maintenance: Option<usize>,
    started: Option<usize>,
    counters: Vec<Counter>,
    unused: Vec<UnusedColumn>,
    wrong_starts: InvalidValues,
}

/// What makes the class of a row.
struct Classes {
    by: ClassBy,
    columns: Vec<(usize, Key)>,
    /// The class from the path.
    place: Option<(Key, Arc<str>)>,
    /// By the values of the columns.
    known: HashMap<Vec<u8>, Class>,
    /// Values of the current row.
    values: Vec<u8>,
}

/// A column that may be numeric.
struct Counter {
    at: usize,
    name: String,
    slot: Option<usize>,
    numbers: u64,
    wrong: InvalidValues,
}

impl Columns {
    fn find(
        header: Split<'_>,
        place: &PathParts,
        options: &ImportOptions,
        building: &mut Building,
    ) -> Result<Self, ImportFault> {
        let name = |at: usize| String::from_utf8_lossy(header.get(at)).into_owned();
        let names: Vec<String> = (0..header.len()).map(name).collect();
        let mut found = [None; 7];
        let classes = Classes::find(&names, place, options);
        let mut counters: Vec<Counter> = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let known = ["node", "run", "elapsed_s", "class", "session", "started", MAINTENANCE_LABEL];
            let twice = || ImportFault::TwoColumns(shown(name.as_bytes()));
            match known.iter().position(|known| name.eq_ignore_ascii_case(known)) {
                Some(column) if found[column].is_some() => return Err(twice()),
                Some(column) => found[column] = Some(at),
                None if classes.columns.iter().any(|(class, _)| *class == at) => {}
                None if counters
                    .iter()
                    .any(|other| other.name.eq_ignore_ascii_case(name) && !name.is_empty()) =>
                {
                    return Err(twice());
                }
                None => counters.push(Counter {
                    at,
                    name: name.clone(),
                    slot: building.counter(name),
                    numbers: 0,
                    wrong: InvalidValues::default(),
                }),
            }
        }
        let [node, run, elapsed, _, session, started, maintenance] = found;
        let given =
            [node.is_some() || place.node.is_some(), run.is_some() || place.run.is_some(), elapsed.is_some()];
        let (Some(elapsed), [true, true, true]) = (elapsed, given) else {
            return Err(ImportFault::missing_columns(given, &names));
        };
        let wrong_starts = InvalidValues::default();
        let (counters, unused): (Vec<Counter>, Vec<Counter>) = counters.into_iter().partition(|column| {
            column.slot.is_some() || column.name.is_empty() || building.wants(&column.name)
        });
        let unused = unused.into_iter().map(|column| UnusedColumn::new(column.at, column.name)).collect();
        Ok(Self {
            count: names.len(),
            node,
            run,
            elapsed,
            class: classes,
            session,
            maintenance,
            started,
            counters,
            unused,
            wrong_starts,
        })
    }

    fn add(&mut self, line: u64, fields: &Split<'_>, place: &PathParts, building: &mut Building) {
        match self.row(line, fields, place, building) {
            Ok(row) => {
                if let Some(at) = building.add(&row) {
                    self.add_counters(at, line, fields, building);
                }
            }
            Err(reason) => match self.node_of(fields, place) {
                Some(node) => self.reject(line, node, fields, place, building, reason),
                None => building.reject(line, reason),
            },
        }
    }

    /// Rejects a row whose node is known. A report keeps its session, an archive all that is valid in it.
    fn reject(
        &mut self,
        line: u64,
        node: &str,
        fields: &Split<'_>,
        place: &PathParts,
        building: &mut Building,
        reason: String,
    ) {
        let of_node = ResultRow { line, node, ..ResultRow::default() };
        if fields.len() != self.count {
            return building.reject_row(&of_node, reason);
        }
        let or_place = |at: Option<usize>, place: &Option<String>| match at {
            Some(at) => str::from_utf8(fields.get(at)).unwrap_or_default().to_owned(),
            None => place.clone().unwrap_or_default(),
        };
        let (run, session) = (or_place(self.run, &place.run), or_place(self.session, &place.session));
        let started_unix_ns = self.started.and_then(|at| instant::unix_ns(fields.get(at)));
        let row = ResultRow { run: &run, session: &session, started_unix_ns, ..of_node };
        if !building.is_for_archive() {
            return building.reject_row(&row, reason);
        }
        match self.class.of(fields, building) {
            Ok(class) => {
                let of_class = ResultRow { class: &class.name, parts: Some(&class.parts), ..row };
                building.reject_row(&of_class, reason);
            }
            Err(_) => building.reject_row(&row, reason),
        }
    }

    /// The node of a row, if the row has all of its fields.
    fn node_of<'a>(&self, fields: &Split<'a>, place: &'a PathParts) -> Option<&'a str> {
        match self.node {
            Some(at) if fields.len() == self.count => str::from_utf8(fields.get(at)).ok(),
            Some(_) => None,
            None => place.node.as_deref(),
        }
    }

    fn row<'a>(
        &'a mut self,
        line: u64,
        fields: &Split<'a>,
        place: &'a PathParts,
        building: &mut Building,
    ) -> Result<ResultRow<'a>, String> {
        if fields.len() != self.count {
            return Err(format!("the line has {} fields, but the header has {}", fields.len(), self.count));
        }
        let text = |what: &str, at: usize| {
            let field = fields.get(at);
            str::from_utf8(field).map_err(|_| format!("{what}: `{}` is not UTF-8", shown(field)))
        };
        let or_place = |what: &str, at: Option<usize>, place: &'a Option<String>| match at {
            Some(at) => text(what, at),
            None => Ok(place.as_deref().unwrap_or_default()),
        };
        let elapsed_s = seconds(fields.get(self.elapsed))?;
        let started = self.started.map_or(&b""[..], |at| fields.get(at));
        let started_unix_ns = instant::unix_ns(started);
        if started_unix_ns.is_none() && !is_absent(started) {
            let expected = "expected RFC 3339, such as 2026-11-21T20:35:00+01:00";
            self.wrong_starts.add(line, || format!("started: `{}` was left out: {expected}", shown(started)));
        }
        let class = self.class.of(fields, building)?;
        Ok(ResultRow {
            line,
            node: or_place("node", self.node, &place.node)?,
            run: or_place("run", self.run, &place.run)?,
            is_own: false,
            facts: "",
            lack: "",
            class: &class.name,
            parts: Some(&class.parts),
            session: or_place("session", self.session, &place.session)?,
            maintenance: self.maintenance.map_or(Ok(""), |at| text(MAINTENANCE_LABEL, at))?,
            elapsed_s,
            started_unix_ns,
        })
    }

    fn add_counters(&mut self, row: usize, line: u64, fields: &Split<'_>, building: &mut Building) {
        for column in &mut self.unused {
            let field = fields.get(column.at);
            if !is_absent(field) {
                column.add(field, |field| number(field).is_some());
            }
        }
        for counter in &mut self.counters {
            let field = fields.get(counter.at);
            if is_absent(field) {
                continue;
            }
            match number(field).filter(|value| value.is_finite()) {
                Some(value) => {
                    counter.numbers += 1;
                    if let Some(slot) = counter.slot {
                        building.set(slot, row, value);
                    }
                }
                None => counter.wrong.add(line, || {
                    format!(
                        "{}: `{}` is not a number, so this value was left out",
                        shown(counter.name.as_bytes()),
                        shown(field)
                    )
                }),
            }
        }
    }

    /// Drops each column in which most values are not numbers: it is text.
    fn finish(self, building: &mut Building) {
        self.wrong_starts.tell(building);
        self.unused.into_iter().for_each(|column| building.unused(column));
        for counter in self.counters {
            let Counter { name, slot, numbers, wrong, .. } = counter;
            let Some(slot) = slot else {
                let name = if name.is_empty() { "a column without a name" } else { &name };
                building.unread(name, numbers + wrong.count());
                continue;
            };
            if wrong.count() > numbers {
                building.unset(slot);
                building.unread(&name, numbers + wrong.count());
            } else {
                wrong.tell(building);
            }
        }
    }
}

impl Classes {
    fn find(names: &[String], place: &PathParts, options: &ImportOptions) -> Self {
        let asked = options.class_by.read_columns();
        // The declared class identifies a run, whatever makes up a class.
        let declared = (!options.class_by.has(&Key::Class)).then_some((&Key::Class, "class"));
        let at = |column: &str| names.iter().position(|name| name.eq_ignore_ascii_case(column));
        let columns = asked.chain(declared).filter_map(|(key, column)| Some((at(column)?, key.clone())));
        let columns: Vec<(usize, Key)> = columns.collect();
        let is_declared = columns.iter().any(|(_, key)| *key == Key::Class);
        let place = place.class.as_deref().filter(|_| !is_declared).map(|class| (Key::Class, class.into()));
        let by = options.class_by.clone();
        Self { by, columns, place, known: HashMap::new(), values: Vec::new() }
    }

    fn of(&mut self, fields: &Split<'_>, building: &mut Building) -> Result<&Class, String> {
        self.values.clear();
        for (at, _) in &self.columns {
            self.values.extend_from_slice(fields.get(*at));
            self.values.push(b'\n');
        }
        if !self.known.contains_key(&self.values) {
            let text = |(at, key): &(usize, Key)| {
                let field = fields.get(*at);
                let text =
                    str::from_utf8(field).map_err(|_| format!("class: `{}` is not UTF-8", shown(field)))?;
                Ok((key.clone(), text.into()))
            };
            let parts = self.columns.iter().map(text).chain(self.place.clone().map(Ok));
            let parts: Parts = parts.collect::<Result<_, String>>()?;
            building.has_parts(&parts, false);
            let class = Class { name: parts.class_of_others(&self.by), parts, ..Class::default() };
            self.known.insert(self.values.clone(), class);
        }
        Ok(&self.known[&self.values])
    }
}

/// Texts that tools write for "not measured".
fn is_absent(field: &[u8]) -> bool {
    const ABSENT: [&[u8]; 6] = [b"", b"na", b"n/a", b"nan", b"null", b"none"];
    field.len() <= 4 && ABSENT.iter().any(|absent| field.eq_ignore_ascii_case(absent))
}

fn number(field: &[u8]) -> Option<f64> {
    str::from_utf8(field).ok()?.parse().ok()
}

/// A time above zero, or what is wrong with it.
fn seconds(field: &[u8]) -> Result<f64, String> {
    match number(field) {
        Some(s) if s.is_finite() && s > 0.0 => Ok(s),
        Some(_) => Err(format!("elapsed_s: `{}` is not a time above zero", shown(field))),
        None => Err(format!("elapsed_s: `{}` {}", shown(field), why_no_number(field))),
    }
}

fn why_no_number(field: &[u8]) -> &'static str {
    const UNITS: [&[u8]; 12] = [
        b"s",
        b"ms",
        b"us",
        b"ns",
        b"\xc2\xb5s",
        b"\xce\xbcs",
        b"min",
        b"m",
        b"h",
        b"sec",
        b"secs",
        b"seconds",
    ];
    if field.is_empty() {
        return "is empty: expected a number of seconds";
    }
    let end = field.iter().position(|c| !(c.is_ascii_digit() || b"+-.".contains(c))).unwrap_or(field.len());
    let unit = field[end..].trim_ascii();
    if end > 0 && UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known)) {
        return "has a unit: expected a number of seconds without a unit";
    }
    if field.contains(&b',') {
        return "is not a number: use a point as the decimal sign, and do not group digits";
    }
    if field.contains(&b':') {
        return "is not a number: expected seconds, not hours and minutes";
    }
    "is not a number: expected seconds"
}
