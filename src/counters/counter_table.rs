//! The memory of a rank's snapshots, which outlives the rank.

use super::open_counters::{GROUP_HEAD, Opened};
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

/// A rank's two snapshots, and a sum for each of its regions.
///
/// A snapshot holds one group after the other, each as the kernel hands it out (perf_event_open(2),
/// PERF_FORMAT_GROUP): number of events, ns enabled, ns running, and each event's count. A sum covers only the
/// counters of the rank's own threads; the first word of each group counts the additions.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterTable<'a> {
    words: &'a [AtomicU64],
    snapshot: usize,
    region: usize,
}

impl<'a> CounterTable<'a> {
    /// Words that all opened counters need.
    pub fn words(opened: &Opened) -> usize {
        Self::words_of_snapshots(opened) + MOST * opened.task_words()
    }

    /// An empty table if `words` is too small for the opened counters.
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

    /// Like [`Self::new`], but without sums: for a program without regions.
    pub fn without_regions(words: &'a [AtomicU64], opened: &Opened) -> Self {
        if words.len() < Self::words_of_snapshots(opened) {
            return Self::default();
        }
        Self { words, snapshot: opened.words(), region: 0 }
    }

    /// Writes the first snapshot for counters that have not counted yet.
    pub fn start_at_zero(&self, opened: &Opened) {
        for (_, place) in opened.places(self.of(Snapshot::Start)) {
            place.iter().for_each(|word| word.store(0, Relaxed));
            place[0].store((place.len() - GROUP_HEAD) as u64, Relaxed);
        }
    }

    /// Touches the memory of both snapshots now: the first access to a page takes time, which would fall into t1.
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

    /// Words of one region's sum.
    pub fn region_words(&self) -> usize {
        self.region
    }

    /// Adds the difference of two snapshots to a sum. Skips a group if one of its two snapshots could not be read.
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

/// True if the kernel filled in a group's place.
pub fn was_read(place: &[AtomicU64]) -> bool {
    place.len() >= GROUP_HEAD && place[0].load(Relaxed) == (place.len() - GROUP_HEAD) as u64
}
