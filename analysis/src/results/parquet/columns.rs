//! What each column of a Parquet file is.

use crate::results::building::{Building, WRONG, shown};
use crate::results::path_pattern::Place;
use crate::results::{Fault, Options};
use polars::prelude::{ArrowDataType as Type, ArrowSchema};

/// Stands for an event that nobody asked for.
pub(super) const UNWANTED: u32 = WRONG - 1;

/// The columns that are read.
pub(super) struct Columns {
    pub node: Option<String>,
    pub run: Option<String>,
    pub elapsed: String,
    /// Columns that make the class, and what is written before their values.
    pub class: Vec<(String, String)>,
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

/// Values that were left out of rows that were kept: all are counted, the first are told.
#[derive(Default)]
pub(super) struct Wrong {
    count: u64,
    first: Vec<(u64, String)>,
}

impl Wrong {
    const TOLD: usize = 10;

    pub fn add(&mut self, line: u64, reason: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < Self::TOLD {
            self.first.push((line, reason()));
        }
    }
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
        if let Some((name, _)) = all.iter().find(|(name, _)| find(name).is_some_and(|first| first.0 != *name))
        {
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

    /// Classes of an archive stand in it as they are.
    fn find_class(&mut self, all: &[(&str, Kind)], options: &Options, building: &mut Building) {
        let keys: Vec<&str> = options.class_by.columns().collect();
        let archived = building.is_of_archive() && options.class_by.keys().next().is_some();
        let keys = if archived { vec!["class"] } else { keys };
        let mut place = self.place.class.take().filter(|_| keys.contains(&"class"));
        for key in keys {
            let found = all.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
            let Some((name, _)) =
                found.filter(|(_, kind)| matches!(kind, Kind::Text | Kind::Whole | Kind::Real))
            else {
                continue;
            };
            building.has_class_key(key);
            let before = if key == "class" { String::new() } else { format!("{key}=") };
            if key == "class" {
                place = None;
            }
            self.class.push(((*name).to_owned(), before));
        }
        self.place.class = place;
    }

    /// Whatever other column is of numbers.
    fn find_counters(&mut self, all: &[(&str, Kind)], rows: u64, building: &mut Building) {
        if self.event.is_some() {
            return;
        }
        for (name, kind) in all {
            if self.has(name) {
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
            || self.class.iter().any(|(column, _)| column == name)
            || self.event.iter().flatten().any(|column| column == name)
            || self.counters.iter().any(|(column, _)| column == name)
    }

    /// Numbers of the columns that are read.
    pub fn projection(&self) -> Vec<usize> {
        self.projection.clone()
    }

    /// Tells what was left out.
    pub fn finish(self, building: &mut Building) {
        building.reject_values(self.wrong.count, self.wrong.first);
    }
}
