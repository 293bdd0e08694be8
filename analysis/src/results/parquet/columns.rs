//! What each column of a Parquet file is.

use crate::class::{ClassBy, Key};
use crate::results::building::{Building, shown};
use crate::results::path_pattern::Place;
use crate::results::row::WRONG;
use crate::results::wrong::Wrong;
use crate::results::{Fault, Options};
use polars::prelude::{ArrowDataType as Type, ArrowSchema};

/// Stands for an event that nobody asked for.
pub(super) const UNWANTED: u32 = WRONG - 1;

/// The columns that are read.
pub(super) struct Columns {
    pub node: Option<String>,
    pub run: Option<String>,
    pub elapsed: String,
    /// Columns of which the class is made.
    pub class: Vec<ClassColumn>,
    /// What makes a class of them.
    pub class_by: ClassBy,
    pub session: Option<String>,
    pub started: Option<String>,
    pub is_own: Option<String>,
    /// Of long files: name of the event, value.
    pub event: Option<[String; 2]>,
    /// Column and place of its values in the table.
    pub counters: Vec<(String, usize)>,
    /// What the path says of all rows.
    pub place: Place,
    /// Numbers of those in the file.
    projection: Vec<usize>,
    /// Starts and values that make no sense.
    pub wrong: Wrong,
}

/// A column with a part of the class.
pub(super) struct ClassColumn {
    pub name: String,
    pub key: Key,
    /// Of a run of pmmpi's own it says nothing.
    pub of_others: bool,
}

/// What can be made of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Real,
    Truth,
    Instant,
    /// No row has a value.
    Null,
    Other,
}

fn kind(of: &Type) -> Kind {
    match of {
        Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => Kind::Text,
        Type::Dictionary(_, values, _) => kind(values),
        Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => Kind::Whole,
        Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => Kind::Whole,
        Type::Float32 | Type::Float64 => Kind::Real,
        Type::Boolean => Kind::Truth,
        Type::Timestamp(..) | Type::Date32 => Kind::Instant,
        Type::Null => Kind::Null,
        _ => Kind::Other,
    }
}

impl Columns {
    pub fn find(
        schema: &ArrowSchema,
        rows: u64,
        place: &Place,
        options: &Options,
        building: &mut Building,
    ) -> Result<Self, Fault> {
        let all: Vec<(&str, Kind)> =
            schema.iter_values().map(|field| (field.name.as_str(), kind(&field.dtype))).collect();
        let find = |name: &str| all.iter().find(|(column, _)| column.eq_ignore_ascii_case(name));
        // Of an archive: names of labels differ in small and capital letters.
        let is_part = |name: &str| building.is_of_archive() && Key::of_column(name).is_some();
        let is_second = |name: &str| !is_part(name) && find(name).is_some_and(|first| first.0 != name);
        if let Some((name, _)) = all.iter().find(|(name, _)| is_second(name)) {
            return Err(Fault::TwoColumns(shown(name.as_bytes())));
        }
        let typed = |name: &'static str, kinds: &[Kind], expected: &str| match find(name) {
            Some((column, kind)) if kinds.contains(kind) => Ok(Some((*column).to_owned())),
            Some((_, Kind::Null)) => Ok(None),
            Some(_) => Err(Fault::OtherForm(format!("its column {name} is no {expected}: cast it"))),
            None => Ok(None),
        };
        // A column with a gap becomes one of floating-point numbers in many a program.
        let text = [Kind::Text, Kind::Whole, Kind::Real];
        let numbers = [Kind::Whole, Kind::Real];
        let node = typed("node", &text, "text or integer")?;
        let run = typed("run", &text, "text or integer")?;
        let elapsed = typed("elapsed_s", &numbers, "floating-point or integer number of seconds")?;
        let given =
            [node.is_some() || place.node.is_some(), run.is_some() || place.run.is_some(), elapsed.is_some()];
        let (Some(elapsed), [true, true, true]) = (elapsed, given) else {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            return Err(Fault::missing_columns(given, &names));
        };
        let event = match (typed("event", &text, "text"), typed("value", &numbers, "number")) {
            (Ok(Some(event)), Ok(Some(value))) => Some([event, value]),
            _ => None,
        };
        let mut columns = Self {
            node,
            run,
            elapsed,
            class: Vec::new(),
            class_by: options.class_by.clone(),
            session: typed("session", &text, "text or integer")?,
            started: typed("started", &[Kind::Instant, Kind::Text], "timestamp or text")?,
            is_own: typed("measured_by_pmmpi", &[Kind::Truth], "boolean")?,
            event,
            counters: Vec::new(),
            place: place.clone(),
            projection: Vec::new(),
            wrong: Wrong::default(),
        };
        columns.find_class(&all, options, building);
        columns.find_counters(&all, rows, building);
        columns.projection = (0..all.len()).filter(|at| columns.has(all[*at].0)).collect();
        Ok(columns)
    }

    /// An archive has a column for each part of classes; of others' results a column is what its name says.
    fn find_class(&mut self, all: &[(&str, Kind)], options: &Options, building: &mut Building) {
        let all = all.iter().filter(|(_, kind)| matches!(kind, Kind::Text | Kind::Whole | Kind::Real));
        let all = all.map(|(name, _)| *name);
        let archived = building.is_of_archive();
        if archived {
            let parts = all.clone().filter_map(|name| Some((name, Key::of_column(name)?)));
            for (name, key) in parts.filter(|(_, key)| building.keeps_parts() || self.class_by.wants(key)) {
                self.class.push(ClassColumn { name: name.to_owned(), key, of_others: false });
            }
        }
        // In an archive `class` is what was made of the parts.
        for (key, column) in options.class_by.columns().filter(|(key, _)| !archived || **key != Key::Class) {
            if let Some(name) = all.clone().find(|name| name.eq_ignore_ascii_case(column)) {
                self.class.push(ClassColumn { name: name.to_owned(), key: key.clone(), of_others: true });
            }
        }
        for (key, column) in options.class_by.columns() {
            let is_it = |known: &Key| match (known, key) {
                (Key::Named(known), Key::Named(name)) => known.eq_ignore_ascii_case(name),
                _ => known == key,
            };
            if self.class.iter().any(|column| is_it(&column.key)) {
                building.has_class_key(column);
            }
        }
        let is_declared = self.class.iter().any(|column| column.key == Key::Class);
        self.place.class =
            self.place.class.take().filter(|_| !is_declared && options.class_by.has(&Key::Class));
    }

    /// Whatever other column is of numbers.
    fn find_counters(&mut self, all: &[(&str, Kind)], rows: u64, building: &mut Building) {
        if self.event.is_some() {
            return;
        }
        for (name, kind) in all {
            let is_class = building.is_of_archive() && (*name == "class" || Key::of_column(name).is_some());
            if self.has(name) || is_class {
                continue;
            }
            let is_number = matches!(kind, Kind::Whole | Kind::Real);
            match building.counter(name).filter(|_| is_number) {
                Some(slot) => self.counters.push(((*name).to_owned(), slot)),
                None if is_number && !building.wants(name) => {}
                None => building.unread(name, rows),
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let single = [&self.node, &self.run, &self.session, &self.started, &self.is_own];
        single.into_iter().flatten().any(|column| column == name)
            || self.elapsed == name
            || self.class.iter().any(|column| column.name == name)
            || self.event.iter().flatten().any(|column| column == name)
            || self.counters.iter().any(|(column, _)| column == name)
    }

    /// Numbers of the columns that are read.
    pub fn projection(&self) -> Vec<usize> {
        self.projection.clone()
    }

    /// Tells what was left out.
    pub fn finish(self, building: &mut Building) {
        self.wrong.tell(building);
    }
}
