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
    let set = counts.sets.get(row.set as usize).map(SetReader::of);
    set.map(|set| set.readings(&kinds, row)).unwrap_or_default().into_iter()
}

/// The kinds of cores of the node that counted all these sets.
pub(crate) fn core_kinds(counts: &Counts, sets: impl IntoIterator<Item = u32>) -> CoreKinds<'_> {
    CoreKinds::of(sets.into_iter().filter_map(|set| counts.sets.get(set as usize)))
}

/// Reads rows of one set, of which a run may have millions.
pub(crate) struct SetReader<'a> {
    set: &'a Set,
    /// For each event its group and its place in the group; `None` if no group has it.
    places: Vec<Option<(usize, usize)>>,
}

impl<'a> SetReader<'a> {
    pub(crate) fn of(set: &'a Set) -> Self {
        let mut places = vec![None; set.events.len()];
        for (group, events) in set.groups.iter().enumerate() {
            for (at, event) in events.iter().enumerate() {
                if let Some(place) = places.get_mut(*event as usize) {
                    place.get_or_insert((group, at));
                }
            }
        }
        Self { set, places }
    }

    /// Like [`readings`]; `kinds` are those of the node.
    pub(crate) fn readings(&self, kinds: &CoreKinds, row: &CountRow) -> Vec<(&'a Event, Reading)> {
        let events = self.set.events.iter().zip(&self.places);
        let mut readings: Vec<(&Event, Reading)> =
            events.map(|((event, gap), place)| (event, reading(row, *place, *gap))).collect();
        // A hardware thread has only one kind.
        if self.set.scope == Scope::Task && row.cpu.is_none() {
            kinds.put_together(&mut readings);
        }
        readings
    }
}

fn reading(row: &CountRow, place: Option<(usize, usize)>, gap: Option<Gap>) -> Reading {
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
