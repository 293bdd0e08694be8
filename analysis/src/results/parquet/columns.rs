//! What each column of a Parquet file is.

use crate::results::building::{Building, WRONG, shown};
use crate::results::path_pattern::Place;
use crate::results::{Fault, Options};
use polars::prelude::{ArrowDataType as Type, ArrowSchema};

/// Events of a long file: more are a mistake, and each takes memory for every run.
pub(super) const MOST_EVENTS: usize = 4096;
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
    /// Those that are asked for; else all.
    wanted: Option<&'static [&'static str]>,
    /// Of a long file.
    events: usize,
    /// Rows of runs of a long file.
    pub known_runs: hashbrown::HashMap<[u32; 4], usize>,
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
        Type::Timestamp(..) => Kind::Instant,
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
            Some(_) => Err(Fault::OtherForm(format!("its column {name} is no {expected}: cast it"))),
            None => Ok(None),
        };
        let text = [Kind::Text, Kind::Whole];
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
            wanted: options.counters,
            events: 0,
            known_runs: hashbrown::HashMap::new(),
        };
        columns.find_class(&all, options, building);
        columns.find_counters(&all, rows, building);
        columns.projection = (0..all.len()).filter(|at| columns.has(all[*at].0)).collect();
        Ok(columns)
    }

    fn find_class(&mut self, all: &[(&str, Kind)], options: &Options, building: &mut Building) {
        let mut place =
            self.place.class.take().filter(|_| options.class_by.columns().any(|key| key == "class"));
        for key in options.class_by.columns() {
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
            match kind {
                Kind::Whole | Kind::Real if self.wants(name) && !name.is_empty() => {
                    self.counters.push(((*name).to_owned(), building.counter(name)));
                }
                Kind::Whole | Kind::Real => {}
                _ => building.unread(name, rows),
            }
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.is_none_or(|wanted| wanted.contains(&name))
    }

    /// Where values of an event go.
    pub fn slot(&mut self, event: &str, building: &mut Building) -> u32 {
        if !event.is_empty() && !self.wants(event) {
            return UNWANTED;
        }
        if event.is_empty() || self.events == MOST_EVENTS && !building.has_counter(event) {
            return WRONG;
        }
        self.events += usize::from(!building.has_counter(event));
        building.counter(event) as u32
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
