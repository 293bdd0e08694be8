//! What the counters count in a region without content: the Linux kernel's work for two snapshots. The report
//! compares the counts of short regions with these counts.

use super::counter_table::was_read;
use super::open_counters::{GROUP_HEAD, OpenCounters, Opened};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The counts of one entry without content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyEntry {
    /// Counts by the names of the events that are counted in the ranks' own threads: of each rank the least of some
    /// entries, and of these the greatest over the ranks.
    pub counts: BTreeMap<String, u64>,
}

/// The first entry finds the caches cold; an interrupt may fall into one, but hardly into all.
const ENTRIES: usize = 4;

impl EmptyEntry {
    /// Reads the counters of this thread as at the begin and at the end of an entry. One check of the descriptors is
    /// part of it, because a check may come before the snapshot at the end.
    pub fn measure(counters: &mut impl OpenCounters) -> Self {
        let words = counters.opened().task_words();
        let snapshot = || (0..words).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (start, stop) = (snapshot(), snapshot());
        let mut least = Self::default();
        for _ in 0..ENTRIES {
            counters.snapshot(&start);
            counters.verify(words);
            counters.snapshot(&stop);
            for (name, count) in between(counters.opened(), &start, &stop) {
                least.counts.entry(name).and_modify(|least| *least = count.min(*least)).or_insert(count);
            }
        }
        least
    }

    /// Adds what other ranks measured.
    pub fn join(&mut self, other: Self) {
        for (name, count) in other.counts {
            self.counts.entry(name).and_modify(|most| *most = count.max(*most)).or_insert(count);
        }
    }
}

/// The counts between two snapshots, without events that were counted only for a part of the time.
fn between<'a>(
    opened: &'a Opened,
    start: &'a [AtomicU64],
    stop: &'a [AtomicU64],
) -> impl Iterator<Item = (String, u64)> + 'a {
    let groups = opened.places(start).zip(opened.places(stop)).filter_map(|((handle, start), (_, stop))| {
        let difference = |at: usize| stop[at].load(Relaxed).wrapping_sub(start[at].load(Relaxed));
        let set = &opened.sets[handle.set as usize];
        let is_whole = was_read(start) && was_read(stop) && difference(1) == difference(2);
        is_whole.then(|| {
            let events = set.groups[handle.group as usize].iter().map(|at| &set.events[*at as usize].0.name);
            let counts = (GROUP_HEAD..stop.len()).map(difference);
            events.cloned().zip(counts).collect::<Vec<_>>()
        })
    });
    groups.flatten()
}

#[cfg(test)]
mod tests {
    use super::super::event::{Encoding, Event, kind};
    use super::super::open_counters::{CounterHandle, Scripted, Set};
    use super::*;

    fn opened() -> Opened {
        let event = |name| (Event::counted(name, Encoding::new(kind::HARDWARE, 1)), None);
        let set = Set { events: vec![event("a"), event("b")], groups: vec![vec![0, 1]], ..Set::default() };
        let handle = CounterHandle { set: 0, group: 0, cpu: None, descriptor: -1, id: 1 };
        Opened { sets: vec![set], handles: vec![handle] }
    }

    #[test]
    fn the_least_entry_of_a_rank_and_the_greatest_of_all_ranks_count() {
        let ends = [9, 5, 700, 6];
        let snapshots =
            ends.into_iter().flat_map(|end| [vec![2, 10, 10, 1000, 3], vec![2, 20, 20, 1000 + end, 3]]);
        let mut all = EmptyEntry::measure(&mut Scripted::new(opened(), snapshots));
        let counts = |all: &EmptyEntry| all.counts.clone().into_iter().collect::<Vec<_>>();
        assert_eq!(counts(&all), [("a".to_owned(), 5), ("b".to_owned(), 0)]);
        let other = EmptyEntry { counts: [("a".to_owned(), 8), ("c".to_owned(), 1)].into() };
        all.join(other);
        assert_eq!(counts(&all), [("a".to_owned(), 8), ("b".to_owned(), 0), ("c".to_owned(), 1)]);
    }

    #[test]
    fn what_was_not_read_or_counted_in_part_has_no_count() {
        let unread = EmptyEntry::measure(&mut Scripted::new(opened(), []));
        let in_part = [vec![2, 10, 10, 0, 0], vec![2, 20, 15, 7, 7]].into_iter().cycle().take(2 * ENTRIES);
        let in_part = EmptyEntry::measure(&mut Scripted::new(opened(), in_part));
        assert_eq!((unread, in_part), Default::default());
        assert_eq!(EmptyEntry::measure(&mut Scripted::new(Opened::default(), [])), EmptyEntry::default());
    }
}
