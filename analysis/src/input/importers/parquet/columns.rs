//! Finds the meaning of each column of a Parquet file.

use crate::input::importers::building::{Building, shown};
use crate::input::importers::invalid_value::InvalidValues;
use crate::input::importers::path_pattern::PathParts;
use crate::input::importers::row::WRONG;
use crate::input::importers::{ImportFault, ImportOptions};
use crate::table::node_class::{ClassBy, Key};
use crate::table::{FACTS_COLUMN, MAINTENANCE_LABEL, NO_TIME_COLUMNS};
use polars::prelude::{ArrowDataType as Type, ArrowSchema};
use std::sync::LazyLock;

/// Stands for an event that the caller did not ask for.
pub(super) const UNWANTED: u32 = WRONG - 1;

/// A column that only archives have.
const OWN: &str = "measured_by_pmmpi";

/// The columns to read.
pub(super) struct Columns {
    pub node: Option<String>,
    pub run: Option<String>,
    pub elapsed: String,
    /// In a table of medians: the columns of the number of runs and of their deviation (s).
    pub medians: Option<(String, Option<String>)>,
    /// Columns that make up the class.
    pub class: Vec<ClassColumn>,
    /// True if the file has the archive columns that say what classes consist of.
    pub has_parts: bool,
    /// How these columns make up a class.
    pub class_by: ClassBy,
    /// True if the table keeps what classes consist of.
    pub keep_parts: bool,
    pub session: Option<String>,
    /// In an archive, the column of the label.
    pub maintenance: Option<String>,
    pub started: Option<String>,
    /// In an archive of runs, the facts of nodes.
    pub facts: Option<String>,
    pub is_own: Option<String>,
    /// In an archive of runs, why a row has no time: see [`NO_TIME_COLUMNS`].
    pub no_time: Option<[String; 2]>,
    /// In long files: column with the event's name, column with the value.
    pub event: Option<[String; 2]>,
    /// Column, and index of its counter in the table.
    pub counters: Vec<(String, usize)>,
    /// Values from the path, for all rows.
    pub place: PathParts,
    /// Indices of these columns in the file.
    projection: Vec<usize>,
    /// Start times and values that are not valid.
    pub wrong: InvalidValues,
}

/// A column with a part of the class.
pub(super) struct ClassColumn {
    pub name: String,
    pub key: Key,
    /// True if it is part of the class for results of other tools.
    pub of_others: bool,
    /// True if it is part of the class for runs of pmmpi.
    pub of_own: bool,
    /// True if the column has all facts of a node; `key` is one of these facts.
    pub has_all_facts: bool,
}

/// What a column's values can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Real,
    Truth,
    Instant,
    /// All rows lack a value.
    Null,
    Other,
}

impl Kind {
    /// True if it can be part of a class.
    fn is_key(self) -> bool {
        matches!(self, Self::Text | Self::Whole | Self::Real | Self::Truth)
    }
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

/// The column that says after which maintenance a run was made.
fn maintenance_column(is_archive: bool) -> &'static str {
    static OF_ARCHIVE: LazyLock<String> =
        LazyLock::new(|| Key::Named(MAINTENANCE_LABEL.to_owned()).column().unwrap_or_default());
    if is_archive { &OF_ARCHIVE } else { MAINTENANCE_LABEL }
}

impl Columns {
    pub fn find(
        schema: &ArrowSchema,
        rows: u64,
        place: &PathParts,
        options: &ImportOptions,
        building: &mut Building,
    ) -> Result<Self, ImportFault> {
        let all: Vec<(&str, Kind)> =
            schema.iter_values().map(|field| (field.name.as_str(), kind(&field.dtype))).collect();
        let find = |name: &str| all.iter().find(|(column, _)| column.eq_ignore_ascii_case(name));
        if find(OWN).is_some() {
            building.begin_archive();
        }
        // In an archive, names of labels may differ only in capital letters.
        let is_part = |name: &str| building.is_of_archive() && Key::of_column(name).is_some();
        let is_second = |name: &str| !is_part(name) && find(name).is_some_and(|first| first.0 != name);
        if let Some((name, _)) = all.iter().find(|(name, _)| is_second(name)) {
            return Err(ImportFault::TwoColumns(shown(name.as_bytes())));
        }
        let typed = |name: &'static str, kinds: &[Kind], expected: &str| match find(name) {
            Some((column, kind)) if kinds.contains(kind) => Ok(Some((*column).to_owned())),
            Some((_, Kind::Null)) => Ok(None),
            Some(_) => Err(ImportFault::OtherForm(format!(
                "its column `{name}` has the wrong type (expected: {expected}): convert the column"
            ))),
            None => Ok(None),
        };
        // Many programs convert an integer column with missing values to floating-point numbers.
        let text = [Kind::Text, Kind::Whole, Kind::Real];
        let numbers = [Kind::Whole, Kind::Real];
        let node = typed("node", &text, "text or integer")?;
        let run = typed("run", &text, "text or integer")?;
        let seconds = "floating-point or integer number of seconds";
        let elapsed = typed("elapsed_s", &numbers, seconds)?;
        let medians = match typed("median_s", &numbers, seconds) {
            Ok(Some(median)) if elapsed.is_none() => {
                let runs = typed("runs", &numbers, "integer")?.ok_or_else(|| {
                    let reason = "it has a column median_s, but no column `runs` with the number of runs";
                    ImportFault::OtherForm(reason.to_owned())
                })?;
                Some((median, runs, typed("deviation_s", &numbers, seconds)?))
            }
            _ => None,
        };
        // The row of a median has no run.
        let run = if medians.is_some() { None } else { run };
        let is_of_runs = medians.is_none();
        let (elapsed, medians) = match medians {
            Some((median, runs, deviation)) => (Some(median), Some((runs, deviation))),
            None => (elapsed, None),
        };
        let given = [
            node.is_some() || place.node.is_some(),
            run.is_some() || place.run.is_some() || !is_of_runs,
            elapsed.is_some(),
        ];
        let (Some(elapsed), [true, true, true]) = (elapsed, given) else {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            return Err(ImportFault::missing_columns(given, &names));
        };
        let event = match (typed("event", &text, "text"), typed("value", &numbers, "number")) {
            (Ok(Some(event)), Ok(Some(value))) => Some([event, value]),
            _ => None,
        };
        let no_time = NO_TIME_COLUMNS.map(|name| {
            let column = find(name).filter(|(_, kind)| building.is_of_archive() && *kind == Kind::Text);
            column.map(|(column, _)| (*column).to_owned())
        });
        let no_time = match no_time {
            [Some(why), Some(reason)] if medians.is_none() => Some([why, reason]),
            _ => None,
        };
        let mut columns = Self {
            node,
            run,
            elapsed,
            medians,
            class: Vec::new(),
            has_parts: false,
            class_by: options.class_by.clone(),
            keep_parts: options.keep_parts,
            session: typed("session", &text, "text or integer")?,
            maintenance: find(maintenance_column(building.is_of_archive()))
                .filter(|(_, kind)| text.contains(kind))
                .map(|(column, _)| (*column).to_owned()),
            started: typed("started", &[Kind::Instant, Kind::Text], "timestamp or text")?,
            facts: find(FACTS_COLUMN)
                .filter(|(_, kind)| building.is_of_archive() && *kind == Kind::Text)
                .map(|(column, _)| (*column).to_owned()),
            is_own: typed(OWN, &[Kind::Truth], "boolean")?,
            no_time,
            event,
            counters: Vec::new(),
            place: place.clone(),
            projection: Vec::new(),
            wrong: InvalidValues::default(),
        };
        columns.find_class(&all, options, building);
        columns.find_counters(&all, rows, building);
        columns.projection = (0..all.len()).filter(|at| columns.has(all[*at].0)).collect();
        Ok(columns)
    }

    /// An archive has a column for each part of a class. In results of other tools, a column has the meaning of its
    /// name.
    fn find_class(&mut self, all: &[(&str, Kind)], options: &ImportOptions, building: &Building) {
        let (by, archived) = (&options.class_by, building.is_of_archive());
        let parts = all.iter().filter(|(_, kind)| archived && kind.is_key());
        let parts = parts.filter_map(|(name, _)| Some((*name, Key::of_column(name)?)));
        let parts: Vec<(&str, Key)> = parts.collect();
        // In an archive `class` is computed from the parts, unless another program rewrote the file without them.
        let has_parts = !parts.is_empty();
        self.has_parts = has_parts;
        for (name, key) in parts {
            let is_id = key == Key::Class && building.keeps_declared();
            let of_others = options.keep_parts || is_id || by.wants_of_others(&key);
            let of_own = options.keep_parts || by.wants_of_own(&key);
            if of_others || of_own {
                let name = name.to_owned();
                self.class.push(ClassColumn { name, key, of_others, of_own, has_all_facts: false });
            }
        }
        let declared = (!by.has(&Key::Class)).then_some((&Key::Class, "class"));
        for (key, column) in by.read_columns().chain(declared) {
            // Numbers in an archive may be written in another way than in the original input.
            let may = |kind: &Kind| if archived { *kind == Kind::Text } else { kind.is_key() };
            let is_it = |(name, kind): &&(&str, Kind)| may(kind) && name.eq_ignore_ascii_case(column);
            let name = all.iter().find(is_it).map(|(name, _)| (*name).to_owned());
            if let Some(name) = name.filter(|name| !has_parts || !name.eq_ignore_ascii_case("class")) {
                let of_own = *key == Key::Class;
                let key = key.clone();
                self.class.push(ClassColumn { name, key, of_others: true, of_own, has_all_facts: false });
            }
        }
        for key in by.keys().filter(|key| matches!(key, Key::Fact(_))) {
            let is_known = self.class.iter().any(|column| column.key == *key);
            if let Some(name) = self.facts.clone().filter(|_| !is_known) {
                let (key, of_own) = (key.clone(), true);
                self.class.push(ClassColumn { name, key, of_others: false, of_own, has_all_facts: true });
            }
        }
        let is_declared = self.class.iter().any(|column| column.key == Key::Class);
        self.place.class = self.place.class.take().filter(|_| !is_declared);
    }

    /// All other columns with numbers are counters.
    fn find_counters(&mut self, all: &[(&str, Kind)], rows: u64, building: &mut Building) {
        if self.event.is_some() || self.medians.is_some() {
            return;
        }
        for (name, kind) in all {
            let is_class = building.is_of_archive()
                && (name.eq_ignore_ascii_case("class") || (kind.is_key() && Key::of_column(name).is_some()));
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
        let times = [&self.maintenance, &self.started];
        let single = [&self.node, &self.run, &self.session, &self.facts, &self.is_own];
        single.into_iter().chain(times).flatten().any(|column| column == name)
            || self.elapsed == name
            || self
                .medians
                .as_ref()
                .is_some_and(|(runs, deviation)| runs == name || deviation.as_deref() == Some(name))
            || self.class.iter().any(|column| column.name == name)
            || self.event.iter().chain(&self.no_time).flatten().any(|column| column == name)
            || self.counters.iter().any(|(column, _)| column == name)
    }

    /// Indices of the columns to read.
    pub fn projection(&self) -> Vec<usize> {
        self.projection.clone()
    }

    /// Reports the values that were left out.
    pub fn finish(self, building: &mut Building) {
        self.wrong.tell(building);
    }
}
