//! What the rows of [`Counts`] come to: a [`Reading`] for each event.

use crate::core_kinds::CoreKinds;
use pmmpi::counters::counts::{CountRow, Counts};
use pmmpi::counters::event::Event;
use pmmpi::counters::probe::{Scope, Set};
use pmmpi::counters::reading::{Gap, Reading, WhyUnavailable};

/// Every event of a row's set, and what it came to. Of an event of one kind of core, where there are several, times
/// are those of the processor.
pub fn readings<'a>(counts: &'a Counts, row: &'a CountRow) -> impl Iterator<Item = (&'a Event, Reading)> {
    // Hardware threads' rows need them not, and may be many.
    let own = counts.rows.iter().filter(|other| row.cpu.is_none() && other.rank == row.rank);
    let kinds = match CoreKinds::of(&counts.sets).is_one() {
        true => CoreKinds::default(),
        false => core_kinds(counts, own.map(|row| row.set)),
    };
    readings_on(counts, &kinds, row).into_iter()
}

/// Of the node on which all these sets were counted.
pub(crate) fn core_kinds(counts: &Counts, sets: impl IntoIterator<Item = u32>) -> CoreKinds<'_> {
    CoreKinds::of(sets.into_iter().filter_map(|set| counts.sets.get(set as usize)))
}

/// As [`readings`], for who reads many rows.
pub(crate) fn readings_on<'a>(
    counts: &'a Counts,
    kinds: &CoreKinds,
    row: &CountRow,
) -> Vec<(&'a Event, Reading)> {
    let Some(set) = counts.sets.get(row.set as usize) else { return Vec::new() };
    let events = set.events.iter().enumerate();
    let mut readings: Vec<(&Event, Reading)> =
        events.map(|(at, (event, gap))| (event, reading(set, row, at as u32, *gap))).collect();
    // A hardware thread is of one kind.
    if set.scope == Scope::Task && row.cpu.is_none() {
        kinds.put_together(&mut readings);
    }
    readings
}

fn reading(set: &Set, row: &CountRow, event: u32, gap: Option<Gap>) -> Reading {
    let place = set
        .groups
        .iter()
        .enumerate()
        .find_map(|(group, events)| Some((group, events.iter().position(|at| *at == event)?)));
    let Some((group, at)) = place else {
        return Reading::missing(gap.unwrap_or(Gap::Unavailable(WhyUnavailable::NoSnapshot)));
    };
    match row.groups.get(group).and_then(Option::as_ref) {
        Some(counts) => Reading {
            count: counts.counts[at],
            enabled_ns: counts.enabled_ns,
            running_ns: counts.running_ns,
            gap,
        },
        None => Reading::missing(Gap::Unavailable(WhyUnavailable::Closed)),
    }
}
