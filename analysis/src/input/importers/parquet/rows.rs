//! Turns a part of a Parquet file into rows of the table.

use super::classes::Classes;
use super::columns::{ClassColumn, Columns, UNWANTED};
use super::names;
use crate::input::importers::building::{Building, check_name, shown};
use crate::input::importers::invalid_value::InvalidValues;
use crate::input::importers::row::{NameColumn, Numbered, RowPart, WRONG};
use crate::table::instant;
use crate::table::{MedianOf, NoTime, UNDATED};
use hashbrown::HashMap;
use polars::prelude::{Column as Values, DataFrame, DataType, PolarsResult, TimeUnit};

/// The name of the run of a row that is a median.
const MEDIAN: &str = "median";

/// Why rows of an archive have no time. Few files have such rows.
#[derive(Default)]
struct NoTimes(HashMap<usize, (NoTime, String)>);

impl NoTimes {
    fn of(frame: &DataFrame, columns: &Columns) -> PolarsResult<Self> {
        let Some(names) = &columns.no_time else { return Ok(Self::default()) };
        let [whys, reasons] = names.each_ref().map(|name| frame.column(name)?.cast(&DataType::String));
        let (whys, reasons) = (whys?, reasons?);
        let all = whys.str()?.iter().zip(reasons.str()?.iter()).enumerate();
        let known = all.filter_map(|(row, (why, reason))| {
            // A later version may write other words.
            let why = why.map(|why| NoTime::of_name(why).unwrap_or(NoTime::Invalid))?;
            Some((row, (why, reason.unwrap_or_default().to_owned())))
        });
        Ok(Self(known.collect()))
    }

    fn at(&self, row: usize) -> Option<(NoTime, &str)> {
        self.0.get(&row).map(|(why, reason)| (*why, reason.as_str()))
    }
}

/// Adds the rows of a frame. The file has `before` rows before the frame. A line is the number of the row in the
/// file.
pub(super) fn add(
    frame: &DataFrame,
    before: u64,
    columns: &mut Columns,
    building: &mut Building,
) -> PolarsResult<()> {
    let height = frame.height();
    let named =
        |of: NameColumn, name: &Option<String>, place: &Option<String>, building: &mut Building| match name {
            Some(name) => names::numbers(frame.column(name)?, of, building),
            None => {
                let number = building.number(of, place.as_deref().unwrap_or_default()).unwrap_or(WRONG);
                Ok(vec![number; height])
            }
        };
    let node = named(NameColumn::Node, &columns.node, &columns.place.node, building)?;
    let run = match columns.medians {
        Some(_) => vec![building.number(NameColumn::Run, MEDIAN).unwrap_or(WRONG); height],
        None => named(NameColumn::Run, &columns.run, &columns.place.run, building)?,
    };
    let session = named(NameColumn::Session, &columns.session, &columns.place.session, building)?;
    let elapsed_s = reals(frame.column(&columns.elapsed)?)?;
    let started = match &columns.started {
        Some(name) => starts(frame.column(name)?, before, &mut columns.wrong)?,
        None => vec![UNDATED; height],
    };
    let is_own = match &columns.is_own {
        Some(name) => frame.column(name)?.bool()?.iter().map(|own| own == Some(true)).collect(),
        None => vec![false; height],
    };
    let facts = match &columns.facts {
        Some(name) => names::map(frame.column(name)?, |text| building.facts_number(text))?,
        None => Vec::new(),
    };
    let Classes { class, declared, parts } = Classes::of(frame, &is_own, columns, building)?;
    let medians = medians(frame, &elapsed_s, columns)?;
    // The name of a median does not identify a run of pmmpi.
    let is_own = if medians.is_empty() { is_own } else { vec![false; height] };
    let no_time = NoTimes::of(frame, columns)?;
    if let Some(name) = &columns.maintenance {
        let labels = frame.column(name)?.cast(&DataType::String)?;
        let rows = node.iter().zip(&session).zip(labels.str()?.iter()).enumerate();
        let is_named = |row: usize, [node, session]: [u32; 2]| {
            node != WRONG && session != WRONG && no_time.at(row).is_none()
        };
        let named = rows.filter(|(row, ((node, session), _))| is_named(*row, [**node, **session]));
        building.add_maintenance(named.map(|(_, ((node, session), label))| (*node, *session, label)));
    }
    let part = RowPart {
        line: before + 1,
        node,
        run,
        is_own,
        class,
        declared,
        parts,
        session,
        elapsed_s,
        started_unix_ns: started,
        medians,
        facts,
    };
    let rows = (0..height).map(|row| part.row(row));
    match columns.event.clone() {
        None if part.is_whole() && part.medians.iter().all(|of| of.runs > 0) => {
            let values = values(frame, before, columns)?;
            let first = building.add_part(&part);
            set(&values, (0..height).map(|row| Some(first + row)), building);
            Ok(())
        }
        None => wide(frame, before, rows, &no_time, columns, building),
        Some(event) => long(frame, before, rows, &event, columns, building),
    }
}

/// The runs behind each median; empty if the rows are runs. A number of runs that is not valid is 0, and the row is rejected.
fn medians(frame: &DataFrame, median_s: &[f64], columns: &Columns) -> PolarsResult<Vec<MedianOf>> {
    let Some((runs, deviation)) = &columns.medians else { return Ok(Vec::new()) };
    let runs = reals(frame.column(runs)?)?;
    let deviation_s = match deviation {
        Some(name) => reals(frame.column(name)?)?,
        None => vec![f64::NAN; runs.len()],
    };
    let is_number = |runs: f64| runs.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&runs);
    let of = |((runs, deviation_s), median_s): ((&f64, f64), &f64)| MedianOf {
        runs: if is_number(*runs) { *runs as u32 } else { 0 },
        deviation: if deviation_s >= 0.0 { (deviation_s / median_s) as f32 } else { f32::NAN },
    };
    Ok(runs.iter().zip(deviation_s).zip(median_s).map(of).collect())
}

/// Each row of the frame becomes one row of the table.
fn wide(
    frame: &DataFrame,
    before: u64,
    rows: impl Iterator<Item = Numbered>,
    no_time: &NoTimes,
    columns: &mut Columns,
    building: &mut Building,
) -> PolarsResult<()> {
    let values = values(frame, before, columns)?;
    let place = |(at, row): (usize, Numbered)| match no_time.at(at) {
        Some((why, reason)) => {
            add_without_time(row, why, reason, building);
            None
        }
        None => checked(&row, frame, before, columns, building),
    };
    let places: Vec<Option<usize>> = rows.enumerate().map(place).collect();
    set(&values, places.into_iter(), building);
    Ok(())
}

/// Adds a row of an archive that has no time.
fn add_without_time(row: Numbered, why: NoTime, reason: &str, building: &mut Building) {
    // A run may have failed before any node was known.
    let node = if row.node == WRONG && row.is_own { building.nowhere() } else { row.node };
    match [node, row.run, row.class, row.session].contains(&WRONG) {
        true => building.reject_numbered(&row, "node, run, class or session is not valid"),
        false => building.archived_without_time(&Numbered { node, ..row }, why, reason),
    }
}

/// For each counter: its index in the table, and its value in each row.
fn values(frame: &DataFrame, before: u64, columns: &mut Columns) -> PolarsResult<Vec<(usize, Vec<f64>)>> {
    let mut all = Vec::new();
    for (name, slot) in &columns.counters {
        let values = reals(frame.column(name)?)?;
        for (row, value) in values.iter().enumerate().filter(|(_, value)| value.is_infinite()) {
            let name = shown(name.as_bytes());
            columns.wrong.add(before + row as u64 + 1, || {
                format!("{name}: `{value}` is not a number, so this value was left out")
            });
        }
        all.push((*slot, values));
    }
    Ok(all)
}

/// Sets the values of the rows that are in the table.
fn set(
    values: &[(usize, Vec<f64>)],
    places: impl Iterator<Item = Option<usize>> + Clone,
    building: &mut Building,
) {
    for (slot, values) in values {
        for (at, value) in places.clone().zip(values) {
            if let Some(at) = at.filter(|_| value.is_finite()) {
                building.set(*slot, at, *value);
            }
        }
    }
}

/// Each row has one value of a run. All rows of a run must have the same time.
fn long(
    frame: &DataFrame,
    before: u64,
    rows: impl Iterator<Item = Numbered>,
    [event, value]: &[String; 2],
    columns: &mut Columns,
    building: &mut Building,
) -> PolarsResult<()> {
    let slots = names::map(frame.column(event)?, |event| match building.counter(event) {
        Some(slot) => slot as u32,
        None if event.is_empty() || building.wants(event) => WRONG,
        None => UNWANTED,
    })?;
    let values = reals(frame.column(value)?)?;
    let mut last: Option<([u32; 4], usize)> = None;
    for ((row, slot), value) in rows.zip(slots).zip(values) {
        let class = if building.keeps_declared() { row.declared } else { row.class };
        let key = [row.node, row.run, class, row.session];
        let known = match last {
            Some((last, at)) if last == key => Some(at),
            _ => building.long_run(key),
        };
        let at = match known {
            Some(at) => at,
            None => {
                let Some(at) = checked(&row, frame, before, columns, building) else { continue };
                building.set_long_run(key, at);
                at
            }
        };
        last = Some((key, at));
        if building.is_of_another_file(at) {
            building.withdraw(at);
            let reason = "another file also has rows of this run, so pmmpi cannot add up the run's values: \
                          join the files";
            building.reject(row.line, reason);
            continue;
        }
        if building.class(at) != row.class {
            building.reject(row.line, "the class differs from the class in the run's first row");
            continue;
        }
        let first = building.elapsed_s(at);
        if first.to_bits() != row.elapsed_s.to_bits() {
            let reason = format!("elapsed_s is {} here, but {first} in the run's first row", row.elapsed_s);
            building.reject(row.line, reason);
            continue;
        }
        if slot == WRONG {
            building.reject(
                row.line,
                "event is not a valid counter name, or there are too many counters".to_owned(),
            );
            continue;
        }
        if slot == UNWANTED {
            continue;
        }
        building.sum(slot as usize, at, value);
        if !value.is_finite() {
            columns.wrong.add(row.line, || {
                "value is not a number, so pmmpi cannot add up this event for the run".to_owned()
            });
        }
    }
    Ok(())
}

/// The row's place in the table; `None` if it was rejected.
fn checked(
    row: &Numbered,
    frame: &DataFrame,
    before: u64,
    columns: &Columns,
    building: &mut Building,
) -> Option<usize> {
    if columns.medians.is_some() && row.median_of.runs == 0 {
        building.reject(row.line, "`runs` is not a whole number above zero");
        return None;
    }
    let place = &columns.place;
    let names = [
        (NameColumn::Node, row.node, &columns.node, &place.node),
        (NameColumn::Run, row.run, &columns.run, &place.run),
        (NameColumn::Session, row.session, &columns.session, &place.session),
    ];
    let at = row.line - before - 1;
    let reason = match names.into_iter().find(|(_, number, ..)| *number == WRONG) {
        Some((of, _, name, place)) => {
            let text = name.as_ref().map_or_else(|| place.clone(), |name| text_of(frame, name, at));
            let why = building.number(of, &text.unwrap_or_default()).err();
            why.unwrap_or_else(|| "a name is not valid".to_owned())
        }
        None if row.class.max(row.declared) == WRONG => why_no_class(frame, at, columns),
        None => return building.add_numbered(row),
    };
    building.reject_numbered(row, reason);
    None
}

/// The first column with an invalid part of the class, and what is wrong with this part.
fn why_no_class(frame: &DataFrame, at: u64, columns: &Columns) -> String {
    let wrong = |of: &ClassColumn| {
        check_name(&shown(of.name.as_bytes()), &text_of(frame, &of.name, at)?, false).err()
    };
    columns
        .class
        .iter()
        .find_map(wrong)
        .unwrap_or_else(|| "the texts in the columns of the class are too long".to_owned())
}

/// The text in a row of the frame.
fn text_of(frame: &DataFrame, name: &str, row: u64) -> Option<String> {
    let value = frame.column(name).ok()?.slice(row as i64, 1).cast(&DataType::String).ok()?;
    value.str().ok()?.get(0).map(str::to_owned)
}

/// NaN for a missing value.
fn reals(values: &Values) -> PolarsResult<Vec<f64>> {
    let values = values.cast(&DataType::Float64)?;
    let mut reals = Vec::with_capacity(values.len());
    for array in values.f64()?.downcast_iter() {
        reals.extend(array.iter().map(|value| value.copied().unwrap_or(f64::NAN)));
    }
    Ok(reals)
}

/// A time without a time zone counts as UTC.
fn starts(values: &Values, before: u64, wrong: &mut InvalidValues) -> PolarsResult<Vec<i64>> {
    let values = match values.dtype() {
        DataType::Date => &values.cast(&DataType::Datetime(TimeUnit::Milliseconds, None))?,
        _ => values,
    };
    if let DataType::Datetime(unit, _) = values.dtype() {
        let unit_ns = match unit {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
        };
        let counts = values.cast(&DataType::Int64)?;
        let ns = |(row, count): (usize, Option<i64>)| {
            let ns = count.map(|count| count.checked_mul(unit_ns));
            if ns == Some(None) {
                let line = before + row as u64 + 1;
                wrong.add(line, || {
                    "started is before 1678 or after 2261, so this value was left out".to_owned()
                });
            }
            ns.flatten().unwrap_or(UNDATED)
        };
        return Ok(counts.i64()?.iter().enumerate().map(ns).collect());
    }
    let texts = values.cast(&DataType::String)?;
    let start = |(row, text): (usize, Option<&str>)| {
        let text = text.unwrap_or_default().trim();
        let ns = instant::unix_ns(text.as_bytes());
        if ns.is_none() && !text.is_empty() {
            let expected = "expected RFC 3339, such as 2026-11-21T20:35:00+01:00";
            let text = shown(text.as_bytes());
            wrong.add(before + row as u64 + 1, || format!("started: `{text}` was left out: {expected}"));
        }
        ns.unwrap_or(UNDATED)
    };
    Ok(texts.str()?.iter().enumerate().map(start).collect())
}
