//! Where snapshots lie: memory that outlives the rank.

use super::probe::{GROUP_HEAD, Opened};
use crate::regions::MOST;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Which of a rank's snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// At t1.
    Start = 0,
    /// At t2.
    Stop = 1,
}

const SNAPSHOTS: usize = 2;

/// Two snapshots and a sum for each region of a rank's.
///
/// A snapshot is as the kernel hands out groups (perf_event_open(2), PERF_FORMAT_GROUP), one group after the
/// other: how many events, ns enabled, ns running, and each event's count. A sum has the places of the rank's own threads, and how often
/// something was added in the first word of each group's.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterTable<'a> {
    words: &'a [AtomicU64],
    snapshot: usize,
    region: usize,
}

impl<'a> CounterTable<'a> {
    /// Words that all of what was opened takes.
    pub fn words(opened: &Opened) -> usize {
        Self::words_of_snapshots(opened) + MOST * opened.task_words()
    }

    /// In memory that is large enough for what was opened, or that is for nothing.
    pub fn new(words: &'a [AtomicU64], opened: &Opened) -> Self {
        if words.len() < Self::words(opened) {
            return Self::default();
        }
        Self { words, snapshot: opened.words(), region: opened.task_words() }
    }

    /// Words of the two snapshots.
    pub fn words_of_snapshots(opened: &Opened) -> usize {
        SNAPSHOTS * opened.words()
    }

    /// The same as [`Self::new`] for a program that has no regions: without their sums.
    pub fn without_regions(words: &'a [AtomicU64], opened: &Opened) -> Self {
        if words.len() < Self::words_of_snapshots(opened) {
            return Self::default();
        }
        Self { words, snapshot: opened.words(), region: 0 }
    }

    /// A first snapshot of counters that have not counted yet.
    pub fn start_at_zero(&self, opened: &Opened) {
        for (_, place) in opened.places(self.of(Snapshot::Start)) {
            place.iter().for_each(|word| word.store(0, Relaxed));
            place[0].store((place.len() - GROUP_HEAD) as u64, Relaxed);
        }
    }

    /// Has the memory of both snapshots at hand: a page that is touched at t1 for the first time takes its time.
    pub fn touch(&self) {
        let snapshots = [Snapshot::Start, Snapshot::Stop].map(|snapshot| self.of(snapshot));
        snapshots.into_iter().flatten().for_each(|word| word.store(0, Relaxed));
    }

    /// The memory of one snapshot.
    pub fn of(&self, snapshot: Snapshot) -> &'a [AtomicU64] {
        &self.words[snapshot as usize * self.snapshot..][..self.snapshot]
    }

    /// The sum of the region in this slot of the rank's [`crate::session::live_regions::RegionTable`].
    pub fn of_region(&self, slot: usize) -> &'a [AtomicU64] {
        let at = SNAPSHOTS * self.snapshot + slot.min(MOST - 1) * self.region;
        &self.words[at..][..self.region]
    }

    /// Words of the snapshots of a region.
    pub fn region_words(&self) -> usize {
        self.region
    }

    /// Adds what was counted between two snapshots of these counters to a sum. A group of which one could not be
    /// read is not added.
    pub fn add(opened: &Opened, sum: &[AtomicU64], start: &[AtomicU64], stop: &[AtomicU64]) {
        let places = opened.places(sum).zip(opened.places(start)).zip(opened.places(stop));
        for (((_, sum), (_, start)), (_, stop)) in places {
            if was_read(start) && was_read(stop) {
                sum[0].fetch_add(1, Relaxed);
                for ((sum, start), stop) in sum.iter().zip(start).zip(stop).skip(1) {
                    sum.fetch_add(stop.load(Relaxed).wrapping_sub(start.load(Relaxed)), Relaxed);
                }
            }
        }
    }
}

/// True where the kernel filled in a group's place.
pub fn was_read(place: &[AtomicU64]) -> bool {
    place.len() >= GROUP_HEAD && place[0].load(Relaxed) == (place.len() - GROUP_HEAD) as u64
}
