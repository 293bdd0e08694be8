//! Turns the rows of [`Counts`] into one [`Reading`] per event.

use crate::core_kinds::CoreKinds;
use pmmpi::counters::count_and_quality::{Gap, Reading, WhyUnavailable};
use pmmpi::counters::counts::{CountRow, Counts};
use pmmpi::counters::event::Event;
use pmmpi::counters::open_counters::{Scope, Set};

/// Every event of a row's set, and its reading. On a processor with several kinds of cores, the times of an event
/// of one kind are replaced by those of the whole processor.
pub fn readings<'a>(counts: &'a Counts, row: &'a CountRow) -> impl Iterator<Item = (&'a Event, Reading)> {
    // Rows of hardware threads do not need these, and there may be many rows.
    let own = counts.rows.iter().filter(|other| row.cpu.is_none() && other.rank == row.rank);
    let kinds = match CoreKinds::of(&counts.sets).is_one() {
        true => CoreKinds::default(),
        false => core_kinds(counts, own.map(|row| row.set)),
    };
    readings_on(counts, &kinds, row).into_iter()
}

/// The kinds of cores of the node that counted all these sets.
pub(crate) fn core_kinds(counts: &Counts, sets: impl IntoIterator<Item = u32>) -> CoreKinds<'_> {
    CoreKinds::of(sets.into_iter().filter_map(|set| counts.sets.get(set as usize)))
}

/// Like [`readings`], for callers that read many rows.
pub(crate) fn readings_on<'a>(
    counts: &'a Counts,
    kinds: &CoreKinds,
    row: &CountRow,
) -> Vec<(&'a Event, Reading)> {
    let Some(set) = counts.sets.get(row.set as usize) else { return Vec::new() };
    let events = set.events.iter().enumerate();
    let mut readings: Vec<(&Event, Reading)> =
        events.map(|(at, (event, gap))| (event, reading(set, row, at as u32, *gap))).collect();
    // A hardware thread has only one kind.
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
