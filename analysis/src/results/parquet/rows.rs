//! From a part of a Parquet file to rows.

use super::columns::{ClassColumn, Columns, UNWANTED};
use super::names;
use crate::class::{Key, Parts};
use crate::results::building::{Building, shown};
use crate::results::instant;
use crate::results::row::{Column, Numbered, Part, WRONG};
use crate::results::wrong::Wrong;
use crate::table::{Names, UNDATED};
use hashbrown::HashMap;
use polars::prelude::{Column as Values, DataFrame, DataType, PolarsResult, TimeUnit};

/// Adds the rows of a frame; `before` rows of the file came before it. A line is the number of the row.
pub(super) fn add(
    frame: &DataFrame,
    before: u64,
    columns: &mut Columns,
    building: &mut Building,
) -> PolarsResult<()> {
    let height = frame.height();
    let named =
        |of: Column, name: &Option<String>, place: &Option<String>, building: &mut Building| match name {
            Some(name) => names::numbers(frame.column(name)?, of, building),
            None => {
                let number = building.number(of, place.as_deref().unwrap_or_default()).unwrap_or(WRONG);
                Ok(vec![number; height])
            }
        };
    let node = named(Column::Node, &columns.node, &columns.place.node, building)?;
    let run = named(Column::Run, &columns.run, &columns.place.run, building)?;
    let session = named(Column::Session, &columns.session, &columns.place.session, building)?;
    let elapsed_s = reals(frame.column(&columns.elapsed)?)?;
    let started = match &columns.started {
        Some(name) => starts(frame.column(name)?, before, &mut columns.wrong)?,
        None => vec![UNDATED; height],
    };
    let is_own = match &columns.is_own {
        Some(name) => frame.column(name)?.bool()?.iter().map(|own| own == Some(true)).collect(),
        None => vec![false; height],
    };
    let Classes { class, declared, parts } = classes(frame, &is_own, columns, building)?;
    let lack = building.no_lack();
    let part = Part {
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
        lack,
    };
    let rows = (0..height).map(|row| part.row(row));
    match columns.event.clone() {
        None if part.is_whole() => {
            let values = values(frame, before, columns)?;
            let first = building.add_part(&part);
            set(&values, (0..height).map(|row| Some(first + row)), building);
            Ok(())
        }
        None => wide(frame, before, rows, columns, building),
        Some(event) => long(frame, before, rows, &event, columns, building),
    }
}

/// Each row is one of the table.
fn wide(
    frame: &DataFrame,
    before: u64,
    rows: impl Iterator<Item = Numbered>,
    columns: &mut Columns,
    building: &mut Building,
) -> PolarsResult<()> {
    let values = values(frame, before, columns)?;
    let places: Vec<Option<usize>> =
        rows.map(|row| checked(&row, frame, before, columns, building)).collect();
    set(&values, places.into_iter(), building);
    Ok(())
}

/// What was counted: place of the counter, and its value in each row.
fn values(frame: &DataFrame, before: u64, columns: &mut Columns) -> PolarsResult<Vec<(usize, Vec<f64>)>> {
    let mut all = Vec::new();
    for (name, slot) in &columns.counters {
        let values = reals(frame.column(name)?)?;
        for (row, value) in values.iter().enumerate().filter(|(_, value)| value.is_infinite()) {
            let name = shown(name.as_bytes());
            columns
                .wrong
                .add(before + row as u64 + 1, || format!("{name}: `{value}` is no number: left out"));
        }
        all.push((*slot, values));
    }
    Ok(all)
}

/// In rows that have places in the table.
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

/// Each row is a value of a run, whose time is the same in all of its rows.
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
            let reason = "its run is in another long file, too: what it counted has no sum. Join the files";
            building.reject(row.line, reason);
            continue;
        }
        if building.class(at) != row.class {
            building.reject(row.line, "class: it is another than in the run's first row");
            continue;
        }
        let first = building.elapsed_s(at);
        if first.to_bits() != row.elapsed_s.to_bits() {
            let reason = format!("elapsed_s: {} here, {first} in the run's first row", row.elapsed_s);
            building.reject(row.line, reason);
            continue;
        }
        if slot == WRONG {
            building.reject(
                row.line,
                "event: it is none that can be a counter's name, or one too many".to_owned(),
            );
            continue;
        }
        if slot == UNWANTED {
            continue;
        }
        building.sum(slot as usize, at, value);
        if !value.is_finite() {
            columns
                .wrong
                .add(row.line, || "value: it is no number: the run has no sum of this event".to_owned());
        }
    }
    Ok(())
}

/// The row's place in the table; `None` of one that was rejected.
fn checked(
    row: &Numbered,
    frame: &DataFrame,
    before: u64,
    columns: &Columns,
    building: &mut Building,
) -> Option<usize> {
    let names = [
        (Column::Node, row.node, &columns.node),
        (Column::Run, row.run, &columns.run),
        (Column::Class, row.class.max(row.declared), &None),
        (Column::Session, row.session, &columns.session),
    ];
    let wrong = names.into_iter().find(|(_, number, _)| *number == WRONG);
    let Some((of, _, name)) = wrong else { return building.add_numbered(row) };
    let text = name.as_ref().and_then(|name| text_of(frame, name, row.line - before - 1));
    let reason = building.number(of, text.as_deref().unwrap_or_default()).err();
    let no_class = "class: it is too long, or has a control character";
    building.reject(row.line, reason.unwrap_or_else(|| no_class.to_owned()));
    None
}

/// As it stands in a row of the frame.
fn text_of(frame: &DataFrame, name: &str, row: u64) -> Option<String> {
    let value = frame.column(name).ok()?.slice(row as i64, 1).cast(&DataType::String).ok()?;
    value.str().ok()?.get(0).map(str::to_owned)
}

/// Of each row.
#[derive(Default)]
struct Classes {
    class: Vec<u32>,
    /// That it was declared to be of; empty where it is the same for all.
    declared: Vec<u32>,
    /// Number of what it is made of; empty where that is not kept.
    parts: Vec<u32>,
}

/// From what is known of a row to what the next column says of it.
struct Step {
    before: Option<u32>,
    column: usize,
    value: u32,
    is_own: bool,
}

impl Step {
    fn begin(is_own: bool) -> Self {
        Self { before: None, column: 0, value: 0, is_own }
    }
}

fn classes(
    frame: &DataFrame,
    is_own: &[bool],
    columns: &Columns,
    building: &mut Building,
) -> PolarsResult<Classes> {
    let archived = building.is_of_archive();
    let (keep_declared, keep_parts) = (building.keeps_declared(), columns.keep_parts);
    if let [ClassColumn { name, key: Key::Class, .. }] = columns.class.as_slice()
        && !(archived || keep_declared || keep_parts)
    {
        let class = names::numbers(frame.column(name)?, Column::Class, building)?;
        return Ok(Classes { class, ..Classes::default() });
    }
    // Of others' results, and of runs of pmmpi's own.
    let mut steps = vec![Step::begin(false), Step::begin(true)];
    let mut last: Vec<u32> = is_own.iter().map(|own| u32::from(*own)).collect();
    let has = [is_own.contains(&false), is_own.contains(&true)];
    if has[1] && !columns.has_parts {
        building.has_no_parts();
    }
    let mut texts: Vec<Names> = Vec::new();
    for ClassColumn { name, of_others, of_own, .. } in &columns.class {
        let (column, mut values, says) = (texts.len(), Names::default(), [*of_others, *of_own]);
        if has[0] && says[0] || has[1] && says[1] {
            let numbers = names::map(frame.column(name)?, |text| values.number(text))?;
            // A pair that was seen is not made again.
            let mut pairs = HashMap::new();
            for (last, value) in last.iter_mut().zip(numbers) {
                *last = *pairs.entry((*last, value)).or_insert_with(|| {
                    let is_own = steps[*last as usize].is_own;
                    if !says[usize::from(is_own)] {
                        return *last;
                    }
                    steps.push(Step { before: Some(*last), column, value, is_own });
                    steps.len() as u32 - 1
                });
            }
        }
        texts.push(values);
    }
    let parts_of = |last: u32| {
        let mut parts = Parts::default();
        let path = std::iter::successors(Some(last), |step| steps[*step as usize].before);
        let mut path: Vec<u32> = path.collect();
        path.reverse();
        for Step { column, value, .. } in path[1..].iter().map(|step| &steps[*step as usize]) {
            parts.add(&columns.class[*column].key, texts[*column].get(*value).unwrap_or_default());
        }
        if let Some(class) = columns.place.class.as_deref().filter(|_| !steps[last as usize].is_own) {
            parts.add(&Key::Class, class);
        }
        parts
    };
    let mut known: Vec<Option<[u32; 3]>> = vec![None; steps.len()];
    let mut classes = Classes::default();
    for last in last {
        let [class, declared, parts] = *known[last as usize].get_or_insert_with(|| {
            let (parts, is_own, by) = (parts_of(last), steps[last as usize].is_own, &columns.class_by);
            building.has_parts(&parts, is_own);
            let class = if is_own { parts.class_of_own(by) } else { parts.class_of_others(by) };
            let declared = parts.get(&Key::Class).unwrap_or_default();
            let texts = [class.as_str(), if keep_declared { declared } else { "" }];
            let [class, declared] = texts.map(|text| building.number(Column::Class, text).unwrap_or(WRONG));
            [class, declared, if keep_parts { building.parts_number(|| parts.clone()) } else { 0 }]
        });
        classes.class.push(class);
        classes.declared.extend(keep_declared.then_some(declared));
        classes.parts.extend(keep_parts.then_some(parts));
    }
    Ok(classes)
}

/// Not a number where there is none.
fn reals(values: &Values) -> PolarsResult<Vec<f64>> {
    let values = values.cast(&DataType::Float64)?;
    let mut reals = Vec::with_capacity(values.len());
    for array in values.f64()?.downcast_iter() {
        reals.extend(array.iter().map(|value| value.copied().unwrap_or(f64::NAN)));
    }
    Ok(reals)
}

/// A time without a zone is taken as UTC.
fn starts(values: &Values, before: u64, wrong: &mut Wrong) -> PolarsResult<Vec<i64>> {
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
                wrong.add(line, || "started: it is before 1678 or after 2261: left out".to_owned());
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
            let expected = "expected is RFC 3339, as 2026-11-21T20:35:00+01:00";
            let text = shown(text.as_bytes());
            wrong.add(before + row as u64 + 1, || format!("started: `{text}`: {expected}: left out"));
        }
        ns.unwrap_or(UNDATED)
    };
    Ok(texts.str()?.iter().enumerate().map(start).collect())
}
